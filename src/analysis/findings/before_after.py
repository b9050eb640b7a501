"""Two measurements of a case compared: without speculation before, with it after."""

from dataclasses import dataclass

from analysis import paths
from analysis.findings.comparison import Comparison, compare
from analysis.findings.missing import Missing
from analysis.findings.sides import load_side
from analysis.model.log_ratio import LogRatio
from analysis.records.case import Case


@dataclass(frozen=True)
class BeforeAfter:
    """A comparison, and its sentences."""

    comparison: Comparison

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two."""
        return self.comparison.sentence

    @property
    def sides(self) -> str:
        """What is compared with what."""
        before, after = self.comparison.before, self.comparison.after
        return (
            f"Before: {before.name} ({len(before)} values). After: {after.name} "
            f"({len(after)} values)."
        )

    @property
    def details(self) -> str:
        """What to know of it, as a list in Markdown."""
        return "\n".join(f"- {text}" for text in self.comparison.details)

    @property
    def factors(self) -> list[tuple[str, LogRatio]]:
        """Throughput, and the two that it is the product of, where that is known."""
        found = [("throughput", self.comparison.throughput)]
        split = self.comparison.split
        if split is not None:
            found += [("commit", split.commit), ("step", split.step)]
        return found

    @property
    def said(self) -> str:
        """Every factor with its interval, for those who cannot see the picture."""
        return "; ".join(
            f"{name} times {ratio.ratio:.3g}"
            + (" ({:.3g} to {:.3g})".format(*ratio.interval95) if ratio.interval95 else "")
            for name, ratio in self.factors
        )


def find(case: Case, before: str = "", after: str = "") -> BeforeAfter | Missing:
    """Compare two sources: by default the case's run without speculation and its run with it."""
    names = [before, after]
    if not all(names):
        plain = [run for run in case.runs if run.manifest.server.speculates is False]
        drafting = [run for run in case.runs if run.manifest.server.speculates]
        if not plain or not drafting:
            return Missing(
                "This case has no run without speculation beside one with it; two sources can be "
                "given as parameters."
            )
        names = [before or str(plain[0].folder), after or str(drafting[0].folder)]
    sides = [load_side(_from_root(name)) for name in names]
    return BeforeAfter(compare(*sides))


def _from_root(name: str) -> str:
    """A path from the project root, wherever the notebook runs; other names stay."""
    inside = paths.ROOT / name
    return str(inside) if inside.exists() else name
