"""Markdown to HTML with equations as MathML, so that a page needs no script and no network."""

from typing import Any

from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath


class MathmlRenderer(IPythonRenderer):
    """nbconvert's renderer, with MathML where it would leave TeX for a script."""

    def block_math(self, body: str) -> str:
        """An equation on a line of its own."""
        return str(convert(body.strip(), display="block"))

    def inline_math(self, body: str) -> str:
        """An equation within a line."""
        return str(convert(body.strip()))


def to_html(source: str, *_: Any) -> str:
    """Render Markdown; headings carry no link of their own, since cells are the anchors."""
    renderer = MathmlRenderer(escape=False, exclude_anchor_links=True)
    return str(MarkdownWithMath(renderer=renderer).render(source))
