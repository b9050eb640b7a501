"""Windows from any number of logs, whatever printed them, in memory that does not grow.

The engine and the format are told from each line. Parsing is of blocks, in several processes where
that is worth their start; what a window is depends on the lines before it, so windows are made in
order, here.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from analysis.errors import InputError
from analysis.logs import answers, benchmarks, llama_cpp, snapshots, vllm
from analysis.logs.blocks import BLOCK_BYTES, STDIN, Log, Span, name_of
from analysis.logs.parse import Parsed, parse, shape
from analysis.logs.sglang_windows import Reader as SglangReader
from analysis.records.seen import EXAMPLES, Seen
from analysis.records.windows import Windows

MOST_DOCUMENT_BYTES = 256 << 20
WORTH_PROCESSES = 64 << 20
"""Bytes from which a second process saves more than its start costs."""
Progress = Callable[[int, int | None], None]
"""Bytes that were read so far, and of how many; the second is unknown for standard input."""


class _Reader(Protocol):
    """Makes windows of what the blocks of one file say in one dialect."""

    def feed(self, parsed: Any, first_line: int, /) -> list[Windows]: ...
    def finish(self) -> list[Windows]: ...


def read(
    given: Sequence[str | Path],
    seen: Seen,
    processes: int = 1,
    progress: Progress | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Windows]:
    """The windows of all files, file by file; ``seen`` is filled as they are read.

    Recorded answers, benchmark results and metric snapshots are told by what they begin with; the
    snapshots among ``given`` are taken together, in their order. Raises ``InputError`` for a file
    that cannot be read.
    """
    logs = [Log(one) for one in _once(given)]
    sizes = [log.size for log in logs]
    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    taken = [log for log in logs if snapshots.looks_like(log.head)]
    if taken:
        texts = [(log.name, log.text(MOST_DOCUMENT_BYTES)) for log in taken]
        yield from snapshots.read(texts, seen)
    before = 0
    for log in logs:
        if log in taken:
            continue
        for document in (answers, benchmarks):
            if document.looks_like(log.head):
                text = log.text(MOST_DOCUMENT_BYTES)
                yield from document.read(text, log.name, seen)
                break
        else:
            yield from _read_log(log, seen, processes, before, total, progress, block_bytes)
        before += log.size or 0


def _once(given: Sequence[str | Path]) -> list[str | Path]:
    """A file that is given twice is read once."""
    return list({one if str(one) == STDIN else Path(one).resolve(): one for one in given}.values())


def _read_log(
    log: Log,
    seen: Seen,
    processes: int,
    before: int,
    total: int | None,
    progress: Progress | None,
    block_bytes: int,
) -> Iterator[Windows]:
    readers: tuple[_Reader, ...] = (
        SglangReader(log.name, seen),
        vllm.Reader(log.name, seen),
        llama_cpp.Reader(log.name, seen),
    )
    first, blocks, read_bytes = 1, 0, 0
    with closing(_parsed(log, processes, block_bytes)) as parts:
        for part in parts:
            _count(part, seen)
            for reader, parsed in zip(readers, part.dialects, strict=True):
                if parsed is not None:
                    yield from reader.feed(parsed, first)
            first += part.lines
            blocks += 1
            if progress is not None:
                whole = min(blocks * block_bytes, log.size or 0)
                read_bytes = whole if log.plain else log.done()
                progress(before + read_bytes, total)
    if log.ended_early:
        seen.notes.append(f"{log.name}: {log.ended_early}")
    for reader in readers:
        yield from reader.finish()


def _count(part: Parsed, seen: Seen) -> None:
    seen.lines += part.lines
    seen.unparsed += part.unparsed
    seen.malformed += part.malformed
    for kept, new in (
        (seen.examples, part.examples),
        (seen.malformed_examples, part.malformed_examples),
    ):
        for line in new:
            if len(kept) < EXAMPLES and shape(line) not in {shape(old) for old in kept}:
                kept.append(line)


def _parsed(log: Log, processes: int, block_bytes: int) -> Generator[Parsed]:
    blocks: Iterator[bytes | Span] = iter(
        log.spans(block_bytes) if log.plain else log.blocks(block_bytes)
    )
    if processes < 2 or (log.size or 0) < WORTH_PROCESSES:
        yield from map(parse, blocks)
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"))
    try:
        waiting: deque[Future[Parsed]] = deque()
        for block in blocks:
            waiting.append(pool.submit(parse, block))
            if len(waiting) > 2 * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def nothing_found(given: Sequence[str | Path], seen: Seen) -> InputError:
    """The error for logs in which no line tells of decoding."""
    names = ", ".join(name_of(one) for one in given)
    what = f"{seen.lines:,} lines without a report on decoding"
    if seen.malformed:
        what += f" ({seen.malformed:,} of them broken ones)"
    expected = "decode lines of SGLang, vLLM or llama.cpp, or a recorded answer"
    return InputError(names, what, expected)
