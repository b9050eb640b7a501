"""Every claim of the account stands in the ledger, with a verdict and the cell that decides it."""

from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from analysis.findings.ledger import WORDS

CLAIMS = [f"S{number:02d}" for number in range(1, 43)]

ROWS = """selector => [...document.querySelectorAll(selector + " tbody tr")].map(row => ({
  id: row.cells[0].id, name: row.cells[0].innerText.trim(),
  verdict: row.querySelector(".verdict").innerText.trim(),
  kind: row.querySelector(".verdict").className,
  values: [...row.cells].map(cell => cell.innerText.trim()),
  link: row.querySelector("td:last-child a").href,
}))"""


@pytest.fixture(scope="module")
def rows(browser, report):
    page = browser.new_page()
    page.goto((report / "index.html").as_uri())
    found = {name: page.evaluate(ROWS, f"#{name}") for name in ("ledger", "leading")}
    page.close()
    return found


def test_every_claim_has_a_row_a_verdict_word_and_evidence(rows):
    assert [row["name"] for row in rows["ledger"]] == CLAIMS
    assert [row["id"] for row in rows["ledger"]] == [f"claim-{claim}" for claim in CLAIMS]
    for row in rows["ledger"]:
        assert row["verdict"] in WORDS, row["name"]
        assert row["kind"] == f"verdict {row['verdict'].replace(' ', '-')}"
        assert all(row["values"]), row["name"]


def test_every_verdict_links_the_cell_that_decides_it(rows, browser, report):
    ids: dict[Path, list[str]] = {}
    page = browser.new_page()
    for row in (*rows["ledger"], *rows["leading"]):
        url = urlparse(row["link"])
        path = Path(unquote(url.path))
        if path not in ids:
            page.goto(path.as_uri())
            ids[path] = page.evaluate("[...document.querySelectorAll('.cell')].map(c => c.id)")
        assert url.fragment in ids[path], (row["name"], row["link"])
    page.close()


def test_the_summary_leads_with_three_claims_as_the_ledger_has_them(rows):
    ledger = {row["name"]: row for row in rows["ledger"]}
    assert len(rows["leading"]) == 3
    for row in rows["leading"]:
        assert row["values"] == ledger[row["name"]]["values"]


def test_a_laptop_shows_the_whole_ledger_at_once(tab, report):
    page = tab(1280)
    page.goto((report / "index.html").as_uri())
    for cell in ("ledger", "leading"):
        wide, room = page.evaluate(
            "s => { const t = document.querySelector(s + ' .table');"
            " return [t.scrollWidth, t.clientWidth]; }",
            f"#{cell}",
        )
        assert wide <= room, cell


def test_a_phone_stacks_the_ledger_and_hides_nothing_but_dashes(tab, report):
    page = tab(360, 740)
    page.goto((report / "index.html").as_uri())
    cells = page.evaluate(
        "[...document.querySelectorAll('#ledger td')].map(c => ({text: c.innerText.trim(),"
        " shown: c.getClientRects().length > 0, right: c.getBoundingClientRect().right}))"
    )
    assert len(cells) == 7 * len(CLAIMS)
    assert {cell["text"] for cell in cells if not cell["shown"]} <= {"–"}
    assert max(cell["right"] for cell in cells) <= 360
