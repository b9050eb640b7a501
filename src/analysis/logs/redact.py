"""Take out of a text what tells whose server it came from, and what it was asked.

Hosts, addresses, accounts, paths, keys and prompts become named placeholders; what a server
measured stays as it stood. Text of a prompt without quotes or a key before it, and shorter than
``FREE_WORDS``, cannot be told from a message of the server: read what you publish.
"""

import re
from collections.abc import Callable
from ipaddress import ip_address
from re import Match

FREE_WORDS = 16
"""So many plain words in a row no server's report has: text of a prompt or of an answer."""
PASSES = 10
"""What was replaced can uncover more to replace; a text is done when nothing changes."""

_PROMPT_KEY = re.compile(
    r"""(?<![\w-])(?P<quote>\\?["']?)(?:(?:system|user|input|output|full|rendered)[_ ])?"""
    r"(?:prompts?|texts?|content|messages?|query|question|answer|completion|response|reasoning"
    r"|reasoning_content|generated_text|arguments|inputs?|outputs?"
    r"|(?:prompt_|output_|input_)?(?:token_)?ids)(?P=quote)(?P<between>\s{0,4}[:=]\s{0,4})",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"""[rbuf]?"(?:[^"\\\n]|\\(?:.|$))*(?:"|$)|[rbuf]?'(?:[^'\\\n]|\\(?:.|$))*(?:'|$)"""
    r"""|\\"(?:(?!(?<!\\)\\").)*(?:(?<!\\)\\"|$)""",
    re.MULTILINE,
)
_UNQUOTED = re.compile(r"[^\W\d]\w*[,;:]?(?: +\S+){2,}")
_LLAMA_TOKEN = re.compile(r"(\btoken\b[^'\n]{0,40}: *\d+:? +)'[^\n]*")
_WORD = r"[^\W\d_][\w'’.,;:!?()\"-]{0,40}"
_FREE_TEXT = re.compile(rf"(?<![\w#:=/.,;-]){_WORD}(?:[ \t]{_WORD}){{{FREE_WORDS - 1},}}")
_UNSPACED_TEXT = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af，。、！？；：]{12,}")

_KNOWN_SECRET = re.compile(
    r"(?<![\w-])(?:hf_\w{6,}|sk-[\w-]{6,}|pk-[\w-]{6,}|gh[opsur]_\w{6,}|github_pat_\w{6,}"
    r"|glpat-[\w-]{6,}|xox[abprs]-[\w-]{6,}|nvapi-[\w-]{6,}|AKIA[A-Z0-9]{12,}|AIza[\w-]{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?|gsk_\w{6,}|wandb_v\d_\w{6,}|r8_\w{6,})"
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+(?!<)[\w.~+/=-]{6,}", re.IGNORECASE)
_KEYED_SECRET = re.compile(
    r"""((?<![\w-])\\?["']?(?:[\w-]{0,30}[_-])?(?:api[_-]?keys?|apikey|secret|password|passwd"""
    r"|private[_-]?key|secret[_-]?key|access[_-]?key"
    r"|(?:auth|access|bearer|hf|hub|refresh|session|api)[_-]?token|HF_TOKEN)"
    r"""\\?["']?\s{0,4}[:=]\s{0,4})(?!None\b|null\b|True\b|False\b|\\?["']?<)"""
    r"""(?:\\?["'][^"'\n]*\\?["']?|[^\s,;)}\]"']+)""",
    re.IGNORECASE,
)
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]+-----[\s\S]*?(?:-----END [A-Z ]+-----|\Z)")

_HOST_VALUE = re.compile(
    r"""((?<![\w-])\\?["']?(?:host|host_?name|node_?name|server_?name|fqdn|node_ip(?:_address)?"""
    r"|dist_init_addr|master_addr(?:ess)?|head_node|pod_?name|pod_?ip|nodelist)"
    r"""\\?["']?\s?[:=]\s?)(?!None\b|null\b|\\?["']?<)(?:\\?["'][^"'\n]+\\?["']|[^\s,;)}\]"'\\]+)""",
    re.IGNORECASE,
)
_USER_VALUE = re.compile(
    r"""((?<![\w-])\\?["']?(?:user|user_?name|account|owner|login|organization)\\?["']?"""
    r"""\s?[:=]\s?)(?!None\b|null\b|\\?["']?<)(?:\\?["'][^"'\n]+\\?["']|[^\s,;)}\]"'\\]+)""",
    re.IGNORECASE,
)
_URL = re.compile(r"\b([a-zA-Z][a-zA-Z0-9+.-]{1,20}://)(?!<)([^\s/?#\"'<>\\)\]},]+)")
_QUERY = re.compile(r"(://<host>[^\s?#\"'<>]*)\?(?!<)[^\s\"'<>]+")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_ACCOUNT = re.compile(r"(?<![\w.+-])[A-Za-z_][\w.-]{0,31}@[A-Za-z][\w.-]*")
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)(?::\d{1,5}\b)?")
_IPV6 = re.compile(
    r"\[?(?<![\w:.])[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:%\w+)?(?![\w:])(?:\](?::\d{1,5})?)?"
)
_MAC = re.compile(r"(?<![\w:])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?![\w:])")
_DOMAIN = re.compile(
    r"(?<![\w.@/-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}"
    r"(?:com|net|org|edu|gov|mil|ai|io|dev|cloud|co|internal|local|localdomain|lan|corp|intranet"
    r"|intra|home|svc|tech|de|uk|fr|nl|eu|ch|at|it|es|se|fi|pl|cn|jp|kr|in|br|ca|au|us|tw|sg|hk)"
    r"(?![\w-]|\.(?!(?:log|txt|jsonl?|out|gz|xz|zst)\b)\w)(?::\d{1,5}\b)?"
)
_NODE = re.compile(
    r"(?<![\w./<-])(?![\w.-]*\.(?:log|txt|jsonl?|csv|out|py|gguf|gz|xz|bz2|zst|html)\b)"
    r"(?:ip-\d{1,3}(?:-\d{1,3}){3}|(?:[a-z0-9]{1,20}-){0,5}(?:dgx|hgx|node|host|compute|login)"
    r"(?:-[a-z0-9]{1,20}){0,5}-?\d+|(?:[a-z0-9]{1,20}-){1,5}(?:gpu|server|worker)-?\d+)"
    r"(?:\.[\w-]+)*(?![\w-])"
)
_POD_PATH = re.compile(r"\b(pods?/|[Pp]od )(?!<)[a-z0-9][\w.]*(?:-[\w.]+)+")
_POD = re.compile(
    r"(?<![\w./<-])[a-z0-9](?:[a-z0-9-]*[a-z0-9])?-(?=[a-z]*\d)[a-z0-9]{6,10}-[a-z0-9]{5}(?![\w-])"
)
_NO_HOST = r"(?!<|DEBUG|INFO|WARN|ERROR|CRITICAL)([\w.:-]+)"
_SYSLOG = re.compile(
    r"^((?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]\d (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d+)? )"
    rf"{_NO_HOST}(?= [\w./@()-]+(?:\[\d+\])?:)",
    re.MULTILINE,
)
_JOURNAL = re.compile(
    r"^((?:<\d{1,3}>1 )?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\w.:+-]* )"
    rf"{_NO_HOST}(?= [\w./@()-]+\[\d+\]:| \S+ \d+ )",
    re.MULTILINE,
)

_UNIX_PATH = re.compile(
    r"(?<![\w.>/:-])(?:~[\w.-]*|file://)?(?:/[\w.@+=,~-]+){1,60}/?|(?<!\w)~[A-Za-z_]\w*"
)
_QUOTED_PATH = re.compile(r"""(["'])((?:~|[A-Za-z]:[\\/]|/)[^"'\n]*[/\\][^"'\n]*)\1""")
_WINDOWS_PATH = re.compile(
    r"""(?<!\w)(?:[A-Za-z]:|\\\\[\w.-]+)(?:\\{1,2}(?:[^\\/:*?"<>|\r\n']+\\{1,2})*"""
    r"""|/(?:[^\\/:*?"<>|\s',;]+/)*)[^\\/:*?"<>|\s,;)']*"""
)
_ACCOUNT_FOLDERS = {"home", "users", "user", "u", "people", "students", "staff", "accounts"}
_MODEL_FOLDERS = {"models", "model", "weights", "checkpoints", "usr", "opt", "app"}
_HARMLESS_NAME = re.compile(r"[\w.+-]{1,120}")
_PUBLIC_ROUTE = re.compile(r"/v\d+/[\w/-]+")
_LLAMA_CLOCK = re.compile(r"\d+\.\d\d\.\d{3}\.\d{3} [A-Z] ")


def redact(text: str, *, prompts: bool = True) -> str:
    """The text with placeholders for hosts, addresses, users, paths, keys and prompts.

    ``prompts=False`` leaves sentences alone: for what this package itself wrote about a log.
    """
    for _ in range(PASSES):
        done = _once(text, prompts)
        if done == text:
            break
        text = done
    return text


def _once(text: str, prompts: bool) -> str:
    text = _KEY_BLOCK.sub("<secret>", text)
    if prompts:
        text = _LLAMA_TOKEN.sub(r"\1<prompt>", _without_prompts(text))
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    if prompts:
        for pattern in (_FREE_TEXT, _UNSPACED_TEXT):
            text = pattern.sub("<text>", text)
    return _without_named_hosts(text)


def _without_prompts(text: str) -> str:
    """Values of the keys under which servers print what they were asked and what they answered."""
    parts, start = [], 0
    while found := _PROMPT_KEY.search(text, start):
        at = found.end()
        if quoted := _QUOTED.match(text, at):
            end = quoted.end()
        elif text.startswith(("[", "{"), at):
            end = _end_of_list(text, at)
        elif ":" in found["between"] and (words := _UNQUOTED.match(text, at)):
            end = words.end()
        else:
            end = at
        parts.append(text[start:at] + ("<prompt>" if end > at else ""))
        start = max(end, at)
    return "".join(parts) + text[start:]


def _end_of_list(text: str, start: int) -> int:
    """Behind the bracket that closes the one at ``start``, or at the end of the line."""
    depth, at = 0, start
    while at < len(text) and text[at] != "\n":
        if quoted := _QUOTED.match(text, at):
            at = quoted.end()
            continue
        depth += (text[at] in "[{(") - (text[at] in "]})")
        at += 1
        if depth == 0:
            break
    return at


def _without_named_hosts(text: str) -> str:
    """The host column of syslog and journald, and the same name wherever else it stands."""
    names = {found[2] for column in (_SYSLOG, _JOURNAL) for found in column.finditer(text)}
    for column in (_SYSLOG, _JOURNAL):
        text = column.sub(r"\1<host>", text)
    for name in sorted(names, key=len, reverse=True):
        if len(name) > 2:
            text = re.sub(rf"(?<![\w<-]){re.escape(name)}(?![\w>-])", "<host>", text)
    return text


def _address(found: Match[str]) -> str:
    """``<address>`` where the text is one, and not a clock or a name in C++."""
    text = found[0]
    line_start = found.string.rfind("\n", 0, found.start()) + 1
    if found.start() == line_start and _LLAMA_CLOCK.match(found.string, line_start):
        return text
    bare = text.strip("[]")
    for candidate in (bare, text[1:].split("]")[0], bare.rsplit(":", 1)[0], bare.split("%")[0]):
        if not any(c in "0123456789abcdefABCDEF" for c in candidate):
            continue
        try:
            ip_address(candidate)
        except ValueError:
            continue
        opening = "[" if text.startswith("[") and "]" not in text else ""
        closing = "]" if text.endswith("]") and not text.startswith("[") else ""
        return f"{opening}<address>{closing}"
    return text


def _path(found: Match[str]) -> str:
    """``<path>``, and the last part where it names a file or a model and not a person."""
    text = found[0]
    if _PUBLIC_ROUTE.fullmatch(text):
        return text
    parts = [part for part in re.split(r"[/\\]+", text) if part]
    home = text.startswith("~") or parts[:1] == ["root"] or re.match(r"[A-Za-z]:|\\\\", text)
    if len(parts) < 2 and not home:
        return text
    cached = next((part for part in parts if part.startswith("models--")), None)
    name = cached.split("--")[-1] if cached else parts[-1]
    person = len(parts) < 2 or parts[-2].lower() in _ACCOUNT_FOLDERS
    short = len(parts) == 2 and parts[0] not in _MODEL_FOLDERS | {"root", "~"}
    if ((person or short) and not cached) or not _HARMLESS_NAME.fullmatch(name):
        return "<path>"
    return f"<path>/{name}"


def _quoted_path(found: Match[str]) -> str:
    whole = re.match(r"[\s\S]*", found[2])
    assert whole is not None
    return f"{found[1]}{_path(whole)}{found[1]}"


_RULES: tuple[tuple[re.Pattern[str], str | Callable[[Match[str]], str]], ...] = (
    (_KNOWN_SECRET, "<secret>"),
    (_BEARER, r"\1 <secret>"),
    (_KEYED_SECRET, r"\1<secret>"),
    (_HOST_VALUE, r"\1<host>"),
    (_USER_VALUE, r"\1<user>"),
    (_URL, r"\1<host>"),
    (_QUERY, r"\1?<query>"),
    (_EMAIL, "<email>"),
    (_ACCOUNT, "<user>@<host>"),
    (_MAC, "<address>"),
    (_IPV6, _address),
    (_IPV4, _address),
    (_QUOTED_PATH, _quoted_path),
    (_WINDOWS_PATH, _path),
    (_UNIX_PATH, _path),
    (_DOMAIN, "<host>"),
    (_POD_PATH, r"\1<pod>"),
    (_POD, "<pod>"),
    (_NODE, "<host>"),
)
