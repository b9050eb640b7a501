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


class RequestError(RuntimeError):
    """One request failed; the message says how, in one line and without any header."""


class TextTooShortError(RequestError):
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
        key = os.environ.get(KEY_VARIABLE)
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
        with self._told_apart():
            return self._client.get(path, timeout=QUICK_S)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST JSON and return the JSON object that comes back."""
        with self._told_apart():
            response = self._client.post(path, json=body)
            self._refuse_status(response)
        return _object(response.text)

    def events(self, path: str, body: Mapping[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
        """POST JSON and yield each streamed event with the moment it came, ``perf_counter`` s."""
        with (
            self._told_apart(),
            httpx_sse.connect_sse(self._client, "POST", path, json=body) as source,
        ):
            if source.response.is_error:
                source.response.read()
            self._refuse_status(source.response)
            for event in source.iter_sse():
                came = time.perf_counter()
                if event.data == "[DONE]":
                    return
                content = _object(event.data)
                if "error" in content:
                    raise RequestError(f"the server reported {_reason(content['error'])}")
                yield came, content

    def _refuse_status(self, response: httpx.Response) -> None:
        if response.is_error:
            raise RequestError(f"HTTP {response.status_code} {_reason(_detail(response))}".strip())

    @contextmanager
    def _told_apart(self) -> Iterator[None]:
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise ServerGoneError(_connection(error)) from None
        except httpx.TimeoutException:
            raise RequestError(f"no answer for {self.timeout_s:g} s") from None
        except httpx.RemoteProtocolError:
            raise RequestError("a reply that broke off") from None
        except (httpx.TransportError, httpx_sse.SSEError) as error:
            raise RequestError(f"a broken reply ({type(error).__name__})") from None


def checked_url(url: str) -> str:
    """The base address, without a trailing slash; ``InputError`` unless it is one and no key."""
    parts = urlsplit(url if "//" in url else f"//{url}")
    expected = "http://HOST:PORT, or embedded"
    try:
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError("--server", repr(url), expected)
    if parts.username or parts.password or parts.query:
        raise InputError("--server", "credentials in the address", f"a key in {KEY_VARIABLE}")
    return url.rstrip("/").removesuffix("/v1")


def on_this_machine(url: str) -> bool:
    """Whether the host of ``url`` is a loopback address or one of this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        found = {str(info[4][0]).split("%")[0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    own = {a.address.split("%")[0] for every in psutil.net_if_addrs().values() for a in every}
    return all(ipaddress.ip_address(a).is_loopback or a in own for a in found)


def _connection(error: Exception) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_S:g} s"
    text = str(error).lower()
    return "connection refused" if "refused" in text else f"no connection ({text})"


def _object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        raise RequestError(f"a reply that is not JSON ({text[:40]!r})") from None
    if not isinstance(content, dict):
        raise RequestError(f"a reply that is no JSON object ({text[:40]!r})")
    return content


def _detail(response: httpx.Response) -> Any:
    try:
        content = response.json()
    except ValueError:
        return ""
    return content.get("error", content) if isinstance(content, dict) else ""


def _reason(detail: Any) -> str:
    """A server's own words on an error, in one short line."""
    if isinstance(detail, dict):
        detail = detail.get("message", "")
    text = " ".join(str(detail).split())
    return f"({text[:120]})" if text else ""
