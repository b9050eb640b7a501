"""``analysis verify-context``."""

import shutil
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from analysis.cli.output import json_option, show
from analysis.errors import InputError

if TYPE_CHECKING:
    from analysis.engines.readiness import Waiting
    from analysis.experiments.verify_context import Verified

EXIT_CODES = {"served": 0, "capped": 3, "not up": 4, "undecided": 5}
"""2 is bad input and 130 an interrupt, as everywhere; 1 is left to what nobody foresaw."""
REPEAT_S = 60.0


@click.command()
@click.argument("url")
@click.option("--expect", type=click.IntRange(min=1), required=True, help="wished context, tokens")
@click.option(
    "--wait-minutes",
    type=click.FloatRange(min=0),
    default=20.0,
    show_default=True,
    help="how long a server may take to be ready; 0 looks once",
)
@click.option("--probe", is_flag=True, help="send one request near the limit: a long prefill")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=300.0,
    show_default=True,
    help="seconds of silence after which a request has failed",
)
@json_option
def verify_context(
    url: str,
    expect: int,
    wait_minutes: float,
    probe: bool,
    timeout_s: float,
    as_json: bool,
) -> int:
    """Wait for a server and say whether it serves a context of N tokens.

    URL is http://HOST:PORT of llama.cpp, vLLM, SGLang or another server with the OpenAI API. Its
    limit and pool are read back; only --probe makes it work. A key is read from the environment
    variable ANALYSIS_API_KEY only. Restart first: a server that is still going down answers with
    the old limit.

    Exit code: 0 served, 3 capped at fewer tokens, 4 not up, 5 undecided, 2 bad input.
    """
    from analysis.experiments import verify_context as experiment

    with _Progress(60 * wait_minutes) as progress:
        try:
            verified = experiment.verify_context(
                url,
                expect,
                60 * wait_minutes,
                probe,
                timeout_s,
                waiting=progress.waiting,
                probing=progress.probing,
            )
        except InputError as error:
            raise _of_argument(error) from None
    show(_shown(verified, as_json), as_json)
    return EXIT_CODES[verified.answer]


def _of_argument(error: InputError) -> InputError:
    """The same error by this command's name for an address, which cannot be ``embedded``."""
    place = error.place.removeprefix("--server").strip()
    named = f"URL {place}".strip() if error.place.startswith("--server") else error.place
    return InputError(named, error.found, error.expected.removesuffix(", or embedded"))


def _shown(verified: "Verified", as_json: bool) -> dict[str, Any]:
    limits = verified.limits
    result: dict[str, Any] = {
        "answer": verified.answer,
        "says": verified.says,
        "expect_tokens": verified.expect,
        "capped_at_tokens": verified.capped_at,
        "capped_by": verified.capped_by,
        "engine": limits.engine if limits else None,
        "version": limits.version if limits else None,
        "model": limits.model.rsplit("/")[-1] if limits else None,
        "context_limit_tokens": limits.limit if limits else None,
        "context_limit_from": limits.limit_from if limits else "",
        "pool_tokens": limits.pool if limits else None,
        "pool_from": limits.pool_from if limits else "",
        "longest_request_tokens": limits.longest if limits else None,
        "slots": limits.slots if limits else None,
        "probe": asdict(verified.probe) if verified.probe else None,
        "tries": verified.tries,
        "waited_s": verified.waited_s,
        "last_said": verified.last_said,
    }
    if as_json:
        return result
    if verified.probe:
        result["probe"] = {k: v for k, v in result["probe"].items() if v not in (None, "")}
    return {name: value for name, value in result.items() if value not in (None, "")}


class _Progress:
    """What a server last said while it is waited for, on standard error.

    On a terminal one line is kept up to date; in a file there is a line where the words change,
    and one a minute.
    """

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._said = ""
        self._last_s = 0.0
        self._open = False

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *ending: object) -> None:
        self._end_line()

    def waiting(self, one: "Waiting") -> None:
        """A try that found the server not ready."""
        line = f"waiting, {one.elapsed_s:,.0f} of {self._wait_s:,.0f} s: {one.said}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line[: _width()]}")
            sys.stderr.flush()
            self._open = True
        elif one.said != self._said or time.monotonic() - self._last_s >= REPEAT_S:
            self._said, self._last_s = one.said, time.monotonic()
            click.echo(line, err=True)

    def probing(self, tokens: int) -> None:
        """The probe is about to be sent."""
        self._end_line()
        click.echo(
            f"probe: one request of {tokens:,} prompt tokens; the server prefills them, and other "
            "requests wait for it",
            err=True,
        )

    def _end_line(self) -> None:
        if self._open:
            sys.stderr.write("\n")
            self._open = False


def _width() -> int:
    return shutil.get_terminal_size().columns - 1
