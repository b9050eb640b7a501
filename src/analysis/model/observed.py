"""What was observed of one side of a comparison: commit, step and context, a row a value."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Observed:
    """Commit (tokens per step), step (ms) and mean context (tokens; NaN where not known).

    ``cells`` names the conditions of each row; rows of the same name on both sides are set beside
    each other. ``successive`` rows are windows of one session in the order of time.
    Raises ``ValueError`` without rows, or for a commit or a step that is not above zero.
    """

    commit: Floats
    step_ms: Floats
    context_tokens: Floats
    cells: tuple[str, ...]
    successive: bool = False

    def __post_init__(self) -> None:
        lengths = {len(c) for c in (self.commit, self.step_ms, self.context_tokens, self.cells)}
        if len(lengths) > 1 or not self.cells:
            raise ValueError(f"columns of {sorted(lengths)} rows")
        if not (np.all(self.commit > 0) and np.all(self.step_ms > 0)):
            raise ValueError("a commit or a step that is not above zero")

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def names(self) -> list[str]:
        """The cells, each once, in the order they come."""
        return list(dict.fromkeys(self.cells))

    @property
    def mean_context(self) -> float | None:
        """Mean context of the rows; ``None`` where one of them is not known."""
        mean = float(self.context_tokens.mean())
        return mean if np.isfinite(mean) else None

    def of(self, names: list[str]) -> "Observed":
        """The rows of these cells, cell by cell."""
        return self.rows([i for group in self.groups(names) for i in group])

    def rows(self, places: list[int]) -> "Observed":
        """The rows at these places."""
        columns = self.commit[places], self.step_ms[places], self.context_tokens[places]
        return Observed(*columns, tuple(self.cells[i] for i in places), self.successive)

    def groups(self, names: list[str]) -> list[list[int]]:
        """Places of the rows of each cell."""
        found: dict[str, list[int]] = {name: [] for name in names}
        for place, name in enumerate(self.cells):
            if name in found:
                found[name].append(place)
        return list(found.values())

    def by_cell(self) -> "Observed":
        """One row a cell: geometric means, and the mean context. Windows stay as they are."""
        if self.successive:
            return self
        groups = self.groups(self.names)
        commit = [float(np.exp(np.log(self.commit[group]).mean())) for group in groups]
        step = [float(np.exp(np.log(self.step_ms[group]).mean())) for group in groups]
        context = [float(self.context_tokens[group].mean()) for group in groups]
        columns = np.array(commit), np.array(step), np.array(context)
        return Observed(*columns, tuple(self.names))
