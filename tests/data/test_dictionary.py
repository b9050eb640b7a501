"""The data dictionary and the checksums say what lies in ``data/``, all of it and nothing else."""

import csv
import hashlib
import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from analysis.paths import DATA
from analysis.records import kv_layout, run, tables
from analysis.records.case import CaseFacts
from analysis.records.hardware import Gpu

CASE = "cases/<case>/case.toml"
MODELS = "models/*.json"
TEXTS = "texts/*"
MANIFEST = "runs/<run>/manifest.json"
PLAN = "runs/<run>/plan.jsonl"
REQUESTS = "runs/<run>/requests.jsonl"
SERVER_LOG = "runs/<run>/server.log"
PREDICTIONS = "kv-layout/<engine>/predictions.json"
READING = "kv-layout/<engine>/servers/<server>.json"
RECORDS: dict[str, type[BaseModel]] = {
    "cases/<case>/sweep.csv": tables.SweepRow,
    "cases/<case>/two_point.csv": tables.TwoPointRow,
    "cases/<case>/claims.csv": tables.ClaimRow,
    "hardware/gpus.csv": Gpu,
    "validation/kimi_k26_sglang_plain.csv": tables.PlainRow,
    "validation/kimi_k2_commit_by_task.csv": tables.AcceptRow,
    "validation/kv_pool_observed.csv": tables.PoolRow,
}
NOT_LISTED = ("README.md", "checksums.sha256")
REWRITE = "write data/checksums.sha256 again with: make checksums"


def under_data(pattern: str = "*") -> list[str]:
    """Paths from ``data/`` of the files that a dictionary must know, as ``sort`` orders them."""
    files = [path for path in DATA.rglob(pattern) if path.is_file()]
    names = [path.relative_to(DATA).as_posix() for path in files if path.name not in NOT_LISTED]
    return sorted(names, key=str.encode)


def sections(page: str) -> dict[str, str]:
    """Text below every second-level heading, by the heading without its code quotes."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return {title.strip("`"): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def rows(text: str, first_title: tuple[str, ...]) -> list[list[str]]:
    """Cells of the tables whose first column has one of these titles."""
    found: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] in first_title:
            inside = True
        elif inside and not set(line) <= set("|-: "):
            found.append(cells)
    return found


def documented(section: str, *first_title: str) -> dict[str, list[str]]:
    """Cells of a dictionary row by each name that its first cell quotes."""
    names: dict[str, list[str]] = {}
    for cells in rows(SECTIONS[section], first_title):
        for name in re.findall(r"`([^`]+)`", cells[0]):
            assert name not in names, f"{section}: {name} is documented twice"
            names[name] = cells
    return names


def section_of(file: str) -> str:
    """The one section that a file belongs to."""
    known = [title for title in SECTIONS if fnmatchcase(file, re.sub("<.+?>", "*", title))]
    assert len(known) == 1, f"data/README.md has {len(known)} sections for {file}, expected one"
    return known[0]


def case_fields(record: type[BaseModel], prefix: str = "") -> dict[str, bool]:
    """Dotted names of a record's fields, and whether each is required in its table."""
    names: dict[str, bool] = {}
    for name, field in record.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        inner = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
        if inner:
            names |= case_fields(inner[0], f"{prefix}{name}.")
        else:
            names[prefix + name] = field.is_required()
    return names


def origin(source: str) -> str:
    """Who is quoted: a repository or model as owner/name, a host, or the case's own account."""
    if re.match(r"claims? S\d\d", source):
        return "the account"
    repository = re.match(r"(?:model card (?:of )?)?([\w.-]+/[\w.-]+)", source)
    host = re.match(r"([\w-]+(?:\.[\w-]+)+) page$", source)
    found = repository or host
    assert found, f"source {source!r} begins with neither owner/name, a page's host nor a claim"
    return found[1]


def read(file: str) -> list[dict[str, str]]:
    with (DATA / file).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


SECTIONS = sections((DATA / "README.md").read_text(encoding="utf-8"))
TABLES = under_data("*.csv")
CONFIGS = [file for file in under_data("*.json") if fnmatchcase(file, MODELS)]


def test_every_file_has_its_checksum_and_every_checksum_its_file() -> None:
    lines = (DATA / "checksums.sha256").read_text(encoding="utf-8").splitlines()
    listed = {line[66:]: line[:64] for line in lines}
    actual = {f: hashlib.sha256((DATA / f).read_bytes()).hexdigest() for f in under_data()}
    wrong = {
        "not listed": sorted(actual.keys() - listed.keys()),
        "listed but gone": sorted(listed.keys() - actual.keys()),
        "changed": sorted(f for f in actual.keys() & listed.keys() if actual[f] != listed[f]),
    }
    assert not any(wrong.values()), f"{wrong}; {REWRITE}"
    assert lines == [f"{sha}  {file}" for file, sha in actual.items()], f"not sorted; {REWRITE}"


def test_every_file_has_a_section_and_every_section_a_file() -> None:
    used = {section_of(file) for file in under_data()}
    of_runs = {MANIFEST, PLAN, REQUESTS, SERVER_LOG, PREDICTIONS, READING}
    assert used == {CASE, MODELS, TEXTS, *of_runs, *RECORDS}
    assert set(SECTIONS) - used == {"Licences and terms", "Checksums"}


@pytest.mark.parametrize("file", TABLES)
def test_every_column_is_documented(file: str) -> None:
    section = section_of(file)
    known = documented(section, "column")
    with (DATA / file).open(newline="", encoding="utf-8") as stream:
        header = next(csv.reader(stream))
    missing = [column for column in header if column not in known]
    assert not missing, f"data/README.md, {section}: nothing about {missing}"


@pytest.mark.parametrize("section", RECORDS)
def test_the_dictionary_has_the_columns_that_the_reader_takes(section: str) -> None:
    assert set(documented(section, "column")) == set(RECORDS[section].model_fields)


@pytest.mark.parametrize("section", RECORDS)
def test_a_column_that_is_never_empty_is_required_and_full(section: str) -> None:
    known = documented(section, "column")
    never = {name for name, cells in known.items() if cells[-1].startswith("never")}
    fields = RECORDS[section].model_fields
    assert never <= {name for name, field in fields.items() if field.is_required()}
    needed = {n for n, f in fields.items() if f.is_required() and f.annotation is not str}
    assert needed <= never, "a number without a default cannot be empty"
    for file in (file for file in TABLES if section_of(file) == section):
        empty = {name for row in read(file) for name, cell in row.items() if not cell}
        assert not empty & never, f"{file} has empty cells in {sorted(empty & never)}"


def test_every_field_of_a_case_is_documented() -> None:
    known = documented(CASE, "field")
    fields = case_fields(CaseFacts)
    assert set(known) == set(fields)
    never = {name for name, cells in known.items() if cells[-1].startswith("never")}
    optional_table = {"speculation.method"}
    assert never == {name for name, required in fields.items() if required} - optional_table


def test_every_field_of_a_run_is_documented() -> None:
    plan, sample = set(run.Planned.model_fields), set(run.Sample.model_fields)
    assert set(documented(MANIFEST, "field")) == set(case_fields(run.Manifest))
    assert set(documented(PLAN, "field")) == plan
    assert set(documented(REQUESTS, "field")) == sample - plan


def test_every_field_of_a_kv_layout_measurement_is_documented() -> None:
    assert set(documented(PREDICTIONS, "field")) == set(case_fields(kv_layout.Predictions))
    assert set(documented(READING, "field")) == set(case_fields(kv_layout.Reading))


@pytest.mark.parametrize("file", CONFIGS)
def test_every_key_of_a_model_is_documented(file: str) -> None:
    content = json.loads((DATA / file).read_text(encoding="utf-8"))
    nested = {f"{part}.{key}" for part in ("seen_at", "not_seen") for key in content.get(part, {})}
    assert content.keys() <= documented(MODELS, "key").keys()
    text = SECTIONS[MODELS]
    assert not [key for key in nested if f"`{key}`" not in text]
    assert content["facts"].keys() <= documented(MODELS, "key of `facts`").keys()
    derived = content.get("derived_by_us", {}).keys()
    assert derived <= documented(MODELS, "key of `derived_by_us`").keys()


def test_no_documented_key_of_a_model_is_left_without_a_model() -> None:
    contents = [json.loads((DATA / file).read_text(encoding="utf-8")) for file in CONFIGS]
    for part in ("facts", "derived_by_us"):
        used = {key for content in contents for key in content.get(part, {})}
        assert documented(MODELS, f"key of `{part}`").keys() == used


@pytest.mark.parametrize(
    "section", [CASE, MODELS, MANIFEST, PLAN, REQUESTS, PREDICTIONS, READING, *RECORDS]
)
def test_a_dictionary_row_leaves_only_the_unit_blank(section: str) -> None:
    text = SECTIONS[section]
    for cells in rows(text, ("column", "field", "key", "key of `facts`")):
        assert len(cells) == 5, f"{section}: {cells}"
        blank = [number for number, cell in enumerate(cells) if not cell]
        assert blank in ([], [2]), f"{section}: {cells}"


def test_every_source_that_the_data_names_is_in_the_licences_table() -> None:
    listed = rows(SECTIONS["Licences and terms"], ("source",))
    assert all(len(cells) == 3 and all(cells) for cells in listed)
    names = {re.sub(" of the first case$", "", cells[0].strip("`")) for cells in listed}
    named = {origin(row["source"]) for file in TABLES for row in read(file) if "source" in row}
    for file in CONFIGS:
        seen = json.loads((DATA / file).read_text(encoding="utf-8"))["seen_at"]
        named.add(origin(seen.get("repo") or seen["note"]))
    assert named - names == set(), "without a row in data/README.md, Licences and terms"
    assert names - named == set(), "in data/README.md, Licences and terms, but quoted nowhere"


def test_the_licences_named_by_the_dictionary_and_the_build_are_there() -> None:
    root: Path = DATA.parent
    assert 'license-files = ["LICENSE"]' in (root / "pyproject.toml").read_text(encoding="utf-8")
    assert (root / "LICENSE").read_text(encoding="utf-8").startswith("MIT License\n")
    terms = (root / "LICENSE-CC-BY-4.0.txt").read_text(encoding="utf-8")
    assert "https://creativecommons.org/licenses/by/4.0/legalcode" in terms
    assert "LICENSE-CC-BY-4.0.txt" in SECTIONS["Licences and terms"]
