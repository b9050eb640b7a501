"""How many tokens a server's log says that its KV pool holds, and what ``/metrics`` says of it.

- Logs: vLLM's ``KV cache size`` (``logs.vllm_facts``) and SGLang's ``max_total_num_tokens=``
  (``managers/scheduler.py``). Sizes in bytes are read by ``logs.kv_buffers``.
- vLLM (``v1/metrics/loggers.py``): the labels of ``vllm:cache_config_info``, whose value is always
  1. On a CPU too the number of blocks is ``num_gpu_blocks`` (0.32); ``kv_cache_size_tokens`` is the
  figure of the log.
- SGLang (``observability/metrics_collector.py``): ``sglang:kv_cache_memory_usage_gb`` is in GiB,
  padding rows included, and of each rank since 0.5.23 at least (its label ``tp_rank``);
  ``sglang:max_total_num_tokens`` are the tokens.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from analysis.logs.scan import Scan
from analysis.logs.vllm_facts import facts_of

VLLM_POOL = "vllm:cache_config_info"
SGLANG_SIZE = "sglang:kv_cache_memory_usage_gb"
SGLANG_TOKENS = "sglang:max_total_num_tokens"
POOL_METRICS = (VLLM_POOL, SGLANG_SIZE, SGLANG_TOKENS)
_SGLANG_LOG = re.compile(r"\bmax_total_num_tokens=(\d+)\b")


@dataclass(frozen=True)
class PoolGauges:
    """``None`` or empty where the page does not say. ``rank_gib`` is by tensor parallel rank."""

    tokens: int | None
    blocks: int | None
    block_tokens: int | None
    rank_gib: Mapping[int, float]


def logged_tokens(lines: Sequence[str]) -> int | None:
    """Tokens of the pool by the lines of one server's log; the least, where there are several."""
    scan = Scan("".join(f"{line}\n" for line in lines).encode())
    others = np.ones(len(lines), dtype=np.bool_)
    vllm = [fact.value for fact in facts_of(scan, others) if fact.what == "pool"]
    sglang = [found[1] for line in lines if (found := _SGLANG_LOG.search(line))]
    return min(map(int, [*vllm, *sglang]), default=None)


def pool_gauges(page: str) -> PoolGauges:
    """The pool by a page in Prometheus' text format, or by some lines of one.

    Raises ``ValueError`` for text that is none.
    """
    families = text_string_to_metric_families(page)
    samples = [sample for family in families for sample in family.samples]
    labels = next((dict(s.labels) for s in samples if s.name == VLLM_POOL), {})
    tokens = {round(s.value) for s in samples if s.name == SGLANG_TOKENS and math.isfinite(s.value)}
    return PoolGauges(
        tokens=_count(labels, "kv_cache_size_tokens") or min(tokens, default=None),
        blocks=_count(labels, "num_gpu_blocks") or _count(labels, "num_cpu_blocks"),
        block_tokens=_count(labels, "block_size"),
        rank_gib={
            int(s.labels.get("tp_rank", 0)): s.value for s in samples if s.name == SGLANG_SIZE
        },
    )


def _count(labels: Mapping[str, str], name: str) -> int | None:
    value = labels.get(name, "")
    return int(value) if value.isdecimal() else None
