"""Names of a package that are imported on first use, so that importing it loads none of its modules."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Functions = tuple[Callable[[str], object], Callable[[], list[str]]]


def defer_imports(
    package: str, names_of: Mapping[str, str], suggest: Callable[[str], str] = lambda name: ""
) -> Functions:
    """Return `__getattr__` and `__dir__` for a package. `names_of` has the names that each of its modules defines, and,
    under "", those of modules; `suggest` returns what follows the message for an unknown name."""
    module_of = {name: module or name for module, names in names_of.items() for name in names.split()}
    submodules = set(names_of.get("", "").split())

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{suggest(name)}")
        from importlib import import_module  # costs more than this whole module

        module = import_module(f"{package}.{module_of[name]}")
        value = module if name in submodules else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: list(module_of)
