"""What every page holds: it loads alone, its links resolve, its figures and equations are whole."""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from tests.conftest import chapters

MEGABYTE = 10**6
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+?\$", re.DOTALL)
TEX = re.compile(r"\$|\\[A-Za-z]+")

FACTS = """() => {
  const text = document.body.cloneNode(true);
  text.querySelectorAll("details, pre").forEach(part => part.remove());
  return {
    ids: [...document.querySelectorAll("[id]")].map(part => part.id),
    links: [...document.querySelectorAll("a[href], link[href]")].map(part => part.href),
    scripts: document.scripts.length,
    images: [...document.images].map(image => ({
      source: image.src, width: image.naturalWidth, alt: image.alt.trim(),
      framed: image.closest("figure[id^='figure-']") !== null,
    })),
    figures: [...document.querySelectorAll("figure")].map(figure => ({
      id: figure.id, links: [...figure.querySelectorAll("a")].map(a => a.href),
    })),
    formulas: [...document.querySelectorAll("math")].map(math => math.textContent),
    broken: document.querySelectorAll("merror").length,
    text: text.textContent,
  };
}"""


@pytest.fixture(scope="module")
def facts(browser, pages, report) -> dict[str, dict]:
    """Every page opened once: what it holds, what it asked for and what it complained of."""
    found = {}
    context = browser.new_context(offline=True)
    for path in pages:
        page = context.new_page()
        asked, faults = [], []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.on("requestfailed", lambda request, faults=faults: faults.append(request.url))
        page.on("pageerror", lambda error, faults=faults: faults.append(str(error)))
        page.on(
            "console",
            lambda said, faults=faults: (
                faults.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        page.goto(path.as_uri(), wait_until="load")
        name = path.relative_to(report).as_posix()
        found[name] = page.evaluate(FACTS) | {"asked": asked, "faults": faults}
        page.close()
    context.close()
    return found


def test_all_chapters_of_all_cases_are_built(pages):
    names = [path.parent.name for path in pages]
    expected = chapters()
    assert len(expected) == 3
    assert len(pages) == sum(map(len, expected.values()))
    expected["kimi-k26-sglang"].remove("00-summary")  # it is index.html
    assert {case: names.count(case) for case in expected} == {
        case: len(found) for case, found in expected.items()
    }


def test_no_page_reports_an_error_or_a_failed_request(facts):
    assert {name: page["faults"] for name, page in facts.items() if page["faults"]} == {}


def test_every_resource_is_a_local_file(facts):
    asked = {url for page in facts.values() for url in page["asked"]}
    assert {url for url in asked if not url.startswith("file://")} == set()


def test_pages_have_no_script_and_stay_small(facts, pages):
    assert {name for name, page in facts.items() if page["scripts"]} == set()
    assert {path.name for path in pages if path.stat().st_size > 5 * MEGABYTE} == set()


def test_ids_are_unique_on_each_page(facts):
    for name, page in facts.items():
        ids = page["ids"]
        assert sorted(ids) == sorted(set(ids)), name


def test_every_internal_link_and_anchor_resolves(facts, report):
    missing = []
    for name, page in facts.items():
        for link in page["links"]:
            url = urlparse(link)
            if url.scheme != "file":
                continue
            target = Path(unquote(url.path))
            assert target.is_relative_to(report), f"{name} links outside the report: {link}"
            ids = facts.get(target.relative_to(report).as_posix(), {}).get("ids", [])
            if not target.is_file() or (url.fragment and unquote(url.fragment) not in ids):
                missing.append((name, link))
    assert missing == []


def test_every_image_loads_has_words_for_it_and_stands_in_a_figure(facts):
    for name, page in facts.items():
        for image in page["images"]:
            assert image["width"] > 0, (name, image["source"])
            assert len(image["alt"]) > 40, (name, image["source"])
            assert image["framed"], (name, image["source"])


def test_every_figure_is_shown_once_and_links_its_data_pictures_and_sidecar(facts, report):
    shown = []
    for name, page in facts.items():
        for figure in page["figures"]:
            links = figure["links"]
            anchor = [link for link in links if link.endswith(f"#{figure['id']}")]
            assert figure["id"].startswith("figure-"), name
            assert len(anchor) == 1, (name, figure["id"])
            files = [Path(unquote(urlparse(link).path)) for link in links if link not in anchor]
            assert [file.suffix for file in files] == [".csv", ".svg", ".png", ".json"]
            assert all(file.stat().st_size > 0 for file in files), (name, figure["id"])
            sidecar = json.loads(files[3].read_text())
            assert figure["id"] == f"figure-{sidecar['id'].split('/')[1]}"
            shown.append(sidecar["id"])
    saved = [
        path.relative_to(report / "figures").with_suffix("").as_posix()
        for path in (report / "figures").glob("*/*.svg")
    ]
    assert sorted(shown) == sorted(saved)
    assert len(saved) >= 10


def test_every_formula_is_mathml_and_no_tex_is_left(facts, report):
    total = 0
    for name, page in facts.items():
        assert page["broken"] == 0, name
        assert TEX.findall(page["text"]) == [], name
        for formula in page["formulas"]:
            assert formula.strip(), name
            assert not re.search(r"[&$\\]", formula), (name, formula)
        case = "kimi-k26-sglang" if name == "index.html" else Path(name).parent.name
        chapter = "00-summary" if name == "index.html" else Path(name).stem
        notebook = json.loads((report / "notebooks" / case / f"{chapter}.ipynb").read_text())
        sources = [
            "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"
        ] + [
            "".join(output.get("data", {}).get("text/markdown", ""))
            for cell in notebook["cells"]
            for output in cell.get("outputs", [])
        ]
        written = sum(len(FORMULA.findall(source)) for source in sources)
        assert len(page["formulas"]) == written, name
        total += written
    assert total > 10
