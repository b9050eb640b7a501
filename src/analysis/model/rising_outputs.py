"""The time per token from requests on one prompt with several output lengths.

The two-point decode with more than two lengths: the slope of a least-squares line through request
times over output tokens. Whatever a request pays once is in the intercept. With two lengths the
slope is (T2 - T1) / (N2 - N1), see ``analysis.model.two_point``.
"""

from collections.abc import Sequence

import numpy as np


def context_of_slope(prompt_tokens: float, outputs: Sequence[float]) -> float:
    """The context that such a slope speaks for: p + cov(N, N^2) / (2 var N).

    Where the step is linear in context, T(N) is a quadratic whose N^2 term is b / (2 tau). The
    least-squares slope of N^2 on N is cov(N, N^2) / var(N); with two lengths it is N1 + N2.
    Raises ``ValueError`` with fewer than two distinct lengths.
    """
    n = np.asarray(outputs, dtype=float)
    if len(np.unique(n)) < 2:
        raise ValueError(f"{len(np.unique(n))} distinct output lengths, not at least 2")
    centred = n - n.mean()
    return float(prompt_tokens + (centred @ n**2) / (centred @ n) / 2)
