"""What each experiment varies, and in which order its requests are sent.

Every experiment is a grid of texts, prompt lengths and output lengths. Within a round the order is
random, so that a drift of the machine does not look like an effect; rounds repeat the grid.
"""

import random
from collections.abc import Iterator, Mapping

from pydantic import PositiveInt, model_validator

from analysis.errors import InputError
from analysis.records.checked import Record
from analysis.records.run import ExperimentName, Planned


class Design(Record):
    """One experiment. Lengths in tokens; ``excerpts`` are places of a text that a prompt starts at.

    ``paired`` keeps the output lengths of one prompt together, the first and the last length twice
    in each round: their difference is what counts, and the ends carry most of it.
    """

    texts: tuple[str, ...] = ("repeated",)
    prompt_tokens: tuple[PositiveInt, ...]
    output_tokens: tuple[PositiveInt, ...] = (192,)
    excerpts: PositiveInt = 1
    repeats: PositiveInt = 3
    cold: bool = False
    paired: bool = False

    @model_validator(mode="after")
    def _nothing_twice(self) -> "Design":
        for name in ("texts", "prompt_tokens", "output_tokens"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} with every value once")
        return self


DEFAULTS: Mapping[ExperimentName, Design] = {
    "two-point": Design(
        prompt_tokens=(900, 3300), output_tokens=(168, 252, 336), repeats=2, paired=True
    ),
    "context-sweep": Design(prompt_tokens=(300, 900, 1700, 2500, 3300, 4500, 6000)),
    "output-length": Design(prompt_tokens=(900,), output_tokens=(168, 336, 672, 1344)),
    "acceptance": Design(
        texts=("repeated", "prose", "code", "question"), prompt_tokens=(900,), excerpts=3, repeats=2
    ),
}


def plan(designs: Mapping[ExperimentName, Design], seed: int) -> list[Planned]:
    """All requests of the experiments, in the order in which they are to be sent."""
    order = random.Random(seed)
    planned: list[Planned] = []
    for experiment, design in designs.items():
        for repeat in range(design.repeats):
            for text, excerpt, prompt, output in _round(design, order):
                planned.append(
                    Planned(
                        number=len(planned),
                        experiment=experiment,
                        text=text,
                        excerpt=excerpt,
                        asked_prompt_tokens=prompt,
                        asked_output_tokens=output,
                        cold=design.cold,
                        repeat=repeat,
                    )
                )
    return planned


def checked(experiment: ExperimentName, changes: Mapping[str, object]) -> Design:
    """The experiment's default design with some values changed.

    Raises ``InputError`` for a length of zero, the same length twice, or a pair that is none.
    """
    values = DEFAULTS[experiment].model_dump() | dict(changes)
    for name in ("prompt_tokens", "output_tokens"):
        given = values[name]
        if any(value < 1 for value in given):
            raise InputError(f"{experiment}, {name}", str(min(given)), "lengths above zero")
        if len(set(given)) < len(given):
            twice = next(value for value in given if given.count(value) > 1)
            raise InputError(f"{experiment}, {name}", f"{twice} twice", "every length once")
    if values["paired"] and len(values["output_tokens"]) < 2:
        found = f"one output length ({values['output_tokens'][0]})"
        raise InputError(f"{experiment}, output_tokens", found, "two or more to take a difference")
    return Design.model_validate(values)


def lengths(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them; ``ValueError`` for anything else."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{text!r} is not whole numbers with commas between them") from None


def _round(design: Design, order: random.Random) -> Iterator[tuple[str, int, int, int]]:
    """Text, excerpt, prompt and output length of every request of one round."""
    prompts = [
        (text, excerpt, prompt)
        for text in design.texts
        for excerpt in range(design.excerpts)
        for prompt in design.prompt_tokens
    ]
    if not design.paired:
        cells = [(*prompt, output) for prompt in prompts for output in design.output_tokens]
        order.shuffle(cells)
        yield from cells
        return
    order.shuffle(prompts)
    low, *middle, high = sorted(design.output_tokens)
    for prompt in prompts:
        lengths = [low, low, *middle, high, high]
        order.shuffle(lengths)
        for output in lengths:
            yield (*prompt, output)
