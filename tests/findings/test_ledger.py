"""The ledger of the first case: 42 claims, and the verdict on each."""

import pytest

from analysis.findings import ledger
from analysis.findings.checks import CHECKS
from analysis.findings.ledger import WORDS, Findings, Ledger
from analysis.findings.missing import Missing

JUDGED = {
    "S15": "reproduced",
    "S16": "undecided",
    "S17": "contradicted",
    "S19": "reproduced",
    "S20": "not testable here",
    "S21": "not testable here",
    "S22": "not testable here",
    "S23": "consistent",
    "S25": "contradicted",
    "S26": "contradicted",
    "S27": "not testable here",
    "S28": "reproduced",
    "S30": "reproduced",
    "S31": "contradicted",
    "S32": "contradicted",
    "S35": "undecided",
    "S37": "consistent",
    "S38": "not testable here",
    "S39": "undecided",
    "S40": "contradicted",
    "S41": "undecided",
    "S42": "contradicted",
}
VERDICTS = {f"S{n:02}": JUDGED.get(f"S{n:02}", "given") for n in range(1, 43)}


@pytest.fixture(scope="module")
def judged(sglang: Findings) -> Ledger:
    found = ledger.find(sglang.case, CHECKS)
    assert isinstance(found, Ledger)
    return found


@pytest.mark.parametrize(("claim", "verdict"), VERDICTS.items())
def test_each_claim_has_its_verdict(judged: Ledger, claim: str, verdict: str) -> None:
    assert judged.of(claim).judgement.verdict == verdict


def test_the_ledger_holds_every_claim_once_in_its_order(judged: Ledger) -> None:
    assert [v.claim.id for v in judged.verdicts] == list(VERDICTS)


def test_the_counts_add_up(judged: Ledger) -> None:
    assert judged.counts == {
        "given": 20,
        "reproduced": 4,
        "consistent": 2,
        "contradicted": 7,
        "undecided": 4,
        "not testable here": 5,
    }
    assert set(judged.counts) == set(WORDS)


# What the evidence of a claim must name, in the account's own numbers.
EVIDENCE = {
    "S15": ["34.03, 62.78, 101.41, 144.04", "no test"],
    "S16": ["20.15 us/token (17.3 to 23.0)", "power of 0.12"],
    "S17": ["4.75 at 13"],
    "S19": ["29.0", "28.2", "29.9", "3 of 10"],
    "S23": ["69 %", "1,606", "514 times", "23.5", "leaves a factor of 22"],
    "S25": ["3.18 times", "1,606", "2.553 to 5.5"],
    "S28": ["262,144", "64 x 4,096"],
    "S30": ["576", "61 layers"],
    "S31": ["70,272 B", "8,784 B", "8.58 KiB"],
    "S32": ["14.05 GB", "13.09 GiB", "1.757 GB"],
    "S35": ["14.05 GB", "6.47 GiB", "7.03 GB", "101,133"],
    "S37": ["4.1 s", "200,000", "36 times"],
    "S39": ["3 of 10", "21.0 ms"],
    "S40": ["29.0, not 32", "18.9 to 30.3"],
    "S41": ["7.9", "2.9"],
    "S42": ["31,232 B", "70,272", "312,320 B"],
}


@pytest.mark.parametrize(
    ("claim", "part"), [(claim, part) for claim, parts in EVIDENCE.items() for part in parts]
)
def test_the_evidence_names_its_numbers(judged: Ledger, claim: str, part: str) -> None:
    assert part in judged.of(claim).judgement.evidence


@pytest.mark.parametrize("claim", ["S20", "S21", "S22", "S27", "S38"])
def test_what_is_not_testable_here_says_what_would_decide(judged: Ledger, claim: str) -> None:
    assert "would decide" in judged.of(claim).judgement.evidence


@pytest.mark.parametrize("claim", [c for c, word in VERDICTS.items() if word == "undecided"])
def test_what_is_undecided_has_a_condition_or_a_power(judged: Ledger, claim: str) -> None:
    judgement = judged.of(claim).judgement
    assert "would decide" in judgement.condition or "power" in judgement.evidence


def test_every_verdict_points_to_a_cell_of_a_notebook(judged: Ledger) -> None:
    for verdict in judged.verdicts:
        notebook, cell = verdict.judgement.cell.split("#")
        assert notebook[:2].isdigit()
        assert cell


def test_intervals_say_their_kind_and_n(judged: Ledger) -> None:
    with_interval = [v for v in judged.verdicts if v.judgement.interval is not None]
    assert [v.claim.id for v in with_interval] == ["S16", "S19", "S37"]
    for verdict in with_interval:
        low, high = verdict.judgement.interval
        assert low < high
        assert verdict.judgement.interval_kind.startswith("95 % ")
        assert verdict.judgement.n == 4


def test_every_check_judges_a_claim_of_the_first_case(sglang: Findings) -> None:
    assert {claim.check for claim in sglang.case.claims} == set(CHECKS)


def test_a_case_without_claims_has_no_ledger(vllm: Findings) -> None:
    found = ledger.find(vllm.case, CHECKS)
    assert isinstance(found, Missing)
    assert "no claims.csv" in found.reason


def test_claims_on_a_chapter_without_data_are_not_testable_here(alter) -> None:
    found = ledger.find(alter({"sweep.csv": None}).case, CHECKS)
    for claim in ("S15", "S16", "S17", "S19", "S23", "S25", "S37", "S39", "S40", "S41"):
        judgement = found.of(claim).judgement
        assert judgement.verdict == "not testable here"
        assert judgement.evidence.startswith("This case has no ")
    assert found.of("S31").judgement.verdict == "contradicted"
    assert found.of("S07").judgement.verdict == "given"
