"""Verdicts on throughput follow the data: other numbers, other words."""

import numpy as np
import pytest

from analysis.findings import ledger
from analysis.findings.checks import CHECKS
from analysis.findings.judge_throughput import numbers
from analysis.findings.ledger import Judgement
from analysis.records.tables import ClaimRow

HEADER = "series,prompt_tokens,output_tokens,tok_per_s,commit_length,commit_kind,source"


def judge(found, claim: str) -> Judgement:
    return ledger.find(found.case, CHECKS).of(claim).judgement


def sweep(contexts, steps, commit: float = 4.0) -> str:
    """A sweep whose commit and throughput imply these steps."""
    lines = [
        f"a,{context:.0f},600,{1000 * commit / step:.9g},{commit},measured,made up {line}"
        for line, (context, step) in enumerate(zip(contexts, steps, strict=True))
    ]
    return "\n".join([HEADER, *lines, ""])


X = np.linspace(0, 11_000, 12)
JITTER = np.array([0.4, -0.7, 0.2, 0.9, -0.5, -0.3, 0.6, -0.8, 0.1, 0.5, -0.9, 0.5])

# What the sweep is replaced by, and the verdict on S16 (the step grows linearly).
LINEAR = {
    "many points on a line": (sweep(X, 30 + 0.02 * X + JITTER), "consistent"),
    "many points on a bow": (sweep(X, 30 + 0.02 * X + 2e-6 * X**2 + JITTER), "contradicted"),
    "precise points with a bend of 1 %": (sweep(X, 30 + 0.02 * X + 1e-7 * X**2), "consistent"),
    "many points with much scatter": (sweep(X, 80 + 0.01 * X + 30 * JITTER), "undecided"),
    "three points": (sweep([0, 5000, 9000], [30, 130, 210]), "undecided"),
    "repeats without scatter": (sweep([0, 10, 20, 10, 0], [10, 20, 40, 20.0, 10.0]), "undecided"),
}


@pytest.mark.parametrize(("table", "verdict"), LINEAR.values(), ids=list(LINEAR))
def test_linear_growth_is_judged_by_the_size_of_the_bend(alter, table: str, verdict: str) -> None:
    assert judge(alter({"sweep.csv": table, "two_point.csv": None}), "S16").verdict == verdict


# File, what is replaced by what, the claim and its verdict then.
FOLLOWS = {
    "commit inside the range": (
        "sweep.csv",
        [(",4.75,", ",7.40,")],
        {"S17": "consistent"},
    ),
    "a wider range": ("claims.csv", [(",7-8,", ",4-8,")], {"S17": "consistent"}),
    "another throughput": ("sweep.csv", [(",114.2,", ",110.0,")], {"S15": "contradicted"}),
    "another step claimed": ("claims.csv", [("34/63/101", "34/62/101")], {"S15": "contradicted"}),
    "a step of 90.6 ms": (
        "case.toml",
        [("step_ms = 100.0", "step_ms = 90.6")],
        {"S40": "reproduced", "S19": "contradicted"},
    ),
    "contexts below the crossover": (
        "case.toml",
        [
            ("tokens = 3500\n\n", "tokens = 500\n\n"),
            ("tokens = 4200", "tokens = 1500"),
            ("output_tokens = 1500\n\n", "output_tokens = 600\n\n"),
            ("tokens = 5000", "tokens = 1000"),
            ("tokens = 6000", "tokens = 1200"),
        ],
        {"S25": "consistent", "S26": "consistent"},
    ),
    "contexts on both sides of the crossover": (
        "case.toml",
        [("tokens = 3500\n\n", "tokens = 500\n\n")],
        {"S25": "undecided", "S26": "undecided"},
    ),
    "a drafter worth four": (
        "claims.csv",
        [("better-trained drafter,2,", "better-trained drafter,6,")],
        {"S25": "consistent", "S26": "contradicted"},
    ),
    "a short observation": (
        "case.toml",
        [("context_tokens = 3500", "context_tokens = 1000")],
        {"S23": "contradicted"},
    ),
    "an observation that the fit predicts": (
        "case.toml",
        [
            ("tok_per_s = 32.0", "tok_per_s = 27.0"),
            ("tokens = 5000", "tokens = 3600"),
            ("tokens = 6000", "tokens = 3700"),
            ("output_tokens = 1500\n\n", "\n"),
        ],
        {"S39": "consistent"},
    ),
    "an observation far from the fit": (
        "case.toml",
        [("tok_per_s = 32.0 ", "tok_per_s = 60.0 ")],
        {"S39": "contradicted"},
    ),
    "a longer step claimed than the line allows": (
        "claims.csv",
        [(",>1,s", ",>10,s")],
        {"S37": "contradicted"},
    ),
    "a step claimed inside the interval": (
        "claims.csv",
        [(",>1,s", ",>4,s")],
        {"S37": "undecided"},
    ),
}


@pytest.mark.parametrize(("file", "changes", "verdicts"), FOLLOWS.values(), ids=list(FOLLOWS))
def test_a_verdict_follows_the_data(alter, file: str, changes: list, verdicts: dict) -> None:
    found = alter({file: changes})
    assert {claim: judge(found, claim).verdict for claim in verdicts} == verdicts


def test_a_noisy_sweep_of_three_points_contradicts_nothing(alter) -> None:
    table = sweep([0, 3000, 6000], [50, 133, 118])
    found = alter({"sweep.csv": table, "two_point.csv": None})
    assert judge(found, "S39").verdict == "consistent"
    assert judge(found, "S37").verdict == "undecided"


def test_a_step_that_falls_with_context_is_judged_and_not_a_crash(alter) -> None:
    table = sweep([0, 3000, 6000], [100, 80, 75])
    found = alter({"sweep.csv": table, "two_point.csv": None})
    assert judge(found, "S23").verdict == "contradicted"
    assert judge(found, "S25").verdict == "consistent"


def test_a_sweep_without_commit_lengths_cannot_say_that_they_are_stable(alter) -> None:
    plain = sweep(X, 30 + 0.02 * X).replace(",4.0,measured,", ",,,")
    judgement = judge(alter({"sweep.csv": plain, "two_point.csv": None}), "S17")
    assert judgement.verdict == "not testable here"
    assert "no commit lengths" in judgement.evidence


def test_text_and_drafter_stay_confounded_with_one_drafter_on_two_texts(alter) -> None:
    judgement = judge(alter({"sweep.csv": [(",4.75,", ",2.10,")]}), "S41")
    assert judgement.verdict == "undecided"
    assert "another drafter on the same text" in judgement.condition


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("34/63/101/144", [34, 63, 101, 144]),
        ("7-8", [7, 8]),
        (">1", [1]),
        ("139.6", [139.6]),
        ("about 2.9 tokens", [2.9]),
    ],
)
def test_numbers_are_read_from_a_claims_value(value: str, expected: list[float]) -> None:
    texts = dict.fromkeys(ClaimRow.model_fields, "") | {"value": value}
    assert numbers(ClaimRow(**texts)) == expected
