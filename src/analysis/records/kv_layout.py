"""A KV layout measurement: the pools that servers of one engine printed, predicted first.

A folder with ``predictions.json``, written before the first server was started, and a file for each
server that was read, ``servers/<server>.json``: how it was started, and the lines of its log and
of its ``/metrics`` page that tell of its pool, as they stood (``logs.redact`` took out whose
machine it was). Every reading holds the digest of the predictions as they were when its server
started, so a prediction that was changed later is refused.

Format history: 1, the first.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, PositiveFloat, PositiveInt

from analysis import paths
from analysis.errors import InputError
from analysis.records.checked import Record, check
from analysis.records.inputs import digest, read_bytes
from analysis.records.run import Host

FORMAT = 1
PREDICTIONS = "predictions.json"

EngineName = Literal["vLLM", "SGLang"]


class Prediction(Record):
    """What one server is to print. ``model`` names a config in ``engines/tiny-configs``.

    vLLM is given bytes for the pool of each rank and SGLang tokens: one of ``given_bytes`` and
    ``given_tokens`` is set. ``page_tokens`` is vLLM's block or SGLang's page. ``bytes_per_token``
    and ``rank_bytes``, the size of the pool, are of one rank.
    """

    server: str
    model: str
    config_sha256: str
    attention: str
    tp: PositiveInt
    kv_dtype: str
    page_tokens: PositiveInt
    given_bytes: PositiveInt | None = None
    given_tokens: PositiveInt | None = None
    bytes_per_token: PositiveFloat
    tokens: PositiveInt
    rank_bytes: PositiveFloat


class Predictions(Record):
    """All servers of a measurement, in the order in which they are started."""

    format: int
    engine: EngineName
    version: str
    rule: str
    host: Host
    written_utc: AwareDatetime
    servers: tuple[Prediction, ...]


class Reading(Record):
    """What one server printed. ``flags`` are without model, host and port."""

    server: str
    flags: tuple[str, ...]
    variables: Mapping[str, str]
    predictions_sha256: str
    started_utc: AwareDatetime
    read_utc: AwareDatetime
    log: tuple[str, ...]
    metrics: tuple[str, ...]


class KvLayout:
    """A folder of one engine, read and checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / PREDICTIONS
        content = read_bytes(path)
        self.sha256 = digest(content)
        values = _object(content, path)
        if values.get("format") != FORMAT:
            place = f"{paths.relative(path)}, format"
            raise InputError(place, repr(values.get("format")), str(FORMAT))
        self.predictions = check(Predictions, values, path)
        self.readings: dict[str, Reading] = {}
        for predicted in self.predictions.servers:
            file = reading_file(folder, predicted.server)
            if file.exists():
                self.readings[predicted.server] = self._reading(predicted, file)

    @property
    def left(self) -> list[Prediction]:
        """The servers that were not read yet."""
        return [one for one in self.predictions.servers if one.server not in self.readings]

    def _reading(self, predicted: Prediction, path: Path) -> Reading:
        reading = check(Reading, _object(read_bytes(path), path), path)
        where = paths.relative(path)
        if reading.server != predicted.server:
            raise InputError(f"{where}, server", repr(reading.server), repr(predicted.server))
        if reading.predictions_sha256 != self.sha256:
            found = f"{PREDICTIONS} with other content than when this server started"
            expected = f"SHA-256 {reading.predictions_sha256[:12]}...: a prediction is not edited"
            raise InputError(f"{where}, predictions_sha256", found, expected)
        if reading.started_utc < self.predictions.written_utc:
            found = "a start before the predictions were written"
            raise InputError(f"{where}, started_utc", found, "a later one")
        return reading


def reading_file(folder: Path, server: str) -> Path:
    """Where the reading of a server stands."""
    return folder / "servers" / f"{server}.json"


def is_kv_layout(path: Path) -> bool:
    """Whether ``path`` is a folder of one engine."""
    return (path / PREDICTIONS).is_file()


def load_kv_layouts(path: Path) -> list[KvLayout]:
    """The measurement in a folder, or those in the folders in it, by name.

    Raises ``InputError`` where there is none, or where a file is not what was written.
    """
    if is_kv_layout(path):
        return [KvLayout(path)]
    inner = sorted(one.parent for one in path.glob(f"*/{PREDICTIONS}"))
    if not inner:
        expected = f"a folder with a {PREDICTIONS}, as `analysis measure kv-layout` writes it"
        raise InputError("kv-layout", repr(str(path.name)), expected)
    return [KvLayout(folder) for folder in inner]


def _object(content: bytes, path: Path) -> dict[str, Any]:
    try:
        values = json.loads(content)
    except ValueError as error:
        raise InputError(paths.relative(path), str(error), "JSON") from None
    if not isinstance(values, dict):
        raise InputError(paths.relative(path), f"a JSON {type(values).__name__}", "an object")
    return values
