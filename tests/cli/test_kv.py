"""``analysis kv``: bytes per token and GPU.

70,272 is 61 layers x (512 + 64) elements x 2 B, from the config of Kimi K2; vLLM's recipe for
the same model printed 715,072 tokens in 46.8 GiB, which is 70,273 B a token.
"""

import json
from pathlib import Path

import pytest

from analysis import paths

KIMI = ("kv", "--model", "nvidia/Kimi-K2.6-NVFP4", "--tp", "8")
GIB = 2**30


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], 61 * (512 + 64) * 2),
        (["--dcp", "8"], 61 * (512 + 64) * 2 // 8),
        (["--kv-dtype", "fp8"], 61 * (512 + 64)),
        (["--dp-attention"], 61 * (512 + 64) * 2),
        (["--kv-dtype", "fp8_ds_mla"], 61 * 656),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_bytes_per_token_follow_the_layout(analysis, options: list[str], expected: int) -> None:
    found = analysis(*KIMI, *options, "--json").json
    assert found["bytes_per_token_per_gpu"] == expected
    assert isinstance(found["bytes_per_token_per_gpu"], int)
    assert set(found) == {
        *("model", "layout", "kv_dtype", "bytes_per_token_per_gpu", "tokens"),
        *("bytes_per_gpu", "gib_per_gpu", "notes"),
    }


def test_the_published_numbers(analysis) -> None:
    assert analysis(*KIMI, "--json").json["bytes_per_token_per_gpu"] == 70272
    assert analysis(*KIMI, "--dcp", "8", "--json").json["bytes_per_token_per_gpu"] == 8784
    fp8 = analysis(*KIMI, "--kv-dtype", "fp8", "--json").json
    assert fp8["bytes_per_token_per_gpu"] == 35136


@pytest.mark.parametrize("tp", ["1", "2", "8", "64"])
def test_plain_tensor_parallelism_shares_out_no_latent(analysis, tp: str) -> None:
    found = analysis("kv", "--model", "Kimi-K2.6", "--tp", tp, "--json").json
    assert found["bytes_per_token_per_gpu"] == 70272


def test_the_dtype_is_the_models_own_and_a_scheme_of_the_checkpoint_is_a_note(analysis) -> None:
    found = analysis(*KIMI, "--json").json
    assert found["kv_dtype"] == "bf16"
    assert [note for note in found["notes"] if "8 bits" in note]


def test_tokens_are_turned_into_bytes(analysis) -> None:
    found = analysis(*KIMI, "--tokens", "200000", "--json").json
    assert (found["tokens"], found["bytes_per_gpu"]) == (200000, 200000 * 70272)
    assert found["gib_per_gpu"] == pytest.approx(200000 * 70272 / GIB, rel=1e-8)


def test_a_pool_is_turned_into_whole_tokens(analysis) -> None:
    found = analysis(*KIMI, "--pool-gib", "46.8", "--json").json
    assert found["tokens"] == int(46.8 * GIB / 70272)
    assert found["bytes_per_gpu"] <= 46.8 * GIB < found["bytes_per_gpu"] + 70272


def test_without_a_wish_what_it_takes_is_null(analysis) -> None:
    found = analysis(*KIMI, "--json").json
    assert found["tokens"] is found["bytes_per_gpu"] is found["gib_per_gpu"] is None


@pytest.mark.parametrize(
    "name",
    ["Kimi-K2.6", "kimi-k2.6", "KIMI-K2.6-nvfp4", "moonshotai/Kimi-K2.6", "nvidia/Kimi-K2.6-FP8"],
)
def test_a_name_matches_without_case_owner_or_quantisation(analysis, name: str) -> None:
    found = analysis("kv", "--model", name, "--tp", "8", "--json").json
    assert (found["model"], found["bytes_per_token_per_gpu"]) == ("nvidia/Kimi-K2.6-NVFP4", 70272)


def test_an_ambiguous_name_lists_the_candidates(analysis) -> None:
    """Two checkpoints of one model are committed; without a suffix neither is meant more."""
    names = sorted(path.stem.split("--")[1] for path in paths.MODELS.glob("Qwen--*A22B*.json"))
    assert names == ["Qwen3-235B-A22B", "Qwen3-235B-A22B-FP8"]
    error = analysis("kv", "--model", "qwen3-235b-a22b-int4").error
    for name in names:
        assert f"Qwen/{name}" in error
    exact = analysis("kv", "--model", "qwen3-235b-a22b", "--json").json
    assert exact["model"] == "Qwen/Qwen3-235B-A22B"


def test_a_part_of_a_name_lists_what_it_may_be(analysis) -> None:
    error = analysis("kv", "--model", "deepseek").error
    assert "DeepSeek-R1" in error
    assert "DeepSeek-V3.2" in error
    assert "Qwen" not in error


def test_heads_are_shared_out_by_tensor_parallelism(analysis, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    facts = {
        "num_hidden_layers": 10,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "torch_dtype": "float16",
    }
    config.write_text(json.dumps(facts))
    # 10 layers x heads on the rank x (64 + 64) x 2 B; at 8 ranks each head is kept twice
    for tp, heads in (("1", 4), ("2", 2), ("4", 1), ("8", 1)):
        found = analysis("kv", "--model", str(config), "--tp", tp, "--json").json
        assert found["bytes_per_token_per_gpu"] == 10 * heads * 128 * 2
        assert found["kv_dtype"] == "fp16"
    found = analysis("kv", "--model", str(config), "--tp", "8", "--dcp", "2", "--json").json
    assert found["bytes_per_token_per_gpu"] == 10 * 128 * 2 // 2


def test_people_read_thousands_and_words(analysis) -> None:
    ended = analysis(*KIMI)
    assert (ended.code, ended.err) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in ended.out.splitlines())
    assert lines["bytes_per_token_per_gpu"] == "70,272"
    assert lines["tokens"] == "undefined"
    assert "replicated on each of 8 ranks" in lines["layout"]
