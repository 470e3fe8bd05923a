"""Integers whose value changes: arithmetic that wraps on its way into an address, and lossy conversions.

Called with the operands before an instruction runs. `addresses` knows which results become part of an address.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.ir import LabelOperand, RegisterOperand, VectorOperand
from pyptx.ir.operands import Operand
from pyptx.numbers import FORMATS, is_float
from pyptx.sim.base.formats import Array, dtype_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Place
from pyptx.sim.numerics.formats import widen
from pyptx.sim.numerics.rounding import round_to_format
from pyptx.sim.observers.checks import addresses
from pyptx.sim.observers.checks.addresses import SIGNED, UNSIGNED, WHOLE
from pyptx.sim.observers.checks.session import find_session, make_place
from pyptx.sim.program.blocks import Block, Code, Program
from pyptx.sim.semantics.bits import find_limits
from pyptx.sim.semantics.conversion import WHOLE as ROUNDING
from pyptx.types import ALL

Check = Callable[..., None]
_NUMBERS = frozenset(t.name for t in ALL)
_NAMES = "abc"


@dataclass(slots=True)
class Facts:
    """Static facts of a function: how results become part of addresses, and which registers may be negative."""

    uses: dict[int, int]
    signed: frozenset[addresses.Register]
    read: frozenset[addresses.Register]
    bits: frozenset[addresses.Register]


class Integers:
    """The hooks of a program's integer instructions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._facts: dict[int, Facts] = {}

    def make_event(self, step: Step, block: Block) -> Check | None:
        """Return the check of an instruction's operands, None if nothing can be lost."""
        words = [modifier[1:] for modifier in step.instruction.modifiers]
        match step.instruction.opcode:
            case "add" | "sub" | "mul" | "mad" | "shl" if words[-1] in _WRAPPING and not _KEEPS & set(words):
                return self._watch_arithmetic(step, block.code, words[-1])
            case "cvt" if "pack" not in words:
                return self._watch_conversion(step, block.code, words)
            case "mov" if isinstance(step.instruction.operands[0], VectorOperand):
                return self._watch_split(step, block.code, step.instruction.operands[0])
            case _:
                return None

    def _find_facts(self, code: Code) -> Facts:
        facts = self._facts.get(code.number)
        if facts is None:
            blocks = self.program.blocks
            facts = self._facts[code.number] = Facts(
                addresses.find_uses(blocks, code),
                addresses.find_signed(blocks, code),
                addresses.find_read_registers(blocks, code),
                addresses.find_bits(blocks, code),
            )
        return facts

    def _watch_arithmetic(self, step: Step, code: Code, kind: str) -> Check | None:
        facts = self._find_facts(code)
        kinds = facts.uses.get(id(step), 0)
        opcode = step.instruction.opcode
        if not kinds or (opcode == "sub" and kind[0] == "u"):
            return None
        signed = tuple(
            addresses.is_negative(operand) or _find_register(operand, step) in facts.signed
            for operand in step.instruction.operands[1:]
        )
        return partial(_check_wrap, make_place(step.instruction), opcode, kind, kinds, signed)

    def _watch_conversion(self, step: Step, code: Code, words: list[str]) -> Check | None:
        target, source = [word for word in words if word in _NUMBERS][-2:]
        place = make_place(step.instruction)
        if _is_integer(source):
            if is_float(target):
                mode = next(word for word in words if word in ("rn", "rz", "rm", "rp"))
                return partial(_check_rounding, place, target, mode)
            if _is_integer(target) and int(target[1:]) < int(source[1:]) and "sat" not in words:
                return self._watch_narrowing(step, code, target)
            return None
        if _is_integer(target) and is_float(source):
            mode = next(word for word in words if word in ROUNDING)
            return partial(_check_clamp, place, target, source, mode, "sat" in words)
        return None

    def _watch_narrowing(self, step: Step, code: Code, target: str) -> Check | None:
        """Return the check of a narrowing conversion. The low half of a 64-bit number is often intended, as the low
        word of a product, but not as an address."""
        facts, operand = self._find_facts(code), step.instruction.operands[1]
        in_address = bool(facts.uses.get(id(step)))
        if not in_address and (target[1:] == "32" or _find_register(operand, step) in facts.bits):
            return None
        return partial(_check_cut, make_place(step.instruction), target, in_address)

    def _watch_split(self, step: Step, code: Code, parts: VectorOperand) -> Check | None:
        """Check `mov.b64 {lo, hi}, x` if `lo` becomes part of an address and `hi` is never read."""
        facts = self._find_facts(code)
        low, *high = (addresses.find_register(e.name, step) for e in parts.elements
                      if isinstance(e, RegisterOperand | LabelOperand))  # fmt: skip
        is_word_pair = step.instruction.modifiers[-1] == ".b64" and len(parts.elements) == 2
        if (
            not is_word_pair
            or low is None
            or not facts.uses.get(id(step))
            or any(register in facts.read for register in high)
        ):
            return None
        return partial(_check_cut, make_place(step.instruction), "b32", True)


_WRAPPING = frozenset(("u16", "u32", "s16", "s32", "b16", "b32"))
_KEEPS = frozenset(("wide", "hi", "sat", "cc"))


def _find_register(operand: Operand, step: Step) -> addresses.Register | None:
    return addresses.find_register(operand.name, step) if isinstance(operand, RegisterOperand | LabelOperand) else None


def _is_integer(name: str) -> bool:
    return name[0] in "us" and name[1:].isdigit()


def _select_bad(mask: Any, lanes: Lanes, bad: Array) -> Array:
    """Return the positions of the executing lanes that are bad."""
    lane_flags = np.broadcast_to(bad, lanes.n)
    return np.flatnonzero(lane_flags if mask is None else lane_flags & mask)


def _find_thread(machine: Batch, lanes: Lanes, position: int) -> int:
    return int(find_session(machine).threads[int(lanes.index[position])])


def _read_value(value: Any, position: int) -> Any:
    return np.asarray(value).item() if np.ndim(value) == 0 else value[position].item()


def _reinterpret(value: Any, signed: bool) -> Any:
    """Return the bits of an operand as signed or unsigned numbers."""
    array = np.asarray(value)
    return array.view(f"{'i' if signed else 'u'}{array.dtype.itemsize}")


def _compute_exact(opcode: str, values: list[Any]) -> Any:
    """Return the exact result, in f64 for arrays: a result that f64 cannot hold is far out of range."""
    match opcode:
        case "add":
            return values[0] + values[1]
        case "sub":
            return values[0] - values[1]
        case "mul":
            return values[0] * values[1]
        case "mad":
            return values[0] * values[1] + values[2]
        case _:
            return values[0] * 2 ** values[1]


def _check_wrap(
    place: Place, opcode: str, kind: str, kinds: int, signed: tuple[bool, ...], machine: Batch, lanes: Lanes, mask: Any,
    *operands: Any,
) -> None:  # fmt: skip
    bits = int(kind[1:])
    over: dict[bool, Any] = {}
    for reading in (True, False):
        flags = _choose_signs(opcode, reading, signed)
        exact = _compute_exact(
            opcode, [_reinterpret(v, f).astype(np.float64) for v, f in zip(operands, flags, strict=True)]
        )
        low = -(2.0 ** (bits - 1)) if any(flags) else 0.0
        over[reading] = (exact < low) | (exact >= 2.0 ** (bits - 1 if reading else bits))
    own: Any = np.True_ if kind[0] == "b" else over[kind[0] == "s"]
    bad: Any = np.False_
    if kinds & SIGNED:
        bad = bad | (own & over[True])
    if kinds & UNSIGNED:
        bad = bad | (own & over[False])
    if kinds & WHOLE:
        bad = bad | (over[True] & over[False])
    if not bad.any():
        return
    wrapping = _select_bad(mask, lanes, bad)
    if len(wrapping):
        _report_wrap(place, opcode, kind, kinds, signed, machine, lanes, wrapping, operands)


def _choose_signs(opcode: str, reading: bool, signed: tuple[bool, ...]) -> tuple[bool, ...]:
    """Return which operands are signed: all, or those that may be negative; a shift amount never is."""
    flags = tuple(reading or sign for sign in signed)
    return (flags[0], False) if opcode == "shl" else flags


def _report_wrap(
    place: Place, opcode: str, kind: str, kinds: int, signed: tuple[bool, ...], machine: Batch, lanes: Lanes,
    wrapping: Array, operands: tuple[Any, ...],
) -> None:  # fmt: skip
    position, bits = int(wrapping[0]), int(kind[1:])
    reading = bool(kinds & SIGNED) or (kind[0] == "s" and not kinds & UNSIGNED)
    flags = _choose_signs(opcode, reading, signed)
    values = [int(_read_value(_reinterpret(v, f), position)) for v, f in zip(operands, flags, strict=True)]
    if opcode == "shl":
        values[1] = min(values[1], bits)
    exact = _compute_exact(opcode, values)
    remainder = exact & ((1 << bits) - 1)
    result = remainder - (1 << bits) if reading and remainder >> (bits - 1) else remainder
    operand_values = list(zip(_NAMES, values, strict=False))
    type_name = f"{'s' if reading else 'u'}{bits}"
    find_session(machine).engine.numerics.report_overflow(
        place, _find_thread(machine, lanes, position), exact, type_name, operand_values, result, len(wrapping)
    )


def _check_cut(
    place: Place, target: str, in_address: bool, machine: Batch, lanes: Lanes, mask: Any, value: Any, *_: Any
) -> None:
    bits = int(target[1:])
    source: Array = _reinterpret(value, False)
    size, number = 8 * source.dtype.itemsize, source.dtype.type
    low: Array = source & number((1 << bits) - 1)
    sign = number((1 << size) - (1 << bits))
    sign_extension: Array = np.where(low >> number(bits - 1) != 0, low | sign, low)
    bad: Array = (source != low) & (source != sign_extension)
    if not bad.any():
        return
    cut = _select_bad(mask, lanes, bad)
    if not len(cut):
        return
    position = int(cut[0])
    before = int(_read_value(np.asarray(value), position))
    after = int(_read_value(low, position))
    after -= (1 << bits) if target[0] == "s" and after >> (bits - 1) else 0
    find_session(machine).engine.numerics.report_narrowing(
        place, _find_thread(machine, lanes, position), before, target, after, in_address, len(cut)
    )


def _check_rounding(
    place: Place, target: str, mode: str, machine: Batch, lanes: Lanes, mask: Any, value: Any, *_: Any
) -> None:
    a = np.asarray(value)
    bits = a.view(f"u{a.dtype.itemsize}")
    size = np.where(a < 0, ~bits + bits.dtype.type(1), bits).astype(np.uint64)
    limit = np.uint64(1 << FORMATS[target].mantissa + 1)
    large = size > limit
    if not large.any():
        return
    # The integer without its trailing zeros must fit the significand.
    lowest = np.where(large, size & (~size + np.uint64(1)), np.uint64(1))
    inexact = _select_bad(mask, lanes, large & (size // lowest >= limit))
    if not len(inexact):
        return
    position = int(inexact[0])
    number = int(_read_value(a, position))
    result = float(number) if target == "f64" else float(round_to_format(np.array(float(number)), target, mode))
    display = int(result) if np.isfinite(result) else result
    find_session(machine).engine.numerics.report_inexact(
        place, _find_thread(machine, lanes, position), number, target, display, len(inexact)
    )


def _check_clamp(
    place: Place, target: str, source: str, mode: str, sat: bool, machine: Batch, lanes: Lanes, mask: Any, value: Any,
    *_: Any,
) -> None:  # fmt: skip
    raw = np.asarray(value)
    exact = widen(raw, source)
    low, high = find_limits(dtype_of(target))
    integer = ROUNDING[mode](exact)
    bad = np.isnan(exact)
    if not sat:
        bad = bad | (integer < float(low)) | (integer >= float(high + 1))
    if not bad.any():
        return
    positions = _select_bad(mask, lanes, bad)
    if not len(positions):
        return
    first = int(positions[0])
    number = _read_value(exact, first)
    nan_result = (1 << (int(target[1:]) - 1)) if source == "f64" or target[1:] == "64" else 0
    result = (
        (low if target[0] == "s" and nan_result else nan_result) if number != number else high if number > 0 else low
    )
    find_session(machine).engine.numerics.report_out_of_range(
        place, _find_thread(machine, lanes, first), number, target, result, len(positions)
    )
