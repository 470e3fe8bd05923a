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
from pyptx.sim.semantics.bits import limits
from pyptx.sim.semantics.conversion import WHOLE as ROUNDING
from pyptx.types import ALL

Told = Callable[..., None]
_NUMBERS = frozenset(t.name for t in ALL)
_NAMES = "abc"


@dataclass(slots=True)
class Known:
    """Static facts of a function: how results become part of addresses, and which registers may be negative."""

    uses: dict[int, int]
    signed: frozenset[addresses.Register]
    read: frozenset[addresses.Register]
    bits: frozenset[addresses.Register]


class Integers:
    """The hooks of a program's integer instructions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[int, Known] = {}

    def make_event(self, step: Step, block: Block) -> Told | None:
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

    def _know(self, code: Code) -> Known:
        known = self._known.get(code.number)
        if known is None:
            blocks = self.program.blocks
            known = self._known[code.number] = Known(
                addresses.find_uses(blocks, code),
                addresses.find_signed(blocks, code),
                addresses.find_read(blocks, code),
                addresses.find_bits(blocks, code),
            )
        return known

    def _watch_arithmetic(self, step: Step, code: Code, kind: str) -> Told | None:
        known = self._know(code)
        kinds = known.uses.get(id(step), 0)
        opcode = step.instruction.opcode
        if not kinds or (opcode == "sub" and kind[0] == "u"):
            return None
        signed = tuple(
            addresses.is_negative(operand) or _register_of(operand, step) in known.signed
            for operand in step.instruction.operands[1:]
        )
        return partial(_check_wrap, make_place(step.instruction), opcode, kind, kinds, signed)

    def _watch_conversion(self, step: Step, code: Code, words: list[str]) -> Told | None:
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

    def _watch_narrowing(self, step: Step, code: Code, target: str) -> Told | None:
        """Half of a 64-bit number is often intended, as the low word of a product, but not as an address."""
        known, operand = self._know(code), step.instruction.operands[1]
        used = bool(known.uses.get(id(step)))
        if not used and (target[1:] == "32" or _register_of(operand, step) in known.bits):
            return None
        return partial(_check_cut, make_place(step.instruction), target, used)

    def _watch_split(self, step: Step, code: Code, parts: VectorOperand) -> Told | None:
        """Check `mov.b64 {lo, hi}, x` if `lo` becomes part of an address and `hi` is never read."""
        known = self._know(code)
        low, *high = (addresses.find_register(e.name, step) for e in parts.elements
                      if isinstance(e, RegisterOperand | LabelOperand))  # fmt: skip
        whole = step.instruction.modifiers[-1] == ".b64" and len(parts.elements) == 2
        if not whole or low is None or not known.uses.get(id(step)) or any(register in known.read for register in high):
            return None
        return partial(_check_cut, make_place(step.instruction), "b32", True)


_WRAPPING = frozenset(("u16", "u32", "s16", "s32", "b16", "b32"))
_KEEPS = frozenset(("wide", "hi", "sat", "cc"))


def _register_of(operand: Operand, step: Step) -> addresses.Register | None:
    return addresses.find_register(operand.name, step) if isinstance(operand, RegisterOperand | LabelOperand) else None


def _is_integer(name: str) -> bool:
    return name[0] in "us" and name[1:].isdigit()


def _select_bad(mask: Any, lanes: Lanes, bad: Array) -> Array:
    """Return the positions of the executing lanes that are bad."""
    whole = np.broadcast_to(bad, lanes.n)
    return np.flatnonzero(whole if mask is None else whole & mask)


def _thread_at(machine: Batch, lanes: Lanes, at: int) -> int:
    return int(find_session(machine).threads[int(lanes.index[at])])


def _value_at(value: Any, at: int) -> Any:
    return np.asarray(value).item() if np.ndim(value) == 0 else value[at].item()


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
    at, bits = int(wrapping[0]), int(kind[1:])
    reading = bool(kinds & SIGNED) or (kind[0] == "s" and not kinds & UNSIGNED)
    flags = _choose_signs(opcode, reading, signed)
    values = [int(_value_at(_reinterpret(v, f), at)) for v, f in zip(operands, flags, strict=True)]
    if opcode == "shl":
        values[1] = min(values[1], bits)
    exact = _compute_exact(opcode, values)
    wrapped = exact & ((1 << bits) - 1)
    result = wrapped - (1 << bits) if reading and wrapped >> (bits - 1) else wrapped
    named = list(zip(_NAMES, values, strict=False))
    shown = f"{'s' if reading else 'u'}{bits}"
    find_session(machine).engine.numerics.overflows(
        place, _thread_at(machine, lanes, at), exact, shown, named, result, len(wrapping)
    )


def _check_cut(
    place: Place, target: str, used: bool, machine: Batch, lanes: Lanes, mask: Any, value: Any, *_: Any
) -> None:
    bits = int(target[1:])
    whole: Array = _reinterpret(value, False)
    size, number = 8 * whole.dtype.itemsize, whole.dtype.type
    low: Array = whole & number((1 << bits) - 1)
    sign = number((1 << size) - (1 << bits))
    extended: Array = np.where(low >> number(bits - 1) != 0, low | sign, low)
    bad: Array = (whole != low) & (whole != extended)
    if not bad.any():
        return
    cut = _select_bad(mask, lanes, bad)
    if not len(cut):
        return
    at = int(cut[0])
    before = int(_value_at(np.asarray(value), at))
    after = int(_value_at(low, at))
    after -= (1 << bits) if target[0] == "s" and after >> (bits - 1) else 0
    find_session(machine).engine.numerics.narrowed(
        place, _thread_at(machine, lanes, at), before, target, after, used, len(cut)
    )


def _check_rounding(
    place: Place, target: str, mode: str, machine: Batch, lanes: Lanes, mask: Any, value: Any, *_: Any
) -> None:
    a = np.asarray(value)
    bits = a.view(f"u{a.dtype.itemsize}")
    size = np.where(a < 0, ~bits + bits.dtype.type(1), bits).astype(np.uint64)
    most = np.uint64(1 << FORMATS[target].mantissa + 1)
    large = size > most
    if not large.any():
        return
    # The integer without its trailing zeros must fit the significand.
    lowest = np.where(large, size & (~size + np.uint64(1)), np.uint64(1))
    inexact = _select_bad(mask, lanes, large & (size // lowest >= most))
    if not len(inexact):
        return
    at = int(inexact[0])
    number = int(_value_at(a, at))
    result = float(number) if target == "f64" else float(round_to_format(np.array(float(number)), target, mode))
    shown = int(result) if np.isfinite(result) else result
    find_session(machine).engine.numerics.inexact(
        place, _thread_at(machine, lanes, at), number, target, shown, len(inexact)
    )


def _check_clamp(
    place: Place, target: str, source: str, mode: str, sat: bool, machine: Batch, lanes: Lanes, mask: Any, value: Any,
    *_: Any,
) -> None:  # fmt: skip
    raw = np.asarray(value)
    exact = widen(raw, source)
    low, high = limits(dtype_of(target))
    whole = ROUNDING[mode](exact)
    bad = np.isnan(exact)
    if not sat:
        bad = bad | (whole < float(low)) | (whole >= float(high + 1))
    if not bad.any():
        return
    clamped = _select_bad(mask, lanes, bad)
    if not len(clamped):
        return
    at = int(clamped[0])
    number = _value_at(exact, at)
    empty = (1 << (int(target[1:]) - 1)) if source == "f64" or target[1:] == "64" else 0
    result = (low if target[0] == "s" and empty else empty) if number != number else high if number > 0 else low
    find_session(machine).engine.numerics.out_of_range(
        place, _thread_at(machine, lanes, at), number, target, result, len(clamped)
    )
