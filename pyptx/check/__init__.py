"""Checks modules: `check(module)` reports what ptxas would reject, and what it accepts but is probably a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyptx.check.checker import check
    from pyptx.check.rules import RULES

__all__ = ["RULES", "check"]
_MODULE_OF = {"check": "checker", "RULES": "rules"}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
