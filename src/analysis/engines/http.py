"""HTTP to an inference server: JSON in and out, streamed events with the time of each.

What fails is told apart: the server is gone (nothing more can be asked), one request failed (the
next may work), or the address is no usable server (``InputError``, before anything is sent).
"""

import ipaddress
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import httpx_sse
import psutil

from analysis.errors import InputError

KEY_VARIABLE = "ANALYSIS_API_KEY"
CONNECT_S = 5.0
QUICK_S = 10.0
"""Silence allowed while a server only describes itself."""
REFUSED = (401, 403)
"""Statuses that a missing or wrong key gives."""


class RequestError(RuntimeError):
    """One request failed; the message says how, in one line and without any header."""


class RefusedError(RequestError):
    """The server will not answer this request, however often it is sent."""


class ReportedError(RequestError):
    """The server reported an error within a stream that it had begun."""


class TextTooShortError(RefusedError):
    """A text has fewer tokens than a prompt is to have."""


class ServerGoneError(RuntimeError):
    """Nothing answers at the address any more."""


class Http:
    """Requests to one server, each on a connection of its own.

    A kept-alive connection saves under a millisecond here and races with the server's closing it:
    llama.cpp's server does so soon after a stream, and a request sent then is lost.
    """

    def __init__(self, url: str, timeout_s: float = 300.0) -> None:
        self.url = checked_url(url)
        self.timeout_s = timeout_s
        self.local = on_this_machine(self.url)
        key = _key()
        self._client = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_S),
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=not self.local,  # a proxy has no place between two ends of one machine
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def get(self, path: str) -> httpx.Response:
        """A short GET, whatever its status."""
        silence_s = min(QUICK_S, self.timeout_s)
        with _told_apart(silence_s):
            return self._client.get(path, timeout=silence_s)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST JSON and return the JSON object that comes back."""
        with _told_apart(self.timeout_s):
            response = self._client.post(path, json=body)
        if not response.is_success:
            raise _refused(response)
        return _object(response.text)

    def events(self, path: str, body: Mapping[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
        """POST JSON and yield each streamed event with the moment it came, ``perf_counter`` s."""
        with (
            _told_apart(self.timeout_s),
            httpx_sse.connect_sse(self._client, "POST", path, json=body) as source,
        ):
            if not source.response.is_success:
                source.response.read()
                raise _refused(source.response)
            for event in source.iter_sse():
                came = time.perf_counter()
                if event.data == "[DONE]":
                    return
                if not event.data:
                    continue
                content = _object(event.data)
                if content.get("error"):
                    raise ReportedError(f"the server reported an error {_reason(content['error'])}")
                yield came, content


def refusal(response: httpx.Response) -> str:
    """What a response with another status than success says, in one line."""
    status = response.status_code
    text = f"HTTP {status} {_reason(_detail(response))}".strip()
    if status in REFUSED:
        return f"{text}; a valid key is read from {KEY_VARIABLE}"
    wait = response.headers.get("Retry-After")
    return f"{text}; Retry-After: {_words(wait, 30)}" if wait else text


def _refused(response: httpx.Response) -> RequestError:
    """Of a 4xx the request is at fault, but for those that speak of keys, time or load."""
    status = response.status_code
    lasting = 400 <= status < 500 and status not in (*REFUSED, 408, 425, 429)
    return (RefusedError if lasting else RequestError)(refusal(response))


def checked_url(url: str) -> str:
    """The base address, without a trailing slash; ``InputError`` unless it is one and no key.

    An address that may hold a key is not repeated in the message.
    """
    if any(mark in url for mark in "@?#"):
        found = "more than an address (a user, a query or a fragment)"
        raise InputError("--server", found, f"http://HOST:PORT, and a key in {KEY_VARIABLE}")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable:
        raise InputError("--server", repr(url), "http://HOST:PORT, or embedded")
    return url.rstrip("/").removesuffix("/v1")


def on_this_machine(url: str) -> bool:
    """Whether the host of ``url`` is a loopback address or one of this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        found = {str(info[4][0]).split("%")[0] for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    own = {a.address.split("%")[0] for every in psutil.net_if_addrs().values() for a in every}
    return all(ipaddress.ip_address(a).is_loopback or a in own for a in found)


def _key() -> str:
    """The key of the environment, or an empty one."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not (key.isascii() and key.isprintable()):
        found = "a character that no HTTP header may hold"
        raise InputError(KEY_VARIABLE, found, "printable ASCII")
    return key


@contextmanager
def _told_apart(silence_s: float) -> Iterator[None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ServerGoneError(_connection(error)) from None
    except httpx.TimeoutException:
        raise RequestError(f"no answer for {silence_s:g} s") from None
    except httpx.RemoteProtocolError:
        raise RequestError("a reply that broke off, or is not HTTP") from None
    except httpx_sse.SSEError:
        raise RequestError("a reply that is no event stream") from None
    except httpx.RequestError as error:
        raise RequestError(f"a broken reply ({type(error).__name__})") from None


def _connection(error: Exception) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_S:g} s"
    text = str(error).lower()
    return "connection refused" if "refused" in text else f"no connection ({text})"


def _object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError(f"a reply that is not JSON ({_words(text, 40)!r})") from None
    if not isinstance(content, dict):
        raise RequestError(f"a reply that is no JSON object ({_words(text, 40)!r})")
    return content


def _detail(response: httpx.Response) -> Any:
    try:
        content = response.json()
    except (ValueError, RecursionError):
        return ""
    return content.get("error", content) if isinstance(content, dict) else ""


def _reason(detail: Any) -> str:
    """A server's own words on an error, in one short line."""
    if isinstance(detail, dict):
        detail = detail.get("message") or detail.get("detail") or ""
    text = _words(str(detail), 120)
    return f"({text})" if text else ""


def _words(text: str, most: int) -> str:
    """The start of what a server said, in one line; a key that it repeats is left out."""
    key = _key()
    return " ".join((text.replace(key, "[key]") if key else text).split())[:most].rstrip()
