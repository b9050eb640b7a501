"""Verdicts on KV memory follow the layout and the config."""

import json

import pytest

from analysis.findings import ledger
from analysis.findings.checks import CHECKS
from analysis.findings.ledger import Judgement

TP8 = "tp = 8\n"
DCP8 = (TP8, TP8 + "dcp = 8\n")
FREE = "free_gb_per_gpu = 10.0"


def judge(found, claim: str) -> Judgement:
    return ledger.find(found.case, CHECKS).of(claim).judgement


# What is replaced in case.toml, and the verdicts then.
FOLLOWS = {
    "DCP over all ranks": (
        [DCP8],
        {"S31": "reproduced", "S32": "reproduced", "S35": "consistent", "S42": "contradicted"},
    ),
    "DCP over all ranks and little free memory": (
        [DCP8, (FREE, "free_gb_per_gpu = 5.0")],
        {"S35": "consistent", "S42": "consistent"},
    ),
    "DCP over half of the ranks": (
        [(TP8, TP8 + "dcp = 4\n")],
        {"S31": "contradicted", "S32": "contradicted"},
    ),
    "DP attention": ([(TP8, TP8 + "dp_attention = true\n")], {"S31": "contradicted"}),
    "fp8": ([('"bf16"', '"fp8"')], {"S31": "contradicted", "S32": "contradicted"}),
    "much free memory": ([(FREE, "free_gb_per_gpu = 20.0")], {"S35": "consistent"}),
    "hardly any free memory": ([(FREE, "free_gb_per_gpu = 0.5")], {"S35": "contradicted"}),
    "free memory not given": ([(FREE, "#")], {"S35": "undecided", "S42": "contradicted"}),
    "a longer wish": (
        [("wished_context_tokens = 200000", "wished_context_tokens = 260000")],
        {"S32": "contradicted", "S31": "contradicted"},
    ),
}


@pytest.mark.parametrize(("changes", "verdicts"), FOLLOWS.values(), ids=list(FOLLOWS))
def test_a_verdict_follows_the_layout(alter, changes: list, verdicts: dict) -> None:
    found = alter({"case.toml": changes})
    assert {claim: judge(found, claim).verdict for claim in verdicts} == verdicts


KIMI = {
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "max_position_embeddings": 262_144,
    "rope_scaling": {"type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096},
}
GQA = {
    "num_hidden_layers": 17,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 262_144,
}
SHORT_YARN = {"type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}
MODELS = {
    "the same": (KIMI, {"S28": "reproduced", "S30": "reproduced", "S31": "contradicted"}),
    "a smaller latent": (KIMI | {"kv_lora_rank": 256}, {"S30": "contradicted"}),
    "a shorter limit": (KIMI | {"max_position_embeddings": 131_072}, {"S28": "contradicted"}),
    "a YaRN that does not reach it": (KIMI | {"rope_scaling": SHORT_YARN}, {"S28": "contradicted"}),
    "GQA that costs what was stated": (
        GQA,  # 17 layers x 1 head of 8 x (128 + 128) x 2 B = 8.5 KiB
        {"S28": "reproduced", "S30": "contradicted", "S31": "reproduced", "S32": "reproduced"},
    ),
    "GQA of more layers": (
        GQA | {"num_hidden_layers": 61},
        {"S31": "contradicted", "S35": "consistent", "S42": "not testable here"},
    ),
}


@pytest.mark.parametrize(("config", "verdicts"), MODELS.values(), ids=list(MODELS))
def test_a_verdict_follows_the_config(alter, config: dict, verdicts: dict) -> None:
    model = ('"nvidia/Kimi-K2.6-NVFP4"', '"own.json"')
    found = alter({"case.toml": [model]})
    (found.case.folder / "own.json").write_text(json.dumps(config))
    assert {claim: judge(found, claim).verdict for claim in verdicts} == verdicts


@pytest.mark.parametrize("claim", ["S31", "S32"])
def test_a_number_that_fits_the_divided_latent_says_on_what_condition(alter, claim: str) -> None:
    assert "DCP over all ranks" in judge(alter({}), claim).condition


@pytest.mark.parametrize(
    ("claim", "old", "new"), [("S31", ",8.6,KB", ",3.3,KB"), ("S32", ",1.72,GB", ",5.5,GB")]
)
def test_a_number_that_fits_no_layout_has_no_condition(alter, claim, old, new) -> None:
    judgement = judge(alter({"claims.csv": [(old, new)]}), claim)
    assert (judgement.verdict, judgement.condition) == ("contradicted", "")


def test_the_evidence_names_the_layout_that_was_judged(alter) -> None:
    found = alter({"case.toml": [(TP8, TP8 + "dcp = 4\n")]})
    assert "divided over 4 of 8 ranks (DCP)" in judge(found, "S31").evidence
    assert "17,568 B" in judge(found, "S31").evidence
    assert "replicated" not in judge(found, "S35").evidence
