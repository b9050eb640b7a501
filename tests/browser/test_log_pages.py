"""Pages of commands that read logs, as a reader opens them: offline, on a laptop, on a phone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.report.invented_diagnosis import invented, invented_windows

from analysis.findings.break_even import BreakEven, of_numbers, of_sides
from analysis.findings.comparison import compare
from analysis.findings.sides import of_windows
from analysis.records.seen import Seen
from analysis.report.page import breakeven_page, compare_page, diagnose_page

RANKS = [f"DP{rank} TP{rank}" for rank in range(8)]
LONG = "x" * 300 + " " + "word-" * 80

SIDEWAYS = "document.documentElement.scrollWidth - window.innerWidth"
FIRST = """() => {
  const end = part => document.querySelector(part).getBoundingClientRect().bottom;
  return {question: end("h1"), verdict: end(".answer"),
          figure: document.querySelector("figure img")?.getBoundingClientRect().bottom ?? 0};
}"""
IMAGES = """[...document.images].map(image => ({
  width: image.naturalWidth, height: image.getBoundingClientRect().height,
  alt: image.alt.trim(), inside: image.getBoundingClientRect().right <= window.innerWidth,
}))"""


def _diagnoses() -> dict[str, object]:
    seen = Seen(lines=900, unparsed=400, malformed=1, examples=[LONG], malformed_examples=[LONG])
    return {
        "diagnose": invented(invented_windows(60), seen=seen),
        "diagnose-one-window": invented(invented_windows(1, flagged=0)),
        "diagnose-all-flagged": invented(invented_windows(12, flagged=1.1)),
        "diagnose-ranks": invented(
            invented_windows(80, sources=RANKS, running=8), invented_windows(30, file="b.log")
        ),
        "diagnose-bins": invented(invented_windows(10_000), binned=True),
        "diagnose-nothing": invented(),
    }


@pytest.fixture(scope="module")
def log_pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("log pages")
    for name, diagnosis in _diagnoses().items():
        diagnose_page.write(diagnosis, folder / f"{name}.html")
    for name, step in (("compare", 1.3), ("compare-same", 1.0)):
        compare_page.write(_comparison(step), folder / f"{name}.html")
    breakeven_page.write(of_numbers(20.0, 34.0, 2.5, 4), folder / "breakeven.html")
    breakeven_page.write(_break_even(), folder / "breakeven-contexts.html")
    return sorted(folder.glob("*.html"))


def _comparison(step: float):
    after = invented_windows(50)
    after.step_ms[:] *= step
    after.tok_per_s[:] /= step
    return compare(
        of_windows("before.log", [invented_windows(60)]), of_windows("after.log", [after])
    )


def _break_even():
    plain = of_windows("plain.log", [invented_windows(40)])
    plain = replace(plain, commit=np.ones(len(plain)), step_ms=plain.step_ms / 2)
    spec = of_windows("spec.log", [invented_windows(50)])
    contexts = [spec.rows(np.arange(len(spec)) % 3 == k) for k in range(3)]
    found = [of_sides(plain, part, block=8).rows[0] for part in contexts]
    series = ("a drafter with a rather long name, on code and prose", "ngram", "")
    rows = tuple(
        replace(row, label=name, context_tokens=1024.0 * 4**place)
        for name in series
        for place, row in enumerate(found)
    )
    return BreakEven(rows, plain, spec)


def test_a_page_opens_offline_without_a_fault_or_a_request(tab, log_pages):
    page = tab()
    asked, faults = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfailed", lambda request: faults.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type != "log" else None)
    for path in log_pages:
        page.goto(path.as_uri(), wait_until="load")
    assert faults == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == len(log_pages)


def test_the_verdict_and_the_split_stand_in_the_first_screen(tab, log_pages):
    page = tab(1280, 800)
    for path in log_pages:
        page.goto(path.as_uri())
        first = page.evaluate(FIRST)
        assert 0 < first["question"] < first["verdict"] < 400, path.name
        assert first["figure"] <= 800, path.name


def test_a_phone_never_scrolls_sideways_and_shows_whole_pictures(tab, log_pages):
    page = tab(390, 844)
    for path in log_pages:
        page.goto(path.as_uri())
        assert page.evaluate(SIDEWAYS) <= 0, path.name
        assert page.evaluate(FIRST)["verdict"] < 844, path.name
        assert all(image["inside"] for image in page.evaluate(IMAGES)), path.name


def test_every_picture_is_drawn_and_has_words_for_it(tab, log_pages):
    page = tab()
    for path in log_pages:
        page.goto(path.as_uri())
        images = page.evaluate(IMAGES)
        assert len(images) > 0 or "nothing" in path.name
        for image in images:
            assert image["width"] > 0
            assert image["height"] > 50
            assert len(image["alt"]) > 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(tab, log_pages, scheme):
    axe, found = Axe(), []
    for width in (1280, 390):
        page = tab(width, scheme=scheme)
        for path in log_pages:
            page.goto(path.as_uri())
            answer = axe.run(page, options={"resultTypes": ["violations"]}).response
            for violation in answer["violations"]:
                where = [node["target"] for node in violation["nodes"][:3]]
                found.append((path.name, violation["id"], violation["impact"], where))
    assert found == []


def test_one_click_marks_the_paragraph_to_paste(tab, log_pages):
    page = tab()
    page.goto(log_pages[0].as_uri())
    page.locator("#paste-text").click()
    marked = page.evaluate("window.getSelection().toString()")
    assert marked.strip() == page.locator("#paste-text").inner_text().strip()
    assert "**" in marked


def test_a_page_prints(tab, log_pages):
    page = tab(688, 1016)
    page.goto(log_pages[0].as_uri())
    assert page.pdf(format="A4").startswith(b"%PDF-")
    page.emulate_media(media="print")
    assert page.evaluate(SIDEWAYS) <= 0
