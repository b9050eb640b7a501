"""Model facts: found by name, read from a config, or refused in one line."""

import json
from pathlib import Path

import pytest

from analysis import paths
from analysis.errors import InputError
from analysis.model.kv_cache import (
    HeadCache,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
)
from analysis.records.model_config import load_model

DENSE = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
}
LATENT = {
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
}
HYBRID = "one kind of attention in every layer"
WHOLE = "a whole number above zero"


def config(folder: Path, content: object) -> Path:
    path = folder / "config.json"
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(raw)
    return path


def without(name: str) -> dict:
    return {key: value for key, value in DENSE.items() if key != name}


# Content; where in the file, what was found, what was expected.
BAD = {
    "not JSON": (b'{"a": 1,\n "b": }', ":2", "text that is not JSON", "a config.json"),
    "empty file": (b"", ":1", "text that is not JSON", "a config.json"),
    "not UTF-8": (b'{"a": "\xff"}', "", "not UTF-8 at 7", "UTF-8 text"),
    "a list": ([1, 2], "", "a JSON list", "an object"),
    "facts that are none": ({"facts": 3}, ", facts", "a JSON int", "an object"),
    "no layers": (without("num_hidden_layers"), ", num_hidden_layers", "None", WHOLE),
    "no heads": (without("num_attention_heads"), ", num_attention_heads", "None", WHOLE),
    "text": (DENSE | {"num_hidden_layers": "61"}, ", num_hidden_layers", "'61'", WHOLE),
    "a fraction": (DENSE | {"num_hidden_layers": 61.5}, ", num_hidden_layers", "61.5", WHOLE),
    "negative": (DENSE | {"num_key_value_heads": -8}, ", num_key_value_heads", "-8", WHOLE),
    "zero": (DENSE | {"head_dim": 0}, ", head_dim", "0", WHOLE),
    "a truth value": (DENSE | {"num_hidden_layers": True}, ", num_hidden_layers", "True", WHOLE),
    "NaN": (b'{"num_hidden_layers": NaN}', ", num_hidden_layers", "nan", WHOLE),
    "text in a limit": (
        DENSE | {"max_position_embeddings": "long"},
        ", max_position_embeddings",
        "'long'",
        WHOLE,
    ),
    "a latent without rotary part": (
        {k: v for k, v in LATENT.items() if k != "qk_rope_head_dim"},
        ", qk_rope_head_dim",
        "None",
        WHOLE,
    ),
    "linear attention": (
        DENSE | {"full_attention_interval": 4},
        "",
        "a hybrid layout (full_attention_interval)",
        HYBRID,
    ),
    "two kinds of layers": (
        DENSE | {"layer_types": ["full_attention", "sliding_attention"]},
        "",
        "a hybrid layout (layer_types)",
        HYBRID,
    ),
    "a hybrid model type": (
        LATENT | {"model_type": "kimi_linear"},
        "",
        "a hybrid layout (model_type kimi_linear)",
        HYBRID,
    ),
    "an encoder": (
        DENSE | {"is_encoder_decoder": True},
        "",
        "a hybrid layout (is_encoder_decoder)",
        HYBRID,
    ),
    "layers that share a cache": (
        DENSE | {"num_kv_shared_layers": 10},
        "",
        "a hybrid layout (num_kv_shared_layers)",
        HYBRID,
    ),
    "a window shorter than the context": (
        DENSE | {"sliding_window": 4096, "max_position_embeddings": 32768},
        ", sliding_window",
        "a sliding window of 4096 tokens",
        "attention over the whole context: engines size the caches of windows apart",
    ),
    "a hybrid text model": (
        {"text_config": DENSE | {"model_type": "qwen3_next"}},
        "",
        "a hybrid layout (model_type qwen3_next)",
        HYBRID,
    ),
}


@pytest.mark.parametrize(("content", "place", "found", "expected"), BAD.values(), ids=list(BAD))
def test_a_bad_config_is_refused_in_one_line(tmp_path, content, place, found, expected) -> None:
    path = config(tmp_path, content)
    with pytest.raises(InputError) as raised:
        load_model(str(path))
    assert raised.value.place == f"{tmp_path.name}/config.json{place}"
    assert found in raised.value.found
    assert raised.value.expected == expected
    assert "\n" not in str(raised.value)


def test_a_missing_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: found no such file.*a readable file"):
        load_model(str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("Kimi-K9", "no model 'Kimi-K9'", "one of "),
        ("", "no model ''", "a config.json"),
        ("Kimi-K2", "no model 'Kimi-K2'", "moonshotai/Kimi-K2-Instruct, "),
        ("Qwen3-235B-A22B-NVFP4", "2 models", "one of Qwen/Qwen3-235B-A22B"),
    ],
)
def test_an_unknown_or_ambiguous_model_is_answered_with_a_choice(name, found, expected) -> None:
    with pytest.raises(InputError) as raised:
        load_model(name)
    assert raised.value.place == "--model"
    assert found in raised.value.found
    assert expected in raised.value.expected


@pytest.mark.parametrize("name", ["moonshotai/Kimi-K3", "Qwen/Qwen3.5-397B-A17B"])
def test_a_committed_hybrid_model_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"found a hybrid layout.*expected {HYBRID}"):
        load_model(name)


@pytest.mark.parametrize(
    "name",
    [
        "nvidia/Kimi-K2.6-NVFP4",
        "kimi-k2.6-nvfp4",
        "Kimi-K2.6",
        "moonshotai/Kimi-K2.6",
        "moonshotai/Kimi-K2.6-INT4",
        "nvidia--Kimi-K2.6-NVFP4",
    ],
)
def test_names_match_without_case_owner_or_quantisation(name: str) -> None:
    assert load_model(name).name == "nvidia/Kimi-K2.6-NVFP4"


@pytest.mark.parametrize("name", ["Qwen/Qwen3-235B-A22B", "Qwen/Qwen3-235B-A22B-FP8"])
def test_an_exact_name_is_not_ambiguous(name: str) -> None:
    assert load_model(name).name == name


def test_the_config_of_kimi_k26() -> None:
    """As in nvidia/Kimi-K2.6-NVFP4/config.json: 61 layers, 512 + 64, YaRN 64 times 4096."""
    model = load_model("Kimi-K2.6")
    assert model.cache == LatentCache(61, 512, 64)
    assert model.uncompressed == HeadCache(61, 64, 192, 128)
    assert (model.attention, model.dtype, model.attention_heads) == ("MLA", "bf16", 64)
    assert model.max_position_embeddings == 262_144
    assert (model.yarn_factor, model.yarn_original_positions) == (64, 4096)
    assert "KV scheme of 8 bits" in model.notes[0]


def test_an_indexer_is_its_head_dimension_and_a_scale_of_four_bytes() -> None:
    model = load_model("nvidia/GLM-5.1-NVFP4")
    assert model.cache == LatentCache(78, 512, 64, indexer_bytes=132)
    assert "132 B per token and layer" in model.notes[0]


@pytest.mark.parametrize(
    ("heads", "word"), [(1, "MQA"), (8, "GQA"), (32, "MHA")], ids=["one", "eight", "all"]
)
def test_kv_heads_decide_the_word(tmp_path: Path, heads: int, word: str) -> None:
    model = load_model(str(config(tmp_path, DENSE | {"num_key_value_heads": heads})))
    assert model.attention == word
    assert model.cache == HeadCache(32, heads, 128, 128)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"head_dim": 256}, HeadCache(32, 8, 256, 256)),
        ({"head_dim": None}, HeadCache(32, 8, 128, 128)),
        ({"num_key_value_heads": None}, HeadCache(32, 32, 128, 128)),
        ({"text_config": None}, HeadCache(32, 8, 128, 128)),
        ({"head_dim": 192, "v_head_dim": 128}, HeadCache(32, 8, 192, 128)),
        ({"multi_query": True}, HeadCache(32, 1, 128, 128)),
        (
            {"sliding_window": 4096, "use_sliding_window": False, "max_position_embeddings": 8192},
            HeadCache(32, 8, 128, 128),
        ),
        ({"sliding_window": 8192, "max_position_embeddings": 8192}, HeadCache(32, 8, 128, 128)),
    ],
)
def test_a_field_that_is_null_has_its_usual_default(tmp_path, extra, expected) -> None:
    assert load_model(str(config(tmp_path, DENSE | extra))).cache == expected


@pytest.mark.parametrize("field", ["n_head_kv", "num_kv_heads", "multi_query_group_num"])
def test_kv_heads_have_older_names(tmp_path: Path, field: str) -> None:
    """As SGLang's ``get_total_num_kv_heads`` reads them."""
    content = without("num_key_value_heads") | {field: 4, "new_decoder_architecture": True}
    assert load_model(str(config(tmp_path, content))).cache == HeadCache(32, 4, 128, 128)


def test_a_fact_that_is_assumed_is_a_note_and_gives_way_to_a_read_one(tmp_path: Path) -> None:
    drafter = load_model("z-lab/Kimi-K2.5-DFlash")
    assert drafter.cache == HeadCache(6, 8, 128, 128)
    assert "head_dim 128 is assumed" in drafter.notes[0]
    content = {"facts": DENSE | {"head_dim": 64}, "assumed": {"head_dim": 128}}
    read = load_model(str(config(tmp_path, content)))
    assert read.cache == HeadCache(32, 8, 64, 64)
    assert not read.notes


def test_a_text_config_is_where_the_facts_are(tmp_path: Path) -> None:
    content = {"vision_config": {"num_hidden_layers": 5}, "text_config": LATENT}
    assert load_model(str(config(tmp_path, content))).cache == LatentCache(61, 512, 64)


def test_a_config_json_is_named_after_its_folder(tmp_path: Path) -> None:
    assert load_model(str(config(tmp_path, DENSE))).name == tmp_path.name


def with_bytes() -> list[tuple[str, float]]:
    """Committed models with the bytes that were worked out apart when they were collected."""
    found = []
    for path in sorted(paths.MODELS.glob("*.json")):
        derived = json.loads(path.read_text()).get("derived_by_us", {})
        total = derived.get("bf16_plus_indexer") or derived.get("bytes_per_token_bf16_all_layers")
        total = total or derived.get("bytes_per_token_bf16_all_layers_unsharded")
        if total and "K3" not in path.stem and "3.5-397B" not in path.stem:
            found.append((path.stem, total))
    return found


@pytest.mark.parametrize(("name", "total"), with_bytes())
def test_bytes_per_token_are_those_noted_beside_the_facts(name: str, total: float) -> None:
    cache = load_model(str(paths.MODELS / f"{name}.json")).cache
    assert bytes_per_token_per_gpu(cache, "bf16", Parallelism()) == total


def test_most_committed_models_have_such_a_note() -> None:
    assert len(with_bytes()) >= 20


@pytest.mark.parametrize("field", ["rope_scaling", "quantization_config"])
def test_a_nested_field_that_is_no_object_is_one_line(tmp_path: Path, field: str) -> None:
    config = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, field: "yarn"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    with pytest.raises(InputError) as raised:
        load_model(str(path))
    assert raised.value.place.endswith(f"config.json, {field}")
    assert (raised.value.found, raised.value.expected) == ("'yarn'", "an object")
