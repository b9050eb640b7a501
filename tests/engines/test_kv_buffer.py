"""The embedded llama.cpp server allocates the KV buffer that the model predicts."""

from pathlib import Path

import pytest

from analysis import paths
from analysis.engines import embedded
from analysis.engines.embedded import Settings
from analysis.logs.kv_buffers import KvBuffer, kv_buffers
from analysis.model.kv_cache import HeadCache
from analysis.model.kv_pool import llama_cpp_buffer_bytes, llama_cpp_cells
from analysis.records.model_config import load_model

CONFIG = paths.MODELS / "HuggingFaceTB--SmolLM2-135M-Instruct.json"
SAYS_BUFFERS = 4
"""The verbosity from which llama.cpp's library, and not its server only, is heard."""


def allocated(settings: Settings, log: Path) -> dict[str, KvBuffer]:
    """The KV buffers that the embedded server printed, by what each is of."""
    with embedded.running(settings, log):
        pass
    return {one.of: one for one in kv_buffers(log.read_text().splitlines())}


@pytest.mark.parametrize(("slots", "context_tokens"), [(1, 700), (2, 1500)])
def test_the_buffer_is_what_the_model_predicts(
    slots: int, context_tokens: int, tmp_path: Path
) -> None:
    cache = load_model(str(CONFIG)).cache
    assert isinstance(cache, HeadCache)
    cells = llama_cpp_cells(slots * context_tokens, slots)
    predicted = llama_cpp_buffer_bytes(cells, cache)
    settings = Settings("none", slots=slots, context_tokens=context_tokens, verbosity=SAYS_BUFFERS)
    printed = allocated(settings, tmp_path / "server.log")
    assert set(printed) == {"cache", "CPU"}
    whole = printed["cache"]
    assert (whole.tokens, whole.layers, whole.dtype) == (cells, cache.layers, "f16")
    for name in ("K", "V"):
        assert abs(whole.sizes[name] - predicted / 2) <= whole.rounding_bytes
    assert printed["CPU"].holds(predicted)
    for cells_off in (-256, 256):
        off = llama_cpp_buffer_bytes(cells + cells_off, cache)
        assert not printed["CPU"].holds(off), "a page of cells shows"
