"""Maps lines of a text to the Python lines that wrote them, for layouts that move statements."""

from __future__ import annotations

from pyptx.diagnostics import Origin
from pyptx.ir.directives import Module
from pyptx.ir.walk import visit
from pyptx.parser import parse


def match_origins(text: str, module: Module) -> dict[int, Origin | None]:
    """Return the origin of each line of a module's text, which parses to the same statements in order. Of several
    statements on one line the first counts."""
    origins: dict[int, Origin | None] = {}
    text_module, _ = parse(text, recover=True)
    for text_node, node in zip(visit(text_module), visit(module), strict=False):
        place: Origin | None = getattr(text_node, "origin", None)
        if place is not None:
            origins.setdefault(place.line, getattr(node, "origin", None))
    return origins
