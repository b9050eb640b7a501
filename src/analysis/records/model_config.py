"""Model facts that decide the KV cache, from ``data/models`` or a Hugging Face ``config.json``."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import paths
from analysis.errors import InputError
from analysis.model.kv_cache import HeadCache, LatentCache
from analysis.records.inputs import read_text

QUANTISATION = re.compile(r"[-_](nvfp4|mxfp4|fp8|fp4|int8|int4|w4a16|awq|gptq|bf16)$")
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "bf16": "bf16", "fp16": "fp16"}
INDEXER_SCALE_BYTES = 4


@dataclass(frozen=True)
class ModelConfig:
    """What a config says of one model.

    ``uncompressed`` is what an MLA model would keep as plain multi-head attention, with its own
    key (nope + rope) and value dimensions.
    """

    name: str
    cache: LatentCache | HeadCache
    uncompressed: HeadCache | None
    attention: str
    dtype: str
    attention_heads: int
    max_position_embeddings: int | None
    yarn_factor: float | None
    yarn_original_positions: int | None
    notes: tuple[str, ...]


def load_model(name_or_path: str) -> ModelConfig:
    """Find a model by path of its config, or by name in ``data/models``.

    Names match without case, owner or quantisation suffix. Raises ``InputError`` where nothing
    or more than one model matches, or where the layout is one that is not known here.
    """
    path = Path(name_or_path)
    if path.suffix == ".json" or path.is_file():
        return _parse(path)
    return _parse(_find(name_or_path))


def all_models() -> list[ModelConfig]:
    """Every model of ``data/models`` with one kind of attention in all layers, by file name."""
    found = []
    for path in sorted(paths.MODELS.glob("*.json")):
        with suppress(InputError):  # a hybrid, whose layout is refused by design
            found.append(_parse(path))
    return found


def _find(name: str) -> Path:
    files = {
        path: path.stem.split("--")[-1].lower() for path in sorted(paths.MODELS.glob("*.json"))
    }
    wanted = name.split("/")[-1].split("--")[-1].lower()
    owner = re.split(r"/|--", name)[0].lower() if re.search(r"/|--", name) else ""
    bare = QUANTISATION.sub("", wanted)
    for matches in (
        [p for p, stem in files.items() if stem == wanted and p.stem.lower().startswith(owner)],
        [p for p, stem in files.items() if QUANTISATION.sub("", stem) == bare],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            found = f"{len(matches)} models for {name!r}"
            raise InputError("--model", found, f"one of {_names(matches)}")
    close = [path for path, stem in files.items() if bare and bare in stem]
    expected = f"one of {_names(close or files)}, or a config.json"
    raise InputError("--model", f"no model {name!r} in data/models", expected)


def _names(found: Any) -> str:
    return ", ".join(path.stem.replace("--", "/") for path in found)


def _parse(path: Path) -> ModelConfig:
    where = paths.relative(path)
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}"
        raise InputError(place, f"text that is not JSON ({error.msg})", "a config.json") from None
    if not isinstance(content, dict):
        raise InputError(where, f"a JSON {type(content).__name__}", "an object")
    name = str(content.get("model", path.stem if path.stem != "config" else path.parent.name))
    facts = content.get("facts", content)
    if not isinstance(facts, dict):
        raise InputError(f"{where}, facts", f"a JSON {type(facts).__name__}", "an object")
    notes = []
    assumed = _object(where, content, "assumed")
    for field in sorted(set(assumed) - set(facts)):
        notes.append(f"{field} {assumed[field]} is assumed: no config was seen that says it")
    facts = assumed | (facts.get("text_config") or facts)
    _refuse_unknown_layout(where, facts)
    layers = _whole(where, facts, "num_hidden_layers")
    heads = _whole(where, facts, "num_attention_heads")
    cache: LatentCache | HeadCache
    uncompressed = None
    if facts.get("kv_lora_rank"):
        indexer = 0
        if facts.get("index_head_dim"):
            indexer = _whole(where, facts, "index_head_dim") + INDEXER_SCALE_BYTES
            notes.append(f"a sparse-attention indexer adds {indexer} B per token and layer")
            if len(set(facts.get("indexer_types") or [])) > 1:
                notes.append("the config shares indexers between layers: an upper bound")
        cache = LatentCache(
            layers,
            _whole(where, facts, "kv_lora_rank"),
            _whole(where, facts, "qk_rope_head_dim"),
            indexer,
        )
        if facts.get("qk_nope_head_dim") and facts.get("v_head_dim"):
            key = _whole(where, facts, "qk_nope_head_dim") + cache.qk_rope_head_dim
            uncompressed = HeadCache(layers, heads, key, _whole(where, facts, "v_head_dim"))
        attention = "MLA"
    else:
        kv_heads = _kv_heads(where, facts, heads)
        if not facts.get("head_dim"):
            notes.append("the config gives no head_dim: hidden_size / heads is assumed")
        head_dim = _whole(
            where, facts, "head_dim", _whole(where, facts, "hidden_size", heads) // heads
        )
        value_dim = _whole(where, facts, "v_head_dim", head_dim)
        cache = HeadCache(layers, kv_heads, head_dim, value_dim)
        attention = {1: "MQA", heads: "MHA"}.get(kv_heads, "GQA")
    scheme = _object(where, _object(where, facts, "quantization_config"), "kv_cache_scheme")
    if scheme:
        notes.append(
            f"the checkpoint declares a KV scheme of {scheme.get('num_bits')} bits "
            f"({scheme.get('type')}); the default here stays the model's own dtype"
        )
    rope = _object(where, facts, "rope_scaling") or _object(where, facts, "rope_parameters")
    yarn = rope.get("type", rope.get("rope_type")) == "yarn"
    dtype = str(facts.get("dtype") or facts.get("torch_dtype") or "bfloat16")
    return ModelConfig(
        name=name,
        cache=cache,
        uncompressed=uncompressed,
        attention=attention,
        dtype=DTYPES.get(dtype, "bf16"),
        attention_heads=heads,
        max_position_embeddings=_whole(where, facts, "max_position_embeddings", 0) or None,
        yarn_factor=rope.get("factor") if yarn else None,
        yarn_original_positions=rope.get("original_max_position_embeddings") if yarn else None,
        notes=tuple(notes),
    )


HYBRID_TYPE = re.compile(r"linear|next|mamba|jamba|hymba|bamba|hybrid|nemotron_h|rwkv|recurrent")
HYBRID_FIELDS = (
    "attention_chunk_size",
    "attention_other_setting",
    "attn_layer_indices",
    "attn_layer_period",
    "attn_type_list",
    "block_configs",
    "block_types",
    "compress_ratios",
    "full_attention_interval",
    "hybrid_layer_pattern",
    "hybrid_override_pattern",
    "is_encoder_decoder",
    "layers_block_type",
    "linear_attn_config",
    "num_kv_shared_layers",
    "sliding_window_pattern",
    "sparse_attention_config",
)
"""Fields that only configs with more than one kind of layer, or of cache, have set."""


def _refuse_unknown_layout(where: str, facts: dict[str, Any]) -> None:
    """Layouts that mix kinds of layers need rules of their own; guessing would be wrong."""
    reasons = [field for field in HYBRID_FIELDS if facts.get(field)]
    if len(set(facts.get("layer_types") or [])) > 1:
        reasons.append("layer_types")
    if HYBRID_TYPE.search(str(facts.get("model_type", ""))):
        reasons.append(f"model_type {facts['model_type']}")
    if reasons:
        found = f"a hybrid layout ({', '.join(reasons)})"
        raise InputError(where, found, "one kind of attention in every layer")
    window = _whole(where, facts, "sliding_window", 0)
    longest = _whole(where, facts, "max_position_embeddings", 0)
    if window and facts.get("use_sliding_window") is not False and not 0 < longest <= window:
        found = f"a sliding window of {window} tokens"
        expected = "attention over the whole context: engines size the caches of windows apart"
        raise InputError(f"{where}, sliding_window", found, expected)


def _kv_heads(where: str, facts: dict[str, Any], heads: int) -> int:
    """KV heads under the names that configs have for them.

    As SGLang's ``get_total_num_kv_heads`` (``configs/model_config.py``) reads them.
    """
    if facts.get("multi_query") and not facts.get("new_decoder_architecture"):
        return 1
    for field in ("n_head_kv", "num_kv_heads", "multi_query_group_num"):
        if facts.get(field) is not None and facts.get("num_key_value_heads") is None:
            return _whole(where, facts, field)
    return _whole(where, facts, "num_key_value_heads", heads)


def _whole(where: str, facts: dict[str, Any], field: str, default: int | None = None) -> int:
    value = facts.get(field)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{where}, {field}", repr(value), "a whole number above zero")
    return value


def _object(where: str, facts: dict[str, Any], field: str) -> dict[str, Any]:
    """A nested object of the config; empty where it is absent or null."""
    value = facts.get(field) or {}
    if not isinstance(value, dict):
        raise InputError(f"{where}, {field}", repr(value)[:60], "an object")
    return value
