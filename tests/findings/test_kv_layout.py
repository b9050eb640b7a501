"""The committed runs against what was predicted, and what other pools would have been called."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis import paths
from analysis.errors import InputError
from analysis.findings import kv_layout
from analysis.findings.kv_layout import Layouts, Server
from analysis.findings.missing import Missing
from analysis.records.case import load_case

Change = Callable[..., Layouts]


@pytest.fixture(scope="module")
def found() -> Layouts:
    result = kv_layout.read([paths.KV_LAYOUTS])
    assert isinstance(result, Layouts)
    return result


@pytest.fixture
def change(tmp_path: Path) -> Change:
    """The committed run of an engine with pieces of a server's lines replaced."""

    def changed(engine: str, server: str, *pieces: tuple[str, str]) -> Layouts:
        copy = Path(shutil.copytree(paths.KV_LAYOUTS / engine, tmp_path / engine))
        path = copy / f"servers/{server}.json"
        content = json.loads(path.read_text())
        for old, new in pieces:
            assert any(old in line for line in (*content["log"], *content["metrics"])), old
            for field in ("log", "metrics"):
                content[field] = [line.replace(old, new) for line in content[field]]
        path.write_text(json.dumps(content))
        result = kv_layout.read([copy])
        assert isinstance(result, Layouts)
        return result

    return changed


def server(found: Layouts, engine: str, name: str) -> Server:
    return next(
        one for one in found.servers if (one.engine, one.predicted.server) == (engine, name)
    )


def test_vllm_printed_what_field_notes_say(found: Layouts) -> None:
    # FIELD-NOTES 3, seen on another machine: tokens for 1 GiB.
    tokens = [one.printed_tokens for one in found.servers if one.engine == "vLLM"]
    assert tokens == [233_008, 233_008, 262_144, 524_288]
    assert [one.gauge_tokens for one in found.servers if one.engine == "vLLM"] == tokens


def test_sglang_printed_what_field_notes_say(found: Layouts) -> None:
    # FIELD-NOTES 3, seen on another machine: GiB on each rank for 16,384 tokens.
    servers = [one for one in found.servers if one.engine == "SGLang"]
    gib = [f"{one.printed_gib:.6f}" for one in servers]
    assert gib == ["0.070317", "0.070317", "0.062504", "0.031252"]
    assert [len(one.gauges.rank_gib) for one in servers] == [1, 2, 1, 2]
    assert [len(one.buffers) for one in servers] == [1, 2, 1, 2]
    assert {one.printed_tokens for one in servers} == {16_384}


def test_all_servers_printed_what_was_predicted(found: Layouts) -> None:
    assert [one.verdict for one in found.servers] == ["as predicted"] * 8
    assert max(abs(one.error_pct or 0) for one in found.servers) < 1e-9
    assert found.unread == ()


def test_the_verdict_is_mla_replicated_and_gqa_halved_on_both(found: Layouts) -> None:
    words = {(one.engine, one.attention): one.word for one in found.sharing}
    assert words == {
        ("vLLM", "MLA"): "replicated",
        ("vLLM", "GQA"): "halved",
        ("SGLang", "MLA"): "replicated",
        ("SGLang", "GQA"): "halved",
    }
    assert "The MLA cache is replicated" in found.verdict
    assert "The GQA cache is halved" in found.verdict
    assert (
        "8 of 8 servers printed the pool that was predicted before they started." in found.verdict
    )


def test_the_blocks_of_vllm_on_a_cpu_are_those_of_its_kernels(found: Layouts) -> None:
    # vllm/platforms/cpu.py, 0.32.0: 16 for CPU_MLA, 128 else.
    vllm = {o.predicted.server: o.gauges.block_tokens for o in found.servers if o.engine == "vLLM"}
    assert vllm == {"mla-tp1": 16, "mla-tp2": 16, "gqa-tp1": 128, "gqa-tp2": 128}


def test_a_latent_that_is_shared_out_would_be_called_halved(change: Change) -> None:
    found = change(
        "vllm", "mla-tp2", ("233,008", "466,032"), ("14563", "29127"), ("233008", "466032")
    )
    assert {one.attention: one.word for one in found.sharing} == {"MLA": "halved", "GQA": "halved"}
    assert server(found, "vLLM", "mla-tp2").verdict == "not as predicted"
    assert "3 of 4 servers printed" in found.verdict


def test_one_block_less_is_not_as_predicted(change: Change) -> None:
    found = change("vllm", "mla-tp1", ("233,008", "232,992"), ("14563", "14562"))
    one = server(found, "vLLM", "mla-tp1")
    assert one.verdict == "not as predicted"
    assert one.error_pct == pytest.approx(100 * (232_992 / 233_008 - 1))
    assert {s.word for s in found.sharing if s.attention == "MLA"} == {"replicated"}


def test_log_and_gauge_that_differ_are_not_as_predicted(change: Change) -> None:
    found = change("vllm", "gqa-tp1", ("262,144", "262,272"))
    assert server(found, "vLLM", "gqa-tp1").verdict == "not as predicted"


def test_another_rank_that_differs_is_not_as_predicted(change: Change) -> None:
    found = change("sglang", "mla-tp2", ('tp_rank="1"} 0.0703', 'tp_rank="1"} 0.0351'))
    one = server(found, "SGLang", "mla-tp2")
    assert one.verdict == "not as predicted"
    assert one.printed_gib == server(found, "SGLang", "mla-tp1").printed_gib


def test_a_log_line_beyond_its_rounding_is_not_as_predicted(change: Change) -> None:
    found = change("sglang", "mla-tp1", ("KV size: 0.07 GB", "KV size: 0.08 GB"))
    assert server(found, "SGLang", "mla-tp1").verdict == "not as predicted"


def test_a_server_that_printed_no_pool_is_said_to(change: Change) -> None:
    found = change("vllm", "mla-tp1", ("KV cache size", "cache"), ("vllm:cache_config", "vllm:c"))
    one = server(found, "vLLM", "mla-tp1")
    assert (one.verdict, one.error_pct) == ("not printed", None)
    assert [s.attention for s in found.sharing] == ["GQA"]


def test_servers_that_were_not_read_are_named(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(paths.KV_LAYOUTS / "vllm", tmp_path / "vllm"))
    for name in ("mla-tp2", "gqa-tp1", "gqa-tp2"):
        (copy / f"servers/{name}.json").unlink()
    found = kv_layout.read([copy])
    assert isinstance(found, Layouts)
    assert found.sharing == []
    assert found.verdict == (
        "No two servers of one model were read yet. 1 of 1 servers printed the pool that was "
        "predicted before they started; not read: vLLM mla-tp2, vLLM gqa-tp1, vLLM gqa-tp2."
    )
    (copy / "servers/mla-tp1.json").unlink()
    assert isinstance(kv_layout.read([copy]), Missing)


def test_a_case_without_a_measurement_is_missing_it() -> None:
    assert isinstance(kv_layout.find(load_case("smollm2-llamacpp")), Missing)


def test_a_layout_of_ones_own_stands_in_for_the_cases(found: Layouts) -> None:
    own = kv_layout.find(load_case("smollm2-llamacpp"), "data/kv-layout/vllm")
    assert isinstance(own, Layouts)
    assert own.engines == [one for one in found.engines if one.startswith("vLLM")]
    with pytest.raises(InputError, match="kv-layout: found 'none'"):
        kv_layout.find(load_case("smollm2-llamacpp"), "none")
