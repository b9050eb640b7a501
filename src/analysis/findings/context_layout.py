"""What a unit says of the layout of its cache, and where it and the case differ."""

import re
from dataclasses import dataclass

from analysis.model.kv_cache import KV_DTYPES, Parallelism
from analysis.records.case import Case
from analysis.records.launch import Launch
from analysis.records.model_config import QUANTISATION

DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "f16": "fp16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp4_e2m1": "fp4",
}
GGUF = re.compile(r"(?:[.-](?:i?q\d\w*|f16|f32|bf16))?(?:-\d+-of-\d+)?\.gguf$")
TAG = re.compile(r":[\w.-]+$")
RANKS = ("tp", "dcp", "pp")


@dataclass(frozen=True)
class UnitLayout:
    """The layout that the unit starts. ``kv_dtype`` is empty and ``parallelism`` ``None`` where
    it cannot be known; ``slots`` are llama.cpp's that share the context.

    ``same_pool``: nothing that sizes the pool differs from the case. ``doubts``: what was taken
    from the case because the unit does not say it readably.
    """

    kv_dtype: str
    parallelism: Parallelism | None
    slots: int | None
    same_pool: bool
    differences: tuple[str, ...]
    doubts: tuple[str, ...]


def unit_layout(launch: Launch, case: Case) -> UnitLayout:
    """The unit's layout, and what it and the case say differently."""
    layout, differences, doubts = case.facts.layout, list[str](), list[str]()
    if launch.engine != case.facts.engine.name:
        differences.append(
            f"engine: the unit starts {launch.engine}, the case is of {case.facts.engine.name}"
        )
    ranks = {"tp": layout.tp, "dcp": layout.dcp, "pp": 1}
    for name in RANKS if launch.engine != "llama.cpp" else ():
        given = _number(launch, name, default=1)
        if given is None:
            doubts.append(
                f"{name} is {ranks[name]} as in the case: the unit gives it as a variable"
            )
        elif given != ranks[name]:
            said = given if name in launch.options else f"nothing of it, which is {given}"
            differences.append(f"{name}: the unit says {said}, the case {ranks[name]}")
            ranks[name] = given
    dp_attention = "dp_attention" in launch.options or (
        launch.engine != "SGLang" and layout.dp_attention
    )
    if dp_attention != layout.dp_attention:
        words = {True: "on", False: "off"}
        differences.append(
            f"DP attention: {words[dp_attention]} in the unit, {words[layout.dp_attention]} in the "
            "case"
        )
    kv_dtype = _kv_dtype(launch, case, differences, doubts)
    same_pool = not differences and "kv_dtype" not in doubts
    _model(launch, case, differences)
    slots = _slots(launch)
    _limit(launch, slots, case, differences)
    try:
        parallelism = Parallelism(ranks["tp"], ranks["dcp"], dp_attention, ranks["pp"])
    except ValueError as error:
        parallelism = None
        doubts.append(f"the unit's ranks do not go together: {error}")
    return UnitLayout(kv_dtype, parallelism, slots, same_pool, tuple(differences), tuple(doubts))


def _number(launch: Launch, name: str, default: int | None) -> int | None:
    """A whole number above zero that a flag gives; ``None`` if it is not readable."""
    text = launch.options.get(name, str(default))
    return int(text) if text and re.fullmatch(r"\d+", text) and int(text) else None


def whole_option(launch: Launch, name: str) -> int | None:
    """A flag's whole number above zero; ``None`` where it is absent or not readable."""
    return _number(launch, name, default=None)


def _kv_dtype(launch: Launch, case: Case, differences: list[str], doubts: list[str]) -> str:
    """The KV dtype, under the model's name for it; empty if the model has none."""
    known: str = case.facts.layout.kv_dtype
    if launch.engine == "llama.cpp":
        key = launch.options.get("key_dtype", "f16")
        given = key if key == launch.options.get("value_dtype", "f16") else None
    else:
        given = launch.options.get("kv_dtype", "auto")
    if given is None:
        doubts.append(f"KV dtype is {known} as in the case: the unit does not give one readably")
        return known
    if given == "auto":
        own = case.model.dtype if case.model else known
        if own != known:
            doubts.append(
                f"KV dtype is {known} as in the case: the unit leaves it to the engine, which "
                f"takes {own} unless the checkpoint declares another"
            )
        return known
    named = DTYPES.get(given, given)
    if named != known:
        differences.append(f"KV dtype: the unit says {given}, the case {known}")
    return named if named in KV_DTYPES else ""


def _model(launch: Launch, case: Case, differences: list[str]) -> None:
    served = launch.options.get("model")
    if served and case.model and _bare(served) != _bare(case.model.name):
        differences.append(f"model: the unit serves {served}, the case is of {case.model.name}")


def _limit(launch: Launch, slots: int | None, case: Case, differences: list[str]) -> None:
    """The limit of one request, by the unit as it is and by the case."""
    known, now = case.facts.limits.context_tokens, launch.setting.tokens
    if known and now and slots and now // slots != known:
        differences.append(
            f"limit: the unit gives a request {now // slots:,} tokens, the case {known:,}"
        )


def _bare(name: str) -> str:
    """A model's name without owner, folder, quantisation or file format."""
    last = TAG.sub("", name.rstrip("/")).split("/")[-1].split("--")[-1].lower()
    return QUANTISATION.sub("", GGUF.sub("", last))


def _slots(launch: Launch) -> int | None:
    """llama.cpp's slots that share the context; 1 where they do not, ``None``: not readable.

    Without ``--parallel`` there is one slot, in newer builds four on one unified cache: a slot has
    the whole context in both (``tools/server/server.cpp``).
    """
    if launch.engine != "llama.cpp" or "slots" not in launch.options:
        return 1
    if launch.options.get("unified", "no") not in ("no", "0", "false", "off"):
        return 1
    if launch.options["slots"] == "-1":
        return 1
    return whole_option(launch, "slots")
