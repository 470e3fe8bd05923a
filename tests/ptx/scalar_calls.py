"""A wrapper call for every spelling of arithmetic, logic, comparison, conversion, loads and stores that a wrapper can
emit, derived from the spelling alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyptx import ptx, reg
from pyptx.isa import lookup, table
from pyptx.isa.computations import computations
from pyptx.isa.model import Form, Kind, Match, Operand
from pyptx.isa.targets import ASSEMBLED, NEWEST_PTX, find_target
from pyptx.types import ALL, from_name
from tests.ptx.tensor_calls import Call, Registers

PLAIN = {"not": "not_", "selp": "selp", "mov": "mov"}
"""Opcodes whose wrapper takes a type and the operands."""
COMPUTED = frozenset(computations()) - {"mad", "not"}
"""Opcodes whose wrapper takes a type, the operands, and a keyword for each modifier."""
_KEYWORDS = {word: keyword for keyword, words in {
    "rounding": "rn rz rm rp", "mode": "lo hi wide clamp wrap", "dir": "l r",
    "op": "finite infinite number notanumber normal subnormal",
}.items() for word in words.split()}  # fmt: skip
OPCODES = frozenset((*PLAIN, *COMPUTED, "mad", "setp", "cvt", "ld", "st", "elect", "setmaxnreg"))
ROWS = tuple(row for row in table.list_all_rows() if row.opcode in OPCODES)
TYPES = {t.name for t in ALL}
_MODES = ("lo", "hi", "wide")


class ScalarRegisters(Registers):
    """Registers by type, and guards in turn."""

    def guard(self) -> Any:
        """Return the next guard: none, a predicate, or its negation."""
        return self.next(None, self.of("pred"), ~self.of("pred"))

    def place(self, operand: Operand, words: list[str]) -> Any:
        """Return an operand for a position of an instruction with these modifiers."""
        if operand.kind is Kind.PIPE:
            return reg.PipeRef(*(self.place(part, words) for part in operand.parts))
        if operand.kind is Kind.ADDRESS:
            return self.of("u64")
        if operand.type == "b8" and "e2m1x2" in words:
            return self.of("e2m1x2", operand.count)
        if operand.kind is Kind.IMMEDIATE:
            return self.next(24, 128, 256)
        if operand.access != "r":
            return self.of(operand.type or "b32", operand.count)
        return self.of("b32", operand.count) if operand.type is None else self.value(operand)


def scalar_call(match: Match, signature: tuple[Operand, ...]) -> Callable[[Registers], None] | None:
    """Return the call that should emit a spelling with one of its operand lists, or None if no wrapper has it."""
    opcode, words = match.form.opcode, list(match.modifiers)
    maker = _CALLS.get(opcode, _plain)(opcode, words, len(signature))
    if maker is None or _of_bytes(signature, words):
        return None

    def make(registers: Registers) -> None:
        assert isinstance(registers, ScalarRegisters)
        options = {} if opcode == "elect" else {"pred": registers.guard()}
        maker([registers.place(operand, words) for operand in signature], options)

    return make


def _of_bytes(signature: tuple[Operand, ...], words: list[str]) -> bool:
    """Return whether ptxas requires 8-bit registers, which it cannot move: 8-bit types are held in 16-bit ones."""
    small = ("b8", "u8", "s8")
    if words[-1] in small or "bf16" in words:
        return "bf16" in words and any(operand.type in small for operand in signature)
    return any(operand.type == "b8" and operand.count for operand in signature)


Maker = Callable[[list[Any], dict[str, Any]], Any]


def _plain(opcode: str, words: list[str], count: int) -> Maker | None:
    if len(words) != 1 or words[0] not in TYPES:
        return None
    return lambda values, options: getattr(ptx, PLAIN[opcode])(from_name(words[0]), *values, **options)


def _make_multiplication(opcode: str, words: list[str], count: int) -> Maker | None:
    mode = words[0] if words[0] in _MODES else None
    if len(words) != 2 or mode is None:
        return None
    kind = from_name(words[-1])
    return lambda values, options: ptx.mad(kind, *values, mode=mode, **options)


def _make_computation(opcode: str, words: list[str], count: int) -> Maker | None:
    *modifiers, kind = words
    if not modifiers and any(match.form.removed for match in lookup.find_matches(opcode, tuple(words))):
        return None
    if kind not in TYPES or any(word in (*TYPES, "cc", "and", "or") for word in modifiers):
        return None
    flags: dict[str, Any] = {_KEYWORDS.get(word, word): word if word in _KEYWORDS else True for word in modifiers}
    name = f"{opcode}_" if opcode in ("and", "or", "xor") else opcode
    return lambda values, options: getattr(ptx, name)(from_name(kind), *values, **flags, **options)


def _make_comparison(opcode: str, words: list[str], count: int) -> Maker | None:
    if count != 3:
        return None
    return lambda values, options: ptx.setp(".".join(words[:-1]), from_name(words[-1]), *values, **options)


def _make_conversion(opcode: str, words: list[str], count: int) -> Maker | None:
    if words[0] == "pack" or len(words) < 2:
        return None
    flags = {flag: flag in words[:-2] for flag in ("ftz", "sat")}
    rounding = ".".join(word for word in words[:-2] if not flags.get(word)) or None
    # `ftz` and `sat` follow the rounding; a spelling with other modifiers behind them needs `rounding=` alone.
    if (
        words[:-2]
        != [*(rounding or "").split("."), *(flag for flag, is_present in flags.items() if is_present)][
            rounding is None :
        ]
    ):
        flags, rounding = {}, ".".join(words[:-2])
    to, source = (from_name(word) for word in words[-2:])

    def make(values: list[Any], options: dict[str, Any]) -> None:
        sources = values[1] if len(values) == 2 and not isinstance(values[1], list) else values[1:]
        ptx.cvt(to, source, values[0], sources, rounding=rounding, **flags, **options)

    return make


def _make_access(opcode: str, words: list[str], count: int) -> Maker | None:
    if words[-1] not in TYPES or words[0] in ("async", "bulk"):
        return None
    kind, before = from_name(words[-1]), words[:-1]
    if before and before[-1] in ("v2", "v4", "v8"):
        before = before[:-1]
    if count != 2 or any(word.startswith(("level::", "L2::cache_hint", "mmio", "param::func", "v")) for word in before):
        return None
    index = next((i for i, word in enumerate(before) if word.partition("::")[0] in _SPACES), len(before) - 1) + 1
    space, cache = ".".join(before[:index]), ".".join(before[index:]) or None

    def make(values: list[Any], options: dict[str, Any]) -> None:
        getattr(ptx, opcode)(kind, *values, space=space, cache=cache, **options)

    return make


_SPACES = ("global", "shared", "local", "const", "param")


def _make_election(opcode: str, words: list[str], count: int) -> Maker | None:
    return lambda values, options: ptx.elect_sync(values[0].left, values[0].right, values[1])


def _make_resize(opcode: str, words: list[str], count: int) -> Maker | None:
    return lambda values, options: ptx.setmaxnreg(values[0], inc=words[0] == "inc", **options)


_CALLS: dict[str, Callable[[str, list[str], int], Maker | None]] = {
    **dict.fromkeys(COMPUTED, _make_computation), "mad": _make_multiplication, "setp": _make_comparison,
    "cvt": _make_conversion, "ld": _make_access, "st": _make_access, "elect": _make_election,
    "setmaxnreg": _make_resize,
}  # fmt: skip


def calls(rows: tuple[Form, ...] = ROWS) -> Iterator[tuple[Call | None, str]]:
    """Yield every call with its spelling, or None if no wrapper emits it."""
    for row in rows:
        for binding in lookup.spellings(row):
            match = lookup.match_of(row, binding)
            targets = tuple(name for name in ASSEMBLED if all(n.on(find_target(name), NEWEST_PTX) for n in match.needs))
            spelling = ".".join((row.opcode, *match.modifiers))
            for signature in match.signatures:
                maker = scalar_call(match, signature)
                yield (None if maker is None else Call(spelling, targets, "", maker)), spelling
