"""Where things are. No other module joins a folder name to the project root."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
DATA = ROOT / "data"
CASES = DATA / "cases"
RUNS = DATA / "runs"
KV_LAYOUTS = DATA / "kv-layout"
TEXTS = DATA / "texts"
MODELS = DATA / "models"
HARDWARE = DATA / "hardware" / "gpus.csv"
VALIDATION = DATA / "validation"
ENGINES = ROOT / "engines"
ENGINE_ENVIRONMENTS = ROOT / ".engines"
NOTEBOOKS = ROOT / "notebooks"
FIGURES = ROOT / "figures"
LOCK = ROOT / "requirements" / "report.lock"
BUILD = ROOT / "build"
MEASURED = ROOT / "runs"
SITE = BUILD / "report"
STATE = BUILD / "state"

FIRST_CASE = "kimi-k26-sglang"

STAGE_VARIABLE = "ANALYSIS_STAGE"


def stage() -> Path | None:
    """The folder in which the runner collects what a notebook makes; ``None`` by hand."""
    value = os.environ.get(STAGE_VARIABLE)
    return Path(value) if value else None


def relative(path: Path) -> str:
    """``path`` as the report names it: from the project root, or its name if it lies outside."""
    resolved = path.resolve()
    try:
        return resolved.relative_to(ROOT).as_posix()
    except ValueError:
        return f"{resolved.parent.name}/{resolved.name}"
