"""Each command of the README runs on committed data: the fixed part of ``make check``."""

import json
import shlex

import pytest
from tests.conftest import Ended

from analysis import paths
from analysis.cli.main import COMMANDS

ACCOUNT = "kimi-k26-sglang"
LOGS = [paths.RUNS / f"smollm2-{run}" / "server.log" for run in ("plain", "ngram")]
UNIT = paths.ROOT / "tests/records/data/units/sglang-kimi.service"

HERE = {
    "breakeven": "--base-step-ms 37.7 --spec-step-ms 98.7 --commit 1.75 --block 2",
    "cite": f"{ACCOUNT}/throughput",
    "compare": f"{LOGS[0]} {LOGS[1]}",
    "diagnose": f"{LOGS[1]}",
    "fit": f"{paths.RUNS / 'smollm2-ngram'}",
    "kv": "--model kimi-k2.6 --tp 8 --pool-gib 6.62 --engine sglang --limit 200000",
    "levers": ACCOUNT,
    "measure": "kv-layout --dry-run",
    "plan-context": f"{UNIT} --to 200000 --case {ACCOUNT}",
    "reconcile": ACCOUNT,
    "status": "",
}
ELSEWHERE = {"report", "promote", "verify-context"}
"""They build, write into ``data``, or ask a server: each has tests of its own."""


def test_every_command_is_run_here_or_elsewhere() -> None:
    assert HERE.keys() | ELSEWHERE == set(COMMANDS)
    assert HERE.keys() & ELSEWHERE == set()


@pytest.mark.parametrize("name", HERE)
def test_a_command_answers_in_words_and_in_json(analysis, tmp_path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = shlex.split(HERE[name])
    said: Ended = analysis(name, *arguments)
    assert (said.code, "error" in said.err) == (0, False)
    assert len(said.out + said.err) > 20
    found: Ended = analysis(name, *arguments, "--json")
    assert (found.code, "error" in found.err) == (0, False)
    assert json.loads(found.out)
