"""How large a server's log says that its KV buffers are, line by line.

- llama.cpp (``src/llama-kv-cache.cpp``; its server prints these from ``--verbosity 4`` on): one
  line for each device, ``CPU KV buffer size = 45.00 MiB``, and one for the whole cache, ``size =
  45.00 MiB ( 1024 cells, 30 layers, 2/2 seqs), K (f16): 22.50 MiB, V (f16): 22.50 MiB``. The cells
  are of one stream: sequences that share nothing have a stream each (behind the slash; up to the
  middle of 2025 there is one stream, and no slash).
- SGLang (``mem_cache/memory_pool.py``): ``KV Cache is allocated. dtype: torch.bfloat16, #tokens:
  16384, K size: 0.03 GB, V size: 0.03 GB``, for MLA ``KV size: 0.07 GB``; older without the dtype.
  Its GB are GiB, and one page of rows more than the tokens is allocated. Each rank has a line, a
  draft model one of its own.
- vLLM (``v1/worker/gpu_worker.py``): ``Available KV cache memory: 6.62 GiB``, of which whole blocks
  are made; how many tokens these hold is on another line (``logs.vllm_facts``).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

MIB = 2**20
GIB = 2**30

_MIB = r" *([\d.]+) MiB"
_CACHE = re.compile(
    rf"\bsize ={_MIB} \( *(\d+) cells, +(\d+) layers, +\d+(?:/(\d+))? seqs\), "
    rf"K \((\w+)\):{_MIB}, V \((\w+)\):{_MIB}"
)
_DEVICE = re.compile(rf"\b(\S+) KV buffer size ={_MIB}")
_SGLANG = re.compile(
    r"\bKV Cache is allocated\. (?:dtype: (?:torch\.)?(\w+), )?#tokens: (\d+), "
    r"(?:KV size: (?P<both>[\d.]+) GB|K size: (?P<k>[\d.]+) GB, V size: (?P<v>[\d.]+) GB)"
)
_RANK = re.compile(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ((?:[A-Z]+\d+ ?)+)\]")
_VLLM = re.compile(r"\bAvailable KV cache memory: (-?[\d.]+) GiB")


@dataclass(frozen=True)
class KvBuffer:
    """One line of a log, counted from 1.

    ``sizes`` are bytes as printed, of ``K`` and ``V`` or of ``KV`` together, each off by at most
    ``rounding_bytes``. ``of`` is a device of llama.cpp, ``cache`` for all of them, or a rank.
    ``tokens`` are all that the buffer was made for.
    """

    engine: Literal["llama.cpp", "SGLang", "vLLM"]
    line: int
    of: str
    sizes: Mapping[str, float]
    rounding_bytes: float
    tokens: int | None = None
    layers: int | None = None
    dtype: str = ""

    @property
    def size_bytes(self) -> float:
        """All that is printed of it."""
        return sum(self.sizes.values())

    def holds(self, predicted_bytes: float) -> bool:
        """Whether a prediction of the whole lies within the rounding of what is printed."""
        return abs(predicted_bytes - self.size_bytes) <= len(self.sizes) * self.rounding_bytes


def kv_buffers(lines: Iterable[str]) -> list[KvBuffer]:
    """Every line of a log that tells the size of a KV buffer, in its order."""
    return [one for number, text in enumerate(lines, start=1) for one in _on_line(number, text)]


def _on_line(number: int, text: str) -> Iterator[KvBuffer]:
    if found := _CACHE.search(text):
        streams = int(found[4] or 1)
        yield KvBuffer(
            engine="llama.cpp",
            line=number,
            of="cache",
            sizes={"K": float(found[6]) * MIB, "V": float(found[8]) * MIB},
            rounding_bytes=_half_digit(found[1], MIB),
            tokens=int(found[2]) * streams,
            layers=int(found[3]),
            dtype=found[5] if found[5] == found[7] else f"{found[5]}/{found[7]}",
        )
    elif found := _DEVICE.search(text):
        size = {"KV": float(found[2]) * MIB}
        yield KvBuffer("llama.cpp", number, found[1], size, _half_digit(found[2], MIB))
    elif found := _SGLANG.search(text):
        rank = _RANK.match(text)
        parts = {"KV": found["both"], "K": found["k"], "V": found["v"]}
        printed = {name: value for name, value in parts.items() if value is not None}
        yield KvBuffer(
            engine="SGLang",
            line=number,
            of=rank[1].strip() if rank else "",
            sizes={name: float(value) * GIB for name, value in printed.items()},
            rounding_bytes=_half_digit(next(iter(printed.values())), GIB),
            tokens=int(found[2]),
            dtype=found[1] or "",
        )
    elif found := _VLLM.search(text):
        size = {"KV": float(found[1]) * GIB}
        yield KvBuffer("vLLM", number, "", size, _half_digit(found[1], GIB))


def _half_digit(printed: str, unit: int) -> float:
    """Half of the last printed digit, in bytes."""
    decimals = len(printed.partition(".")[2])
    return float(0.5 * 10.0**-decimals * unit)
