"""Wrong and right examples of the hazard codes: whole PTX modules, keyed by the number of the code."""

from __future__ import annotations

EXAMPLES: dict[int, tuple[str, str]] = {}
