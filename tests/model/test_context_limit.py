"""What a limit allows on each engine.

SGLang 0.5.23 ``managers/tp_worker.py``: ``max_req_len = min(context_len - 1, pool - 1)``,
``max_req_input_len = max_req_len - 5``, and ``managers/utils.py``: a prompt of that many tokens or
more is an error. vLLM 0.32 ``_check_enough_kv_cache_memory`` and ``config/model.py``. llama.cpp
``tools/server/server-context.cpp``: ``n_tokens >= slot.n_ctx`` is an error, and a slot is capped at
``n_ctx_train``.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.context_limit import ENGINES, allowed

TOKENS = st.integers(16, 10**6)


def test_the_account_as_configured_on_sglang() -> None:
    """200,000 wished on a pool of 101,134: 101,133 at most, and no longer prompt than 101,127."""
    found = allowed("SGLang", 200_000, 101_134, 262_144)
    assert (found.starts, found.largest_request, found.largest_prompt) == (True, 101_133, 101_127)
    assert found.requests_at_limit == pytest.approx(0.50567)
    assert not found.held
    for words in ("clips output in silence", "101,133", "a pool of 101,134", "101,128 or more"):
        assert words in found.behaviour


@pytest.mark.parametrize(
    ("engine", "limit", "pool", "model", "starts", "request_", "prompt"),
    [
        ("SGLang", 32_768, 101_134, 262_144, True, 32_767, 32_761),
        ("SGLang", 300_000, 400_000, 262_144, False, 0, 0),
        ("SGLang", 300_000, 400_000, None, True, 299_999, 299_993),
        ("SGLang", 100, 6, None, False, 0, 0),
        ("vLLM", 200_000, 101_134, 262_144, False, 0, 0),
        ("vLLM", 101_120, 101_120, 262_144, True, 101_120, 101_119),
        ("vLLM", 300_000, 400_000, 262_144, False, 0, 0),
        ("llama.cpp", 8_192, 8_192, 8_192, True, 8_192, 8_191),
        ("llama.cpp", 16_384, 16_384, 8_192, True, 8_192, 8_191),
        ("llama.cpp", 16_384, 8_192, 32_768, False, 0, 0),
    ],
)
def test_a_limit_allows(engine, limit, pool, model, starts, request_, prompt) -> None:
    found = allowed(engine, limit, pool, model)
    assert found.starts is starts
    assert (found.largest_request, found.largest_prompt) == (request_, prompt)
    assert bool(found.refusal) is not starts


def test_slots_share_a_context() -> None:
    found = allowed("llama.cpp", 16_384, 16_384, 32_768, slots=4)
    assert (found.largest_request, found.requests_at_limit) == (4_096, 4)
    assert "4,096 tokens (16,384 over 4 slots)" in found.behaviour


@pytest.mark.parametrize(
    ("engine", "says"),
    [
        ("SGLang", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"),
        ("vLLM", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"),
        ("llama.cpp", "capped at the model's 262,144"),
    ],
)
def test_above_the_models_own_limit_each_engine_says_how(engine: str, says: str) -> None:
    assert says in allowed(engine, 300_000, 400_000, 262_144).behaviour


@given(st.sampled_from(ENGINES), TOKENS, TOKENS, TOKENS)
def test_no_request_is_longer_than_limit_or_pool(engine, limit, pool, model) -> None:
    found = allowed(engine, limit, pool, model)
    assert found.largest_request <= min(limit, pool)
    assert found.largest_prompt <= max(0, found.largest_request - 1)
    assert (found.largest_request > 0) == found.starts
    assert found.held == (found.requests_at_limit >= 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("TGI", 1, 1), "'TGI' is not one of SGLang, vLLM, llama.cpp"),
        (("vLLM", 0, 1), "limit 0, pool 1 and slots 1 are not all at least 1"),
        (("vLLM", 1, 0), "limit 1, pool 0"),
    ],
)
def test_bad_input_is_refused(arguments, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        allowed(*arguments)
