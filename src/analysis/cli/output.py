"""Printing: JSON with nine significant digits, or aligned lines for people."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import click

from analysis.rounding import rounded

json_option = click.option("--json", "as_json", is_flag=True, help="print one JSON object")


def show(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result as one JSON object, or as ``name  value`` lines."""
    clean = rounded(dict(result))
    if as_json:
        click.echo(json.dumps(clean, indent=2, allow_nan=False))
        return
    width = max(len(name) for name in _flat(clean))
    for name, value in _flat(clean).items():
        click.echo(f"{name:<{width}}  {_readable(value)}")


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _readable(value: Any) -> str:
    forms: dict[type, Callable[[Any], str]] = {
        type(None): lambda v: "undefined",
        bool: lambda v: "yes" if v else "no",
        int: lambda v: f"{v:,}",
        float: lambda v: f"{v:,.6g}" if abs(v) < 1e6 else f"{v:,.0f}",
        list: lambda v: (
            " to ".join(_readable(x) for x in v)
            if _is_interval(v)
            else "; ".join(_readable(x) for x in v)
        ),
    }
    return forms.get(type(value), str)(value)


def _is_interval(value: list[Any]) -> bool:
    return len(value) == 2 and all(isinstance(x, int | float) for x in value)
