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
    is_negated: bool
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    immediate: int


def functions(cubin: Cubin) -> dict[str, list[Instruction]]:
    """Return the functions of a cubin by name."""
    bytes_of = {s.name: s.data for s in read_elf(cubin.data).sections}
    code_of: dict[str, list[Instruction]] = {}
    data, bank, code = b"", b"", list[Instruction]()
    for line in sass(cubin).split("\n"):
        if parsed_line := instruction(line, data, bank):
            code.append(parsed_line)
        elif heading := _FUNCTION.match(line):
            data, bank = bytes_of[f".text.{heading[1]}"], bytes_of.get(f".nv.constant2.{heading[1]}", b"")
            code = list[Instruction]()
            code_of[heading[1]] = code
    return code_of


def instruction(line: str, data: bytes = b"", bank: bytes = b"") -> Instruction | None:
    """Return the instruction on a line of nvdisasm, if any; `data` is the encoding of the function, `bank` its constant
    bank."""
    size = 8 if "WIDE" in line or "IMAD.HI" in line else 4
    line = _BANK.sub(lambda m: hex(int.from_bytes(bank[int(m[1], 16) :][:size], "little")), line)
    match = _INSTRUCTION.match(line)
    if match is None:
        return None
    offset = int(match[1], 16)
    operands = tuple(_BETWEEN.split(match[6])) if match[6] else ()
    immediate = int.from_bytes(data[offset + 4 : offset + 8], "little")
    modifiers = tuple(match[5].split(".")[1:])
    return Instruction(offset, match[3] or "PT", bool(match[2]), match[4], modifiers, operands, immediate)


class Store(NamedTuple):
    """A store: the offset from the pointer, the number of bytes, and the words, None if unknown."""

    offset: int
    size: int
    words: tuple[Known | None, ...]

    def value(self) -> Known | None:
        """Return the whole value if every word is known."""
        full = (1 << 8 * self.size) - 1
        words = [word for word in self.words if word is not None and not ~word.mask & WORD & full]
        if len(words) < len(self.words):
            return None
        bits = sum(word.bits << 32 * n for n, word in enumerate(words)) & full
        return Known(bits, all(word.is_folded for word in words))


def stores(code: list[Instruction], unmodeled: dict[str, int] | None = None) -> Iterator[Store]:
    """Yield the stores of a function up to its first branch; count instructions without a value in `unmodeled`."""
    state: dict[str, Known] = {}
    for step in code:
        guard = _guard(step, state)
        if guard == 0 or step.opcode in ("NOP", "BSSY", "BSYNC"):
            continue
        if step.opcode in _ENDS:
            return
        if step.opcode == "STG":
            if guard:
                yield _store(step, state)
        elif not execute(step, state, bool(guard)) and unmodeled is not None:
            name = ".".join((step.opcode, *step.modifiers))
            unmodeled[name] = unmodeled.get(name, 0) + 1


def _guard(instruction: Instruction, state: dict[str, Known]) -> int | None:
    """Return whether an instruction executes, or None if unknown."""
    if instruction.guard in _CONSTANT:
        return 1 ^ instruction.is_negated
    value = state.get(instruction.guard)
    return None if value is None else value.bits ^ instruction.is_negated


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
        results = operation(inputs)
    except UnknownError as why:
        _forget(inputs, state, wide)
        return bool(why.args) or instruction.opcode in _SKIPPED
    is_folded = inputs.is_folded and moves(inputs)
    for register, bits in results:
        if register not in _CONSTANT:
            state[register] = Known(bits, is_folded, inputs.mask)
    return True


def _forget(inputs: Inputs, state: dict[str, Known], wide: bool) -> None:
    """Forget the values of everything that an instruction may write."""
    names = [o.name for o in (*inputs.before, *inputs.after)]
    if inputs.destination is not None:
        name = inputs.destination.name
        names.append(name)
        if wide and _REGISTER.fullmatch(name):
            names += inputs.destination.words(4 if "128" in inputs.modifiers else 2)
    for name in names:
        state.pop(name, None)


def _store(instruction: Instruction, state: dict[str, Known]) -> Store:
    address = _ADDRESS.fullmatch(instruction.operands[0])
    assert address, instruction
    offset = int(address[1] or "0", 16)
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
    match = _OPERAND.fullmatch(text)
    if match is None:
        return Operand(text)
    inversion, sign, bars, name, lane, _ = match.groups()
    lane = lane.replace(".reuse", "").removeprefix(".")
    if name in _CONSTANT:
        return Operand(name, _CONSTANT[name], sign, bool(inversion), bool(bars), lane)
    if _REGISTER.fullmatch(name):
        return Operand(name, None, sign, bool(inversion), bool(bars), lane)
    if re.fullmatch(r"0x[0-9a-f]+", name):
        value = int(name, 16)
        return Operand(
            "", -value if sign == "-" else ~value if sign == "~" else value, lane=lane if lane == "F32" else ""
        )
    if re.fullmatch(r"[+-]?(\d[\d.]*(e[+-]?\d+)?|INF|QNAN|SNAN)", name):
        return Operand("", real=True)
    return Operand(text)
