"""Gives each register of a function its row in the matrix of its class. Knows no lanes."""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.check.symbols import Symbol
from pyptx.sim.base.formats import CLASSES, container_bits, register_class


@dataclass(frozen=True, slots=True)
class Row:
    """A register: the letter of its class, its first row, and how many rows it takes (128 bits take two)."""

    letter: str
    index: int
    count: int
    type: str


Name = tuple[str, int]


class Rows:
    """The registers of one function. Functions share the matrices, `used` is common to them."""

    def __init__(self, used: dict[str, int]) -> None:
        self.used = used
        self.of: dict[Name, Row] = {}

    @staticmethod
    def totals() -> dict[str, int]:
        """Return a fresh count of rows per class; row 0 of the predicates is the carry flag."""
        return {letter: 1 if letter == "p" else 0 for letter in CLASSES}

    def add(self, name: Name, symbol: Symbol) -> Row:
        """Return the rows of a register, allocated on first sight."""
        found = self.of.get(name)
        if found is None:
            letter = register_class(symbol.type)
            wide = 2 if container_bits(symbol.type) == 128 else 1
            found = Row(letter, self.used[letter], wide, symbol.type)
            self.used[letter] += found.count
            self.of[name] = found
        return found


CARRY = Row("p", 0, 1, "pred")
