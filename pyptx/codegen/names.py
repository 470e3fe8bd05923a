"""Python identifiers for PTX names: unique and never a keyword, for any input."""

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


def make_identifier(name: str) -> str:
    """Return a Python identifier derived from a PTX name: ASCII letters, digits and `_`, at most LONGEST of them. Two
    names may yield the same one."""
    text = _OTHER.sub("_", name.lstrip("%$"))[:LONGEST].strip("_") or "x"
    text = f"x{text}" if text[0].isdigit() else text
    return f"{text}_" if text in RESERVED else text


class Names:
    """The identifiers of one scope: a file, a function in it, or a block in that.

    `make_name` returns an identifier unlike all visible ones. Sibling scopes may use the same identifier: a Python
    variable of a block is never read after the block.
    """

    def __init__(self, outer: Names | None = None) -> None:
        self.outer = outer
        self.used_names: set[str] = set()
        self.numbers: dict[str, int] = {}
        """Where the search for a numeric suffix starts."""
        self.own: list[tuple[str, str]] = []

    def open_function(self) -> Names:
        """Return the scope of a nested function."""
        return Names(self)

    def open_block(self) -> Names:
        """Return the scope of a nested block. The function holds its identifiers until the block is left: a chain of
        scopes would cost time at every level."""
        inner = Names(self.outer)
        inner.used_names, inner.numbers = self.used_names, self.numbers
        return inner

    def leave(self) -> None:
        """Release the identifiers of a block."""
        for stem, own in self.own:
            self.used_names.discard(own)
            if own != stem:
                self.numbers[stem] = min(self.numbers[stem], int(own[len(stem) :].lstrip("_")))

    def has(self, identifier: str) -> bool:
        """Tell whether an identifier is in use here."""
        scope: Names | None = self
        while scope is not None:
            if identifier in scope.used_names:
                return True
            scope = scope.outer
        return False

    def make_name(self, hint: str) -> str:
        """Return an unused identifier as close to the requested one as possible."""
        stem = candidate = make_identifier(hint)
        if self.has(candidate):
            number = self.numbers.get(stem, 2)
            while self.has(candidate := f"{stem}{'_' if stem[-1] != '_' else ''}{number}"):
                number += 1
            self.numbers[stem] = number + 1
        self.used_names.add(candidate)
        self.own.append((stem, candidate))
        return candidate
