"""Checks modules: `check(module)` reports what ptxas would reject, and what it accepts but is probably a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

if TYPE_CHECKING:
    from pyptx.check.checker import check
    from pyptx.check.rules import RULES

__all__ = ["RULES", "check"]
__getattr__, __dir__ = defer_imports(__name__, {"checker": "check", "rules": "RULES"})
