"""The plan as a page: verdict, reasons, how to put it in place and take it back, what to check."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from analysis.findings.context_plan import ContextPlan
from analysis.records.engine_flags import FLAGS
from analysis.records.inputs import digest
from analysis.records.launch import Launch

POOL_LINES = {
    "SGLang": "KV Cache is allocated|max_total_num_tokens",
    "vLLM": "KV cache size|Maximum concurrency",
    "llama.cpp": "n_ctx_seq|KV buffer size",
}
"""What each engine's log says of its pool at the start, as an extended regular expression."""
EVERYWHERE = ("0.0.0.0", "::", "[::]", "")
PLACEHOLDER = "http://HOST:PORT"
HEADS = {
    "fits": "Fits.",
    "does not fit": "Does not fit with the pool as it is.",
    "undecided": "Undecided: it fits only under the conditions below.",
}


def server_url(launch: Launch) -> str:
    """Where the server answers by its own flags; a placeholder where they do not say it."""
    port = launch.options.get("port", str(FLAGS[launch.engine].default_port))
    host = launch.options.get("host", "")
    scheme = "https" if "tls" in launch.options else "http"
    published = launch.published_ports
    if launch.in_container and "host" not in published:
        ends = published[0].split("/")[0].split(":") if len(published) == 1 else []
        if len(ends) not in (2, 3) or ends[-1] != port:
            return PLACEHOLDER
        port, host = ends[-2], ends[0] if len(ends) == 3 else ""
    if not port or not port.isdigit() or host is None:
        return PLACEHOLDER
    return f"{scheme}://{'127.0.0.1' if host in EVERYWHERE else host}:{port}"


def verify_command(plan: ContextPlan) -> str:
    """The command that reads back what the server really serves."""
    return f"analysis verify-context {server_url(plan.launch)} --expect {plan.per_request}"


def page(plan: ContextPlan, folder: Path) -> str:
    """The plan as Markdown; ``folder`` is where its files will lie."""
    launch, setting = plan.launch, plan.launch.setting
    now = "the engine's choice" if setting.tokens is None else f"{setting.tokens:,} tokens"
    parts = [
        f"# {launch.path.name}: context {setting.written} to {plan.to}",
        f"**{HEADS[plan.verdict]}** {sentence(plan.memory.text)}",
        _list(plan.conditions, "This rests on:"),
        _list(plan.differences, "The unit and the case differ:"),
        "## What was read",
        _list(
            [
                f"{launch.kind} of {launch.engine}; {setting.name} in line {setting.line} says "
                f"{setting.written} ({now})",
                f"facts of the case {plan.case}",
                *launch.notes,
            ]
        ),
        "## What was checked",
        _list(
            [
                f"Capability: {plan.capability}.",
                f"Memory: {plan.memory.verdict}: {plan.memory.text}.",
                f"Engine: {launch.engine} {plan.memory.behaviour}.",
                *share(plan),
            ]
        ),
        _list(
            [
                f"{w.name}: {w.tokens:,} tokens ({_sure(w.enough)}; {w.costs})"
                for w in plan.memory.ways
            ],
            "Single changes that would make it fit, the cheapest first:",
        ),
        "## Put in place",
        _code(put_in_place(plan, folder)),
        "## Take back",
        _code(take_back(plan)),
        "## Check list",
        "\n".join(f"- [ ] {line}" for line in check_list(plan)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def share(plan: ContextPlan) -> list[str]:
    """That llama.cpp's slots divide the context, where they do."""
    if plan.per_request == plan.to:
        return []
    slots = plan.to // plan.per_request
    return [
        f"One request gets {plan.per_request:,} tokens, a share of {slots} slots; for {plan.to:,} "
        f"each, --to {plan.to * slots}."
    ]


def put_in_place(plan: ContextPlan, folder: Path) -> list[str]:
    """Shell lines: back up, copy over the content, load and restart."""
    unit, backup = _paths(plan)
    copy = shlex.quote(str(folder.absolute() / plan.launch.path.name))
    sudo = _sudo(plan.launch)
    return [
        _unchanged(plan.launch),
        f"{sudo}cp -p {unit} {backup}",
        f"{sudo}cp {copy} {unit}    # keeps owner, mode and links of the file that is there",
        f"cmp {copy} {unit}",
        *_restart(plan.launch, check=True),
    ]


def take_back(plan: ContextPlan) -> list[str]:
    """Shell lines: the backup again, load and restart."""
    unit, backup = _paths(plan)
    return [
        f"{_sudo(plan.launch)}cp -p {backup} {unit}",
        _unchanged(plan.launch),
        *_restart(plan.launch, check=False),
    ]


def check_list(plan: ContextPlan) -> list[str]:
    """What to look at before and after, in order; the last line reads back what is served."""
    launch = plan.launch
    lines = POOL_LINES[launch.engine]
    log = f"grep -E '{lines}' SERVER_LOG"
    found = []
    if launch.kind == "systemd unit":
        name = _unit_name(launch)
        found.append(
            f"Before: `{_systemctl(launch)} cat {name}` shows this file alone, without drop-ins"
        )
        log = f"{_journal(launch)} -u {name} -b | grep -E '{lines}'"
    found += [
        f"Before: note the pool that the server printed, `{log}`",
        "Before: nobody depends on the server while it restarts",
        *(f"Before: {condition}" for condition in plan.conditions),
        "Put in place, as above; the diff is `change.diff`",
        f"After: `{log}` shows the pool, and no error stands behind it",
    ]
    if server_url(launch) == PLACEHOLDER:
        found.append(
            "HOST:PORT below is where the server answers: the unit does not say it readably"
        )
    return [*found, f"After: `{verify_command(plan)}`"]


def _unchanged(launch: Launch) -> str:
    told = shlex.quote(f"{digest(launch.content)}  {launch.path.absolute()}")
    return f"echo {told} | sha256sum -c"


def _restart(launch: Launch, check: bool) -> list[str]:
    if launch.kind == "launch script":
        return ["# stop the server and start it again the way that it is started"]
    unit, systemctl = shlex.quote(str(launch.path.absolute())), _systemctl(launch)
    return [
        *([f"systemd-analyze verify {unit}"] if check else []),
        f"{systemctl} daemon-reload",
        f"{systemctl} restart {_unit_name(launch)}",
    ]


def _paths(plan: ContextPlan) -> tuple[str, str]:
    unit = str(plan.launch.path.absolute())
    return shlex.quote(unit), shlex.quote(f"{unit}.before-{plan.to}")


def _of_a_user(launch: Launch) -> bool:
    return "/systemd/user" in str(launch.path.absolute().parent)


def _sudo(launch: Launch) -> str:
    return "sudo " if launch.kind == "systemd unit" and not _of_a_user(launch) else ""


def _systemctl(launch: Launch) -> str:
    return "systemctl --user" if _of_a_user(launch) else "sudo systemctl"


def _journal(launch: Launch) -> str:
    return "journalctl --user" if _of_a_user(launch) else "journalctl"


def _unit_name(launch: Launch) -> str:
    return shlex.quote(launch.path.name.replace("@.", "@INSTANCE."))


def sentence(text: str) -> str:
    """The text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def _sure(enough: bool | None) -> str:
    return "enough" if enough else "enough if that memory is free"


def _list(items: Iterable[str], head: str = "") -> str:
    lines = [f"- {item}" for item in items]
    if not lines:
        return ""
    return "\n".join([head, "", *lines] if head else lines)


def _code(lines: list[str]) -> str:
    return "\n".join(["```sh", *lines, "```"])
