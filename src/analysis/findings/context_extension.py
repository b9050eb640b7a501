"""A change of the context limit: what the engine does with it, whether it fits, how fast it is.

That a context fits and that it is usable are two questions. The second is answered by the case's
own step-time lines, far beyond where they were measured, and is marked so.
"""

from dataclasses import dataclass
from statistics import median

from analysis.findings import context_fit, step_time
from analysis.findings.context_fit import ContextFit
from analysis.findings.missing import Missing
from analysis.findings.series import Axis, SeriesFit
from analysis.findings.step_time import StepTimes
from analysis.model.regression import PolynomialFit
from analysis.model.step_time import throughput
from analysis.records.case import Case

ANSWER_TOKENS = 1000
"""An answer, where the case names none."""


@dataclass(frozen=True)
class Far:
    """The step and throughput at one context on one axis: the line, and two quadratics.

    Milliseconds and tok/s. A quadratic is ``None`` where it is not above zero there, or where
    there are too few points for it. ``beyond`` is the context over the longest measured one.
    """

    context_tokens: int
    axis: Axis
    beyond: float
    line_ms: float
    line_ci95: tuple[float, float] | None
    curve_ms: float | None
    weighted_ms: float | None
    line_tok_per_s: float
    weighted_tok_per_s: float | None


@dataclass(frozen=True)
class Extension:
    """The finding of the chapter. ``steps`` is missing where the case has no step times."""

    fit: ContextFit
    steps: StepTimes | Missing
    commit_length: float
    commit_is: str
    answer_tokens: int

    @property
    def wished_tokens(self) -> int:
        """The wished limit."""
        return self.fit.wished_tokens

    @property
    def change_says(self) -> str:
        """What the change of the limit does in this engine."""
        fit = self.fit
        if fit.now is None or fit.then is None or fit.limit_tokens is None:
            return f"What {fit.engine} does with the limit is not known here."
        engine = fit.engine
        text = (
            f"At {fit.limit_tokens:,} tokens {engine} {fit.now.behaviour}. At "
            f"{fit.wished_tokens:,} it {fit.then.behaviour}."
        )
        if not fit.then.starts:
            return f"At {fit.limit_tokens:,} tokens {engine} {fit.now.behaviour}. At the wish: " + (
                f"{fit.then.refusal}."
            )
        if fit.held:
            return text
        return (
            f"{text} So the edit raises the longest request {fit.change_factor:.2f}-fold, to "
            f"{fit.then.largest_request:,} tokens, and not to {fit.wished_tokens:,}."
        )

    @property
    def capability_says(self) -> str:
        """Whether the model itself reaches so far."""
        model = self.fit.model
        longest = model.max_position_embeddings
        if longest is None:
            return "The config gives no position limit."
        yarn = ""
        if model.yarn_factor and model.yarn_original_positions:
            yarn = f", by YaRN factor {model.yarn_factor:g} on {model.yarn_original_positions:,}"
        word = "within" if self.wished_tokens <= longest else "beyond"
        return (
            f"{self.wished_tokens:,} tokens are {word} the model's own limit of {longest:,}{yarn}."
        )

    @property
    def served(self) -> str:
        """What reading the limit back should say: the longest request that is served."""
        then = self.fit.then
        if then is None:
            return "not known before it is tried"
        if not then.starts:
            return "not up"
        if then.held:
            return f"served, up to {then.largest_request:,} tokens"
        return f"capped at {then.largest_request:,}"

    @property
    def verdict(self) -> str:
        """The chapter's answer, in two sentences: does it fit, is it usable."""
        fit = self.fit
        if fit.allocates or fit.pool_tokens is None:
            memory = f"{fit.needs_says} Whether that memory is there is not known."
        elif fit.held:
            memory = f"{self.wished_tokens:,} tokens fit in the pool as it is."
        else:
            some = any(r.fits_after or r.fits_before for r in fit.readings) or any(
                way.enough == "yes" for way in fit.ways
            )
            serves = ""
            if fit.then is not None:
                longest = fit.then.largest_request
                does = f"serves at most {longest:,}" if longest else "does not start"
                serves = f", and {fit.engine} {does}"
            memory = (
                f"{self.wished_tokens:,} tokens do not fit in the pool as it is{serves}"
                f"{'; with another layout, dtype or more memory they can fit' if some else ''}."
            )
        if isinstance(self.steps, Missing):
            return memory
        at = self.at_wish
        return (
            f"{memory} Usable is another question: the line of this server's steps, "
            f"{'extrapolated to ' if at.beyond > 1 else 'at '}{at.beyond:.2g} times its longest "
            f"measured context, gives {_time(at.line_ms)} a step and {at.line_tok_per_s:.2g} tok/s."
        )

    @property
    def main(self) -> SeriesFit:
        """The series whose line is extrapolated."""
        assert isinstance(self.steps, StepTimes)
        return self.steps.main

    @property
    def measured(self) -> tuple[float, float]:
        """Least and greatest prompt length of that series."""
        return min(self.main.prompt.contexts), max(self.main.prompt.contexts)

    @property
    def contexts(self) -> tuple[int, ...]:
        """The longest measured context, the limit in force, what is served, and the wish."""
        then = self.fit.then
        named = [int(self.measured[1]), self.fit.limit_tokens]
        named += [then.largest_request if then is not None else None, self.wished_tokens]
        return tuple(sorted({n for n in named if n}))

    @property
    def far(self) -> tuple[Far, ...]:
        """Steps at those contexts on every axis that the series has."""
        axes: tuple[Axis, ...] = ("prompt", "mean") if self.main.has_mean_axis else ("prompt",)
        return tuple(self._far(context, axis) for axis in axes for context in self.contexts)

    @property
    def at_wish(self) -> Far:
        """At the wished context, on the prompt axis."""
        return self._far(self.wished_tokens, "prompt")

    @property
    def far_is(self) -> str:
        """Whether the wish lies beyond what was measured."""
        beyond = self.at_wish.beyond > 1
        return "Extrapolation, not measurement" if beyond else "Within the measured contexts"

    @property
    def usable_says(self) -> str:
        """What the extrapolations give at the wish, and how far they are apart."""
        at = self.at_wish
        answer_ms = 1000 * self.answer_tokens / at.line_tok_per_s
        text = (
            f"At a prompt of {at.context_tokens:,} tokens the line gives {_time(at.line_ms)} a "
            f"step: {at.line_tok_per_s:.2g} tok/s at a commit length of {self.commit_length:.3g} "
            f"({self.commit_is}), so an answer of {self.answer_tokens:,} tokens takes "
            f"{_time(answer_ms)}. {self.far_is}: {at.beyond:.2g} times the longest measured prompt "
            f"of {self.measured[1]:,.0f} tokens."
        )
        if at.weighted_ms and at.curve_ms:
            text += (
                f" A quadratic through the same {self.main.n} points gives {_time(at.curve_ms)}, a "
                f"weighted one {_time(at.weighted_ms)}. {self.main.prompt.straightness}"
            )
        return text

    @property
    def beside(self) -> tuple[SeriesFit, ...]:
        """Plain series of cases beside this one that were measured to longer contexts."""
        assert isinstance(self.steps, StepTimes)
        found = [
            fit
            for fit in self.steps.compared
            if fit.speculation == "none" and max(fit.prompt.contexts) > self.measured[1]
        ]
        return tuple(fit for fit in found if fit.repeat == found[0].repeat)

    @property
    def beside_says(self) -> str:
        """What such a series says of the wish."""
        if not self.beside:
            return ""
        fit = self.beside[0]
        step = fit.prompt.step.step_ms(self.wished_tokens)
        return (
            f"That a step is slow there is of this server, not of the context: in "
            f"{fit.case}, the same model on the same kind of GPUs without speculation was measured "
            f"to {max(fit.prompt.contexts):,.0f} tokens, and its line gives {_time(step)} a token "
            f"({throughput(1, step):.0f} tok/s) at {self.wished_tokens:,}."
        )

    def _far(self, context: int, axis: Axis) -> Far:
        line, weighted = self.main.line(axis), self.main.line(axis, "relative")
        step = line.step.step_ms(context)
        curve, bent = _at(line.curve, context), _at(weighted.curve, context)
        return Far(
            context_tokens=context,
            axis=axis,
            beyond=context / max(line.contexts),
            line_ms=step,
            line_ci95=line.fit.confidence_interval(context),
            curve_ms=curve,
            weighted_ms=bent,
            line_tok_per_s=throughput(self.commit_length, step),
            weighted_tok_per_s=None if bent is None else throughput(self.commit_length, bent),
        )


def find(case: Case, context_tokens: int = 0) -> Extension | Missing:
    """Work out a change of the limit to ``context_tokens``, or to what the case wishes for."""
    limits = case.facts.limits
    if not context_tokens and limits.wished_context_tokens is None:
        now = f" of {limits.context_tokens:,} tokens" if limits.context_tokens else ""
        return Missing(
            f"This case wishes for no other context limit than its own{now}; the parameter "
            "context_tokens asks for one."
        )
    fit = context_fit.find(case, context_tokens)
    if isinstance(fit, Missing):
        return fit
    steps, observation = step_time.find(case), case.facts.observation
    commit, commit_is, answer = 1.0, "no speculation", ANSWER_TOKENS
    if observation is not None:
        commit, commit_is = observation.commit_length, "as observed"
        answer = observation.growing_output_tokens
    elif isinstance(steps, StepTimes):
        known = [row.commit_length for row in steps.main.rows if row.commit_length]
        if steps.main.speculation != "none":
            commit, commit_is = median(known), f"the median of {steps.main.series}"
    return Extension(fit, steps, commit, commit_is, answer)


def usable(found: Extension | Missing) -> Extension | Missing:
    """The finding, if the case has step times; else why it has none."""
    if isinstance(found, Extension) and isinstance(found.steps, Missing):
        return found.steps
    return found


def with_neighbour(found: Extension | Missing) -> Extension | Missing:
    """The finding, if a case beside it was measured further; silent if not."""
    found = usable(found)
    if isinstance(found, Extension) and not found.beside:
        return Missing("")
    return found


def fit_of(found: Extension | Missing) -> ContextFit | Missing:
    """The part on memory."""
    return found if isinstance(found, Missing) else found.fit


def _at(curve: PolynomialFit | None, context: float) -> float | None:
    value = None if curve is None else curve.at(context)
    return value if value is not None and value > 0 else None


def _time(ms: float) -> str:
    """A time in the unit that suits it."""
    if ms < 1000:
        return f"{ms:.3g} ms"
    return f"{ms / 1000:.1f} s" if ms < 120_000 else f"{ms / 60_000:.0f} minutes"
