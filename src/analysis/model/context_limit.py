"""What a context limit really allows on each engine.

Each engine meets a limit that its memory or its model cannot hold in its own way:

* **SGLang** (``managers/tp_worker.py``): ``max_req_len = min(context_len, pool) - 1`` and
  ``max_req_input_len = max_req_len - 5``. It starts with any limit up to the model's (0.5.23 warns
  where the pool is smaller). Output is clipped without an error so that prompt and output stay
  below ``max_req_len`` (``managers/scheduler.py``); a prompt of ``max_req_input_len`` tokens or
  more gets an error (``managers/utils.py``), and so does a request whose prompt and named output
  pass the limit itself (``managers/tokenizer_manager.py``). Above the model's own it raises, unless
  ``SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN`` is set (``configs/model_config.py``).
* **vLLM** (``v1/core/kv_cache_utils.py``): refuses to start where one request of the limit does
  not fit; above the model's own limit, unless ``VLLM_ALLOW_LONG_MAX_MODEL_LEN`` is set
  (``config/model.py``). A prompt of the limit or more, and one that leaves less room than the
  output asked for, gets an error (``v1/engine/input_processor.py``, ``renderers/params.py``).
* **llama.cpp** (``tools/server/server-context.cpp``): the context is divided among the slots,
  unless the cache is unified. A prompt of a slot's context or more gets error 400; output stops
  there, marked ``truncated``. A slot is capped at the model's own limit, with a warning.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from analysis.model.kv_cache import largest_request

Engine = Literal["SGLang", "vLLM", "llama.cpp"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
INPUT_RESERVE = 5
"""Tokens by which SGLang's longest prompt is shorter than its longest request."""


@dataclass(frozen=True)
class Allowed:
    """What a limit allows.

    ``largest_request`` is of prompt and output, tokens, by the engine's own bound; SGLang's
    (``max_req_len``) is kept one token below. Both it and ``largest_prompt`` are 0 where the
    engine does not start. ``requests_at_limit``: how many requests as long as the limit the pool
    holds at once.
    """

    engine: str
    limit_tokens: int
    pool_tokens: int
    starts: bool
    refusal: str
    largest_request: int
    largest_prompt: int
    requests_at_limit: float
    behaviour: str

    @property
    def held(self) -> bool:
        """Whether the pool holds a request as long as the limit."""
        return self.pool_tokens >= self.limit_tokens


def allowed(
    engine: str,
    limit_tokens: int,
    pool_tokens: int,
    model_limit: int | None = None,
    slots: int = 1,
) -> Allowed:
    """What ``limit_tokens`` allows where the KV pool holds ``pool_tokens``.

    ``limit_tokens`` is of one request: SGLang's ``--context-length``, vLLM's
    ``--max-model-len``; for llama.cpp ``-c``, which its ``slots`` share. ``model_limit`` is the
    config's position limit, if known. Raises ``ValueError`` for another engine, or for counts
    below 1.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r} is not one of {', '.join(ENGINES)}")
    if limit_tokens < 1 or pool_tokens < 1 or slots < 1:
        raise ValueError(
            f"limit {limit_tokens}, pool {pool_tokens} and slots {slots} are not all at least 1"
        )
    if engine == "llama.cpp":
        return _llama_cpp(limit_tokens, pool_tokens, model_limit, slots)
    above = model_limit is not None and limit_tokens > model_limit
    return (_sglang if engine == "SGLang" else _vllm)(limit_tokens, pool_tokens, model_limit, above)


def _sglang(limit: int, pool: int, model_limit: int | None, above: bool) -> Allowed:
    refusal = ""
    if above:
        refusal = (
            f"{limit:,} is above the model's own {model_limit:,}: SGLang raises at the start, "
            "unless SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN is set"
        )
    longest = largest_request(limit, pool)
    if longest <= INPUT_RESERVE and not refusal:
        refusal = f"a pool of {pool:,} tokens is too small: SGLang ends at the start"
    prompt = longest - INPUT_RESERVE - 1
    cause = f"a pool of {pool:,}" if pool < limit else "the limit"
    behaviour = refusal or (
        "accepts the limit, clips output in silence so that prompt and output stay below "
        f"{longest:,} tokens ({cause}), and rejects prompts of {longest - INPUT_RESERVE:,} or more"
    )
    return _answer("SGLang", limit, pool, refusal, longest, prompt, behaviour)


def _vllm(limit: int, pool: int, model_limit: int | None, above: bool) -> Allowed:
    refusal = ""
    if above:
        refusal = (
            f"{limit:,} is above the model's own {model_limit:,}: vLLM refuses to start, "
            "unless VLLM_ALLOW_LONG_MAX_MODEL_LEN is set"
        )
    elif limit > pool:
        refusal = (
            f"a request of {limit:,} tokens does not fit into a pool of {pool:,}: "
            "vLLM refuses to start"
        )
    behaviour = refusal or (
        f"starts, and answers a request whose prompt and output pass {limit:,} tokens with an error"
    )
    return _answer("vLLM", limit, pool, refusal, limit, limit - 1, behaviour)


def _llama_cpp(context: int, cells: int, model_limit: int | None, slots: int) -> Allowed:
    refusal = ""
    if context > cells:
        refusal = (
            f"{context:,} cells are more than the {cells:,} that fit: llama.cpp fails to "
            "allocate them and does not start"
        )
    slot = context // slots
    capped = slot if model_limit is None else min(slot, model_limit)
    cap = f", capped at the model's {model_limit:,}" if capped < slot else ""
    share = f" ({context:,} over {slots} slots)" if slots > 1 else ""
    behaviour = refusal or (
        f"gives each slot {capped:,} tokens{share}{cap}, rejects prompts of that many or more "
        "with error 400, and stops output there, marked truncated"
    )
    return _answer("llama.cpp", capped, cells, refusal, capped, capped - 1, behaviour)


def _answer(
    engine: str, limit: int, pool: int, refusal: str, longest: int, prompt: int, behaviour: str
) -> Allowed:
    starts = not refusal
    return Allowed(
        engine=engine,
        limit_tokens=limit,
        pool_tokens=pool,
        starts=starts,
        refusal=refusal,
        largest_request=longest if starts else 0,
        largest_prompt=max(0, prompt) if starts else 0,
        requests_at_limit=pool / limit,
        behaviour=behaviour,
    )
