"""Every window of a log as a row of a CSV or Parquet file, written while the log is read."""

import csv
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from analysis import paths
from analysis.errors import InputError
from analysis.records.windows import (
    FLAG_NAMES,
    Clock,
    Flag,
    Windows,
    flag_names,
    marked,
    note_names,
)
from analysis.rounding import significant

CSV, PARQUET = ".csv", ".parquet"
AGAIN = ".again"
NUMBERS = ("context_tokens", "running", "tok_per_s", "commit", "acceptance_length", "step_ms")
HEADER = ("file", "line", "time", "source", *NUMBERS, "notes", "flags")
PLAIN = "1.0"
"""A commit length without speculation, as it is written."""
OFF = FLAG_NAMES[Flag.SPECULATION_OFF]


def printed_time(time_s: float, clock: Clock) -> str | None:
    """A time as the log tells it: ISO 8601 without a zone, or seconds since the start."""
    if not np.isfinite(time_s):
        return None
    if clock == "since start":
        return f"+{time_s:.3f} s"
    moment = datetime.fromtimestamp(time_s, UTC)
    return moment.strftime("%m-%dT%H:%M:%S" if clock == "month and day" else "%Y-%m-%dT%H:%M:%S")


def rows_of(windows: Windows) -> Iterator[dict[str, Any]]:
    """Windows as rows of plain values; undefined is ``None``."""
    numbers = [getattr(windows, name).tolist() for name in NUMBERS]
    whole = zip(
        windows.line.tolist(),
        windows.time_s.tolist(),
        windows.source.tolist(),
        windows.notes.tolist(),
        windows.flags.tolist(),
        *numbers,
        strict=True,
    )
    for line, time_s, source, notes, flags, *values in whole:
        yield {
            "file": windows.file,
            "line": line,
            "time": printed_time(time_s, windows.clock),
            "source": windows.sources[source] if windows.sources else "",
            **{
                name: significant(value) if value == value else None
                for name, value in zip(NUMBERS, values, strict=True)
            },
            "notes": note_names(notes),
            "flags": flag_names(flags),
        }


class _Rows(Protocol):
    """One open file of either kind."""

    def write(self, windows: Windows) -> None: ...
    def flag_all(self) -> None: ...
    def close(self) -> None: ...


class WindowFile:
    """Takes windows and writes them.

    Plain windows before the first one that speculates are flagged once it comes.
    """

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._speculates = False
        self._plain = False

    def add(self, windows: Windows) -> None:
        """Write the next windows."""
        plain = windows.plain
        if windows.speculating.any() and not self._speculates:
            self._speculates = True
            if self._plain:
                self._rows.flag_all()
        self._plain = self._plain or bool(plain.any())
        if self._speculates:
            off = marked(plain, Flag.SPECULATION_OFF)
            windows = replace(windows, flags=windows.flags | off)
        self._rows.write(windows)


@contextmanager
def window_file(path: Path) -> Iterator[WindowFile]:
    """A file that stands under its name only when all of it is written.

    Raises ``InputError`` for another suffix than ``.csv`` or ``.parquet``, for a folder that does
    not exist, and for Parquet where pyarrow is not installed.
    """
    if path.suffix not in (CSV, PARQUET):
        raise InputError(f"--windows {path.name}", repr(path.suffix), f"{CSV} or {PARQUET}")
    if not path.parent.is_dir():
        raise InputError(
            f"--windows {path.name}", "a folder that does not exist", "an existing one"
        )
    partial = path.with_name(path.name + ".partial")
    rows: _Rows = _Csv(partial) if path.suffix == CSV else _Parquet(partial)
    try:
        yield WindowFile(rows)
        rows.close()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
        partial.with_name(partial.name + AGAIN).unlink(missing_ok=True)


class _Csv:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._open("w")
        self._writer.writerow(HEADER)

    def _open(self, mode: str) -> None:
        self._stream: TextIOWrapper = self._path.open(mode, newline="")  # type: ignore[assignment]
        self._writer = csv.writer(self._stream, lineterminator="\n")

    def write(self, windows: Windows) -> None:
        self._writer.writerows(_cells(row) for row in rows_of(windows))

    def flag_all(self) -> None:
        self._stream.close()
        again = self._path.with_name(self._path.name + AGAIN)
        with self._path.open(newline="") as old, again.open("w", newline="") as new:
            rows = csv.reader(old)
            writer = csv.writer(new, lineterminator="\n")
            writer.writerow(next(rows))
            at = HEADER.index("commit")
            writer.writerows(
                [*row[:-1], _with_off(row[-1])] if row[at] == PLAIN else row for row in rows
            )
        shutil.move(again, self._path)
        self._open("a")

    def close(self) -> None:
        self._stream.close()


class _Parquet:
    def __init__(self, path: Path) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            found, expected = "no pyarrow", "`pip install '.[parquet]'`, or a .csv file"
            raise InputError(f"--windows {paths.relative(path)}", found, expected) from None
        self._pa, self._pq, self._path = pa, pq, path
        text = {name: pa.string() for name in HEADER}
        kinds = text | {"line": pa.int64()} | {name: pa.float64() for name in NUMBERS}
        self._schema = pa.schema([(name, kinds[name]) for name in HEADER])
        self._writer = pq.ParquetWriter(path, self._schema)

    def write(self, windows: Windows) -> None:
        rows = [row | _joined_words(row) for row in rows_of(windows)]
        self._writer.write_table(self._pa.Table.from_pylist(rows, schema=self._schema))

    def flag_all(self) -> None:
        self._writer.close()
        again = self._path.with_name(self._path.name + AGAIN)
        self._writer = self._pq.ParquetWriter(again, self._schema)
        for batch in self._pq.ParquetFile(self._path).iter_batches():
            rows = [
                row | {"flags": _with_off(row["flags"])} if row["commit"] == float(PLAIN) else row
                for row in batch.to_pylist()
            ]
            self._writer.write_table(self._pa.Table.from_pylist(rows, schema=self._schema))
        again.replace(self._path)  # the writer's open file goes on under the new name

    def close(self) -> None:
        self._writer.close()


def _joined_words(row: dict[str, Any]) -> dict[str, str]:
    return {name: "; ".join(row[name]) for name in ("notes", "flags")}


def _cells(row: dict[str, Any]) -> list[Any]:
    return ["" if value is None else value for value in (row | _joined_words(row)).values()]


def _with_off(flags: str) -> str:
    return "; ".join(chain([flags] if flags else [], [OFF]))
