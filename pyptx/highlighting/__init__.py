"""PTX in color for notebooks. Pygments is optional and imported on first use."""

from __future__ import annotations

from html import escape
from importlib.util import find_spec


def html(text: str) -> str:
    """Return PTX as HTML: in color if Pygments is installed, else plain."""
    if find_spec("pygments") is None:
        return f"<pre>{escape(text)}</pre>"
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter

    from pyptx.highlighting.lexer import PtxLexer

    return highlight(text, PtxLexer(), HtmlFormatter[str](noclasses=True))
