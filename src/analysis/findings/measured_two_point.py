"""The step from whole request times, beside the server's timings and the client's clock."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from analysis.findings.measured_series import measured
from analysis.findings.missing import Missing
from analysis.model.decode_steps import decoded_tokens
from analysis.model.linearity import Linearity, linearity
from analysis.model.regression import Interval, PolynomialFit, fit_polynomial
from analysis.model.two_point import context_of_slope
from analysis.records.case import Case
from analysis.records.cells import Cell
from analysis.records.run import Sample

AGREES_PCT = 5.0
"""Two clocks agree where their steps differ by no more."""


@dataclass(frozen=True)
class Decode:
    """Requests on one prompt that differ only in output length.

    Everything is a least-squares slope on output tokens over the requests without a flag, so that
    whatever a request pays once cancels from each clock alike: see ``model.two_point``.
    Undefined values are ``None``.
    """

    series: str
    cells: tuple[Cell, ...]

    @property
    def text(self) -> str:
        """The text that the prompt was cut from."""
        return self.cells[0].text

    @property
    def cold(self) -> bool:
        """Whether no cache was to hold the prompt."""
        return self.cells[0].cold

    @property
    def asked_prompt_tokens(self) -> int:
        """The prompt length that was asked for."""
        return self.cells[0].asked_prompt_tokens

    @property
    def used(self) -> list[Sample]:
        """The requests without a flag."""
        return [sample for cell in self.cells for sample in cell.used]

    @property
    def flags(self) -> Counter[str]:
        """The flags of all its cells."""
        return sum((cell.flags for cell in self.cells), Counter())

    @cached_property
    def line(self) -> PolynomialFit | None:
        """Request time in ms over output tokens; ``None`` below two output lengths."""
        return _line(self.used, lambda s: None if s.request_s is None else 1000 * s.request_s)

    @property
    def n(self) -> int:
        """Requests in the line."""
        return self.line.n if self.line else 0

    @property
    def token_ms(self) -> float | None:
        """Time per token: the slope of the line."""
        return self.line.coefficients[1] if self.line else None

    @property
    def token_ci95(self) -> Interval | None:
        """Its 95 % confidence interval by t."""
        return self.line.coefficient_interval(1) if self.line else None

    @property
    def context_tokens(self) -> float | None:
        """The context that the slope speaks for."""
        points = [s for s in self.used if s.request_s is not None and s.output_tokens]
        prompts = [s.prompt_tokens for s in points if s.prompt_tokens is not None]
        if self.line is None or not prompts:
            return None
        outputs = [float(s.output_tokens or 0) for s in points]
        return context_of_slope(sum(prompts) / len(prompts), outputs)

    @cached_property
    def bend(self) -> Linearity | None:
        """What the lengths between the ends say of the line's straightness."""
        points = _points(self.used, lambda s: s.request_s)
        return linearity([x for x, _ in points], [y for _, y in points])

    @cached_property
    def commit_length(self) -> float | None:
        """Commit length of the tokens between the shortest and the longest output."""
        line = _line(self.used, _steps)
        if line is None or line.coefficients[1] <= 0:
            return None
        return 1 / line.coefficients[1]

    @property
    def step_ms(self) -> float | None:
        """The step from request times alone."""
        if self.token_ms is None or self.token_ms <= 0 or self.commit_length is None:
            return None
        return self.token_ms * self.commit_length

    @property
    def step_ci95(self) -> Interval | None:
        """Its 95 % confidence interval by t, at this commit length."""
        if self.step_ms is None or self.commit_length is None or self.token_ci95 is None:
            return None
        low, high = self.token_ci95
        return self.commit_length * low, self.commit_length * high

    @cached_property
    def engine_step_ms(self) -> float | None:
        """The step from the decode times that the server gives."""
        return self._step(lambda s: s.engine_decode_ms)

    @cached_property
    def client_step_ms(self) -> float | None:
        """The step from first to last token by the client's clock."""
        return self._step(lambda s: None if s.decode_s is None else 1000 * s.decode_s)

    @property
    def engine_gap_pct(self) -> float | None:
        """The step from request times over the server's, less one."""
        return _gap_pct(self.step_ms, self.engine_step_ms)

    @property
    def client_gap_pct(self) -> float | None:
        """The step from request times over the client's, less one."""
        return _gap_pct(self.step_ms, self.client_step_ms)

    @property
    def worst_gap_pct(self) -> float | None:
        """The larger of the two, without sign."""
        gaps = [abs(g) for g in (self.engine_gap_pct, self.client_gap_pct) if g is not None]
        return max(gaps, default=None)

    def _step(self, decode_ms: Callable[[Sample], float | None]) -> float | None:
        line = _line(self.used, decode_ms)
        if line is None or line.coefficients[1] <= 0 or self.commit_length is None:
            return None
        return line.coefficients[1] * self.commit_length


@dataclass(frozen=True)
class TwoPoints:
    """The two-point decodes of a case, in the order of series, text and prompt length."""

    points: tuple[Decode, ...]

    @property
    def verdict(self) -> str:
        """The chapter's answer in one or two sentences."""
        timed = [p for p in self.points if p.token_ms is not None]
        if not timed:
            return (
                f"None of {len(self.points)} prompts has requests without a flag at two output "
                "lengths, so no time per token follows."
            )
        return f"{self.token_says} {self.agreement_says}"

    @property
    def token_says(self) -> str:
        """Time per token at the shortest and the longest prompt of the first series."""
        return _range([p for p in self.points if p.token_ms is not None])

    @property
    def compared(self) -> list[Decode]:
        """Prompts with a step by another clock to compare."""
        return [p for p in self.points if p.worst_gap_pct is not None]

    @property
    def worst_pct(self) -> float | None:
        """The largest gap between two clocks."""
        return max((p.worst_gap_pct or 0.0 for p in self.compared), default=None)

    @property
    def agreement_says(self) -> str:
        """How far each other clock lies from the request times.

        All clocks timed the same requests, so an unsteady machine moves them alike.
        """
        if not self.compared:
            if any(p.commit_length is not None for p in self.points):
                return "No prompt has a step by another clock, so nothing is compared."
            return "The server tells no commit length, so no step follows from a time per token."
        said = [
            _agreement(clock, [gap for gap in gaps if gap is not None])
            for clock, gaps in (
                ("the server's timings", [p.engine_gap_pct for p in self.compared]),
                ("the client's clock", [p.client_gap_pct for p in self.compared]),
            )
        ]
        return (
            f"At {len(self.compared)} of {len(self.points)} prompts the step from whole request "
            f"times {' and '.join(text for text in said if text)}; the clocks timed the same "
            "requests, so what slows the machine moves them alike."
        )


def find(case: Case) -> TwoPoints | Missing:
    """The two-point decodes of all runs of a case."""
    series = measured(case, "two-point")
    if isinstance(series, Missing):
        return series
    return TwoPoints(tuple(Decode(one.name, group) for one in series for group in one.groups()))


def timed(found: TwoPoints | Missing) -> TwoPoints | Missing:
    """The finding, if any prompt has a time per token to draw."""
    if isinstance(found, Missing) or any(p.token_ms is not None for p in found.points):
        return found
    return Missing("No prompt has unflagged requests at two output lengths: nothing to draw.")


def stepped(found: TwoPoints | Missing) -> TwoPoints | Missing:
    """The finding, if any prompt has a step to draw."""
    if isinstance(found, Missing) or any(p.step_ms is not None for p in found.points):
        return found
    return Missing("No prompt has both a time per token and a commit length: no step to compare.")


def _range(timed: Sequence[Decode]) -> str:
    first = timed[0]
    own = [p for p in timed if (p.series, p.text, p.cold) == (first.series, first.text, first.cold)]
    said = []
    for point in own[:1] + own[1:][-1:]:
        between = ""
        if point.token_ci95 is not None:
            low, high = point.token_ci95
            between = f" ({low:.3g} to {high:.3g}, 95 % confidence by t, n = {point.n})"
        context = "unknown" if point.context_tokens is None else f"{point.context_tokens:,.0f}"
        said.append(f"{point.token_ms:.3g} ms{between} at {context} tokens of context")
    return f"A token takes {' and '.join(said)} ({first.series}, text: {first.text})."


def _agreement(clock: str, gaps: Sequence[float]) -> str:
    if not gaps:
        return ""
    worst = max(abs(gap) for gap in gaps)
    word = "agrees with" if worst <= AGREES_PCT else "differs from"
    return f"{word} {clock} (by at most {worst:.2f} %)"


def _points(
    samples: Sequence[Sample], of: Callable[[Sample], float | None]
) -> list[tuple[float, float]]:
    return [
        (float(sample.output_tokens), value)
        for sample in samples
        if sample.output_tokens and (value := of(sample)) is not None
    ]


def _line(samples: Sequence[Sample], of: Callable[[Sample], float | None]) -> PolynomialFit | None:
    points = _points(samples, of)
    if len({x for x, _ in points}) < 2:
        return None
    return fit_polynomial([x for x, _ in points], [y for _, y in points])


def _steps(sample: Sample) -> float | None:
    if sample.commit_length is None or not sample.output_tokens:
        return None
    return decoded_tokens(sample.output_tokens) / sample.commit_length


def _gap_pct(step_ms: float | None, other_ms: float | None) -> float | None:
    if step_ms is None or other_ms is None:
        return None
    return 100 * (step_ms / other_ms - 1)
