"""The parameters cell of a notebook: what it declares, and whether given values fit it.

Papermill only warns of an unknown name, guesses types from text, and would write a secret into
the notebook; so names, types and values are checked here before anything runs.
"""

import ast
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from analysis.errors import InputError

TAG = "parameters"
SECRET = re.compile(
    r"secret|password|passwd|credential|apikey|(^|_)key$|auth|bearer|^token$|_token$", re.I
)
TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
}


def declared(notebook: Mapping[str, Any], name: str) -> dict[str, tuple[str, Any]]:
    """Name to (type, default) of every parameter; literals with a type, and nothing else."""
    cells = [c for c in notebook["cells"] if TAG in c.get("metadata", {}).get("tags", [])]
    if len(cells) != 1:
        raise InputError(name, f"{len(cells)} cells tagged {TAG}", "exactly one")
    found: dict[str, tuple[str, Any]] = {}
    try:
        statements = ast.parse("".join(cells[0]["source"])).body
    except SyntaxError as error:
        where = f"{name}, parameters cell, line {error.lineno}"
        raise InputError(where, error.msg, "name: type = literal") from None
    for statement in statements:
        where = f"{name}, parameters cell, line {statement.lineno}"
        if (
            not isinstance(statement, ast.AnnAssign)
            or not isinstance(statement.target, ast.Name)
            or statement.value is None
        ):
            raise InputError(where, ast.unparse(statement), "name: type = literal")
        kind = ast.unparse(statement.annotation)
        if kind not in TYPES:
            raise InputError(where, f"type {kind}", f"one of {', '.join(TYPES)}")
        try:
            default = ast.literal_eval(statement.value)
        except (ValueError, TypeError):
            raise InputError(where, ast.unparse(statement.value), "a literal") from None
        _fits(default, kind, where)
        found[statement.target.id] = (kind, default)
    return found


def parse(options: tuple[str, ...]) -> dict[str, Any]:
    """Values from ``NAME=JSON`` options; a bare word would be guessed at, so it is refused."""
    values = {}
    for option in options:
        name, equals, text = option.partition("=")
        try:
            values[name] = json.loads(text)
        except json.JSONDecodeError:
            found = repr(option)
            raise InputError("-p", found, "NAME=JSON, a text in double quotes") from None
        if not equals:
            raise InputError("-p", repr(option), "NAME=JSON")
    return values


def check(
    given: Mapping[str, Any], known: Mapping[str, tuple[str, Any]], notebook: str
) -> dict[str, Any]:
    """The given values, if every one is declared, of its type, finite and no secret."""
    for name, value in given.items():
        where = f"{notebook}, parameter {name}"
        if SECRET.search(name):
            raise InputError(where, "a secret", "it in the environment: parameters are published")
        if name not in known:
            raise InputError(where, "an unknown parameter", f"one of {', '.join(known)}")
        _fits(value, known[name][0], where)
    return dict(given)


def _fits(value: Any, kind: str, where: str) -> None:
    # The type itself: a bool is an int and a NumPy float is a float, but not to Papermill.
    if type(value) not in TYPES[kind]:
        raise InputError(where, repr(value), f"a value of type {kind}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(where, repr(value), "a finite number")
