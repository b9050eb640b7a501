"""Each flag, on both sides of its bound."""

from dataclasses import replace
from typing import Any

import pytest

from analysis.engines.client import Counters, Reply
from analysis.experiments import guards
from analysis.experiments.host import Seen
from analysis.records.run import Bounds, Flag, Planned, Server

PLANNED = Planned(
    number=0,
    experiment="two-point",
    text="repeated",
    asked_prompt_tokens=1000,
    asked_output_tokens=200,
)
REPLY = Reply(
    request_s=2.0,
    first_token_s=0.1,
    decode_s=1.9,
    chunks=200,
    prompt_tokens=1000,
    cached_tokens=999,
    output_tokens=200,
    drafted_tokens=210,
    accepted_tokens=150,
    accepted_source="timings",
)
SERVER = Server(kind="llama.cpp", model="m", speculates=True, where="this machine")
BOUNDS = Bounds()
QUIET = Seen(busy_cores=0.0, clock_step_ms=0.0)
STEPS = 49
BEFORE = Counters(running=0, generated_tokens=5000)
AFTER = Counters(running=0, generated_tokens=5200)


def flags(
    *,
    planned: dict[str, Any] | None = None,
    reply: dict[str, Any] | None = None,
    steps: int | None = STEPS,
    speculates: bool | None = True,
    seen: Seen = QUIET,
    before: Counters | None = BEFORE,
    after: Counters | None = AFTER,
) -> tuple[Flag, ...]:
    """The flags of a request that carries none but for what is changed."""
    return guards.flags(
        PLANNED.model_copy(update=planned or {}),
        replace(REPLY, **(reply or {})),
        steps,
        SERVER.model_copy(update={"speculates": speculates}),
        BOUNDS,
        seen,
        before,
        after,
    )


COLD = {"cold": True}
CASES: dict[str, tuple[dict[str, Any], tuple[Flag, ...]]] = {
    "as asked": ({}, ()),
    "one token less": (
        {"reply": {"output_tokens": 199}, "after": replace(AFTER, generated_tokens=5199)},
        ("short output",),
    ),
    "one token more": (
        {"reply": {"output_tokens": 201}, "after": replace(AFTER, generated_tokens=5201)},
        ("long output",),
    ),
    "no output": ({"reply": {"output_tokens": 0}, "after": BEFORE}, ("short output",)),
    "output not told": ({"reply": {"output_tokens": None}, "after": BEFORE}, ()),
    "prompt 2 % longer": ({"reply": {"prompt_tokens": 1020}}, ()),
    "prompt longer than that": ({"reply": {"prompt_tokens": 1021}}, ("prompt length",)),
    "prompt 2 % shorter": ({"reply": {"prompt_tokens": 980}}, ()),
    "prompt shorter than that": ({"reply": {"prompt_tokens": 979}}, ("prompt length",)),
    "short prompt, two tokens off": (
        {"planned": {"asked_prompt_tokens": 10}, "reply": {"prompt_tokens": 12}},
        (),
    ),
    "short prompt, three tokens off": (
        {"planned": {"asked_prompt_tokens": 10}, "reply": {"prompt_tokens": 13}},
        ("prompt length",),
    ),
    "prompt not told": ({"reply": {"prompt_tokens": None}}, ()),
    "cold and nothing cached": ({"planned": COLD, "reply": {"cached_tokens": 0}}, ()),
    "cold and a twentieth cached": ({"planned": COLD, "reply": {"cached_tokens": 50}}, ()),
    "cold and more than a twentieth cached": (
        {"planned": COLD, "reply": {"cached_tokens": 51}},
        ("cached prompt",),
    ),
    "acceptance and nothing drafted": (
        {"planned": {"experiment": "acceptance"}, "reply": {"drafted_tokens": 0}},
        (),
    ),
    "cold and cache not told": ({"planned": COLD, "reply": {"cached_tokens": None}}, ()),
    "nine tenths cached": ({"reply": {"cached_tokens": 900}}, ()),
    "less than nine tenths cached": ({"reply": {"cached_tokens": 899}}, ("cold prompt",)),
    "cache not told": ({"reply": {"cached_tokens": None}}, ()),
    "an experiment that does not need the cache": (
        {"planned": {"experiment": "context-sweep"}, "reply": {"cached_tokens": 0}},
        (),
    ),
    "another request before": (
        {"before": replace(BEFORE, running=1)},
        ("other requests",),
    ),
    "another request that goes on": (
        {"after": replace(AFTER, running=1)},
        ("other requests",),
    ),
    "another's token meanwhile": (
        {"after": replace(AFTER, generated_tokens=5201)},
        ("other requests",),
    ),
    "tokens not counted": ({"before": Counters(running=0), "after": Counters(running=0)}, ()),
    "no counters before": ({"before": None}, ()),
    "no counters after": ({"after": None}, ()),
    "others as busy as allowed": ({"seen": Seen(BOUNDS.busy_cores, 0.0)}, ()),
    "others busier": ({"seen": Seen(BOUNDS.busy_cores + 0.001, 0.0)}, ("host busy",)),
    "others not known": ({"seen": Seen(None, 0.0)}, ()),
    "clock set as far as allowed": ({"seen": Seen(0.0, BOUNDS.clock_step_ms)}, ()),
    "clock set further": ({"seen": Seen(0.0, BOUNDS.clock_step_ms + 0.001)}, ("clock step",)),
    "one draft": ({"reply": {"drafted_tokens": 1}}, ()),
    "no draft": ({"reply": {"drafted_tokens": 0}}, ("nothing drafted",)),
    "drafts not told": ({"reply": {"drafted_tokens": None}}, ()),
    "no draft of a plain server": ({"reply": {"drafted_tokens": 0}, "speculates": False}, ()),
    "no draft of who knows what": ({"reply": {"drafted_tokens": 0}, "speculates": None}, ()),
    "steps enough": ({"steps": BOUNDS.few_steps}, ()),
    "a step too few": ({"steps": BOUNDS.few_steps - 1}, ("few steps",)),
    "steps not told": ({"steps": None}, ()),
}


@pytest.mark.parametrize("case", CASES)
def test_a_flag_is_set_beyond_its_bound_and_not_at_it(case: str) -> None:
    changed, expected = CASES[case]
    assert flags(**changed) == expected


def test_all_that_holds_is_said() -> None:
    found = flags(
        reply={"output_tokens": 20, "cached_tokens": 0, "drafted_tokens": 0},
        steps=19,
        seen=Seen(1.0, 1000.0),
    )
    assert found == (
        "short output",
        "cold prompt",
        "other requests",
        "host busy",
        "clock step",
        "nothing drafted",
        "few steps",
    )


@pytest.mark.parametrize(("limit", "beyond"), [(1200, False), (1199, True), (None, False)])
def test_what_exceeds_the_context_limit_is_not_sent(limit: int | None, beyond: bool) -> None:
    server = SERVER.model_copy(update={"context_limit": limit})
    assert guards.beyond_limit(PLANNED, server) is beyond
