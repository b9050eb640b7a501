"""Whatever happens to a log, nothing crashes, and no number appears that the log does not support.

Real lines are cut, doubled, swapped and overwritten. Each window is then checked against its own
line by expressions that are written here, not by the readers.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.errors import InputError
from analysis.logs.read import read
from analysis.records.seen import Seen
from analysis.records.windows import Windows

DATA = Path(__file__).parent / "data"
LOGS = sorted(DATA.glob("*.log"))
DOCUMENTS = sorted([*DATA.glob("*.json"), *DATA.glob("*.jsonl"), *DATA.glob("*.txt")])
REPRODUCIBLE = settings(
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
"""The same damage everywhere; raise ``max_examples`` and drop ``derandomize`` to look for more."""
NUMBER = r"(\d+(?:\.\d+)?)"
PRINTED_PER_LINE = {
    "sglang": {
        "tok_per_s": rf"gen throughput \(token/s\): +{NUMBER},",
        "running": rf"#running-req: +{NUMBER},",
        "acceptance_length": rf"(?<!block )accept len: +{NUMBER},",
    },
    "vllm": {
        "tok_per_s": rf"(?<![\d.]){NUMBER}(?![\d.])",
        "running": rf"(?<![\d.]){NUMBER}(?![\d.])",
    },
}


def mutations(content: bytes) -> st.SearchStrategy[bytes]:
    """The content after one to four changes of a kind that happens to logs."""
    size = len(content)
    place = st.integers(0, max(0, size - 1))
    length = st.integers(1, 60)
    cut = st.tuples(place, length).map(lambda a: lambda b: b[: a[0]] + b[sum(a) :])
    doubled = st.tuples(place, length).map(
        lambda a: lambda b: b[: sum(a)] + b[a[0] : sum(a)] + b[sum(a) :]
    )
    overwritten = st.tuples(place, st.binary(min_size=1, max_size=6)).map(
        lambda a: lambda b: b[: a[0]] + a[1] + b[a[0] + len(a[1]) :]
    )
    put_in = st.tuples(
        place, st.sampled_from([b"\n", b"\r\n", b"\x1b[32m", b"9", b".", b", ", b"\0"])
    )
    inserted = put_in.map(lambda a: lambda b: b[: a[0]] + a[1] + b[a[0] :])
    ended = place.map(lambda at: lambda b: b[:at])
    swapped = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(_swap)
    changes = st.lists(
        st.one_of(cut, doubled, overwritten, inserted, ended, swapped), min_size=1, max_size=4
    )
    return changes.map(lambda some: _applied(content, some))


def _swap(lines: tuple[int, int]) -> Callable[[bytes], bytes]:
    def swap(content: bytes) -> bytes:
        parts = content.split(b"\n")
        one, other = (line % len(parts) for line in lines)
        parts[one], parts[other] = parts[other], parts[one]
        return b"\n".join(parts)

    return swap


def _applied(content: bytes, changes: list[Callable[[bytes], bytes]]) -> bytes:
    for change in changes:
        content = change(content)
    return content


def windows_of(path: Path) -> list[Windows]:
    try:
        return list(read([path], Seen()))
    except InputError:
        return []


def supported(batch: Windows, lines: list[str]) -> None:
    """Every printed figure stands on the window's line, and what follows from them is right."""
    for row in range(len(batch)):
        line = lines[batch.line[row] - 1]
        if "{" in line:
            continue  # a recorded answer
        for column, pattern in PRINTED_PER_LINE.get(batch.engine, {}).items():
            value = getattr(batch, column)[row]
            if np.isfinite(value):
                assert value in [float(v) for v in re.findall(pattern, line)], (column, line)
    commit, running = batch.commit, batch.running
    whole = np.isfinite(batch.step_ms) & np.isfinite(commit) & np.isfinite(running)
    whole &= np.isfinite(batch.tok_per_s) & (batch.tok_per_s > 0) & (batch.flags == 0)
    expected = 1000 * commit * running / batch.tok_per_s
    if batch.engine == "sglang":
        assert np.allclose(batch.step_ms[whole], expected[whole])
    assert not (batch.step_ms <= 0).any()
    assert not (commit < 1).any() or batch.engine == "sglang"


def of_requests(batch: Windows, text: str) -> None:
    """llama.cpp: a rate is that of some eval line, with one token taken off."""
    times = re.findall(rf"eval time = +{NUMBER} ms / +(\d+) (?:tokens|runs)", text)
    rates = [1000 * (int(n) - 1) / float(ms) for ms, n in times if float(ms) > 0]
    for rate in batch.tok_per_s[np.isfinite(batch.tok_per_s)]:
        assert any(abs(rate - known) <= 1e-6 * known for known in rates)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
@settings(REPRODUCIBLE, max_examples=100)
@given(data=st.data())
def test_a_damaged_log_gives_only_what_it_holds(
    tmp_path: Path, path: Path, data: st.DataObject
) -> None:
    content = data.draw(mutations(path.read_bytes()))
    damaged = tmp_path / "a.log"
    damaged.write_bytes(content)
    clean = re.sub(rb"\x1b\[[0-9;]*[A-Za-z]", b"", content)
    lines = [line.decode(errors="replace") for line in clean.split(b"\n")]
    for batch in windows_of(damaged):
        supported(batch, lines)
        if batch.engine == "llama.cpp" and b"eval time" in content:
            of_requests(batch, "\n".join(lines))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
@settings(REPRODUCIBLE, max_examples=40)
@given(data=st.data())
def test_a_damaged_document_is_refused_or_read(
    tmp_path: Path, path: Path, data: st.DataObject
) -> None:
    damaged = tmp_path / path.name
    damaged.write_bytes(data.draw(mutations(path.read_bytes())))
    for batch in windows_of(damaged):
        assert not (batch.step_ms <= 0).any()
        assert not (batch.tok_per_s < 0).any()
        assert not (batch.commit < 1).any()


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_log_that_is_whole_has_no_broken_lines(path: Path) -> None:
    seen = Seen()
    assert sum(map(len, read([path], seen))) > 0
    assert seen.malformed == 0
