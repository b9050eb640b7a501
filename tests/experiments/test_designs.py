"""What is planned: every cell as often as asked, in random order, and what it amounts to."""

from collections import Counter

import pytest

from analysis.errors import InputError
from analysis.experiments.designs import DEFAULTS, checked, plan
from analysis.experiments.estimate import WARMUP_OUTPUT_TOKENS, load
from analysis.records.run import EXPERIMENTS


def test_every_experiment_has_a_default_design() -> None:
    assert set(DEFAULTS) == set(EXPERIMENTS)


def test_every_cell_is_planned_once_in_each_round() -> None:
    design = checked("context-sweep", {"prompt_tokens": (300, 900, 1800), "repeats": 4})
    planned = plan({"context-sweep": design}, seed=7)
    assert Counter((p.repeat, p.asked_prompt_tokens) for p in planned) == Counter(
        {(repeat, prompt): 1 for repeat in range(4) for prompt in (300, 900, 1800)}
    )
    assert [p.number for p in planned] == list(range(12))


def test_the_order_is_random_and_the_seed_decides_it() -> None:
    design = {"context-sweep": checked("context-sweep", {"repeats": 5})}
    orders = [[p.asked_prompt_tokens for p in plan(design, seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    lengths = design["context-sweep"].prompt_tokens
    rounds = [orders[0][i : i + len(lengths)] for i in range(0, len(orders[0]), len(lengths))]
    assert any(one != sorted(one) for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1


def test_the_two_point_design_is_heavy_at_the_ends_and_keeps_pairs_together() -> None:
    design = checked("two-point", {"prompt_tokens": (900, 2000), "repeats": 3})
    planned = plan({"two-point": design}, seed=1)
    low, middle, high = sorted(design.output_tokens)
    for prompt in (900, 2000):
        outputs = Counter(p.asked_output_tokens for p in planned if p.asked_prompt_tokens == prompt)
        assert outputs == {low: 6, middle: 3, high: 6}
    blocks = [planned[i : i + 5] for i in range(0, len(planned), 5)]
    assert all(len({p.asked_prompt_tokens for p in block}) == 1 for block in blocks)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"prompt_tokens": (0, 900)}, "found 0; expected lengths above zero"),
        ({"prompt_tokens": (900, 300, 900)}, "found 900 twice; expected every length once"),
        ({"output_tokens": (-5,)}, "found -5; expected lengths above zero"),
        ({"output_tokens": (64,)}, "found one output length (64); expected two or more"),
    ],
)
def test_lengths_that_make_no_design_are_refused(changes: dict[str, object], found: str) -> None:
    with pytest.raises(InputError, match="two-point, ") as error:
        checked("two-point", changes)
    assert found in str(error.value)


def test_the_load_counts_every_token_that_may_be_sent() -> None:
    design = checked(
        "context-sweep", {"prompt_tokens": (100, 200), "output_tokens": (50,), "repeats": 3}
    )
    planned = plan({"context-sweep": design}, seed=1)
    kept = load(planned, slots=2)
    assert (kept.requests, kept.warmups) == (6, 2)
    assert kept.prompt_tokens == 300
    assert kept.output_tokens == 6 * 50 + 2 * WARMUP_OUTPUT_TOKENS
    resent = load(planned, slots=1)
    assert resent.prompt_tokens == 300 + 3 * 300
    assert resent.minutes > kept.minutes
