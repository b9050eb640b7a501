"""A cell of an experiment: the repeats of one request, and what they say together.

Medians are over the samples that carry no flag. A cell whose samples are all flagged has no value:
its figures are ``None``, and its flags say why.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from analysis.model.decode_steps import decoded_tokens
from analysis.model.spread import spread_pct
from analysis.records.run import ExperimentName, Run, Sample


@dataclass(frozen=True)
class Cell:
    """Samples that asked for the same text, prompt length, output length and cache state."""

    experiment: ExperimentName
    text: str
    asked_prompt_tokens: int
    asked_output_tokens: int
    cold: bool
    samples: tuple[Sample, ...]
    spread_bound_pct: float

    @property
    def used(self) -> tuple[Sample, ...]:
        """The samples without a flag."""
        return tuple(sample for sample in self.samples if not sample.flags)

    @property
    def flags(self) -> Counter[str]:
        """How many samples carry each flag; ``spread`` is the cell's own."""
        counted: Counter[str] = Counter(flag for s in self.samples for flag in s.flags)
        if self.spread_pct is not None and self.spread_pct > self.spread_bound_pct:
            counted["spread"] = len(self.used)
        return counted

    @property
    def prompt_tokens(self) -> float | None:
        """Median prompt length that the server counted."""
        return self.median(lambda s: s.prompt_tokens)

    @property
    def output_tokens(self) -> float | None:
        """Median output length that the server counted."""
        return self.median(lambda s: s.output_tokens)

    @property
    def context_tokens(self) -> float | None:
        """Median of the mean contexts while decoding."""
        return self.median(lambda s: s.context_tokens)

    @property
    def step_ms(self) -> float | None:
        """Median time of one verify step."""
        return self.median(lambda s: s.step_ms)

    @property
    def client_step_ms(self) -> float | None:
        """The same by the client's clock."""
        return self.median(lambda s: s.client_step_ms)

    @property
    def commit_length(self) -> float | None:
        """Median commit length."""
        return self.median(lambda s: s.commit_length)

    @property
    def tok_per_s(self) -> float | None:
        """Median decode throughput."""
        return self.median(lambda s: s.tok_per_s)

    @property
    def client_tok_per_s(self) -> float | None:
        """The same by the client's clock."""
        return self.median(_client_tok_per_s)

    @property
    def engine_step_ms(self) -> float | None:
        """Median time of one verify step by the engine's clock alone."""
        return self.median(lambda s: None if s.engine_decode_ms is None else s.step_ms)

    @property
    def request_s(self) -> float | None:
        """Median time of the whole request by the client's clock."""
        return self.median(lambda s: s.request_s)

    @property
    def spread_pct(self) -> float | None:
        """Greatest less least step time, per cent of the median, over the samples used.

        Of several excerpts the widest: what differs between texts is no unsteadiness.
        """
        steps: dict[int, list[float]] = {}
        for sample in self.used:
            if sample.step_ms is not None:
                steps.setdefault(sample.excerpt, []).append(sample.step_ms)
        spreads = [spread_pct(values) for values in steps.values()]
        return max((spread for spread in spreads if spread is not None), default=None)

    def median(self, of: Callable[[Sample], float | None]) -> float | None:
        """Median of a figure over the samples used that have it."""
        values = [value for sample in self.used if (value := of(sample)) is not None]
        return median(values) if values else None


def cells(run: Run, experiment: ExperimentName) -> list[Cell]:
    """The cells of one experiment of a run, by text, prompt length and output length."""
    groups: dict[tuple[str, int, int, bool], list[Sample]] = {}
    for sample in run.of(experiment):
        key = (
            sample.text,
            sample.asked_prompt_tokens,
            sample.asked_output_tokens,
            sample.cold,
        )
        groups.setdefault(key, []).append(sample)
    return [
        _cell(experiment, key, groups[key], run.manifest.bounds.spread_pct)
        for key in sorted(groups)
    ]


def _client_tok_per_s(sample: Sample) -> float | None:
    if not sample.output_tokens or not sample.decode_s:
        return None
    return decoded_tokens(sample.output_tokens) / sample.decode_s


def _cell(
    experiment: ExperimentName,
    key: tuple[str, int, int, bool],
    samples: Sequence[Sample],
    bound: float,
) -> Cell:
    text, prompt, output, cold = key
    return Cell(experiment, text, prompt, output, cold, tuple(samples), bound)
