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
        (["--kv-dtype", "fp4_e2m1"], 61 * (288 + 36)),
        (["--pp", "2"], 31 * (512 + 64) * 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_bytes_per_token_follow_the_layout(analysis, options: list[str], expected: int) -> None:
    found = analysis(*KIMI, *options, "--json").json
    assert found["bytes_per_token_per_gpu"] == expected
    assert isinstance(found["bytes_per_token_per_gpu"], int)
    assert set(found) == {
        *("model", "layout", "kv_dtype", "bytes_per_token_per_gpu", "tokens"),
        *("bytes_per_gpu", "gib_per_gpu", "notes", "draft_bytes_per_token_per_gpu"),
        *("pool_gib_per_gpu", "log_line", "allowed", "ways"),
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
    assert found["allowed"] is found["ways"] is found["log_line"] is None


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


DFLASH = ("--draft-model", "z-lab/Kimi-K2.5-DFlash")


@pytest.mark.parametrize(
    ("options", "draft"),
    [
        (["--draft", "dflash-ratio", *DFLASH], 77_184 - 70_272),
        (["--draft", "dflash-ratio", "--draft-layers", "6"], 77_184 - 70_272),
        (["--draft", "dflash-own", *DFLASH], 3_072),
        (["--draft", "dflash-own", *DFLASH, "--draft-kv-dtype", "fp8"], 1_536),
        (["--draft", "eagle", "--draft-layers", "1"], 1_152),
        ([], 0),
    ],
)
def test_a_draft_cache_is_added_by_its_rule(analysis, options: list[str], draft: int) -> None:
    """77,184 and 3,072 B: SGLang 0.5.13 and 0.5.18 (see tests/model/test_draft_cache.py)."""
    found = analysis(*KIMI, *options, "--tokens", "1000", "--json").json
    assert found["draft_bytes_per_token_per_gpu"] == draft
    assert found["bytes_per_token_per_gpu"] == 70_272
    assert found["bytes_per_gpu"] == 1000 * (70_272 + draft)


def test_a_limit_is_told_with_the_ways_to_make_it_fit(analysis) -> None:
    wish = ("--tokens", "101134", "--engine", "sglang", "--limit", "200000")
    found = analysis(*KIMI, *wish, "--json").json
    assert found["allowed"]["largest_request"] == 101_133
    assert found["allowed"]["starts"] is True
    assert found["log_line"] == "KV Cache is allocated. #tokens: 101134, KV size: 6.62 GB"
    ways = {way["name"]: way for way in found["ways"]}
    assert (ways["fp8 KV cache"]["tokens"], ways["fp8 KV cache"]["enough"]) == (202_268, True)
    assert ways["memory fraction up"]["enough"] is None
    lines = analysis(*KIMI, *wish).out
    assert "202,268 tokens, enough" in lines
    assert "200,000 tokens, if so much is free; costs 6.47 GiB" in lines
    held = analysis(*KIMI, "--tokens", "300000", *wish[2:], "--json").json
    assert (held["allowed"]["largest_request"], held["ways"]) == (199_999, None)


def test_vllm_refuses_what_sglang_clips(analysis) -> None:
    wish = ("--pool-gib", "6.62", "--engine", "vllm", "--limit", "200000", "--json")
    found = analysis(*KIMI, *wish).json
    assert found["tokens"] % 16 == 0
    assert (found["allowed"]["starts"], found["allowed"]["largest_request"]) == (False, 0)
    assert "refuses to start" in found["allowed"]["behaviour"]


def test_vllm_pools_a_drafters_layers_with_the_models(analysis) -> None:
    """GLM-5.1 with one MTP layer at DCP 4: 18.42 GiB, 1,271,040 tokens printed.

    local-inference-lab/rtx6kpro@e2c2b95, models/glm5.1, start-up log of glm-dcp4-mtp1; blocks of
    64 tokens. The printed GiB stand for 0.03 % to both sides.
    """
    layout = ("--tp", "8", "--dcp", "4", "--kv-dtype", "fp8_ds_mla", "--page-size", "64")
    draft = ("--draft", "eagle", "--draft-layers", "1")
    options = (*layout, *draft, "--engine", "vllm", "--pool-gib", "18.42", "--json")
    found = analysis("kv", "--model", "GLM-5.1", *options).json
    assert found["tokens"] == pytest.approx(1_271_040, rel=4e-4)
    assert found["draft_bytes_per_token_per_gpu"] == (656 + 132) / 4
    assert found["bytes_per_token_per_gpu"] == 78 * (656 + 132) / 4


def test_an_indexer_is_divided_by_vllm_and_whole_on_sglang(analysis) -> None:
    """SGLang 0.5.23, ``pool_configurator.py``: "index-K buffer is replicated under DCP"."""
    layout = ("--model", "GLM-5.1", "--tp", "8", "--dcp", "8", "--kv-dtype", "fp8_ds_mla")

    def cell(*engine: str) -> float:
        return analysis("kv", *layout, *engine, "--json").json["bytes_per_token_per_gpu"]

    assert cell() == cell("--engine", "vllm") == 78 * (656 + 132) / 8
    assert cell("--engine", "sglang") == 78 * (656 / 8 + 132)


def test_a_pool_by_sglangs_rule(analysis) -> None:
    """36.93 GiB free of 94 at 0.92: 29.41 GiB."""
    rule = ("--free-gib", "36.93", "--total-gib", "94", "--mem-fraction", "0.92")
    found = analysis(*KIMI, *rule, "--json").json
    assert found["pool_gib_per_gpu"] == pytest.approx(36.93 - 0.08 * 94)
    assert found["tokens"] == int((36.93 - 0.08 * 94) * GIB // 70_272)
    paged = analysis(*KIMI, *rule, "--page-size", "64", "--json").json
    assert paged["tokens"] == found["tokens"] // 64 * 64


def test_under_dcp_tokens_are_of_all_ranks_and_the_line_of_one(analysis) -> None:
    options = ("--dcp", "8", "--pool-gib", "6.62", "--page-size", "64", "--engine", "sglang")
    found = analysis(*KIMI, *options, "--json").json
    assert found["tokens"] % (8 * 64) == 0
    assert found["tokens"] == int(6.62 * GIB // 8_784) // 512 * 512
    assert f"#tokens: {found['tokens'] // 8}," in found["log_line"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--limit", "9"], ["--limit", "--engine"]),
        (["--limit", "9", "--engine", "vllm"], ["--limit", "a pool"]),
        (["--limit", "9", "--engine", "vllm", "--tokens", "0"], ["a pool of no token"]),
        (["--draft", "eagle"], ["needs the drafter's layers", "--draft-layers"]),
        (["--draft", "dflash-own"], ["needs the drafter's heads", "--draft-model"]),
        (["--draft", "dflash-own", "--draft-model", "Kimi-K2.6"], ["--draft-model", "MLA"]),
        (["--draft-layers", "1"], ["--draft-layers", "--draft RULE"]),
        (["--draft", "dflash-own", *DFLASH, "--engine", "vllm"], ["--draft", "vllm"]),
        (["--draft", "medusa"], ["--draft", "'medusa'", "eagle"]),
        (["--engine", "llama.cpp"], ["--engine llama.cpp", "MLA"]),
        (["--free-gib", "9"], ["--mem-fraction", "all three"]),
        (
            ["--free-gib", "9", "--total-gib", "90", "--mem-fraction", "0.9", "--pool-gib", "1"],
            ["--pool-gib", "one of them"],
        ),
        (
            ["--free-gib", "9", "--total-gib", "90", "--mem-fraction", "0.8"],
            ["--mem-fraction", "0.8", "more than 0.900", "nothing is left"],
        ),
        (
            ["--free-gib", "99", "--total-gib", "90", "--mem-fraction", "0.8"],
            ["--free-gib", "at most"],
        ),
        (["--free-gib", "nan", "--total-gib", "90"], ["--free-gib", "nan", "finite"]),
        (["--mem-fraction", "1.5"], ["--mem-fraction", "1.5"]),
        (["--pp", "62"], ["pp 62", "61 layers"]),
        (["--page-size", "0"], ["--page-size", "0"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else "",
)
def test_bad_options_are_one_line(analysis, options: list[str], says: list[str]) -> None:
    error = analysis(*KIMI, *options, "--json").error
    for words in says:
        assert words in error


def test_ranks_that_do_not_divide_the_attention_heads_are_refused(analysis) -> None:
    error = analysis("kv", "--model", "kimi-k2.6", "--tp", "7").error
    assert "64 attention heads cannot be shared out over 7 ranks" in error
