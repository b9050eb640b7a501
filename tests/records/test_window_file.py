"""Every window as a row of a file: the same rows in either format, none flagged too late."""

import csv
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.errors import InputError
from analysis.records.window_file import HEADER, printed_time, window_file
from analysis.records.windows import Flag, Windows, windows


def some(first: int, commit: float, n: int = 3) -> Windows:
    acceptance = np.full(n, np.nan if commit == 1 else commit)
    return windows(
        "sglang", "a.log", "date", ["TP0"], line=list(range(first, first + n)),
        time_s=np.arange(n) + 1761128877.0, commit=np.full(n, commit), running=np.ones(n),
        step_ms=np.full(n, 10.123456789012), tok_per_s=np.full(n, 80.0),
        acceptance_length=acceptance, flags=[int(Flag.IDLE), 0, 0][:n],
    )  # fmt: skip


def rows(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".csv":
        with path.open(newline="") as stream:
            return list(csv.DictReader(stream))
    return [
        {name: "" if value is None else value for name, value in row.items()}
        for row in pq.read_table(path).to_pylist()
    ]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_row_holds_what_the_window_says(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"windows{suffix}"
    with window_file(path) as out:
        out.add(some(1, 2.5))
    first = rows(path)[0]
    assert tuple(first) == HEADER
    assert (first["file"], str(first["line"]), first["time"], first["source"]) == (
        "a.log", "1", "2025-10-22T10:27:57", "TP0",
    )  # fmt: skip
    assert float(str(first["step_ms"])) == 10.1234568
    assert first["context_tokens"] == ""
    assert first["flags"] == "after idle gap"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_plain_windows_are_flagged_once_the_log_speculates(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"windows{suffix}"
    with window_file(path) as out:
        out.add(some(1, 1.0))
        out.add(some(4, 2.5))
        out.add(some(7, 1.0))
    flags = [row["flags"] for row in rows(path)]
    off = "speculation off"
    assert flags == [
        f"after idle gap; {off}", off, off,
        "after idle gap", "", "",
        f"after idle gap; {off}", off, off,
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_windows_of_a_plain_server_stay_unflagged(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"windows{suffix}"
    with window_file(path) as out:
        out.add(some(1, 1.0))
    assert [row["flags"] for row in rows(path)] == ["after idle gap", "", ""]


def test_an_interrupted_file_does_not_stand(tmp_path: Path) -> None:
    path = tmp_path / "windows.csv"

    def interrupted() -> None:
        with window_file(path) as out:
            out.add(some(1, 2.5))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["windows.xlsx", "windows", "none/windows.csv"])
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError), window_file(tmp_path / name):
        pass


def test_times_are_printed_as_the_log_tells_them() -> None:
    assert printed_time(1761128877.0, "date") == "2025-10-22T10:27:57"
    assert (
        printed_time(datetime(1972, 7, 20, 18, 18, 29, tzinfo=UTC).timestamp(), "month and day")
        == "07-20T18:18:29"
    )
    assert printed_time(6.8959, "since start") == "+6.896 s"
    assert printed_time(float("nan"), "date") is None
