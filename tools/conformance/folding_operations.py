"""What the integer instructions of SASS compute, one function each. Instructions that the audit is to verify (a dot
product, a half-precision comparison) are omitted on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

WORD = 0xFFFFFFFF
PAIR = (1 << 64) - 1


class UnknownError(Exception):
    """An input has no value (the argument names it), or the instruction is used in an unknown way."""


class Known(NamedTuple):
    """A word, whether ptxas computed it itself (only moves led here), and which of its bits are known."""

    bits: int
    is_folded: bool
    mask: int = WORD


@dataclass(frozen=True)
class Operand:
    """A register or a constant with what is done to it; `name` is empty for a constant."""

    name: str
    value: int | None = None
    sign: str = ""
    is_inverted: bool = False
    absolute: bool = False
    lane: str = ""
    real: bool = False
    """A floating-point constant: its bits are in the encoding."""

    @property
    def is_predicate(self) -> bool:
        return self.name.lstrip("U")[:1] == "P" and self.name.lstrip("U") != "PR"

    def words(self, count: int) -> list[str]:
        """Return the names of the registers of a value of `count` words."""
        head = "UR" if self.name.startswith("U") else "R"
        if self.name in ("RZ", "URZ"):
            return [self.name] * count
        return [f"{head}{int(self.name[len(head) :]) + n}" for n in range(count)]


class Inputs:
    """The operands of an instruction, sorted: predicates before the destination and after it, values, predicates."""

    def __init__(
        self, name: str, modifiers: tuple[str, ...], operands: list[Operand], state: dict[str, Known], immediate: int
    ) -> None:
        self.name, self.modifiers, self.state, self.immediate = name, modifiers, state, immediate
        self.is_folded, self.mask = True, WORD
        remaining = list(operands)
        self.before = _leading(remaining, 2)
        self.destination = remaining.pop(0) if remaining and name not in _ONLY_PREDICATES else None
        self.after = _leading(remaining, 2 if self.destination else 0)
        self.conditions: list[Operand] = []
        while remaining and remaining[-1].is_predicate:
            self.conditions.insert(0, remaining.pop())
        self.values = remaining

    def read_register(self, name: str) -> int:
        """Return the word of a register."""
        value = self.state.get(name)
        if value is None or value.mask != WORD:
            raise UnknownError(name)
        self.is_folded &= value.is_folded
        return value.bits

    def partial(self, position: int) -> tuple[int, int]:
        """Return the bits of a register or a constant without a sign, and which of them are known."""
        o = self.values[position]
        value = self.state.get(o.name)
        if o.value is not None or o.real or o.sign or o.absolute or o.lane or (value and value.mask == WORD):
            return self.word(position), WORD
        if value is None:
            return 0, 0
        self.is_folded &= value.is_folded
        return value.bits, value.mask

    def plain(self, position: int, count: int = 1) -> int:
        """Return the bits of an operand of `count` words, without its sign."""
        if position >= len(self.values):
            raise UnknownError
        o = self.values[position]
        if o.real:
            return self.immediate
        if o.value is not None:
            return o.value & ((1 << 32 * count) - 1)
        if o.name[:1] not in ("R", "U") or not o.name[-1].isdigit():
            raise UnknownError
        return sum(self.read_register(name) << 32 * n for n, name in enumerate(o.words(count)))

    def word(self, position: int, count: int = 1) -> int:
        """Return the bits of an integer operand of `count` words."""
        o, full = self.values[position] if position < len(self.values) else Operand(""), (1 << 32 * count) - 1
        bits = self.plain(position, count)
        if o.lane or o.absolute:
            raise UnknownError
        return -bits & full if o.sign == "-" else bits ^ full if o.sign == "~" else bits

    def addend(self, position: int, count: int = 1) -> int:
        """Return the summands of an adder: minus is the complement plus one, which may itself carry."""
        o, full = self.values[position] if position < len(self.values) else Operand(""), (1 << 32 * count) - 1
        if o.sign == "-" and not o.lane:
            return (self.plain(position, count) ^ full) + 1
        return self.word(position, count)

    def signed(self, position: int, count: int = 1) -> int:
        """Return an integer operand as a number: negative if its type is signed and its top bit is set."""
        bits = self.word(position, count)
        return bits if self.is_unsigned else signed(bits, 32 * count)

    @property
    def is_unsigned(self) -> bool:
        return "U32" in self.modifiers or "U64" in self.modifiers

    def condition(self, position: int) -> int:
        """Return the value of a predicate, or 1 if there is none."""
        if position >= len(self.conditions):
            return 1
        o = self.conditions[position]
        return (self.read_register(o.name) if o.value is None else o.value) ^ o.is_inverted

    def result(self, bits: int, count: int = 1, predicates: tuple[int, ...] = ()) -> list[tuple[str, int]]:
        """Return the registers written: the words of the destination, and the predicates before and after it."""
        targets = [*self.before, *self.after]
        if len(targets) > len(predicates) and any(o.value is None for o in targets[len(predicates) :]):
            raise UnknownError
        results = [(o.name, value) for o, value in zip(targets, predicates, strict=False)]
        if self.destination is not None:
            results += [(name, bits >> 32 * n & WORD) for n, name in enumerate(self.destination.words(count))]
        return results


Result = list[tuple[str, int]]
_ONLY_PREDICATES = frozenset(("ISETP", "PLOP3"))


def signed(bits: int, width: int) -> int:
    """Return the number that bits of this width mean in two's complement."""
    return bits - (1 << width) if bits >> (width - 1) & 1 else bits


def _leading(operands: list[Operand], most: int) -> list[Operand]:
    predicates: list[Operand] = []
    while operands and operands[0].is_predicate and len(predicates) < most:
        predicates.append(operands.pop(0))
    return predicates


def _move(i: Inputs) -> Result:
    wide = "64" in i.modifiers
    if i.modifiers not in ((), ("64",), ("FILL",), ("U32",)):
        raise UnknownError
    return i.result(i.word(0, 1 + wide), 1 + wide)


def _zeros(i: Inputs) -> Result:
    count = 1 if "32" in i.modifiers else 2
    return i.result(i.word(0, count), count)


def _half_move(i: Inputs) -> Result:
    """Minus zero times zero plus two constants: loads a constant on the other pipe."""
    if [o.name for o in i.values] != ["RZ", "RZ", "", ""] or i.modifiers not in ((), ("MMA",), ("BF16_V2",)):
        raise UnknownError
    if i.modifiers == ("BF16_V2",) and any(i.immediate >> bit & 0x7FFF > 0x7F80 for bit in (0, 16)):
        raise UnknownError
    return i.result(i.immediate)


def _select(i: Inputs) -> Result:
    wide = "64" in i.modifiers
    return i.result(i.word(0 if i.condition(0) else 1, 1 + wide), 1 + wide)


def _float_select(i: Inputs) -> Result:
    position = 0 if i.condition(0) else 1
    o = i.values[position]
    if i.modifiers or o.lane:
        raise UnknownError
    bits = i.plain(position) & (0x7FFFFFFF if o.absolute else WORD)
    return i.result(bits ^ (1 << 31 if o.sign == "-" else 0))


def _permute(i: Inputs) -> Result:
    if i.modifiers:
        raise UnknownError
    (low, below), (high, above) = i.partial(0), i.partial(2)
    pair, known_bits, selectors = low | high << 32, below | above << 32, i.word(1)
    result = mask = 0
    for n in range(4):
        selector = selectors >> 4 * n & 15
        byte = pair >> 8 * (selector & 7) & 255
        result |= (255 * (byte >> 7) if selector & 8 else byte) << 8 * n
        mask |= (known_bits >> 8 * (selector & 7) & 255) << 8 * n
    if not mask:
        raise UnknownError("bytes")
    i.mask = mask
    return i.result(result & mask)


def _half_constant(i: Inputs) -> Result:
    """Minus zero plus an f32 constant: loads a constant that f16 can represent."""
    if i.modifiers or [(o.name, o.lane) for o in i.values] != [("RZ", "H0_H0"), ("", "F32")]:
        raise UnknownError
    number = np.array([i.plain(1)], np.uint32).view(np.float32)
    with np.errstate(over="ignore"):
        half = number.astype(np.float16)
    if not number == half:
        raise UnknownError
    i.mask = 0xFFFF
    return i.result(int(half.view(np.uint16)[0]))


def _add(i: Inputs) -> Result:
    """Add up to three words; the carry is known only if it is at most one."""
    wide = 2 if "64" in i.modifiers else 1
    if not set(i.modifiers) <= {"X", "64", "U32", "S32"} or not i.values:
        raise UnknownError
    total = sum(i.addend(n, wide) for n in range(len(i.values)))
    if "X" in i.modifiers:
        total += sum(i.condition(n) for n in range(len(i.conditions)))
    carry = total >> 32 * wide
    if carry > 1 and (i.before or i.after):
        raise UnknownError
    return i.result(total, wide, (carry, 0))


_LANES = {"16x2": 16, "U16x2": 16, "8x4": 8, "U8x4": 8}


def _lanes_added(i: Inputs) -> Result:
    width = _LANES.get(".".join(i.modifiers))
    if width is None:
        return _add(i)
    mask = (1 << width) - 1
    result = 0
    for bit in range(0, 32, width):
        parts = [i.plain(n) >> bit & mask for n in range(2)]
        result |= (sum(-p if i.values[n].sign == "-" else p for n, p in enumerate(parts)) & mask) << bit
    return i.result(result)


def _multiply(i: Inputs) -> Result:
    kinds = set(i.modifiers)
    if "MOV" in kinds:
        return i.result(i.word(2))
    if kinds & {"WIDE", "HI"}:
        if "X" in kinds:
            raise UnknownError
        total = i.signed(0) * i.signed(1) + i.word(2, 2)
        if i.after:
            raise UnknownError
        return i.result(total >> 32) if "HI" in kinds else i.result(total, 2)
    if not kinds <= {"IADD", "SHL", "U32", "X"}:
        raise UnknownError
    if "X" in kinds:
        return i.result(i.word(0) * i.word(1) + i.word(2) + i.condition(0))
    return i.result(i.word(0) * i.word(1) + i.word(2))


_ORDERS: dict[str, Callable[[int, int], bool]] = {
    "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "T": lambda a, b: True, "F": lambda a, b: False,
}  # fmt: skip


def _compare(i: Inputs) -> Result:
    order, connective = i.modifiers[0], next(m for m in i.modifiers if m in ("AND", "OR", "XOR"))
    wide = 2 if {"U64", "S64"} & set(i.modifiers) else 1
    a, b = i.signed(0, wide), i.signed(1, wide)
    holds = int(_ORDERS[order](a, b))
    if "EX" in i.modifiers:
        low = i.condition(1)
        holds = (holds | low) if order == "NE" else low if a == b else holds
    condition = i.condition(0)
    results = [
        {"AND": value & condition, "OR": value | condition, "XOR": value ^ condition}[connective]
        for value in (holds, 1 - holds)
    ]
    return i.result(0, 0, (results[0], results[1]))


def _table(bits: list[int], table: int, width: int) -> int:
    result = 0
    full = (1 << width) - 1
    for row in range(8):
        if table >> row & 1:
            terms = [b if row >> (2 - n) & 1 else b ^ full for n, b in enumerate(bits)]
            result |= terms[0] & terms[1] & terms[2]
    return result & full


def _logic(i: Inputs) -> Result:
    if not {*i.modifiers} <= {"LUT", "PAND"}:
        raise UnknownError
    result = _table([i.word(0), i.word(1), i.word(2)], i.word(3), 32)
    condition = i.condition(0) if i.conditions else 0
    truth = int(result != 0)
    return i.result(result, 1, (truth & condition if "PAND" in i.modifiers else truth | condition,))


def _predicate_logic(i: Inputs) -> Result:
    """Two tables over three predicates; the tables come last."""
    values = [o for o in i.values if o.is_predicate] + i.conditions
    bits = [(i.read_register(o.name) if o.value is None else o.value) ^ o.is_inverted for o in values]
    tables = [o.value for o in i.values if not o.name]
    if len(bits) != 3 or len(tables) != 2 or i.modifiers != ("LUT",):
        raise UnknownError
    return i.result(0, 0, tuple(_table(bits, table or 0, 1) for table in tables))


def _shift(i: Inputs) -> Result:
    """Shift the pair of the third and the first operand; `.HI` takes the upper word of it."""
    low, amount, high = i.word(0), i.word(1), i.word(2)
    kind = next((m for m in i.modifiers if m in ("U32", "S32", "U64", "S64")), "U32")
    most = 64 if kind.endswith("64") else 32
    amount = amount % most if "W" in i.modifiers else min(amount, most)
    pair = low | high << 32
    if "R" in i.modifiers:
        result = (signed(pair, 64) if kind[0] == "S" else pair) >> amount
    else:
        result = pair << amount
    return i.result(result >> 32 if "HI" in i.modifiers else result)


def _shift_and_add(i: Inputs) -> Result:
    """`LEA`: shift the first operand and add the second; `.HI` adds to the upper word of the shifted pair."""
    kinds = set(i.modifiers)
    amount = i.word(len(i.values) - 1)
    if not kinds <= {"HI", "SX32", "X"}:
        raise UnknownError
    carry = i.condition(0) if "X" in kinds else 0
    negative = i.values[0].sign == "-"
    if i.values[0].sign == "~" or (negative and ("HI" in kinds or i.after)):
        raise UnknownError
    if "HI" not in kinds:
        part = (i.word(0) << amount) & WORD
    else:
        pair = signed(i.word(0), 32) if "SX32" in kinds else i.word(0) | i.word(2) << 32
        part = pair << amount >> 32 & WORD
    total = part + i.addend(1) + carry
    return i.result(total, 1, (total >> 32,))


def _extreme(i: Inputs) -> Result:
    """The smaller if the predicate is true, or else the larger."""
    wide = 2 if {"U64", "S64"} & set(i.modifiers) else 1
    if not {*i.modifiers} <= {"U32", "S32", "U64", "S64"}:
        raise UnknownError
    extreme = (min if i.condition(0) else max)(i.signed(0, wide), i.signed(1, wide))
    return i.result(extreme, wide)


def _sum_extreme(i: Inputs) -> Result:
    if not {*i.modifiers} <= {"U32", "S32"}:
        raise UnknownError
    total = (i.word(0) + i.word(1)) & WORD
    total = total if i.is_unsigned else signed(total, 32)
    return i.result((min if i.condition(0) else max)(total, i.signed(2)))


def _absolute(i: Inputs) -> Result:
    return i.result(abs(signed(i.word(0), 32)))


def _clamp(i: Inputs) -> Result:
    """`I2I`: the nearest number of a narrower type."""
    if len(i.modifiers) != 3 or i.modifiers[1:] not in (("S32", "SAT"), ("U32", "SAT")):
        raise UnknownError
    value = signed(i.word(0), 32) if i.modifiers[1] == "S32" else i.word(0)
    width = int(i.modifiers[0][1:])
    low, high = (0, (1 << width) - 1) if i.modifiers[0][0] == "U" else (-(1 << width - 1), (1 << width - 1) - 1)
    return i.result(min(max(value, low), high))


def _pack_predicates(i: Inputs) -> Result:
    if i.values[0].name != "PR" or i.modifiers:
        raise UnknownError
    mask = i.word(2)
    word = sum(i.read_register(f"P{n}") << n for n in range(7) if mask >> n & 1)
    return i.result(word | i.word(1) & ~mask)


_MOVES = frozenset(("MOV", "R2UR", "CS2R", "HFMA2", "HADD2", "SEL"))
_HALVES = frozenset((0x10, 0x32, 0x54, 0x76))


def moves(i: Inputs) -> bool:
    """Return whether an instruction only moves words or halves of them."""
    if i.name == "PRMT":
        selectors = i.values[1].value
        return selectors is not None and {selectors & 255, selectors >> 8 & 255} <= _HALVES
    if i.name == "IMAD":
        return "MOV" in i.modifiers or [o.name for o in i.values[:2]] in (["RZ", "RZ"], ["URZ", "URZ"])
    return i.name in _MOVES


OPERATIONS: dict[str, Callable[[Inputs], Result]] = {
    "MOV": _move, "R2UR": _move, "CS2R": _zeros, "HFMA2": _half_move, "HADD2": _half_constant, "SEL": _select,
    "FSEL": _float_select, "PRMT": _permute, "IADD3": _add, "IADD": _add, "VIADD": _lanes_added,
    "IMAD": _multiply, "ISETP": _compare, "LOP3": _logic, "PLOP3": _predicate_logic, "SHF": _shift,
    "LEA": _shift_and_add,
    "IMNMX": _extreme, "VIMNMX": _extreme, "VIADDMNMX": _sum_extreme, "IABS": _absolute, "I2I": _clamp,
    "P2R": _pack_predicates,
}  # fmt: skip
"""By name, without the `U` of the uniform pipe."""
