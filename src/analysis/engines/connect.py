"""Which kind of server answers at an address."""

from dataclasses import dataclass
from typing import Any, Literal

from analysis.engines import fields
from analysis.engines.client import Client
from analysis.engines.http import (
    KEY_VARIABLE,
    REFUSED,
    Http,
    RequestError,
    ServerGoneError,
    refusal,
)
from analysis.engines.llama_cpp import LlamaCpp
from analysis.engines.openai import OpenAi
from analysis.engines.vllm import Vllm
from analysis.errors import InputError

EXPECTED = "llama.cpp, vLLM or another server with the OpenAI API"


@dataclass(frozen=True)
class Identity:
    """Which server answers, and the page that told: ``/props`` of llama.cpp, else the model."""

    kind: Literal["llama.cpp", "vLLM", "SGLang", "OpenAI-compatible"]
    told: dict[str, Any]
    version: str = ""


def connect(url: str, timeout_s: float = 300.0) -> Client:
    """A client for the server at ``url``.

    Raises ``InputError`` where nothing answers, a key is wanted, or no known API is found.
    """
    http = Http(url, timeout_s)
    try:
        return client_of(http)
    except (ServerGoneError, RequestError) as error:
        http.close()
        raise InputError(f"--server {http.url}", str(error), EXPECTED) from None
    except InputError:
        http.close()
        raise


def client_of(http: Http) -> Client:
    """A client over an open connection; raises what ``identify`` does."""
    found = identify(http)
    if found.kind == "llama.cpp":
        return LlamaCpp(http, found.told)
    if found.kind == "vLLM":
        return Vllm(http, found.told, found.version)
    return OpenAi(http, found.told)


def identify(http: Http) -> Identity:
    """Which kind of server answers, by pages that cost it nothing.

    vLLM and SGLang name themselves as owners of their models. Raises ``InputError`` where a key is
    wanted or no known API is found, ``RequestError`` or ``ServerGoneError`` where it may come yet.
    """
    props = page(http, "/props")
    if fields.group(props, "default_generation_settings"):
        return Identity("llama.cpp", props, str(props.get("build_info") or ""))
    models = fields.objects(page(http, "/v1/models"), "data")
    if not models or not models[0].get("id"):
        raise InputError(f"--server {http.url}", "no list of models at /v1/models", EXPECTED)
    version = str(page(http, "/version").get("version") or "")
    owner = models[0].get("owned_by")
    if owner == "vllm" and version:
        return Identity("vLLM", models[0], version)
    return Identity("SGLang" if owner == "sglang" else "OpenAI-compatible", models[0], version)


def page(http: Http, path: str) -> dict[str, Any]:
    """The JSON object at ``path``, or an empty one where the server has no such page."""
    response = http.get(path)
    status = response.status_code
    if status in REFUSED:
        place = f"--server {http.url}"
        raise InputError(place, f"HTTP {status}", f"a valid key in {KEY_VARIABLE}")
    if status == 429 or status >= 500:
        raise RequestError(f"{refusal(response)} at {path}")
    try:
        content = response.json() if response.is_success else {}
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
