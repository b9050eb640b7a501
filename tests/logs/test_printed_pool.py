"""Pools as tokens: in the lines of logs, and on pages of metrics, of real servers."""

import pytest

from analysis.logs.printed_pool import logged_tokens, pool_gauges

# SGLang 0.5.23 on two ranks, our own capture of 2026-11-30 (labels shortened).
SGLANG_PAGE = """\
sglang:max_total_num_tokens{model_name="mla-tiny",tp_rank="1"} 16384.0
sglang:max_total_num_tokens{model_name="mla-tiny",tp_rank="0"} 16384.0
sglang:kv_cache_memory_usage_gb{model_name="mla-tiny",tp_rank="1"} 0.07031679153442383
sglang:kv_cache_memory_usage_gb{model_name="mla-tiny",tp_rank="0"} 0.07031679153442383
"""
SGLANG_LINE = (
    "[2026-11-30 23:10:15 TP0] max_total_num_tokens=16384, chunked_prefill_size=4096, "
    "max_prefill_tokens=16384, max_running_requests=2048, context_len=8192"
)
# vLLM 0.32.0 on a CPU, our own capture of 2026-12-01 (labels shortened).
VLLM_PAGE = (
    'vllm:cache_config_info{block_size="16",kv_cache_size_tokens="233008",num_cpu_blocks="None",'
    'num_gpu_blocks="14563"} 1.0\n'
)
VLLM_LINE = (
    "(EngineCore pid=7273) INFO 12-01 17:23:56 [kv_cache_utils.py:2327] CPU KV cache size: "
    "233,008 tokens, Maximum concurrency for 8,192 tokens per request: 28.44x"
)


def test_sglang_tells_gib_of_each_rank() -> None:
    found = pool_gauges(SGLANG_PAGE)
    assert found.tokens == 16_384
    assert found.rank_gib == {0: 0.07031679153442383, 1: 0.07031679153442383}
    assert (found.blocks, found.block_tokens) == (None, None)


def test_vllm_tells_blocks_and_their_size() -> None:
    found = pool_gauges(VLLM_PAGE)
    assert (found.blocks, found.block_tokens, found.tokens) == (14_563, 16, 233_008)
    assert found.rank_gib == {}


def test_an_older_vllm_tells_no_tokens() -> None:
    found = pool_gauges('vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0\n')
    assert (found.blocks, found.tokens) == (100, None)


def test_a_page_of_something_else_tells_nothing() -> None:
    found = pool_gauges("process_cpu_seconds_total 3.5\n")
    assert (found.blocks, found.tokens, dict(found.rank_gib)) == (None, None, {})


def test_text_that_is_no_page_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid value"):
        pool_gauges('vllm:cache_config_info{block_size="16"\n')


@pytest.mark.parametrize(
    ("lines", "tokens"),
    [
        ([VLLM_LINE], 233_008),
        ([SGLANG_LINE], 16_384),
        (["something else", SGLANG_LINE], 16_384),
        ([VLLM_LINE, VLLM_LINE.replace("233,008", "100,000")], 100_000),
        (["max_total_num_tokens"], None),
        ([], None),
    ],
)
def test_the_tokens_of_a_log(lines: list[str], tokens: int | None) -> None:
    assert logged_tokens(lines) == tokens
