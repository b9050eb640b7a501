"""Waiting for a server that is starting, restarting or loading its model."""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from analysis.engines.http import (
    KEY_VARIABLE,
    REFUSED,
    Http,
    RequestError,
    ServerGoneError,
    refusal,
)
from analysis.errors import InputError

FIRST_PAUSE_S = 0.5
GROWTH = 1.6
LONGEST_PAUSE_S = 10.0
NO_SUCH_PAGE = (404, 405, 501)
NO_SUCH_NAME = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))

T = TypeVar("T")


@dataclass(frozen=True)
class Waiting:
    """A try that found the server not ready: what was said, and when the next one is."""

    said: str
    elapsed_s: float
    pause_s: float


@dataclass(frozen=True)
class NotReady:
    """The bound passed. ``said`` is what the last try met."""

    said: str
    waited_s: float
    tries: int


@dataclass(frozen=True)
class Ready(Generic[T]):
    """What the first try that met a ready server found."""

    found: T
    waited_s: float
    tries: int


def healthy(http: Http) -> None:
    """Return if ``/health`` says that the server can answer, or if it has no such page.

    llama.cpp answers 503 while it loads the model, vLLM 503 once its engine is dead, SGLang 503
    while it starts and as it ends; SGLang decodes one token for it when it is idle. Raises
    ``RequestError`` or ``ServerGoneError`` while it is not ready, ``InputError`` for a key.
    """
    response = http.get("/health")
    status = response.status_code
    if status in REFUSED:
        place = f"--server {http.url}"
        raise InputError(place, f"HTTP {status}", f"a valid key in {KEY_VARIABLE}")
    if status == 429 or (status >= 500 and status not in NO_SUCH_PAGE):
        raise RequestError(f"{refusal(response)} at /health")


def wait_until_ready(
    http: Http,
    look: Callable[[], T],
    wait_s: float,
    told: Callable[[Waiting], None] = lambda waiting: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Ready[T] | NotReady:
    """Try ``look`` until the server is healthy and it succeeds, or until ``wait_s`` have passed.

    There is always one try. Between tries is a pause that grows to ten seconds and never passes
    the bound; ``told`` hears of each. A server that goes and comes back is waited for all the same.
    Raises ``InputError`` for what no waiting mends: a key, another kind of server, and a host name
    that does not exist, if the first try meets that.
    """
    began = clock()
    pause_s = FIRST_PAUSE_S
    tries = 0
    answered = False
    while True:
        tries += 1
        try:
            healthy(http)
            answered = True
            return Ready(look(), clock() - began, tries)
        except (RequestError, ServerGoneError) as error:
            if tries == 1 and not answered and isinstance(error, ServerGoneError):
                _refuse_unknown_host(http)
            said = str(error)
        elapsed_s = clock() - began
        if elapsed_s >= wait_s:
            return NotReady(said, elapsed_s, tries)
        rest_s = min(pause_s, wait_s - elapsed_s)
        told(Waiting(said, elapsed_s, rest_s))
        sleep(rest_s)
        pause_s = min(GROWTH * pause_s, LONGEST_PAUSE_S)


def _refuse_unknown_host(http: Http) -> None:
    """Raise ``InputError`` where no such name exists; a resolver that fails may come back."""
    host = urlsplit(http.url).hostname or ""
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror as error:
        if error.errno in NO_SUCH_NAME:
            place = f"--server {http.url}"
            raise InputError(place, f"no host named {host!r}", "a host that exists") from None
    except (OSError, UnicodeError):
        return
