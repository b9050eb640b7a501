"""Which kind of server answers at an address."""

from typing import Any

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


def connect(url: str, timeout_s: float = 300.0) -> Client:
    """A client for the server at ``url``.

    Raises ``InputError`` where nothing answers, a key is wanted, or no known API is found.
    """
    http = Http(url, timeout_s)
    try:
        return _client(http)
    except (ServerGoneError, RequestError) as error:
        http.close()
        raise InputError(f"--server {http.url}", str(error), EXPECTED) from None
    except InputError:
        http.close()
        raise


def _client(http: Http) -> Client:
    props = _json(http, "/props")
    if fields.group(props, "default_generation_settings"):
        return LlamaCpp(http, props)
    models = fields.objects(_json(http, "/v1/models"), "data")
    if not models or not models[0].get("id"):
        raise InputError(f"--server {http.url}", "no list of models at /v1/models", EXPECTED)
    version = _json(http, "/version").get("version")
    if models[0].get("owned_by") == "vllm" and version:
        return Vllm(http, models[0], str(version))
    return OpenAi(http, models[0])


def _json(http: Http, path: str) -> dict[str, Any]:
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
