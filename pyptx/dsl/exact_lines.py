"""Maps lines of a text to the Python lines that wrote them, for layouts that move statements."""

from __future__ import annotations

from pyptx.diagnostics import Origin
from pyptx.ir.directives import Module
from pyptx.ir.walk import visit
from pyptx.parser import parse


def origins_in(text: str, module: Module) -> dict[int, Origin | None]:
    """Return the origin of each line of a module's text, which parses to the same statements in order. Of several
    statements on one line the first counts."""
    origins: dict[int, Origin | None] = {}
    parsed, _ = parse(text, recover=True)
    for there, here in zip(visit(parsed), visit(module), strict=False):
        place: Origin | None = getattr(there, "origin", None)
        if place is not None:
            origins.setdefault(place.line, getattr(here, "origin", None))
    return origins
