"""`ptx.inst.<op>.<mod>…(*operands)`: emits exactly one instruction, any in the table; and `ptx.pipe`, which chains
them.

A type as the destination creates a register: `x = ptx.inst.bfe.u32(u32, a, 3, 4)`.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import Spelling, describe, emit, emit_unchecked, spell
from pyptx.dsl.registers import Reg, make_destination
from pyptx.dsl.trace import fail, get_trace
from pyptx.dsl.values import Pair, Register, RegisterRange
from pyptx.isa.table import list_opcodes
from pyptx.types import PtxType


def parse_word(name: str) -> str:
    """Return the modifier that a Python name stands for: `global_`, `_2d`, `shared__cta`."""
    if len(name) > 1 and name[0] == "_" and name[1].isdigit():
        name = name[1:]
    return name.removesuffix("_").replace("__", "::")


def parse_modifiers(part: object) -> tuple[str, ...]:
    """Return the modifiers that a value in brackets stands for: a type, or text with or without dots."""
    if isinstance(part, PtxType):
        return (part.name,)
    if not isinstance(part, str) or not part.strip("."):
        fail(rules.ARGUMENT, f"a modifier in brackets must be a type or a string, found {describe(part)}")
    return tuple(part.strip(".").split("."))


_DESTINATIONS: tuple[type, ...] = (Register, Pair, RegisterRange, list)


class Chain:
    """An opcode and the modifiers so far. Add the next as an attribute or in brackets; a call emits the instruction."""

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling

    def __getattr__(self, name: str) -> Chain:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        longer = Chain(spell(self._spelling.opcode, *self._spelling.modifiers, parse_word(name)))
        self.__dict__[name] = longer
        return longer

    def __getitem__(self, part: PtxType | str) -> Chain:
        return Chain(spell(self._spelling.opcode, *self._spelling.modifiers, *parse_modifiers(part)))

    def __call__(self, *operands: Any, pred: Any = None, unchecked: bool = False) -> Any:
        trace = get_trace()
        if operands and isinstance(operands[0], PtxType | list | Pair):
            operands = (make_destination(operands[0]), *operands[1:])
        if unchecked:
            emit_unchecked(self._spelling, operands, pred, trace)
        else:
            emit(self._spelling, operands, pred, trace)
        first: Any = operands[0] if operands else None
        return first if isinstance(first, _DESTINATIONS) else None

    def __repr__(self) -> str:
        return f"ptx.inst.{self._spelling}"


class Root:
    """`ptx.inst`: its attributes are the opcodes."""

    def __getattr__(self, name: str) -> Chain:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        chain = Chain(spell(parse_word(name)))
        self.__dict__[name] = chain
        return chain

    def __getitem__(self, spelling: str) -> Chain:
        opcode, *modifiers = parse_modifiers(spelling)
        return Chain(spell(opcode, *modifiers))

    def __dir__(self) -> list[str]:
        return [f"{name}_" if iskeyword(name) else name for name in list_opcodes()]

    def __repr__(self) -> str:
        return "ptx.inst"


class Pipe:
    """`ptx.pipe(x)`: each call takes the previous destination as its first source; `.reg` is the last destination."""

    def __init__(self, reg: Reg, spelling: Spelling | None = None) -> None:
        self.reg, self._spelling = reg, spelling

    def __getattr__(self, name: str) -> Pipe:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self[parse_word(name)]

    def __getitem__(self, part: PtxType | str) -> Pipe:
        before = (self._spelling.opcode, *self._spelling.modifiers) if self._spelling else ()
        return Pipe(self.reg, spell(*before, *parse_modifiers(part)))

    def __call__(self, dst: Reg, *more: Any, pred: Any = None) -> Pipe:
        if self._spelling is None:
            fail(rules.ARGUMENT, "ptx.pipe(x) needs an instruction before the call: ptx.pipe(x).add.s32(dst, 1)")
        emit(self._spelling, (dst, self.reg, *more), pred, get_trace())
        return Pipe(dst)

    def __repr__(self) -> str:
        return f"ptx.pipe({self.reg!r})"


inst = Root()


def pipe(src: Reg) -> Pipe:
    """Start a chain of instructions: `ptx.pipe(x).add.s32(y, 1).shl.b32(z, 2)`."""
    return Pipe(src)
