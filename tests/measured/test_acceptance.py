"""Commit by text: the commit lengths that were put in, and what they are worth."""

import pytest

from analysis.findings import measured_acceptance as acceptance
from analysis.findings.missing import Missing

COMMIT = {"repeated": 7.0, "prose": 1.0, "code": 1.5}
LAWS = {"texts": tuple(COMMIT), "commit": COMMIT, "contexts": (300, 900), "noise": 0.0}


def plain_law(context: float) -> float:
    return 10 + 0.005 * context


@pytest.fixture
def fast(write_run):
    return lambda **laws: write_run("fast", **{**LAWS, "experiments": ("acceptance",)} | laws)


@pytest.fixture
def plain(write_run):
    laws = {**LAWS, "speculates": False, "step_law": plain_law, "texts": ("repeated",)}
    return lambda *experiments: write_run("plain", **laws, experiments=experiments)


def by_text(found):
    return {t.text: t for t in found.main}


def test_the_commit_lengths_are_recovered_exactly(fast, case_with) -> None:
    texts = by_text(acceptance.find(case_with(fast())))
    for name, commit in COMMIT.items():
        steps = round(127 / commit)
        assert texts[name].cell.commit_length == 127 / steps
        assert texts[name].commit_range == (127 / steps, 127 / steps)
        assert texts[name].drafted_per_step == 7
        assert texts[name].accepted_pct == pytest.approx(100 * (127 - steps) / (7 * steps))


def test_filler_is_set_against_prose(fast, case_with) -> None:
    found = acceptance.find(case_with(fast()))
    assert found.inflation == pytest.approx(127 / 18)
    assert "Filler inflates it: 7.06 times the commit length of prose." in found.verdict
    assert [t.text for t in found.ranked] == ["prose", "code", "repeated"]


def test_without_a_plain_run_it_is_not_said_whether_speculation_pays(fast, case_with) -> None:
    found = acceptance.find(case_with(fast()))
    assert "whether speculation pays is not known" in found.verdict
    assert isinstance(acceptance.judged(found), Missing)


@pytest.mark.parametrize("experiment", ["acceptance", "context-sweep"])
def test_each_text_has_its_break_even_against_the_plain_step(
    fast, plain, case_with, experiment
) -> None:
    found = acceptance.find(case_with(fast(), plain(experiment)))
    context = 900 + 64
    even = (20 + 0.01 * context) / plain_law(context)
    texts = by_text(found)
    judged = {name: t.break_even for name, t in texts.items() if t.break_even is not None}
    # The same prompt on the plain server serves its own text; the sweep's line serves every text.
    assert set(judged) == ({"repeated"} if experiment == "acceptance" else set(COMMIT))
    assert list(judged.values()) == pytest.approx([even] * len(judged))
    assert texts["repeated"].pays == "pays"
    if experiment == "context-sweep":
        assert (texts["prose"].pays, texts["code"].pays) == ("does not pay",) * 2
        assert "Speculation pays on 1 of 3 texts (repeated)." in found.verdict


def test_a_plain_sweep_is_not_stretched_beyond_its_contexts(fast, plain, case_with) -> None:
    found = acceptance.find(case_with(fast(contexts=(300, 2000)), plain("context-sweep")))
    assert {t.gain for t in found.texts if t.speculates} == {None}


def test_a_step_that_drafts_less_is_told_to_be_cheaper(fast, case_with) -> None:
    def narrow(sample):
        if sample["text"] != "prose":
            return sample
        half = {"drafted_tokens": 30, "engine_decode_ms": 0.5 * sample["engine_decode_ms"]}
        return {**sample, **half}

    found = acceptance.find(case_with(fast(each=narrow)))
    assert "The step is shortest on prose (14.8 ms)" in found.width_says
    assert "with 0.24 and 7.00 drafted tokens a step" in found.width_says


def test_places_in_a_text_are_counted_apart_from_requests(fast, case_with) -> None:
    def placed(sample):
        return {**sample, "excerpt": sample["repeat"] // 2}

    found = acceptance.find(case_with(fast(repeats=4, each=placed)))
    assert {(t.n, t.excerpts) for t in found.texts} == {(4, 2)}
    assert "over 4 requests from 2 places in it" in found.verdict


def test_origins_come_from_the_manifest(fast, case_with) -> None:
    case = case_with(fast())
    said = acceptance.find(case).origins
    for name, origin in case.runs[0].manifest.texts.items():
        assert f"- *{name}*: {origin}" in said


@pytest.mark.parametrize(
    ("laws", "says"),
    [
        ({"texts": ("prose",)}, "One text has a commit length, prose 1 tokens per step"),
        ({"speculates": False}, "This server does not speculate"),
        ({"each": lambda s: {**s, "flags": ["few steps"]}}, "Every request is flagged"),
    ],
)
def test_runs_with_little_to_say_say_it(fast, case_with, laws, says) -> None:
    assert acceptance.find(case_with(fast(**laws))).verdict.startswith(says)


def test_a_server_that_tells_no_commit_length_is_compared_by_throughput(
    fast, case_with, untold
) -> None:
    found = acceptance.find(case_with(fast(each=untold)))
    assert found.verdict.startswith("The server tells no commit length")
    assert all(t.cell.tok_per_s for t in found.texts)
    assert isinstance(acceptance.with_commits(found), Missing)
