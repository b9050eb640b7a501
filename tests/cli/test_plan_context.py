"""``analysis plan-context``: the files of a plan, byte for byte, or a refusal and no files."""

import json
import shutil
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[1] / "records" / "data" / "units"
ACCOUNT, VLLM, SMOLLM = "kimi-k26-sglang", "kimi-k26-vllm", "smollm2-llamacpp"

DIFFS: dict[str, tuple[str, str, bytes]] = {
    "sglang-kimi.service": (
        ACCOUNT,
        "200000",
        b"""\
--- a/sglang-kimi.service
+++ b/sglang-kimi.service
@@ -12,7 +12,7 @@
     --trust-remote-code \\
     --tp 8 \\
     # raised for the agents, 2026-05
-    --context-length 32768 \\
+    --context-length 200000 \\
     --mem-fraction-static 0.88 \\
     --speculative-algorithm DFLASH \\
     --host 0.0.0.0 --port 30000
""",
    ),
    "vllm-kimi.sh": (
        VLLM,
        "200000",
        b"""\
--- a/vllm-kimi.sh
+++ b/vllm-kimi.sh
@@ -10,6 +10,6 @@
 fi
 exec /opt/vllm/bin/vllm serve nvidia/Kimi-K2.6-NVFP4 \\
   --tensor-parallel-size 8 --kv-cache-dtype fp8 \\
-  --max-model-len="256K"  \\
+  --max-model-len="200000"  \\
   --gpu-memory-utilization 0.94 --port 8001 $EXTRA \\
   > "logs/vllm-$(date +%F).log" 2>&1
""",
    ),
    "vllm-docker.sh": (
        VLLM,
        "65536",
        b"""\
--- a/vllm-docker.sh
+++ b/vllm-docker.sh
@@ -2,4 +2,4 @@
 # caf\xe9: this comment is Latin-1, and the last line has no end
 docker run --rm --gpus all -p 127.0.0.1:9000:8000 \\
   vllm/vllm-openai:v0.11.0 --model Qwen/Qwen3-8B \\
-  --max_model_len 32k   --tensor-parallel-size 2
\\ No newline at end of file
+  --max_model_len 65536   --tensor-parallel-size 2
\\ No newline at end of file
""",
    ),
    "vllm-shell.service": (
        VLLM,
        "32768",
        b"""\
--- a/vllm-shell.service
+++ b/vllm-shell.service
@@ -5,5 +5,5 @@
 ExecStartPre=/usr/bin/test -d /srv/models
 ExecStart=
 ExecStart=/bin/bash -lc 'source /opt/vllm/bin/activate && exec vllm serve Qwen/Qwen3-8B \\
-    -tp 2 --max-model-len auto --port 8000'
+    -tp 2 --max-model-len 32768 --port 8000'
 Restart=always
""",
    ),
    "llama-smollm.service": (
        SMOLLM,
        "32768",
        b"""\
--- a/llama-smollm.service
+++ b/llama-smollm.service
@@ -3,7 +3,7 @@
 Description = llama.cpp server\r
 \r
 [Service]\r
-Environment = "LLAMA_ARG_CTX_SIZE=16384" LLAMA_ARG_N_PARALLEL=4\r
+Environment = "LLAMA_ARG_CTX_SIZE=32768" LLAMA_ARG_N_PARALLEL=4\r
 ; LLAMA_ARG_CTX_SIZE=4096\r
 ExecStart=-/opt/llama/llama-server -m %h/models/SmolLM2-135M-Instruct.Q4_1.gguf --port 8090 \\\r
   --metrics\r
""",
    ),
    "llama-user.sh": (
        SMOLLM,
        "8192",
        b"""\
--- a/llama-user.sh
+++ b/llama-user.sh
@@ -1,4 +1,4 @@
 #!/bin/bash
 cd "$HOME/llama.cpp"
 nohup ./build/bin/llama-server -m models/SmolLM2-135M-Instruct.Q4_1.gguf \\
-    --threads $(nproc) -c 4096 -np 2 --kv-unified --host 127.0.0.1 --port 8080 &
+    --threads $(nproc) -c 8192 -np 2 --kv-unified --host 127.0.0.1 --port 8080 &
""",
    ),
}


@pytest.fixture
def unit(tmp_path: Path):  # type: ignore[no-untyped-def]
    """A copy of a unit in a folder of its own."""

    def copy(name: str, mode: int = 0o640) -> Path:
        folder = tmp_path / "units"
        folder.mkdir(exist_ok=True)
        path = Path(shutil.copy(UNITS / name, folder / name))
        path.chmod(mode)
        return path

    return copy


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", DIFFS)
def test_the_diff_is_exact_and_the_copy_is_its_result(
    analysis, unit, tmp_path: Path, name: str
) -> None:
    case, to, diff = DIFFS[name]
    path, out = unit(name), tmp_path / "plan"
    before = path.read_bytes()
    ended = analysis("plan-context", str(path), "--to", to, "--case", case, "--out", str(out))
    assert (ended.code, ended.err) == (0, "")
    files = contents(out)
    assert set(files) == {name, "change.diff", "PLAN.md"}
    assert files["change.diff"] == diff
    removed, added = (
        next(line for line in diff.split(b"\n") if line.startswith(sign) and line[1:2] != sign)[1:]
        for sign in (b"-", b"+")
    )
    assert before.count(removed) == 1
    assert files[name] == before.replace(removed, added)
    assert path.read_bytes() == before
    assert contents(path.parent) == {name: before}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_copy_keeps_the_mode_and_nothing_is_more_open(
    analysis, unit, tmp_path: Path, mode: int
) -> None:
    path, out = unit("vllm-kimi.sh", mode), tmp_path / "plan"
    analysis("plan-context", str(path), "--to", "9", "--case", VLLM, "--out", str(out))
    assert (out / path.name).stat().st_mode & 0o777 == mode
    for name in ("change.diff", "PLAN.md"):
        assert (out / name).stat().st_mode & 0o777 == mode & 0o666


def test_the_plan_of_the_account(analysis, unit, tmp_path: Path) -> None:
    path, out = unit("sglang-kimi.service"), tmp_path / "plan"
    options = ("--to", "200000", "--case", ACCOUNT, "--out", str(out))
    found = analysis("plan-context", str(path), *options, "--json").json
    assert found["verdict"] == "does not fit"
    assert (found["now_tokens"], found["to_tokens"]) == (32_768, 200_000)
    assert (found["pool_tokens"], found["largest_request"]) == (101_134, 101_133)
    assert found["needed_gib_per_gpu"] == pytest.approx(13.08918, abs=1e-5)
    assert found["verify"] == "analysis verify-context http://127.0.0.1:30000 --expect 200000"
    page = (out / "PLAN.md").read_text()
    assert page.splitlines()[2].startswith("**Does not fit with the pool as it is.**")
    assert page.splitlines()[-1] == f"- [ ] After: `{found['verify']}`"
    for head in ("Put in place", "Take back", "Check list"):
        assert f"\n## {head}\n" in page


def test_an_undecided_plan_says_so_first(analysis, unit, tmp_path: Path) -> None:
    path, out = unit("llama-user.sh"), tmp_path / "plan"
    options = ("--to", "8192", "--case", SMOLLM, "--out", str(out))
    ended = analysis("plan-context", str(path), *options)
    assert ended.code == 0
    assert ended.out.startswith("Undecided")
    assert (out / "PLAN.md").read_text().splitlines()[2].startswith("**Undecided")


def test_the_same_plan_again_is_no_error(analysis, unit, tmp_path: Path) -> None:
    path, out = unit("sglang-kimi.service"), tmp_path / "plan"
    options = ("--case", ACCOUNT, "--out", str(out))
    first = analysis("plan-context", str(path), "--to", "9000", *options, "--json").json
    files = contents(out)
    assert analysis("plan-context", str(path), "--to", "9000", *options, "--json").json == first
    assert contents(out) == files
    error = analysis("plan-context", str(path), "--to", "9001", *options).error
    assert "--out: found a folder with other content" in error
    assert contents(out) == files


def test_a_plan_is_never_beside_its_unit(analysis, unit, tmp_path: Path) -> None:
    path = unit("sglang-kimi.service")
    for out in (path.parent, path.parent / ".." / path.parent.name):
        options = ("--to", "9000", "--case", ACCOUNT, "--out", str(out))
        error = analysis("plan-context", str(path), *options).error
        assert "the folder of the unit itself" in error
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / path.name).symlink_to(path)
    for out in (linked, path.parent):
        options = ("--to", "9000", "--case", ACCOUNT, "--out", str(out))
        assert "unit itself" in analysis("plan-context", str(linked / path.name), *options).error
    assert list(contents(path.parent)) == [path.name]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--to", "32768", "--case", ACCOUNT], "--to: found 32,768, as --context-length says"),
        (["--to", "300000", "--case", ACCOUNT], "at most 262,144"),
        (["--to", "0", "--case", ACCOUNT], "--to"),
        (["--to", "9000", "--case", "nowhere"], "'nowhere'"),
        (["--to", "9000"], "--case"),
        (["--case", ACCOUNT], "--to"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_refusal_is_one_line_and_writes_nothing(
    analysis, unit, tmp_path: Path, arguments: list[str], part: str
) -> None:
    path, out = unit("sglang-kimi.service"), tmp_path / "plan"
    for options in ([], ["--json"]):
        error = analysis("plan-context", str(path), *arguments, "--out", str(out), *options).error
        assert part in error
    assert sorted(p.name for p in tmp_path.iterdir()) == ["units"]


@pytest.mark.parametrize("name", ["nowhere.service", "."])
def test_a_unit_that_is_no_file_is_refused(analysis, tmp_path: Path, name: str) -> None:
    out = tmp_path / "plan"
    options = ("--to", "9", "--case", ACCOUNT, "--out", str(out))
    error = analysis("plan-context", str(tmp_path / name), *options).error
    assert "a readable file" in error
    assert not out.exists()


def test_an_output_that_is_a_file_or_cannot_be_made_is_refused(
    analysis, unit, tmp_path: Path
) -> None:
    path, file = unit("sglang-kimi.service"), tmp_path / "file"
    file.write_text("kept")
    for out in (file, file / "plan"):
        options = ("--to", "9000", "--case", ACCOUNT, "--out", str(out))
        assert "--out" in analysis("plan-context", str(path), *options).error
    assert file.read_text() == "kept"


def test_an_interrupt_leaves_nothing_half_written(
    analysis, unit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = unit("sglang-kimi.service"), tmp_path / "plan"
    write = Path.write_bytes

    def stop_at_the_diff(self: Path, content: bytes) -> int:
        if self.name == "change.diff":
            raise KeyboardInterrupt
        return write(self, content)

    monkeypatch.setattr(Path, "write_bytes", stop_at_the_diff)
    options = ("--to", "9000", "--case", ACCOUNT, "--out", str(out))
    ended = analysis("plan-context", str(path), *options)
    assert (ended.code, ended.out) == (130, "")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["units"]


def test_json_is_one_object_of_known_fields(analysis, unit, tmp_path: Path) -> None:
    path, out = unit("vllm-shell.service"), tmp_path / "plan"
    options = ("--to", "32768", "--case", VLLM, "--out", str(out))
    found = analysis("plan-context", str(path), *options, "--json").json
    assert json.dumps(found, allow_nan=False)
    assert found["now_tokens"] is None
    assert found["written"] == "auto"
    assert set(found) == {
        *("unit", "kind", "engine", "setting", "line", "written", "now_tokens", "to_tokens"),
        *("tokens_per_request", "case", "verdict", "capability", "memory", "behaviour"),
        *("needed_gib_per_gpu", "pool_tokens", "starts", "largest_request", "largest_prompt"),
        *("requests_at_limit", "ways", "conditions", "differences", "notes", "folder", "files"),
        *("url", "verify"),
    }
