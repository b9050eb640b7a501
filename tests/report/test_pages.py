"""The pages: nothing from outside, nothing that runs, every figure described, no dead link."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.conftest import chapters

from analysis.report.figure import MIME

EMPTY = {"br", "col", "hr", "img", "input", "link", "meta", "wbr"}


class Page(HTMLParser):
    """All elements of a page with their attributes, and the text of each."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[list[str]] = []
        self.feed(path.read_text())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        text: list[str] = []
        self.elements.append((tag, dict(attrs), text))
        if tag not in EMPTY:
            self._open.append(text)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        for text in self._open:
            text.append(data)

    def of(self, tag: str) -> list[tuple[dict[str, Any], str]]:
        return [(attrs, "".join(text)) for name, attrs, text in self.elements if name == tag]


@pytest.fixture(scope="module")
def pages(built) -> list[Page]:
    found = [Page(path) for path in sorted((built.root / "build/report").rglob("*.html"))]
    assert len(found) == sum(map(len, chapters().values())) > 20
    return found


def test_nothing_in_a_page_runs(pages: list[Page]) -> None:
    for page in pages:
        tags = {tag for tag, _, _ in page.elements}
        assert not tags & {"script", "iframe", "object", "embed", "base"}, page.path
        handlers = [name for _, attrs, _ in page.elements for name in attrs if name[:2] == "on"]
        assert handlers == []


def test_nothing_in_a_page_comes_from_outside(pages: list[Page], built) -> None:
    style = (built.root / "build/report/style.css").read_text()
    assert "url(" not in style
    assert "@import" not in style
    for page in pages:
        for tag, attrs, _ in page.elements:
            for name, value in attrs.items():
                if name == "xmlns":
                    continue
                assert not (value or "").startswith("//"), (page.path, tag, name)
                assert "://" not in (value or ""), (page.path, tag, name)


def test_every_link_of_a_page_leads_to_a_file_and_a_place_in_it(pages: list[Page]) -> None:
    places = {page.path.resolve(): {a.get("id") for _, a, _ in page.elements} for page in pages}
    checked = 0
    for page in pages:
        for _, attrs, _ in page.elements:
            for name in ("href", "src"):
                if name not in attrs:
                    continue
                link = urlsplit(attrs[name] or "")
                target = (page.path.parent / link.path).resolve() if link.path else page.path
                assert target.is_file(), (page.path, attrs[name])
                if link.fragment:
                    assert link.fragment in places[target.resolve()], (page.path, attrs[name])
                checked += 1
    assert checked > 300


def test_every_figure_in_a_page_has_the_alt_text_that_its_notebook_gives(
    pages: list[Page], built
) -> None:
    described = 0
    for page in pages:
        first = page.path.name == "index.html"
        case = "kimi-k26-sglang" if first else page.path.parent.name
        chapter = "00-summary" if first else page.path.stem
        notebook = built.root / "build/report/notebooks" / case / f"{chapter}.ipynb"
        records = [
            output["data"][MIME]
            for cell in json.loads(notebook.read_text())["cells"]
            for output in cell.get("outputs", [])
            if MIME in output.get("data", {})
        ]
        images = [(attrs["src"].split("figures/")[1], attrs["alt"]) for attrs, _ in page.of("img")]
        assert images == [(f"{record['id']}.svg", record["alt"]) for record in records]
        assert all(len(record["alt"]) > 40 for record in records)
        described += len(images)
    assert described == len(list((built.root / "figures").glob("*/*.json"))) > 25


def test_no_heading_of_a_table_in_a_page_is_empty(pages: list[Page]) -> None:
    headings = [(page.path, text.strip()) for page in pages for _, text in page.of("th")]
    assert len(headings) > 100
    assert [path for path, text in headings if not text] == []


def test_equations_are_mathml(pages: list[Page]) -> None:
    equations = [text for page in pages for _, text in page.of("math")]
    assert len(equations) > 20
    for page in pages:
        paragraphs = [text for tag in ("p", "td", "li") for _, text in page.of(tag)]
        assert not [text for text in paragraphs if "$" in text or "\\frac" in text], page.path


def test_every_page_names_the_inputs_that_it_was_made_from(pages: list[Page]) -> None:
    for page in pages:
        case = "kimi-k26-sglang" if page.path.name == "index.html" else page.path.parent.name
        listed = [text for _, text in page.of("code")]
        assert f"data/cases/{case}/case.toml" in listed
        assert not [text for text in listed if text.startswith("/")]
