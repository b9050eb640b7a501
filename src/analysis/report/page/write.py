"""A page as one file: text, style and pictures in it, nothing asked from anywhere."""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import jinja2
import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from analysis.errors import InputError
from analysis.logs import redact as redaction
from analysis.records.windows import Windows
from analysis.report.style import RC

HERE = Path(__file__).parent
STYLE = HERE.parent / "site" / "style.css"


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, what it shows for those who do not see it, and what follows from it."""

    id: str
    svg: bytes
    alt: str
    caption: str

    @property
    def source(self) -> str:
        """A ``data:`` address: ids inside the picture cannot meet those of another."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg).decode()}"


@dataclass(frozen=True)
class Table:
    """A table of texts; the first column names the row."""

    id: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Examples:
    """Lines of a log that were passed over, and in what words."""

    text: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """What a page says, in its order."""

    command: str
    title: str
    verdict: str
    details: tuple[str, ...]
    lead: Picture | None
    numbers: tuple[Table, ...]
    scope: str
    pictures: tuple[Picture, ...]
    flags: tuple[Table, ...]
    flags_text: str
    passed_over: tuple[Examples, ...]
    paste: str
    made_from: tuple[str, ...]
    redacted: bool = False


def drawn(draw: Callable[[], Figure]) -> bytes:
    """The figure that ``draw`` makes, in the report's style, as SVG bytes without a date."""
    with mpl.rc_context(RC):
        out = io.BytesIO()
        draw().savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def write_page(page: Page, out: Path) -> None:
    """Write the page to ``out``, whole or not at all.

    Raises ``InputError`` where the folder of ``out`` does not exist or it cannot be written.
    """
    if not out.parent.is_dir():
        expected = f"an existing folder to write {out.name} to"
        raise InputError(str(out.parent), "no such folder", expected)
    html = render(page)
    partial = out.with_name(out.name + ".partial")
    try:
        partial.write_text(html, encoding="utf-8")
        partial.replace(out)
    except OSError as error:
        partial.unlink(missing_ok=True)
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(str(out), reason, "a file that can be written") from None


def render(page: Page) -> str:
    """The page as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = Markup(STYLE.read_text(encoding="utf-8"))
    return environment.get_template("page.html.j2").render(page=page, style=style)


def unnamed(batches: Sequence[Windows]) -> tuple[Windows, ...]:
    """The same windows, with files named without their folders and hosts, for the pictures."""
    return tuple(
        replace(
            batch,
            file=_sentence(PurePath(batch.file).name),
            sources=tuple(map(_sentence, batch.sources)),
        )
        for batch in batches
    )


def redacted(page: Page) -> Page:
    """The same page, with what a log says of hosts, people, paths and prompts taken out."""
    clean = _sentence
    return replace(
        page,
        title=clean(page.title),
        verdict=clean(page.verdict),
        details=tuple(map(clean, page.details)),
        flags_text=clean(page.flags_text),
        passed_over=tuple(
            Examples(clean(some.text), tuple(map(redaction.redact, some.lines)))
            for some in page.passed_over
        ),
        paste=clean(page.paste),
        made_from=tuple(map(clean, page.made_from)),
        redacted=True,
    )


def _sentence(text: str) -> str:
    """What this package wrote about a log, which may carry names from it."""
    return redaction.redact(text, prompts=False)
