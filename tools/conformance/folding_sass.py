"""Evaluates straight-line SASS whose inputs are constants: what it stores, and how much of that ptxas itself computed.

Knows how nvdisasm prints instructions; `folding_operations` computes them. Instructions not listed there, and whatever
depends on them, have no value: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from pyptx.toolchain import Cubin, sass
from pyptx.toolchain.elf import read_elf
from tools.conformance.folding_operations import OPERATIONS, WORD, Inputs, Known, Operand, UnknownError, moves

_FUNCTION = re.compile(r"\.text\.(\w+):")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(?:@(!?)(U?P[0-9T]+) )?([A-Z]\w*)(\S*)\s*(.*?)\s*;")
_ADDRESS = re.compile(r"(?:desc\[\w+\])?\[U?R\w+(?:\.\w+)*(?:\+(-?0x[0-9a-f]+))?\]")
_BETWEEN = re.compile(r",\s*(?![^\[]*\])")
_OPERAND = re.compile(
    r"(!?)([-~]?)(\|?)([\w+.\-]+?)((?:\.(?:reuse|H[01]_H[01]|B[0-3]|64|U8|U16|S8|S16|F32))*)\|?((?:\.reuse)?)"
)
_BANK = re.compile(r"c\[0x2\] ?\[(0x[0-9a-f]+)\]")
_REGISTER = re.compile(r"U?(R\d+|P\d)")
_CONSTANT = {"RZ": 0, "URZ": 0, "SRZ": 0, "PT": 1, "UPT": 1}
_SKIPPED = frozenset(("NOP", "BSSY", "BSYNC", "WARPSYNC", "BMOV", "LDC", "ULDC", "LDCU"))
_ENDS = frozenset(("EXIT", "BRA", "CALL", "RET", "BRX", "JMP", "BPT", "KILL"))
_WIDE = re.compile(r"64|WIDE|^U?[DI]\w*\.?.*64|^D[AFMS]|CLMAD|128")


class Instruction(NamedTuple):
    """One line of SASS; `immediate` is the word of its encoding that holds a constant, if it has one."""

    address: int
    guard: str
    negated: bool
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    immediate: int


def functions(cubin: Cubin) -> dict[str, list[Instruction]]:
    """Return the functions of a cubin by name."""
    bytes_of = {s.name: s.data for s in read_elf(cubin.data).sections}
    found: dict[str, list[Instruction]] = {}
    data, bank, here = b"", b"", list[Instruction]()
    for line in sass(cubin).split("\n"):
        if made := instruction(line, data, bank):
            here.append(made)
        elif named := _FUNCTION.match(line):
            data, bank = bytes_of[f".text.{named[1]}"], bytes_of.get(f".nv.constant2.{named[1]}", b"")
            here = list[Instruction]()
            found[named[1]] = here
    return found


def instruction(line: str, data: bytes = b"", bank: bytes = b"") -> Instruction | None:
    """Return the instruction on a line of nvdisasm, if any; `data` is the encoding of the function, `bank` its constant
    bank."""
    size = 8 if "WIDE" in line or "IMAD.HI" in line else 4
    line = _BANK.sub(lambda m: hex(int.from_bytes(bank[int(m[1], 16) :][:size], "little")), line)
    made = _INSTRUCTION.match(line)
    if made is None:
        return None
    at = int(made[1], 16)
    operands = tuple(_BETWEEN.split(made[6])) if made[6] else ()
    immediate = int.from_bytes(data[at + 4 : at + 8], "little")
    modifiers = tuple(made[5].split(".")[1:])
    return Instruction(at, made[3] or "PT", bool(made[2]), made[4], modifiers, operands, immediate)


class Store(NamedTuple):
    """A store: the offset from the pointer, the number of bytes, and the words, None if unknown."""

    offset: int
    size: int
    words: tuple[Known | None, ...]

    def value(self) -> Known | None:
        """Return the whole value if every word is known."""
        full = (1 << 8 * self.size) - 1
        known = [word for word in self.words if word is not None and not ~word.mask & WORD & full]
        if len(known) < len(self.words):
            return None
        bits = sum(word.bits << 32 * n for n, word in enumerate(known)) & full
        return Known(bits, all(word.folded for word in known))


def stores(code: list[Instruction], unknown: dict[str, int] | None = None) -> Iterator[Store]:
    """Yield the stores of a function up to its first branch; count instructions without a value in `unknown`."""
    state: dict[str, Known] = {}
    for one in code:
        guard = _guard(one, state)
        if guard == 0 or one.opcode in ("NOP", "BSSY", "BSYNC"):
            continue
        if one.opcode in _ENDS:
            return
        if one.opcode == "STG":
            if guard:
                yield _store(one, state)
        elif not execute(one, state, bool(guard)) and unknown is not None:
            name = ".".join((one.opcode, *one.modifiers))
            unknown[name] = unknown.get(name, 0) + 1


def _guard(instruction: Instruction, state: dict[str, Known]) -> int | None:
    """Return whether an instruction executes, or None if unknown."""
    if instruction.guard in _CONSTANT:
        return 1 ^ instruction.negated
    known = state.get(instruction.guard)
    return None if known is None else known.bits ^ instruction.negated


def execute(instruction: Instruction, state: dict[str, Known], certain: bool = True) -> bool:
    """Execute an instruction; return whether its effect is known."""
    operands = [operand(text) for text in instruction.operands]
    name = instruction.opcode[1:] if instruction.opcode[0] == "U" else instruction.opcode
    inputs = Inputs(name, instruction.modifiers, operands, state, instruction.immediate)
    operation = OPERATIONS.get(name)
    wide = bool(_WIDE.search(".".join((instruction.opcode, *instruction.modifiers))))
    try:
        if operation is None or not certain:
            raise UnknownError
        made = operation(inputs)
    except UnknownError as why:
        _forget(inputs, state, wide)
        return bool(why.args) or instruction.opcode in _SKIPPED
    folded = inputs.folded and moves(inputs)
    for register, bits in made:
        if register not in _CONSTANT:
            state[register] = Known(bits, folded, inputs.mask)
    return True


def _forget(inputs: Inputs, state: dict[str, Known], wide: bool) -> None:
    """Forget the values of everything that an instruction may write."""
    written = [o.name for o in (*inputs.before, *inputs.after)]
    if inputs.destination is not None:
        name = inputs.destination.name
        written.append(name)
        if wide and _REGISTER.fullmatch(name):
            written += inputs.destination.words(4 if "128" in inputs.modifiers else 2)
    for name in written:
        state.pop(name, None)


def _store(instruction: Instruction, state: dict[str, Known]) -> Store:
    where = _ADDRESS.fullmatch(instruction.operands[0])
    assert where, instruction
    offset = int(where[1] or "0", 16)
    size = next(
        (int(m.lstrip("US")) // 8 for m in instruction.modifiers if m.lstrip("US") in ("8", "16", "64", "128")), 4
    )
    source = operand(instruction.operands[1])
    names = source.words(max(size // 4, 1))
    return Store(offset, size, tuple(Known(0, True) if name in _CONSTANT else state.get(name) for name in names))


@lru_cache(maxsize=100_000)
def operand(text: str) -> Operand:
    """Return an operand of SASS; a constant that is not an integer comes from the encoding."""
    text = text.strip()
    made = _OPERAND.fullmatch(text)
    if made is None:
        return Operand(text)
    inverted, sign, bars, name, lane, _ = made.groups()
    lane = lane.replace(".reuse", "").removeprefix(".")
    if name in _CONSTANT:
        return Operand(name, _CONSTANT[name], sign, bool(inverted), bool(bars), lane)
    if _REGISTER.fullmatch(name):
        return Operand(name, None, sign, bool(inverted), bool(bars), lane)
    if re.fullmatch(r"0x[0-9a-f]+", name):
        value = int(name, 16)
        return Operand(
            "", -value if sign == "-" else ~value if sign == "~" else value, lane=lane if lane == "F32" else ""
        )
    if re.fullmatch(r"[+-]?(\d[\d.]*(e[+-]?\d+)?|INF|QNAN|SNAN)", name):
        return Operand("", real=True)
    return Operand(text)
