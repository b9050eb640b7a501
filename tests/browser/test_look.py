"""What a reader sees: nothing cut, nothing below contrast, the answer first, on paper as well."""

import pytest
from axe_playwright_python.sync_playwright import Axe

# A4 less its margins of 14 mm, in CSS pixels.
PAPER = (688, 1016)

SIDEWAYS = "document.documentElement.scrollWidth - window.innerWidth"
FIRST = """() => {
  const answer = document.querySelector("#answer p").getBoundingClientRect();
  const title = document.querySelector("#answer h2").getBoundingClientRect();
  const figure = document.querySelector("figure img").getBoundingClientRect();
  return {question: title.bottom, answer: answer.bottom, figure: figure.top,
          end: figure.bottom, text: document.querySelector("#answer").innerText};
}"""


def test_no_page_scrolls_sideways(tab, pages):
    page = tab()
    over = {}
    for path in pages:
        page.goto(path.as_uri())
        for width in (360, 768, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            over[path.parent.name, path.name, width] = page.evaluate(SIDEWAYS)
    assert {place: pixels for place, pixels in over.items() if pixels > 0} == {}


@pytest.mark.parametrize(
    ("scheme", "options"),
    [("light", {}), ("dark", {"runOnly": ["color-contrast"]})],
    ids=["light, every rule", "dark, contrast"],
)
def test_axe_finds_nothing_serious(tab, pages, scheme, options):
    page = tab(scheme=scheme)
    axe, found = Axe(), []
    for path in pages:
        page.goto(path.as_uri())
        answer = axe.run(page, options=options | {"resultTypes": ["violations"]}).response
        for violation in answer["violations"]:
            if violation["impact"] in ("serious", "critical"):
                where = [node["target"] for node in violation["nodes"][:3]]
                found.append((path.parent.name, path.name, violation["id"], where))
    assert found == []


def test_the_first_screen_holds_question_answer_and_figure(tab, summaries):
    assert len(summaries) == 3
    page = tab(1280, 900)
    for path in summaries:
        page.goto(path.as_uri())
        first = page.evaluate(FIRST)
        assert first["text"].split("\n")[0].endswith("?")
        assert first["question"] < first["answer"] < first["figure"] < 900
        assert first["end"] <= 900


def test_the_first_printed_page_holds_question_and_answer(tab, summaries):
    page = tab(*PAPER)
    for path in summaries:
        page.goto(path.as_uri())
        assert page.pdf(format="A4").startswith(b"%PDF-")
        page.emulate_media(media="print")
        first = page.evaluate(FIRST)
        assert first["question"] < first["answer"] <= PAPER[1]
        assert page.evaluate(SIDEWAYS) <= 0
        page.emulate_media(media="screen")


def test_code_and_citations_open_without_a_script(tab, report):
    page = tab()
    page.goto((report / "index.html").as_uri())
    for summary in page.locator("details > summary").all():
        summary.click()
        assert summary.locator("..").get_attribute("open") is not None
    assert page.evaluate(SIDEWAYS) <= 0
