"""PTX in colors for notebooks. Pygments is imported on first use and need not be there."""

from __future__ import annotations

from html import escape
from importlib.util import find_spec


def html(text: str) -> str:
    """Return PTX as HTML: with colors where Pygments is installed, else as it is."""
    if find_spec("pygments") is None:
        return f"<pre>{escape(text)}</pre>"
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter

    from pyptx.highlighting.lexer import PtxLexer

    return highlight(text, PtxLexer(), HtmlFormatter[str](noclasses=True))
