"""A run folder: read whole, or refused in one line that names file, line and field."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.invented_run import write_run

from analysis.errors import InputError
from analysis.records.run import MANIFEST, PLAN, REQUESTS, Run, load_run

Edit = Callable[[str], str]


def edited(folder: Path, file: str, edit: Edit) -> Path:
    path = folder / file
    path.write_text(edit(path.read_text()))
    return folder


def cut(text: str) -> str:
    return text[:-20]


def second_line(new: str) -> Edit:
    def edit(text: str) -> str:
        lines = text.splitlines()
        lines[1] = new
        return "\n".join([*lines, ""])

    return edit


def field(name: str, value: object) -> Edit:
    def edit(text: str) -> str:
        return json.dumps(json.loads(text) | {name: value})

    return edit


# File, how it is edited; place, what was found, what was expected.
BAD = {
    "edited requests": (
        REQUESTS,
        lambda text: text.replace('"busy_cores": 0.05', '"busy_cores": 0.04', 1),
        REQUESTS,
        "other content than when the run ended",
        "a run is not edited",
    ),
    "a torn line when ended": (REQUESTS, cut, f"{REQUESTS}:80", "unfinished", "line that ends"),
    "a torn plan": (PLAN, cut, f"{PLAN}:60", "unfinished", "line that ends"),
    "a plan that is not JSON": (PLAN, second_line("{,}"), f"{PLAN}:2", "Expecting", "JSON"),
    "a list for an object": (PLAN, second_line("[1]"), f"{PLAN}:2", "list", "a JSON object"),
    "an unknown field": (
        PLAN,
        second_line('{"colour": 1}'),
        f"{PLAN}:2, number",
        "nothing",
        "a value",
    ),
    "an unknown format": (MANIFEST, field("format", 2), f"{MANIFEST}, format", "2", "1"),
    "a manifest that is a list": (MANIFEST, lambda _: "[]", f"{MANIFEST}, format", "list", "1"),
    "a manifest that is not JSON": (MANIFEST, lambda _: "{", MANIFEST, "Expecting", "JSON"),
    "an end without a digest": (
        MANIFEST,
        field("requests_sha256", ""),
        f"{MANIFEST}, record",
        "'format': 1",
        "both or neither",
    ),
    "a time without a zone": (
        MANIFEST,
        field("started_utc", "2026-01-02T03:04:05"),
        f"{MANIFEST}, started_utc",
        "'2026-01-02T03:04:05'",
        "timezone",
    ),
}


@pytest.mark.parametrize(("file", "edit", "place", "found", "expected"), BAD.values(), ids=BAD)
def test_a_bad_run_is_refused_in_one_line(
    tmp_path: Path, file: str, edit: Edit, place: str, found: str, expected: str
) -> None:
    folder = edited(write_run(tmp_path / "bad"), file, edit)
    with pytest.raises(InputError) as raised:
        Run(folder)
    assert raised.value.place == f"bad/{place}"
    assert found in raised.value.found
    assert expected in raised.value.expected
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("file", [MANIFEST, PLAN, REQUESTS])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    folder = write_run(tmp_path / "bad")
    (folder / file).unlink()
    with pytest.raises(InputError, match=f"bad/{file}: found no such file"):
        Run(folder)


def test_an_unfinished_run_forgives_its_last_line_and_says_what_is_left(tmp_path: Path) -> None:
    run = Run(edited(write_run(tmp_path / "open", ended=False), REQUESTS, cut))
    assert not run.ended
    assert (len(run.plan), len(run.samples)) == (60, 79)
    assert [planned.number for planned in run.left()] == [59]


def test_an_unfinished_run_may_have_no_requests_yet(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "open", ended=False)
    (folder / REQUESTS).unlink()
    assert len(Run(folder).left()) == 60


def test_a_request_that_failed_is_left(tmp_path: Path) -> None:
    def fail(sample: dict) -> dict:
        failed = sample["number"] == 3 and not sample["warmup"]
        return sample | ({"error": "refused"} if failed else {})

    run = Run(write_run(tmp_path / "failed", each=fail))
    assert [planned.number for planned in run.left()] == [3]


def test_warm_ups_are_kept_and_not_counted(tmp_path: Path) -> None:
    run = Run(write_run(tmp_path / "run", experiments=["context-sweep"], repeats=3))
    assert len(run.plan) == len(run.of("context-sweep")) == 4 * 3
    assert len(run.samples) == 4 * (3 + 1)
    assert run.of("acceptance") == []


def test_a_sample_holds_to_the_identity(tmp_path: Path) -> None:
    run = Run(write_run(tmp_path / "run", commit=4.0))
    for sample in run.samples:
        assert sample.commit_length == pytest.approx((sample.output_tokens - 1) / sample.steps)
        by_identity = 1000 * sample.commit_length / sample.step_ms
        assert sample.tok_per_s == pytest.approx(by_identity)
        assert sample.client_step_ms > sample.step_ms  # half a millisecond more in all


def test_a_sample_without_an_answer_has_no_figures(tmp_path: Path) -> None:
    figures = ("output_tokens", "steps", "engine_decode_ms", "decode_s")
    run = Run(
        write_run(tmp_path / "run", each=lambda sample: sample | dict.fromkeys(figures, None))
    )
    sample = run.samples[0]
    assert sample.commit_length is sample.step_ms is sample.client_step_ms is None
    assert sample.tok_per_s is sample.context_tokens is None


def test_an_unknown_run_is_answered_with_those_there_are() -> None:
    with pytest.raises(InputError) as raised:
        load_run("no-such-run")
    assert (raised.value.place, raised.value.found) == ("run", "'no-such-run'")
    assert "a folder with a manifest.json" in raised.value.expected
