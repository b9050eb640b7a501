"""The limits and pools that servers tell of themselves, read from what real ones answered."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.engines.fault_server import NOT_FOUND, Answer, FaultServer, llama_cpp, says

from analysis.engines.embedded import CONTEXT_LIMIT, Embedded
from analysis.engines.http import Http, RequestError
from analysis.engines.limits import Limits, read_limits
from analysis.errors import InputError

DATA = Path(__file__).parent / "data" / "limits"


def real(name: str) -> Answer:
    """A page that a real server sent; see ``data/README.md``."""
    return Answer((DATA / name).read_bytes())


def limits(pages: Mapping[str, Any]) -> Limits:
    """What is read from a server with these pages; it is never made to decode."""
    with FaultServer(pages) as server:
        http = Http(server.url, 5)
        try:
            return read_limits(http)
        finally:
            http.close()
            assert not any(request.body for request in server.received)


def sglang(name: str, **replaced: Answer) -> dict[str, Answer]:
    pages = {
        "/v1/models": real(f"sglang-0.5.23-{name}-models.json"),
        "/server_info": real(f"sglang-0.5.23-{name}-server-info.json"),
    }
    return pages | {f"/{page}": answer for page, answer in replaced.items()}


def vllm(metrics: Answer) -> dict[str, Answer]:
    return {
        "/v1/models": real("vllm-0.32.0-models.json"),
        "/version": says({"version": "0.32.0"}),
        "/metrics": metrics,
    }


def test_the_embedded_server_tells_the_context_of_a_slot(speculating: Embedded) -> None:
    http = Http(speculating.url)
    found = read_limits(http)
    http.close()
    assert (found.engine, found.limit, found.longest) == (
        "llama.cpp",
        CONTEXT_LIMIT,
        CONTEXT_LIMIT,
    )
    assert (found.slots, found.pool) == (2, None)
    assert found.capped_by == "the context of a slot, one of 2"


def test_vllm_tells_limit_and_pool() -> None:
    found = limits(vllm(real("vllm-0.32.0-cache-config.txt")))
    assert (found.engine, found.version, found.model) == ("vLLM", "0.32.0", "smollm2")
    assert (found.limit, found.longest, found.pool) == (4096, 4096, 46592)
    assert found.pool_from.startswith("kv_cache_size_tokens of vllm:cache_config_info")
    assert [found.serves(tokens) for tokens in (4095, 4096, 4097)] == [True, True, False]
    assert found.capped_by == "the context limit"


def test_an_older_vllm_tells_blocks() -> None:
    page = real("vllm-0.32.0-cache-config.txt")
    older = Answer(page.body.replace(b'kv_cache_size_tokens="46592",', b""))
    found = limits(vllm(older))
    assert found.pool == 364 * 128 == 46592
    assert found.pool_from.startswith("num_gpu_blocks * block_size")


@pytest.mark.parametrize(
    "metrics",
    [NOT_FOUND, Answer(b""), Answer(b'vllm:cache_config_info{num_gpu_blocks="None"} 1.0\n')],
)
def test_vllm_without_metrics_has_a_limit_and_no_pool(metrics: Answer) -> None:
    found = limits(vllm(metrics))
    assert (found.limit, found.pool, found.serves(4096)) == (4096, None, True)


def test_of_several_engines_the_smallest_pool_counts() -> None:
    lines = [
        f'vllm:cache_config_info{{engine="{engine}",kv_cache_size_tokens="{tokens}"}} 1.0\n'
        for engine, tokens in enumerate((8000, 7984))
    ]
    assert limits(vllm(Answer("".join(lines).encode()))).pool == 7984


def test_the_pool_caps_sglang_where_it_is_smaller_than_the_limit() -> None:
    found = limits(sglang("4096"))
    assert (found.engine, found.version) == ("SGLang", "0.5.23")
    assert (found.limit, found.pool, found.longest) == (8192, 4096, 4095)
    assert [found.serves(tokens) for tokens in (4096, 4097, 8192)] == [True, False, False]
    assert found.capped_by == "the KV pool of 4,096 tokens, less 1"


def test_the_limit_caps_sglang_where_the_pool_is_larger() -> None:
    found = limits(sglang("16384"))
    assert (found.limit, found.pool, found.longest) == (8192, 16384, 8191)
    assert [found.serves(tokens) for tokens in (8192, 8193)] == [True, False]
    assert found.capped_by == "the context limit, less 1"


def test_an_older_sglang_has_its_page_under_another_name() -> None:
    older = real("sglang-0.5.23-4096-server-info.json")
    found = limits(sglang("4096", server_info=NOT_FOUND, get_server_info=older))
    assert (found.pool, found.pool_from) == (4096, "max_total_num_tokens in /get_server_info")
    models = says({"data": [{"id": "smollm2", "owned_by": "sglang"}]})
    pages = sglang("4096", server_info=NOT_FOUND, get_server_info=older)
    found = limits(pages | {"/v1/models": models})
    assert (found.limit, found.limit_from) == (8192, "context_length in /get_server_info")


def test_without_its_own_figure_sglangs_longest_request_follows_from_limit_and_pool() -> None:
    """The account's pool of 101,134 tokens: 101,133 is its largest request."""
    models = says({"data": [{"id": "k", "owned_by": "sglang", "max_model_len": 200_000}]})
    info = says({"max_total_num_tokens": 101_134})
    found = limits({"/v1/models": models, "/server_info": info})
    assert (found.longest, found.serves(200_000)) == (101_133, False)
    assert found.capped_by == "the KV pool of 101,134 tokens, less 1"


def test_a_pool_that_ranks_share_is_taken_at_the_servers_word() -> None:
    """Decode context parallelism: a rank's tokens are fewer than a request may have."""
    models = says({"data": [{"id": "k", "owned_by": "sglang", "max_model_len": 8192}]})
    info = says({"max_total_num_tokens": 4096, "max_req_input_len": 8186, "dcp_size": 4})
    found = limits({"/v1/models": models, "/server_info": info})
    assert (found.longest, found.serves(8192)) == (8191, True)


def test_a_server_that_tells_nothing_is_undecided() -> None:
    found = limits({"/v1/models": says({"data": [{"id": "m", "owned_by": "somebody"}]})})
    assert (found.engine, found.limit, found.longest) == ("OpenAI-compatible", None, None)
    assert found.serves(1) is None


FAULTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "another server": ({"/": Answer(b"<html>")}, InputError, "no list of models at /v1/models"),
    "a key": ({"/props": says({}, 401)}, InputError, "HTTP 401"),
    "a key for the models": ({"/v1/models": says({}, 403)}, InputError, "HTTP 403"),
    "still loading": ({"/props": says({"error": {"message": "Loading"}}, 503)}, RequestError, "50"),
    "a limit that is none": (
        llama_cpp([], props=says({"default_generation_settings": {"n_ctx": "long"}})),
        RequestError,
        "a reply whose n_ctx is 'long'",
    ),
    "metrics that are none": (
        vllm(Answer(b"<html>welcome</html>")),
        RequestError,
        "a metrics page that cannot be read",
    ),
    "a pool that is none": (
        sglang("4096", server_info=says({"max_total_num_tokens": -1})),
        RequestError,
        "a reply whose max_total_num_tokens is '-1'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line(fault: str) -> None:
    pages, kind, expected = FAULTS[fault]
    with pytest.raises(kind, match=expected) as raised:
        limits(pages)
    assert "\n" not in str(raised.value)
