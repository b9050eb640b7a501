"""What a plan says of a changed limit: by the account's facts, and where unit and case differ."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import paths
from analysis.errors import InputError
from analysis.findings.context_plan import ContextPlan, plan_change, unified_diff
from analysis.findings.context_steps import (
    check_list,
    put_in_place,
    server_url,
    take_back,
    verify_command,
)
from analysis.records.case import Case, load_case
from analysis.records.launch import Launch, read_launch

UNITS = Path(__file__).parents[1] / "records" / "data" / "units"
GIB = 2**30


@pytest.fixture(scope="module")
def account() -> Case:
    return load_case("kimi-k26-sglang")


@pytest.fixture(scope="module")
def vllm_case() -> Case:
    return load_case("kimi-k26-vllm")


@pytest.fixture(scope="module")
def smollm() -> Case:
    return load_case("smollm2-llamacpp")


@pytest.fixture
def unit(tmp_path: Path):  # type: ignore[no-untyped-def]
    """A unit of the tests, with pieces replaced."""

    def read(name: str, *changes: tuple[str, str]) -> Launch:
        text = (UNITS / name).read_bytes().decode("latin-1")
        for old, new in changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1"))
        return read_launch(path)

    return read


def other_layout(case: Case, **changes: object) -> Case:
    """The case with other values in its layout."""
    changed = Case(case.folder)
    layout = case.facts.layout.model_copy(update=changes)
    changed.facts = case.facts.model_copy(update={"layout": layout})
    return changed


def test_the_accounts_change(unit, account: Case) -> None:
    """13.09 GiB for 200,000 tokens, 6.47 GiB short of the pool's 6.62, 101,133 as the longest."""
    plan = plan_change(unit("sglang-kimi.service"), 200_000, account)
    memory = plan.memory
    assert plan.verdict == "does not fit"
    assert memory.needed_gib == pytest.approx(200_000 * 61 * 576 * 2 / GIB)
    assert f"{memory.needed_gib:.2f}" == "13.09"
    assert memory.allowed is not None
    assert memory.allowed.starts
    assert memory.allowed.largest_request == 101_133
    assert plan.capability.startswith("yes: 200,000 of the 262,144 positions")
    assert "64 x 4,096 original positions = 262,144" in plan.capability
    names = [way.name for way in memory.ways]
    assert "fp8 KV cache" in names
    assert "DCP 8" in names
    assert plan.differences == ()
    assert "without the draft model's" in memory.text
    (more,) = (way for way in memory.ways if way.name.startswith("memory fraction"))
    assert more.pool_bytes / GIB - 101_134 * 70_272 / GIB == pytest.approx(6.47, abs=0.005)


def test_the_table_of_requests_grows_with_sglangs_limit(unit, account: Case) -> None:
    """``ReqToTokenPool``: int32, a row of the limit's length for each of 2,048 requests."""
    plan = plan_change(unit("sglang-kimi.service"), 200_000, account)
    grown = (200_000 - 32_768) * 2048 * 4 / GIB
    assert any(f"{grown:.2f} GiB more" in text for text in plan.conditions)
    fewer = unit("sglang-kimi.service", ("--tp 8", "--tp 8 --max-running-requests 32"))
    grown = (200_000 - 32_768) * 32 * 4 / GIB
    assert any(
        f"{grown:.2f} GiB more" in text for text in plan_change(fewer, 200_000, account).conditions
    )
    less = plan_change(unit("sglang-kimi.service"), 16_384, account)
    assert not any("GiB more" in text for text in less.conditions)


def test_a_limit_that_the_pool_holds_fits(unit, account: Case) -> None:
    launch = unit("sglang-kimi.service")
    assert plan_change(launch, 101_134, account).verdict == "fits"
    assert plan_change(launch, 101_135, account).verdict == "does not fit"
    assert plan_change(launch, 8_192, account).verdict == "fits"  # lower is allowed


def test_vllm_refuses_to_start_where_the_pool_is_too_small(unit, vllm_case: Case) -> None:
    launch = unit("vllm-kimi.sh")
    plan = plan_change(launch, 200_000, vllm_case)
    assert (plan.verdict, plan.differences) == ("fits", ())
    small = other_layout(vllm_case, pool_tokens=150_000)
    plan = plan_change(launch, 200_000, small)
    assert plan.verdict == "does not fit"
    assert plan.memory.allowed is not None
    assert not plan.memory.allowed.starts
    assert "refuses to start" in plan.memory.behaviour


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (("--tp 8", "--tp 4"), "tp: the unit says 4, the case 8"),
        (("--tp 8 \\\n", "\\\n"), "tp: the unit says nothing of it, which is 1, the case 8"),
        (("--tp 8", "--tp 8 --dcp-size 8"), "dcp: the unit says 8, the case 1"),
        (("--tp 8", "--tp 8 --pp-size 2"), "pp: the unit says 2, the case 1"),
        (("--tp 8", "--tp 8 --enable-dp-attention"), "DP attention: on in the unit"),
        (
            ("--tp 8", "--tp 8 --kv-cache-dtype fp8_e4m3"),
            "KV dtype: the unit says fp8_e4m3, the case bf16",
        ),
    ],
)
def test_another_layout_than_the_cases_leaves_memory_undecided(
    unit, account: Case, change: tuple[str, str], difference: str
) -> None:
    plan = plan_change(unit("sglang-kimi.service", change), 50_000, account)
    assert plan.verdict == "undecided"
    assert any(difference in text for text in plan.differences)
    assert plan.memory.allowed is None


def test_the_cases_bytes_in_the_units_dtype_are_told_as_an_inference(unit, account: Case) -> None:
    """fp8 halves the cell, so the bytes of 101,134 tokens hold twice as many."""
    launch = unit("sglang-kimi.service", ("--tp 8", "--tp 8 --kv-cache-dtype fp8_e4m3"))
    text = plan_change(launch, 200_000, account).memory.text
    assert "about 202,268 in the unit's (an inference" in text


def test_another_engine_model_or_limit_is_said(unit, account: Case, vllm_case: Case) -> None:
    plan = plan_change(unit("vllm-kimi.sh"), 131_072, account)
    assert plan.verdict == "undecided"
    assert "engine: the unit starts vLLM, the case is of SGLang" in plan.differences
    assert "limit: the unit gives a request 262,144 tokens, the case 32,768" in plan.differences
    other = unit("vllm-kimi.sh", ("nvidia/Kimi-K2.6-NVFP4", "Qwen/Qwen3-8B"))
    assert any(
        text.startswith("model: the unit serves Qwen/Qwen3-8B")
        for text in plan_change(other, 131_072, vllm_case).differences
    )


def test_what_the_unit_does_not_say_readably_is_a_condition(unit, account: Case) -> None:
    launch = unit("sglang-kimi.service", ("--tp 8", "--tp ${TP}"))
    plan = plan_change(launch, 50_000, account)
    assert any("tp is 8 as in the case" in text for text in plan.conditions)
    assert plan.verdict == "fits"


def test_a_fixed_pool_is_the_pool(unit, account: Case) -> None:
    launch = unit("sglang-kimi.service", ("--tp 8", "--tp 8 --max-total-tokens 65536"))
    plan = plan_change(launch, 100_000, account)
    assert plan.verdict == "does not fit"
    assert plan.memory.allowed is not None
    assert plan.memory.allowed.largest_request == 65_535


def test_without_a_pool_memory_is_undecided(unit, account: Case) -> None:
    plan = plan_change(unit("sglang-kimi.service"), 50_000, other_layout(account, pool_tokens=None))
    assert plan.verdict == "undecided"
    assert any("the pool holds 50,000 tokens" in text for text in plan.conditions)


def test_the_same_limit_is_nothing_to_do(unit, account: Case) -> None:
    with pytest.raises(InputError, match="32,768, as --context-length says in line 15"):
        plan_change(unit("sglang-kimi.service"), 32_768, account)


def test_above_the_models_positions_no_plan_is_made(
    unit, account: Case, vllm_case: Case, smollm: Case
) -> None:
    with pytest.raises(InputError, match=r"at most 262,144.*SGLANG_ALLOW_OVERWRITE_LONGER"):
        plan_change(unit("sglang-kimi.service"), 262_145, account)
    with pytest.raises(InputError, match=r"at most 262,144.*VLLM_ALLOW_LONG_MAX_MODEL_LEN"):
        plan_change(unit("vllm-kimi.sh"), 300_000, vllm_case)
    with pytest.raises(InputError, match=r"at most 32,768.*caps each slot"):
        plan_change(unit("llama-smollm.service"), 40_000, smollm)


@pytest.mark.parametrize(
    "change",
    [
        ("NCCL_P2P_LEVEL=SYS", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"),
        ("--tp 8", """--tp 8 --json-model-override-args '{"rope_scaling": null}'"""),
    ],
)
def test_an_override_of_the_limit_leaves_capability_undecided(
    unit, account: Case, change: tuple[str, str]
) -> None:
    launch = unit("sglang-kimi.service", change)
    big = other_layout(account, pool_tokens=600_000)
    plan = plan_change(launch, 300_000, big)
    assert plan.capability.startswith("undecided")
    assert plan.verdict == "undecided"


def test_llama_cpps_slots_divide_the_context(unit, smollm: Case) -> None:
    """``src/llama-context.cpp``: n_ctx / n_seq_max for each sequence, unless unified."""
    plan = plan_change(unit("llama-smollm.service"), 32_768, smollm)
    assert (plan.verdict, plan.per_request) == ("undecided", 8_192)
    assert plan.memory.needed_gib == pytest.approx(32_768 * 30 * 3 * 2 * 64 * 2 / GIB)
    assert "4 slots" in plan.memory.behaviour
    assert plan.differences == ("limit: the unit gives a request 4,096 tokens, the case 8,192",)
    assert verify_command(plan) == "analysis verify-context http://127.0.0.1:8090 --expect 8192"
    unified = plan_change(unit("llama-user.sh"), 8_192, smollm)
    assert unified.per_request == 8_192


def test_q8_keys_have_no_size_here(unit, smollm: Case) -> None:
    plan = plan_change(unit("llama-user.sh", ("-np 2", "-np 2 -ctk q8_0 -ctv q8_0")), 8_192, smollm)
    assert plan.memory.needed_gib is None
    assert any("q8_0" in text for text in plan.differences)


@pytest.mark.parametrize(
    ("name", "change", "url"),
    [
        ("sglang-kimi.service", ("--port 30000", ""), "http://127.0.0.1:30000"),
        ("sglang-kimi.service", ("--host 0.0.0.0", "--host 10.0.0.7"), "http://10.0.0.7:30000"),
        ("sglang-kimi.service", ("--port 30000", "--port ${PORT}"), "http://HOST:PORT"),
        ("vllm-kimi.sh", ("--port 8001", "--port 8001 --ssl-keyfile k"), "https://127.0.0.1:8001"),
        ("vllm-docker.sh", ("#!/bin/sh", "#!/bin/sh"), "http://127.0.0.1:9000"),
        ("vllm-docker.sh", ("-p 127.0.0.1:9000:8000", "-p 9:80"), "http://HOST:PORT"),
        ("vllm-docker.sh", ("-p 127.0.0.1:9000:8000", "--network host"), "http://127.0.0.1:8000"),
    ],
)
def test_the_address_is_the_units_own(unit, name: str, change: tuple[str, str], url: str) -> None:
    assert server_url(unit(name, change)) == url


def test_the_steps_run_and_take_back(unit, account: Case, tmp_path: Path) -> None:
    """The copying lines of the plan, run by a shell on a unit of one's own."""
    launch = unit("sglang-kimi.service")
    plan = plan_change(launch, 200_000, account)
    folder = tmp_path / "plan with a space"
    folder.mkdir()
    (folder / launch.path.name).write_bytes(plan.patched)
    launch.path.chmod(0o640)
    run(put_in_place(plan, folder))
    assert launch.path.read_bytes() == plan.patched
    assert launch.path.stat().st_mode & 0o777 == 0o640
    run(take_back(plan))
    assert launch.path.read_bytes() == launch.content
    assert check_list(plan)[-1] == f"After: `{verify_command(plan)}`"
    assert verify_command(plan) == "analysis verify-context http://127.0.0.1:30000 --expect 200000"


def run(lines: list[str]) -> None:
    kept = [line.removeprefix("sudo ") for line in lines if "system" not in line.split("/")[0]]
    assert len(kept) >= 2
    done = subprocess.run(["/bin/sh", "-ec", "\n".join(kept)], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_template_and_a_users_unit_are_named_right(unit, account: Case, tmp_path: Path) -> None:
    launch = unit("sglang-kimi.service")
    plan = plan_change(replace(launch, path=Path("/etc/systemd/system/s@.service")), 9, account)
    assert "sudo systemctl restart s@INSTANCE.service" in put_in_place(plan, tmp_path)
    mine = Path("/home/me/.config/systemd/user/s.service")
    plan = plan_change(replace(launch, path=mine), 9, account)
    assert "systemctl --user restart s.service" in put_in_place(plan, tmp_path)
    assert not any("sudo" in line for line in put_in_place(plan, tmp_path))


@given(
    before=st.text("ab 1\\-@\r\n", max_size=60),
    after=st.text("ab 1\\-@\r\n", max_size=60),
)
def test_patch_makes_the_copy_of_the_diff(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str
) -> None:
    """git is the judge: line ends, a missing last end of line and trailing spaces all come back."""
    if before == after or not before or not after:
        return
    git = shutil.which("git")
    if git is None:
        pytest.skip("no git to apply the diff")
    folder = tmp_path_factory.mktemp("patch")
    (folder / "a.sh").write_bytes(before.encode())
    diff = unified_diff(before.encode(), after.encode(), "a.sh")
    done = subprocess.run(
        [git, "apply", "--whitespace=nowarn", "-"], cwd=folder, input=diff, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "a.sh").read_bytes() == after.encode()


def test_nothing_of_a_plan_is_of_this_project(unit, account: Case) -> None:
    plan: ContextPlan = plan_change(unit("sglang-kimi.service"), 200_000, account)
    assert str(paths.ROOT) not in " ".join([*plan.conditions, *plan.differences, plan.capability])
