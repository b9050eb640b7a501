"""One headless Chromium, without a network, on the report as it was last built."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

TESTS = Path(__file__).parents[1]
REPORT = TESTS.parent / "build" / "report"

Opener = Callable[..., Page]


@pytest.fixture(scope="session")
def report() -> Path:
    if not (REPORT / "index.html").exists():
        pytest.fail("build/report/index.html is not built: run 'make report' first", pytrace=False)
    return REPORT


@pytest.fixture(scope="session")
def pages(report: Path) -> list[Path]:
    return [report / "index.html", *sorted(report.glob("*/[0-9]*.html"))]


@pytest.fixture(scope="session")
def summaries(pages: list[Path]) -> list[Path]:
    return [page for page in pages if page.stem in ("index", "00-summary")]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = _chromium().find()
    if found is None:
        pytest.fail("no Chromium found: run 'python tests/chromium.py'", pytrace=False)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Opener]:
    """Make a tab of a given width and colour scheme, with networking off."""
    contexts = []

    def opener(width: int = 1280, height: int = 900, scheme: str = "light") -> Page:
        context = browser.new_context(
            offline=True,
            viewport={"width": width, "height": height},
            color_scheme=scheme,
        )
        contexts.append(context)
        return context.new_page()

    yield opener
    for context in contexts:
        context.close()


def _chromium() -> ModuleType:
    spec = importlib.util.spec_from_file_location("chromium", TESTS / "chromium.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
