"""A case folder: read whole, or refused in one line that names file and field."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis import paths
from analysis.errors import InputError
from analysis.findings import ledger
from analysis.findings.checks import CHECKS
from analysis.records.case import Case, committed_cases, load_case

FIRST = paths.CASES / "kimi-k26-sglang"


@pytest.fixture
def altered(tmp_path: Path) -> Callable[..., Path]:
    """A copy of the first case with pieces of one file replaced."""

    def alter(file: str, *pairs: tuple[str, str]) -> Path:
        folder = tmp_path / "cases" / "other"
        shutil.copytree(FIRST, folder)
        shutil.copytree(paths.VALIDATION, tmp_path / "validation")
        text = (folder / file).read_text()
        for old, new in pairs:
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
            text = text.replace(old, new)
        (folder / file).write_text(text)
        return folder

    return alter


# Replaced, its replacement; the field, what was found, what was expected.
BAD = {
    "field missing": ('title = "', 'titel = "', ", title", "nothing", "a value"),
    "unknown field": ("format = 1", "format = 1\ncolour = 2", ", colour", "unknown", "of format"),
    "unknown nested field": (
        "tp = 8",
        "tp = 8\nranks = 8",
        ", layout.ranks",
        "unknown",
        "of gpus, tp",
    ),
    "unknown field in a list": (
        'label = "about 5000"',
        'label = "about 5000"\nsize = 3',
        ", observation.contexts.2.size",
        "unknown",
        "one of label, tokens, output_tokens",
    ),
    "text in a number": (
        "commit_length = 2.9",
        'commit_length = "about three"',
        ", observation.commit_length",
        "'about three'",
        "a valid number",
    ),
    "negative context": (
        "context_tokens = 3500",
        "context_tokens = -3500",
        ", observation.context_tokens",
        "-3500",
        "greater than or equal to 0",
    ),
    "NaN": (
        "step_ms = 100.0",
        "step_ms = nan",
        ", observation.step_ms",
        "nan",
        "finite number",
    ),
    "infinity": (
        "tok_per_s = 32.0",
        "tok_per_s = inf",
        ", observation.tok_per_s",
        "inf",
        "finite number",
    ),
    "commit below the bonus token": (
        "commit_length = 2.9",
        "commit_length = 0.9",
        ", observation.commit_length",
        "0.9",
        "greater than or equal to 1",
    ),
    "a table where a value belongs": (
        "[references]",
        "[speculation.x]\n[references]",
        ", speculation.x",
        "unknown",
        "one of method, verified_tokens",
    ),
    "wrong format": ("format = 1", "format = 2\ncolour = 3", ", format", "2", "1"),
    "unknown dtype": (
        'kv_dtype = "bf16"',
        'kv_dtype = "int3"',
        ", layout.kv_dtype",
        "'int3'",
        "'bf16'",
    ),
    "ranks that do not divide": (
        "tp = 8",
        "tp = 8\ndcp = 3",
        ", layout",
        "'dcp': 3",
        "dcp 3 does not divide tp 8",
    ),
    "not TOML": ("format = 1", "format = = 1", "", "Invalid value (at line 2", "TOML"),
}


@pytest.mark.parametrize(("old", "new", "place", "found", "expected"), BAD.values(), ids=list(BAD))
def test_a_bad_case_is_refused_in_one_line(altered, old, new, place, found, expected) -> None:
    with pytest.raises(InputError) as raised:
        load_case(str(altered("case.toml", (old, new))))
    assert raised.value.place == f"other/case.toml{place}"
    assert found in raised.value.found
    assert expected in raised.value.expected
    assert "\n" not in str(raised.value)


def test_a_case_that_is_not_utf_8_is_refused(altered) -> None:
    folder = altered("case.toml")
    (folder / "case.toml").write_bytes(b'title = "\xff"\n')
    with pytest.raises(InputError, match=r"case\.toml: found a byte that is not UTF-8 at 9"):
        load_case(str(folder))


# What a case refers to is read when it is asked for, and named then.
@pytest.mark.parametrize(
    ("old", "new", "asked", "place", "found", "expected"),
    [
        (
            '"nvidia/Kimi-K2.6-NVFP4"',
            '"Kimi-K9"',
            "model",
            "case.toml, model",
            "'Kimi-K9'",
            "config.json",
        ),
        ("6000 Blackwell Server", "9000", "gpu", "case.toml, gpu", "'RTX PRO 9000'", "H100 SXM"),
        ("kimi_k26_sglang_plain", "gone", "plain", "gone.csv", "no such file", "readable"),
        ("kimi_k2_commit_by_task", "gone", "accept", "gone.csv", "no such file", "readable"),
        ("kv_pool_observed", "gone", "pools", "gone.csv", "no such file", "readable"),
        (
            "kv-layout/vllm",
            "gone",
            "kv_layouts",
            "case.toml, references.kv_layouts",
            "'../../gone'",
            "a folder",
        ),
        ('["kimi-k26-vllm"]', '["gone"]', "compared", "case", "'gone'", "kimi-k26-sglang"),
    ],
)
def test_a_reference_to_nothing_is_named(altered, old, new, asked, place, found, expected) -> None:
    case = load_case(str(altered("case.toml", (old, new))))
    with pytest.raises(InputError) as raised:
        getattr(case, asked)
    assert raised.value.place.endswith(place)
    assert found in raised.value.found
    assert expected in raised.value.expected


@pytest.mark.parametrize("name", ["no-such-case", "", "data/cases/no-such-case", "../model"])
def test_an_unknown_case_is_answered_with_those_there_are(name: str) -> None:
    with pytest.raises(InputError) as raised:
        load_case(name)
    assert (raised.value.place, raised.value.found) == ("case", repr(name))
    assert "one of kimi-k26-sglang, kimi-k26-vllm, smollm2-llamacpp, or a" in raised.value.expected


def test_an_unknown_check_names_the_claim_and_the_checks_there_are(altered) -> None:
    case = load_case(str(altered("claims.csv", (",step-linear", ",step-straight"))))
    with pytest.raises(InputError) as raised:
        ledger.find(case, CHECKS)
    assert raised.value.place == "other/claims.csv, S16, check"
    assert raised.value.found == "'step-straight'"
    assert "step-linear" in raised.value.expected


def test_a_check_that_needs_a_number_says_so_where_the_claim_has_none(altered) -> None:
    case = load_case(str(altered("claims.csv", (",7-8,", ",some,"))))
    with pytest.raises(InputError) as raised:
        ledger.find(case, CHECKS)
    assert raised.value.place == "claims.csv, S17, value"
    assert (raised.value.found, raised.value.expected) == ("'some'", "a number")


def test_the_first_case_comes_first() -> None:
    assert committed_cases()[0] == "kimi-k26-sglang"
    assert set(committed_cases()) == {p.parent.name for p in paths.CASES.glob("*/case.toml")}


def test_a_case_is_found_by_name_and_by_folder() -> None:
    assert load_case("kimi-k26-sglang").folder == load_case(str(FIRST)).folder == FIRST


def test_a_model_beside_the_case_is_preferred(altered) -> None:
    folder = altered("case.toml", ('"nvidia/Kimi-K2.6-NVFP4"', '"own.json"'))
    source = paths.MODELS / "Qwen--Qwen3-8B.json"
    shutil.copy(source, folder / "own.json")
    assert load_case(str(folder)).model.name == "Qwen/Qwen3-8B"


def test_tables_that_a_case_lacks_are_empty(tmp_path: Path) -> None:
    shutil.copy(FIRST / "case.toml", tmp_path / "case.toml")
    text = (tmp_path / "case.toml").read_text().split("[references]")[0]
    (tmp_path / "case.toml").write_text(text)
    case = Case(tmp_path)
    for table in (case.sweep, case.two_point, case.claims, case.plain, case.accept, case.pools):
        assert table == []
    assert case.compared == []


@pytest.fixture(scope="module")
def first() -> Case:
    return load_case("kimi-k26-sglang")


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def test_the_sweep_holds_the_values_of_the_claims_that_it_cites(first: Case) -> None:
    claims = {claim.id: claim for claim in first.claims}
    for row in first.sweep:
        rate, commit = (claims[name] for name in re.findall(r"S\d\d", row.source))
        assert (rate.unit, commit.unit) == ("tok/s", "tokens/step")
        assert row.tok_per_s == float(rate.value)
        assert row.commit_length == float(commit.value)
        assert numbers(rate.claim) == [row.prompt_tokens]
        assert numbers(commit.claim) == [row.prompt_tokens]
        assert commit.given_in_source == "read from server logs"
        assert row.commit_kind == "measured"
        assert row.output_tokens == numbers(claims["S07"].note)[0] == 600
    assert len(first.sweep) == 4


def test_the_two_point_table_holds_the_values_of_the_claims_that_it_cites(first: Case) -> None:
    claims = {claim.id: claim for claim in first.claims}
    for row in first.two_point:
        claim = claims[row.source.removeprefix("claim ")]
        assert row.tok_per_s == float(claim.value)
        assert [row.context_tokens] == numbers(claim.claim)
        assert (claim.topic, claim.unit) == ("two-point", "tok/s")
    assert len(first.two_point) == 4


CITED = [
    line
    for line in (FIRST / "case.toml").read_text().splitlines()
    if re.search(r"^\w+ = .*# S\d\d", line)
]


@pytest.mark.parametrize("line", CITED, ids=[line.split(" =")[0] for line in CITED])
def test_each_fact_of_the_case_stands_in_the_claim_that_it_cites(first: Case, line: str) -> None:
    given, comment = line.split("=", 1)[1].split("#", 1)
    claim = next(c for c in first.claims if c.id == re.findall(r"S\d\d", comment)[0])
    text = f"{claim.claim} {claim.value} {claim.unit} {claim.note}"
    if '"' in given:
        assert given.strip().strip('"') in text.split()
    else:
        assert numbers(given)
        assert set(numbers(given)) <= set(numbers(text))


def test_every_measured_number_of_the_case_cites_a_claim() -> None:
    facts = (FIRST / "case.toml").read_text().split("[layout]")[1].split("[[")[0]
    numbered = [line for line in facts.splitlines() if re.search(r"^\w+ = \[?\d", line)]
    assert [line for line in numbered if line not in CITED] == ["gpus = 8", "tp = 8"]
    assert len(numbered) > 10


def test_the_named_contexts_stand_in_the_claim_of_the_observation(first: Case) -> None:
    note = next(c.note for c in first.claims if c.id == "S01")
    for named in first.facts.observation.contexts:
        assert named.tokens in numbers(note)
    assert {n.output_tokens for n in first.facts.observation.contexts} == {None, 1500}


def test_claim_ids_are_there_once_and_without_a_gap(first: Case) -> None:
    assert [claim.id for claim in first.claims] == [f"S{n:02}" for n in range(1, 43)]


def test_a_claim_id_stands_for_one_claim(altered) -> None:
    case = load_case(str(altered("claims.csv", ("\nS02,", "\nS01,"))))
    with pytest.raises(InputError) as raised:
        _ = case.claims
    assert (raised.value.found, raised.value.expected) == ("S01 2 times", "it once")
    assert raised.value.place.endswith("claims.csv, column id")
