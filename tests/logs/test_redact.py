"""What tells whose server it was goes; what the server measured stays."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs.redact import redact

LOGS = sorted((Path(__file__).parent / "data").glob("*.log"))
LINES = [line for log in LOGS for line in log.read_text().splitlines()]
MEASURED = re.compile(r"batch|metrics|throughput|eval time|draft acceptance|total time|graphs")

TABLE = [
    # syslog, journald, Kubernetes
    ("Nov 30 22:56:19 box3 app[42]: on box3", "Nov 30 22:56:19 <host> app[42]: on <host>"),
    ("2026-11-30T22:56:19+0000 box3 vllm[7]: up", "2026-11-30T22:56:19+0000 <host> vllm[7]: up"),
    ("[pod/llm-6d4cf56db6-abcde/vllm] up", "[pod/<pod>/vllm] up"),
    ("llm-6d4cf56db6-abcde is ready", "<pod> is ready"),
    # addresses and hosts
    ('10.1.2.3:51324 - "POST /v1/chat HTTP/1.1"', '<address> - "POST /v1/chat HTTP/1.1"'),
    ("listen [2001:db8::1]:443 and ::1", "listen <address> and <address>"),
    ("mac 0a:1b:2c:3d:4e:5f", "mac <address>"),
    ("http://ann:pw@box.example.com:80/v1/x?k=v", "http://<host>/v1/x?<query>"),
    ("node gpu7.cluster.local:29500 joined", "node <host> joined"),
    ("from ip-10-0-0-12 and dgx-04", "from <host> and <host>"),
    ("host='0.0.0.0', port=30000", "host=<host>, port=30000"),
    # people and keys
    ("by ann@example.org on ann@box", "by <email> on <user>@<host>"),
    ("user=ann", "user=<user>"),
    ("Authorization: Bearer abcdef123456", "Authorization: Bearer <secret>"),
    ("HF_TOKEN=hf_abcdefgh api_key='sk-12345678'", "HF_TOKEN=<secret> api_key='<secret>'"),
    ("api_key=None, hf_token=None", "api_key=None, hf_token=None"),
    # paths
    ("model_path='/home/ann/models/Kimi-K2'", "model_path='<path>/Kimi-K2'"),
    ("in /home/ann and /root and ~/x/y.gguf", "in <path> and <path> and <path>/y.gguf"),
    ("/Users/ann/a.log", "<path>/a.log"),
    ("/home/ann/.cache/hub/models--org--Llama-3/snapshots/0f3a", "<path>/Llama-3"),
    (r"C:\Users\Ann Lee\models\x.gguf", "<path>/x.gguf"),
    (r"\\nas01\ann\x.bin", "<path>/x.bin"),
    # prompts and answers
    ("prompt: 'Tell [me] it\\'s', params: x", "prompt: <prompt>, params: x"),
    ('prompt: "Tell me \\"all', "prompt: <prompt>"),
    ("prompt: Tell me a story", "prompt: <prompt>"),
    ("prompt_token_ids: [1, 2, [3]], lora: None", "prompt_token_ids: <prompt>, lora: None"),
    ('"messages":[{"content":"a [b] c"}],"n":1', '"messages":<prompt>,"n":1'),
    (r'{\"prompt\": \"say \\\"x\\\" now\", \"n\": 1}', r'{\"prompt\": <prompt>, \"n\": 1}'),
    ("prompt token   3:   9707 'Hello'", "prompt token   3:   9707 <prompt>"),
    (" ".join(["word"] * 30), "<text>"),
    ("你好，请告诉我今天的天气怎么样？", "<text>"),
    # clocks, versions and names of code are none of these
    ("1.23.145.209 I slot print_timing: id 1", "1.23.145.209 I slot print_timing: id 1"),
    ("std::vector at 22:56:19 of 0.5.23", "std::vector at 22:56:19 of 0.5.23"),
    ("INFO 11-30 21:42:49 [loggers.py:335] Eng", "INFO 11-30 21:42:49 [loggers.py:335] Eng"),
    ("server-0.log, vllm-1 and Worker_TP0", "server-0.log, vllm-1 and Worker_TP0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TABLE, ids=[text[:30] for text, _ in TABLE])
def test_redaction(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_nothing_that_a_server_measured_changes(line: str) -> None:
    assert redact(line) == line


@pytest.mark.parametrize(
    "prefix",
    [
        ("Nov 30 22:56:19 box3 python[42]: ", "Nov 30 22:56:19 <host> python[42]: "),
        ("2026-11-30T22:56:19.123Z box3 app[42]: ", "2026-11-30T22:56:19.123Z <host> app[42]: "),
        ("[pod/llm-6d4cf56db6-abcde/vllm] ", "[pod/<pod>/vllm] "),
        ("vllm-1  | ", "vllm-1  | "),
    ],
    ids=["syslog", "journald", "Kubernetes", "Compose"],
)
def test_nor_behind_what_a_collector_puts_before_it(prefix: tuple[str, str]) -> None:
    measured = [line for line in LINES if MEASURED.search(line)]
    assert len(measured) > 80
    # Behind such a prefix the clock of llama.cpp can no longer be told from an address.
    clockless = [line for line in measured if not re.match(r"\d+\.\d\d\.\d{3}\.\d{3} ", line)]
    for line in clockless:
        assert redact(prefix[0] + line) == prefix[1] + line


PIECES = st.sampled_from(
    [text for text, _ in TABLE]
    + ['"', "'", "\\", "[", "]", "{", "<host>", "<path>/", "prompt:", "/", "::", "@", "=", "\n"]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=8).map("".join))
def test_twice_is_once_and_no_text_is_refused(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text())
def test_any_text_is_taken_and_no_line_is_added(text: str) -> None:
    assert redact(text).count("\n") <= text.count("\n")


@pytest.mark.parametrize(
    "unit", ["a.", "a-", "x@", "/a", "::", "'", "prompt: [", "word ", "C:\\a", "\\"]
)
def test_the_time_grows_with_the_line_and_not_with_its_square(unit: str) -> None:
    """Four times the line: 4 if linear, 16 if squared; a pattern that backtracks is the latter."""
    long = min(seconds(unit * 20_000) for _ in range(3))
    short = min(seconds(unit * 5_000) for _ in range(3))
    assert long / short < 10


def seconds(text: str) -> float:
    began = time.process_time()
    redact(text)
    return time.process_time() - began
