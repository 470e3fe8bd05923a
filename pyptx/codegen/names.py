"""Python identifiers for the names of PTX: unique, no keyword, whatever the input is."""

from __future__ import annotations

import builtins
import keyword
import re

from pyptx import types

LONGEST = 40
RESERVED = frozenset(
    [
        *keyword.kwlist,
        *keyword.softkwlist,
        *dir(builtins),
        *(kind.name for kind in types.ALL),
        *"l O I sys ptx reg smem kernel intrinsic types module main annotations pyptx self".split(),
    ]
)
_OTHER = re.compile(r"[^A-Za-z0-9_]+")


def identifier(name: str) -> str:
    """Return a Python identifier made of a name of PTX: ASCII letters, digits and `_`, at most LONGEST of them. Two
    names may give the same one."""
    made = _OTHER.sub("_", name.lstrip("%$"))[:LONGEST].strip("_") or "x"
    made = f"x{made}" if made[0].isdigit() else made
    return f"{made}_" if made in RESERVED else made


class Names:
    """The identifiers of one scope: of a file, of a function in it, of a block in that.

    `bind` gives a name of PTX an identifier that nothing visible has; `find` returns the identifier of the innermost
    scope that declares the name. Scopes side by side may use one identifier twice: a Python variable of a block is
    never read after the block. `used` collects what was asked for, so that a variable nobody reads is not written.
    """

    def __init__(self, outer: Names | None = None) -> None:
        self.outer = outer
        self.bound: dict[str, str] = {}
        self.taken: set[str] = set()
        self.used: set[str] = set()

    def inner(self) -> Names:
        """Return the scope of a function or block inside."""
        return Names(self)

    def has(self, made: str) -> bool:
        """Tell whether an identifier means something here."""
        scope: Names | None = self
        while scope is not None:
            if made in scope.taken:
                return True
            scope = scope.outer
        return False

    def fresh(self, wanted: str) -> str:
        """Return an identifier that means nothing here yet, as close to the wanted word as possible."""
        stem = made = identifier(wanted)
        number = 2
        while self.has(made):
            made = f"{stem}{'_' if stem[-1] != '_' else ''}{number}"
            number += 1
        self.taken.add(made)
        return made

    def bind(self, name: str, wanted: str | None = None) -> str:
        """Give a name of PTX an identifier in this scope."""
        self.bound[name] = made = self.fresh(name.lower() if wanted is None else wanted)
        return made

    def find(self, name: str) -> str | None:
        """Return the identifier of a name, None where no scope here declares it; note that it is used."""
        scope: Names | None = self
        while scope is not None:
            made = scope.bound.get(name)
            if made is not None:
                scope.used.add(name)
                return made
            scope = scope.outer
        return None
