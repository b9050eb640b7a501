"""From outside data to typed records, with errors that name file, place, found and expected."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from analysis import paths
from analysis.errors import InputError

R = TypeVar("R", bound="Record")


class Record(BaseModel):
    """An immutable record; unknown fields and non-finite numbers are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def check(model: type[R], values: Mapping[str, Any], path: Path, place: str = "") -> R:
    """Build ``model`` from ``values`` that were read at ``place`` of ``path``."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "record"
        where = f"{paths.relative(path)}{place}, {field}"
        if first["type"] == "missing":
            raise InputError(where, "nothing", "a value") from None
        if first["type"] == "extra_forbidden":
            known = ", ".join(_fields_beside(model, first["loc"]))
            raise InputError(where, "an unknown field", f"one of {known}") from None
        expected = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
        expected = expected.split(", unable to parse")[0]
        raise InputError(where, repr(first["input"])[:80], expected) from None


def _fields_beside(model: type[Record], loc: tuple[int | str, ...]) -> list[str]:
    """Names of the fields that are known where the last part of ``loc`` was found."""
    for part in loc[:-1]:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            inner = [t for t in (annotation, *get_args(annotation)) if isinstance(t, type)]
            model = next(t for t in inner if issubclass(t, Record))
    return list(model.model_fields)
