"""The context limit and the KV pool that a running server says it has.

* llama.cpp (``tools/server/server-context.cpp``): ``n_ctx`` in ``/props`` is the context of one
  slot. Whether the slots share one pool (``--kv-unified``) is not told.
* vLLM (``v1/metrics/loggers.py``, ``config/cache.py``): ``max_model_len`` in ``/v1/models``, and
  the labels of ``vllm:cache_config_info`` in ``/metrics``: ``kv_cache_size_tokens`` (0.32), before
  that ``num_gpu_blocks`` blocks of ``block_size``. It starts only with a pool that holds one
  request of the limit (``v1/core/kv_cache_utils.py``), so the limit alone decides.
* SGLang (``managers/tp_worker.py``, ``managers/scheduler.py``, 0.5.23): ``max_model_len`` in
  ``/v1/models`` is the context length, ``max_total_num_tokens`` and ``max_req_input_len`` stand in
  ``/server_info`` (older: ``/get_server_info``). The longest request is ``min(context length, pool)
  - 1`` tokens, and prompts are rejected from ``max_req_input_len``, 5 less, on. That figure knows
  of every way to share a pool; ``max_total_num_tokens`` is of all ranks of decode context
  parallelism in 0.5.23 (``logical_token_capacity``), of one rank before.
"""

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from analysis.engines import fields
from analysis.engines.connect import Identity, identify, page
from analysis.engines.http import Http, RequestError
from analysis.model.context_limit import INPUT_RESERVE
from analysis.model.kv_cache import largest_request

CACHE_CONFIG = "vllm:cache_config_info"


@dataclass(frozen=True)
class Limits:
    """What a server says of itself; ``None`` where it does not, all lengths in tokens.

    ``limit`` is the most that one request may have by its setting. ``longest`` is what prompt and
    output of one request may have together, by limit and pool; ``spare`` is how many tokens the
    engine keeps from that even where the limit is all that counts (1 in SGLang). ``pool`` is what
    all requests share, ``slots`` how many llama.cpp answers at once; the ``*_from`` say where a
    figure stands. ``model`` is the name that requests give.
    """

    engine: str
    version: str
    model: str
    limit: int | None
    limit_from: str
    longest: int | None
    spare: int = 0
    pool: int | None = None
    pool_from: str = ""
    slots: int | None = None

    def serves(self, tokens: int) -> bool | None:
        """Whether a limit of ``tokens`` is in effect and one such request can be held."""
        return None if self.longest is None else self.longest + self.spare >= tokens

    @property
    def capped_by(self) -> str:
        """What keeps ``longest`` from being longer."""
        if self.slots is not None:
            shared = f", one of {self.slots}" if self.slots > 1 else ""
            return f"the context of a slot{shared}"
        less = f", less {self.spare}" if self.spare else ""
        reach = 0 if self.longest is None else self.longest + self.spare
        if self.pool is not None and (self.limit is None or reach < self.limit):
            return f"the KV pool of {self.pool:,} tokens{less}"
        return f"the context limit{less}"


def read_limits(http: Http) -> Limits:
    """Ask a server that is ready for its limits; nothing is decoded.

    Raises what ``identify`` does, and ``RequestError`` for pages that hold no such figures.
    """
    found = identify(http)
    if found.kind == "llama.cpp":
        return _llama_cpp(found)
    if found.kind == "vLLM":
        return _vllm(http, found)
    if found.kind == "SGLang":
        return _sglang(http, found)
    limit = fields.count(found.told, "max_model_len") or None
    where = "max_model_len in /v1/models" if limit else ""
    return Limits(found.kind, found.version, str(found.told["id"]), limit, where, limit)


def _llama_cpp(found: Identity) -> Limits:
    limit = fields.count(fields.group(found.told, "default_generation_settings"), "n_ctx") or None
    name = str(found.told.get("model_alias") or found.told.get("model_path") or "")
    return Limits(
        engine=found.kind,
        version=found.version,
        model=name,
        limit=limit,
        limit_from="n_ctx of a slot in /props",
        longest=limit,
        slots=fields.count(found.told, "total_slots") or 1,
    )


def _vllm(http: Http, found: Identity) -> Limits:
    limit = fields.count(found.told, "max_model_len") or None
    pool, pool_from = _vllm_pool(http)
    return Limits(
        engine=found.kind,
        version=found.version,
        model=str(found.told["id"]),
        limit=limit,
        limit_from="max_model_len in /v1/models",
        longest=limit,
        pool=pool,
        pool_from=pool_from,
    )


def _vllm_pool(http: Http) -> tuple[int | None, str]:
    """The smallest pool of all engines, and where it stands."""
    response = http.get("/metrics")
    if not response.is_success:
        return None, ""
    try:
        families = list(text_string_to_metric_families(response.text))
    except ValueError:
        raise RequestError("a metrics page that cannot be read") from None
    engines = [s.labels for family in families for s in family.samples if s.name == CACHE_CONFIG]
    sizes = [_whole(labels, "kv_cache_size_tokens") for labels in engines]
    if told := [size for size in sizes if size is not None]:
        return min(told), f"kv_cache_size_tokens of {CACHE_CONFIG} in /metrics"
    blocks = [(_whole(one, "num_gpu_blocks"), _whole(one, "block_size")) for one in engines]
    if whole := [number * size for number, size in blocks if number and size]:
        return min(whole), f"num_gpu_blocks * block_size of {CACHE_CONFIG} in /metrics"
    return None, ""


def _whole(labels: dict[str, str], name: str) -> int | None:
    value = labels.get(name, "")
    return int(value) if value.isdecimal() else None


def _sglang(http: Http, found: Identity) -> Limits:
    where, about = "/server_info", page(http, "/server_info")
    if "max_total_num_tokens" not in about:
        where, about = "/get_server_info", page(http, "/get_server_info")
    limit, limit_from = fields.count(found.told, "max_model_len"), "max_model_len in /v1/models"
    if not limit:
        limit, limit_from = fields.count(about, "context_length"), f"context_length in {where}"
    pool = fields.count(about, "max_total_num_tokens") or None
    longest = fields.count(about, "max_req_input_len") or None
    if longest is not None:
        longest += INPUT_RESERVE
    elif limit and pool:
        longest = largest_request(limit, pool)
    return Limits(
        engine=found.kind,
        version=str(about.get("version") or found.version),
        model=str(found.told["id"]),
        limit=limit or None,
        limit_from=limit_from if limit else "",
        longest=longest,
        spare=1,
        pool=pool,
        pool_from=f"max_total_num_tokens in {where}" if pool else "",
    )
