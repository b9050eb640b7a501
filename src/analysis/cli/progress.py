"""A line on standard error that says how far reading has come, after two seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 2.0
PAUSE_S = 0.2
MIB = 1 << 20


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int | None], None]]:
    """A function that takes bytes done and bytes in all; silent where nobody watches."""
    began = last = time.monotonic()
    shown = False

    def show(done: int, total: int | None) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if not sys.stderr.isatty() or now - began < PATIENCE_S or now - last < PAUSE_S:
            return
        last, shown = now, True
        of = f" of {total / MIB:,.0f} MiB  {100 * done / total:3.0f} %" if total else " MiB"
        sys.stderr.write(f"\r\x1b[Kreading {done / MIB:,.0f}{of}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
