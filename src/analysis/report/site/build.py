"""Build the folder of pages; in one step, so that the last good report stays until the new is."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import nbformat
from markupsafe import Markup
from nbconvert import HTMLExporter

from analysis.errors import InputError
from analysis.report import cite
from analysis.report.figure import MIME
from analysis.report.site.maths import to_html

HERE = Path(__file__).parent
CHAPTER_LINK = re.compile(r'href="(\d\d-[a-z-]+)\.ipynb(#[a-z-]+)?"')


@dataclass(frozen=True)
class Page:
    """One executed notebook to render, and what it was made from."""

    case: str
    case_title: str
    notebook: Path
    inputs: Mapping[str, str]

    @property
    def chapter(self) -> str:
        """The notebook's name without ending."""
        return self.notebook.stem


def build(pages: Sequence[Page], figures: Path, folder: Path) -> None:
    """Render all pages into ``folder``; the first page is ``index.html``."""
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    shutil.copytree(figures, partial / "figures", ignore=shutil.ignore_patterns("values.json"))
    shutil.copy(figures / "values.json", partial / "values.json")
    shutil.copy(HERE / "style.css", partial / "style.css")
    exporter = _exporter()
    for page in pages:
        html = _render(page, pages, exporter)
        target = partial / address(page, pages)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html)
        copy = partial / "notebooks" / page.case / page.notebook.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page.notebook, copy)
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def address(page: Page, pages: Sequence[Page]) -> str:
    """Where a page stands in the folder."""
    return "index.html" if page == pages[0] else f"{page.case}/{page.chapter}.html"


def _exporter() -> HTMLExporter:
    exporter = HTMLExporter(
        template_name="template", extra_template_basedirs=[str(HERE)], exclude_anchor_links=True
    )
    exporter.register_filter("markdown2html", to_html)
    exporter.register_filter("cite", lambda f: cite.snippets(f, f"figures/{f['id']}.svg"))
    return exporter


def _render(page: Page, pages: Sequence[Page], exporter: HTMLExporter) -> str:
    root = "" if page == pages[0] else "../"
    notebook = nbformat.read(page.notebook, as_version=4)
    body, _ = exporter.from_notebook_node(notebook, resources={"root": root, "figure_mime": MIME})
    mine = [other for other in pages if other.case == page.case]
    links = [_link(other, page, pages, root) for other in mine]
    here = mine.index(page)

    def chapter_link(match: re.Match[str]) -> str:
        wanted = next((other for other in mine if other.chapter == match[1]), None)
        if wanted is None:
            raise InputError(f"{page.chapter}, a link", match[1], f"a chapter of {page.case}")
        return f'href="{root}{address(wanted, pages)}{match[2] or ""}"'

    first = {other.case: other for other in reversed(pages)}
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("page.html.j2").render(
        title=_title(notebook),
        site_title=cite.TITLE,
        description=f"{_title(notebook)} {page.case_title}",
        case=page.case,
        case_title=page.case_title,
        chapter=page.chapter,
        root=root,
        cases=[
            {
                "title": other.case_title,
                "href": root + address(other, pages),
                "here": other.case == page.case,
            }
            for other in sorted(first.values(), key=pages.index)
        ],
        chapters=links,
        before=links[here - 1] if here else None,
        after=links[here + 1] if here + 1 < len(links) else None,
        inputs=sorted(page.inputs.items()),
        body=Markup(CHAPTER_LINK.sub(chapter_link, body)),
    )


def _link(other: Page, page: Page, pages: Sequence[Page], root: str) -> dict[str, Any]:
    title = _title(json.loads(other.notebook.read_text()))
    return {
        "title": title.split(":")[0],
        "href": root + address(other, pages),
        "here": other == page,
    }


def _title(notebook: Mapping[str, Any]) -> str:
    source = notebook["cells"][0]["source"]
    text = source if isinstance(source, str) else "".join(source)
    return text.splitlines()[0].removeprefix("# ")
