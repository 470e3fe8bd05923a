"""Gives each register of a function a row in the matrix of its class. Knows no lanes."""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.check.symbols import Symbol
from pyptx.sim.base.formats import CLASSES, container_bits, register_class


@dataclass(frozen=True, slots=True)
class Row:
    """A register: the letter of its class, its first row, and its number of rows (two for 128 bits)."""

    letter: str
    index: int
    count: int
    type: str


Name = tuple[str, int]


class Rows:
    """The registers of one function. Functions share the matrices and `used`, the number of rows taken per class."""

    def __init__(self, used: dict[str, int]) -> None:
        self.used = used
        self.by_name: dict[Name, Row] = {}

    @staticmethod
    def create_totals() -> dict[str, int]:
        """Return the initial number of rows per class; row 0 of the predicates is the carry flag."""
        return {letter: 1 if letter == "p" else 0 for letter in CLASSES}

    def add(self, name: Name, symbol: Symbol) -> Row:
        """Return the rows of a register, allocating them on first use."""
        row = self.by_name.get(name)
        if row is None:
            letter = register_class(symbol.type)
            wide = 2 if container_bits(symbol.type) == 128 else 1
            row = Row(letter, self.used[letter], wide, symbol.type)
            self.used[letter] += row.count
            self.by_name[name] = row
        return row


CARRY = Row("p", 0, 1, "pred")
