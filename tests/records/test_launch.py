"""Units and launch scripts: one context setting is found for sure, or the file is refused."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import InputError
from analysis.records.engine_flags import context_tokens
from analysis.records.launch import Launch, read_launch
from analysis.records.marked_text import Marked
from analysis.records.shell_words import commands
from analysis.records.unit_file import entries, unit_words

UNITS = Path(__file__).parent / "data" / "units"
FILES = sorted(path.name for path in UNITS.iterdir() if path.suffix in (".service", ".sh"))


def read(folder: Path, name: str, content: str | bytes) -> Launch:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_launch(path)


def place(position: int) -> str:
    return f"at {position}"


@pytest.mark.parametrize(
    ("name", "engine", "setting", "written", "tokens", "line"),
    [
        ("llama-smollm.service", "llama.cpp", "LLAMA_ARG_CTX_SIZE", "16384", 16384, 6),
        ("llama-user.sh", "llama.cpp", "-c", "4096", 4096, 4),
        ("sglang-entrypoint.sh", "SGLang", "--context-length", "65536", 65536, 8),
        ("sglang-kimi.service", "SGLang", "--context-length", "32768", 32768, 15),
        ("vllm-docker.sh", "vLLM", "--max-model-len", "32k", 32_000, 5),
        ("vllm-kimi.sh", "vLLM", "--max-model-len", "256K", 262_144, 13),
        ("vllm-shell.service", "vLLM", "--max-model-len", "auto", None, 8),
    ],
)
def test_the_one_setting_is_found(
    name: str, engine: str, setting: str, written: str, tokens: int | None, line: int
) -> None:
    launch = read_launch(UNITS / name)
    found = launch.setting
    assert launch.engine == engine
    assert (found.name, found.written, found.tokens) == (setting, written, tokens)
    assert written.encode() in launch.content.split(b"\n")[line - 1]
    assert found.line == line
    assert launch.content[found.start : found.end] == written.encode()


@pytest.mark.parametrize("name", FILES)
@given(tokens=st.integers(min_value=1, max_value=10**9))
def test_a_patch_changes_the_number_only(
    tmp_path_factory: pytest.TempPathFactory, name: str, tokens: int
) -> None:
    launch = read_launch(UNITS / name)
    old, new = launch.content, launch.patched(tokens)
    start, end = launch.setting.start, launch.setting.end
    assert new[:start] == old[:start]
    assert new[start : start + len(str(tokens))] == str(tokens).encode()
    assert new[start + len(str(tokens)) :] == old[end:]
    again = read(tmp_path_factory.mktemp("patched"), name, new)
    assert again.setting.tokens == tokens
    assert again.patched(tokens) == new


def test_what_else_a_command_line_says_is_read() -> None:
    kimi = read_launch(UNITS / "sglang-kimi.service")
    assert kimi.options["tp"] == "8"
    assert kimi.options["mem_fraction"] == "0.88"
    assert kimi.environment == {"HF_HOME": "/srv/models", "NCCL_P2P_LEVEL": "SYS"}
    entrypoint = read_launch(UNITS / "sglang-entrypoint.sh")
    assert entrypoint.options["port"] is None  # a variable
    assert entrypoint.options["pool_limit"] == "65536"
    assert entrypoint.notes == ("the script reads ~/miniforge3/bin/activate: look there too",)
    assert read_launch(UNITS / "llama-smollm.service").options["slots"] == "4"
    assert read_launch(UNITS / "vllm-docker.sh").published_ports == ("127.0.0.1:9000:8000",)


SERVE = "vllm serve x "
LLAMA = "llama-server -m x "
REFUSED: dict[str, tuple[str, str, list[str]]] = {
    "no flag": ("a.sh", SERVE, ["no --max-model-len of vLLM"]),
    "no flag, a config file": ("a.sh", SERVE + "--config y.yaml", ["file of --config"]),
    "twice": (
        "a.sh",
        SERVE + "--max-model-len 1 \\\n --max_model_len=2",
        ["2 times", "in line 1, --max-model-len in line 2"],
    ),
    "flag and variable": (
        "a.sh",
        f"LLAMA_ARG_CTX_SIZE=4096 {LLAMA} -c 8192",
        ["2 times", "-c in line 1", "LLAMA_ARG_CTX_SIZE in line 1"],
    ),
    "a variable as value": ("a.sh", LLAMA + "-c $CTX", ["a.sh:1, -c", "'$CTX', a variable"]),
    "a default as value": ("a.sh", LLAMA + '-c "${CTX:-9}"', ["'${CTX:-9}', a variable"]),
    "a specifier as value": (
        "a.service",
        f"[Service]\nExecStart={LLAMA} -c %i",
        ["a.service:2, -c", "'%i', a variable"],
    ),
    "more flags in a variable": ("a.sh", SERVE + "--max-model-len 1 $MORE", ["'$MORE'", "again"]),
    "arguments of the script": ("a.sh", SERVE + '--max-model-len 1 "$@"', ["'$@'", "again"]),
    "a known variable with the flag": (
        "a.sh",
        f"MORE='--max-model-len 2'\n{SERVE}--max-model-len 1 $MORE",
        ["'$MORE'", "again"],
    ),
    "a variable given twice": (
        "a.sh",
        f"A=--x\nA=--y\n{SERVE}--max-model-len 1 $A",
        ["'$A'", "again"],
    ),
    "a variable that a file may change": (
        "a.sh",
        f"A=--x\nsource env.sh\n{SERVE}--max-model-len 1 $A",
        ["'$A'", "again"],
    ),
    "an array": (
        "a.sh",
        f'ARGS=(--max-model-len 8192)\n{SERVE} "${{ARGS[@]}}"',
        ["no --max-model-len", "an array"],
    ),
    "two servers": (
        "a.sh",
        f"{SERVE}--max-model-len 1 &\n{SERVE}--max-model-len 2",
        ["2 commands", "lines 1, 2"],
    ),
    "two ExecStart": (
        "a.service",
        f"[Service]\nType=oneshot\nExecStart={LLAMA} -c 1\nExecStart={LLAMA} -c 2",
        ["2 commands", "lines 3, 4"],
    ),
    "unknown engine": ("a.sh", "ollama serve", ["no engine in 'ollama'"]),
    "a script behind the unit": (
        "a.service",
        "[Service]\nExecStart=/opt/start.sh",
        ["no engine in 'start.sh'"],
    ),
    "unknown wrapper": ("a.sh", f"watchdog {SERVE}--max-model-len 1", ["behind 'watchdog'"]),
    "no ExecStart": ("a.service", "[Service]\nType=simple", ["no ExecStart="]),
    "reset": ("a.service", f"[Service]\nExecStart={LLAMA}-c 1\nExecStart=", ["no ExecStart="]),
    "environment file over a variable": (
        "a.service",
        f"[Service]\nEnvironment=LLAMA_ARG_CTX_SIZE=1\nEnvironmentFile=-/etc/x\nExecStart={LLAMA}",
        ["a.service:2, LLAMA_ARG_CTX_SIZE", "overrides it"],
    ),
    "only an environment file": (
        "a.service",
        f"[Service]\nEnvironmentFile=/etc/x\nExecStart={LLAMA}",
        ["may stand in EnvironmentFile=/etc/x"],
    ),
    "a variable that is not exported": (
        "a.sh",
        f"LLAMA_ARG_CTX_SIZE=1\n{LLAMA}",
        ["assigned, but not exported"],
    ),
    "a unit's variable stays outside its container": (
        "a.service",
        "[Service]\nEnvironment=LLAMA_ARG_CTX_SIZE=1\n"
        "ExecStart=/usr/bin/docker run ghcr.io/ggml-org/llama.cpp:server -m x",
        ["no -c or --ctx-size or LLAMA_ARG_CTX_SIZE"],
    ),
    "a here-document": ("a.sh", f"cat <<X\n{SERVE}--max-model-len 1\nX", ["a here-document"]),
    "a line that ends too early": (
        "a.sh",
        "python -m sglang.launch_server --tp 8 \\   # tuned\n  --context-length 5",
        ["no --context-length", "ends before that line"],
    ),
    "a shortened flag": (
        "a.sh",
        "python3 -m sglang.launch_server --context-len 5",
        ["shortened flag --context-len"],
    ),
    "llama.cpp's missing = form": ("a.sh", LLAMA + "--ctx-size=5", ["words of their own"]),
    "what stoi would read as 32": ("a.sh", LLAMA + "-c 32k", ["'32k'", "reads 32k as 32"]),
    "binary decimals": ("a.sh", SERVE + "--max-model-len 1.5K", ["'1.5K'", "no decimals"]),
    "zero": ("a.sh", SERVE + "--max-model-len 0", ["'0'", "above zero"]),
    "words": ("a.sh", SERVE + "--max-model-len most", ["'most'", "number of tokens"]),
    "no value": ("a.sh", SERVE + "--max-model-len", ["without a value"]),
    "a value in pieces": ("a.sh", SERVE + "--max-model-len 1'2'3", ["in pieces"]),
    "an open quote": ("a.sh", SERVE + "'--max-model-len 1", ["quote ' that is not closed"]),
    "an open quote in a unit": (
        "a.service",
        f"[Service]\nExecStart={LLAMA} '-c 1",
        ["quote ' that is not closed"],
    ),
    "a drop-in mentioned": (
        "a.service",
        f"# /etc/systemd/system/a.service.d/o.conf\n[Service]\nExecStart={LLAMA}-c 1",
        ["a.service:1", "a mention of a drop-in"],
    ),
    "compose": ("compose.yaml", "services:\n  x: {}\n", ["a YAML file"]),
    "Python": ("a.sh", "#!/usr/bin/env python3\n", ["#!/usr/bin/env python3"]),
    "Windows line ends": ("a.sh", SERVE + "\\\r\n--max-model-len 1\r\n", ["CR LF"]),
    "another file": ("a.json", "{}", ["no section [Service]", "'.json'"]),
    "UTF-16": ("a.sh", "v\0l\0l\0m\0", ["a byte 0"]),
    "empty": ("a.sh", "", ["no engine in any command"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_sure_is_refused(tmp_path: Path, what: str) -> None:
    name, content, parts = REFUSED[what]
    with pytest.raises(InputError) as refused:
        read(tmp_path, name, content)
    for part in parts:
        assert part in str(refused.value)


def test_no_refusal_repeats_a_key(tmp_path: Path) -> None:
    for content in ("API_KEY=sk-1234 start", "start --key sk-1234", "K=sk-1234\nstart"):
        with pytest.raises(InputError) as refused:
            read(tmp_path, "a.sh", content)
        assert "sk-1234" not in str(refused.value)


def test_drop_ins_beside_a_unit_are_refused(tmp_path: Path) -> None:
    unit = f"[Service]\nExecStart={LLAMA}-c 1\n"
    assert read(tmp_path, "a.service", unit).setting.tokens == 1
    folder = tmp_path / "a.service.d"
    folder.mkdir()
    (folder / "50-more.conf").write_text("[Service]\n")
    with pytest.raises(InputError, match=r"may override it \(50-more.conf\)"):
        read(tmp_path, "a.service", unit)
    with pytest.raises(InputError, match="a drop-in of another unit"):
        read(folder, "override.conf", unit)


@pytest.mark.parametrize(
    "content",
    [
        f"if true; then\n  exec {SERVE}--max-model-len 7\nfi",
        f"env A=b nohup {SERVE}--max-model-len=7 > log 2>&1 &",
        f'bash -c "cd /x && {SERVE}--max-model-len 7"',
        'python3 -m vllm.entrypoints.openai.api_server --model "$M" --max-model-len "7"',
        f"echo vllm serve x --max-model-len 9\n{SERVE}--max-model-len 7",
        f"# {SERVE}--max-model-len 9\n{SERVE}--max-model-len 7 # --max-model-len 9",
        f"MORE='--enforce-eager --seed 1'\n{SERVE}--max-model-len 7 $MORE",
        f"{SERVE}--port $PORT --max-model-len 7 --served-model-name $NAME",
        "docker run -p 1:8000 --gpus all vllm/vllm-openai --model x --max-model-len 7",
        'case "$1" in\n  serve) vllm serve x --max-model-len 7 ;;\nesac',
        f"{SERVE}--config y.yaml --max-model-len 7",
    ],
)
def test_forms_of_a_script_that_are_sure(tmp_path: Path, content: str) -> None:
    launch = read(tmp_path, "a.sh", content)
    assert (launch.engine, launch.setting.tokens) == ("vLLM", 7)


@pytest.mark.parametrize(
    ("engine", "value", "tokens"),
    [
        ("vLLM", "1k", 1000),  # the three examples of vLLM's own docstring
        ("vLLM", "1K", 1024),
        ("vLLM", "25.6k", 25600),
        ("vLLM", "1M", 2**20),
        ("vLLM", "200_000", 200_000),  # Python's int
        ("vLLM", "auto", None),
        ("vLLM", "AUTO", None),
        ("vLLM", "-1", None),
        ("SGLang", "32768", 32768),
        ("SGLang", "32K", 32768),
        ("llama.cpp", "8192", 8192),
        ("llama.cpp", "0", None),  # the model's own
    ],
)
def test_values_are_read_as_the_engine_reads_them(
    engine: str, value: str, tokens: int | None
) -> None:
    assert context_tokens(engine, value) == tokens  # type: ignore[arg-type]


@given(st.lists(st.text(st.characters(codec="latin-1", exclude_characters="\0\r"), max_size=8)))
def test_quoted_words_come_back(words: list[str]) -> None:
    """``shlex.quote`` of the standard library is the judge of the shell's quotes."""
    line = " ".join(["run", *map(shlex.quote, words)])
    (command,) = commands(Marked.whole(line.encode("latin-1")), place)
    assert [word.text for word in command.words] == ["run", *words]
    assert not any(word.expands or word.spreads for word in command.words)


@pytest.mark.parametrize(
    "line",
    [
        r"""run a\ b "c d"'e'f "g\"h\\i\j" 'k\l' \$m""",
        "run a \\\n  b # c\n",
        "run a#b '#c' \\#d",
        'run "a\\\nb"',
        "run a>/dev/null 2>&1 b 3</dev/null c",
        "run 5 6>/dev/null 7 &>/dev/null",
        "run ''\"\" x''y",
    ],
)
def test_words_are_those_of_bash(line: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash to compare with")
    script = "run() { printf '%s\\0' run \"$@\" >&9; }\n" + line
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec 9>&1; exec {bash} -c "$1"', "sh", script],
        capture_output=True,
        check=True,
    )
    (command,) = commands(Marked.whole(line.encode()), place)
    assert [word.text for word in command.words] == done.stdout.decode().split("\0")[:-1]


def test_words_and_lines_of_a_unit() -> None:
    """The examples of systemd.syntax(7) and systemd.service(5)."""
    content = b"[Section C]\nKeyThree=value 3\\\n# ignored\n; this too\n    value 3 continued\n"
    (entry,) = entries(content)
    assert entry.value.text.split() == ["value", "3", "value", "3", "continued"]
    value = Marked.whole(b'/bin/echo "$ONE" ${TWO} $THREE "a b" \'c d\' $$')
    words = unit_words(value, place)
    assert [word.text for word in words] == [
        *("/bin/echo", "$ONE", "${TWO}", "$THREE", "a b", "c d", "$$"),
    ]
    assert [word.expands for word in words] == [False, True, True, True, False, False, False]
    assert not words[2].spreads
    assert words[3].spreads


@given(st.binary(max_size=200), st.sampled_from(["a.sh", "a.service"]))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, name: str
) -> None:
    folder = tmp_path_factory.mktemp("noise")
    head = b"[Service]\nExecStart=" if name.endswith("service") else b""
    for content in (noise, head + b"llama-server -c 8192 " + noise, head + noise + b" -c 1"):
        try:
            launch = read(folder, name, content)
        except InputError:
            continue
        setting = launch.setting
        assert launch.content[setting.start : setting.end].decode("latin-1").isdigit()
