"""Where NaN and infinity first appear: results that no operand explains. Checked only on request.

`watch_operation` returns the function that replaces an instruction's own; matrix products are in `products`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from pyptx import numbers
from pyptx.check.body import Step
from pyptx.isa.model import Operand
from pyptx.numbers import FORMATS, Special, split_packed
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Place
from pyptx.sim.numerics.formats import code_dtype
from pyptx.sim.observers.checks.session import Session, find_session, locate_session, make_place
from pyptx.sim.semantics import atomics
from pyptx.sim.semantics.narrow import unpack
from pyptx.sim.semantics.vocabulary import Operation
from pyptx.sim.state.memory import Site

Function = Callable[..., Any]
_COMPUTE = frozenset((
    "add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "cvt",
))  # fmt: skip
_DIVISOR = {"div": 1, "rcp": 0}


def watch_operation(step: Step, operation: Operation) -> Function | None:
    """Return a function that runs a floating-point instruction and checks its result, None for other instructions. It
    takes the machine, the lanes, the guard and the operands."""
    plan, inner = step.plan, operation.function
    if plan is None or inner is None or step.instruction.opcode not in _COMPUTE or operation.selects:
        return None
    result, *operands = plan.signature
    if not is_float(result.type) or result.count or operation.carry:
        return None
    place = make_place(step.instruction)
    inputs = [operand for operand in operands if operand.access != "w"]
    return partial(_compute_checked, inner, place, step.instruction.opcode, result, inputs)


def watch_sums(operation: Operation) -> Operation:
    """Return the operation that adds to memory and checks the sums; return others unchanged."""
    function = atomics.watch_sums(operation.function, _check_sums)
    return operation if function is None else Operation(operation.kind, function, operation.carry, operation.selects)


def _check_sums(kind: str, site: Site, lanes: Lanes, positions: Array, old: Array, addends: Array, sums: Array) -> None:
    if not are_finite(sums, kind):
        checks, place = locate_session(site)
        operands = [("old", split_elements(old, kind)), ("b", split_elements(addends, kind))]
        _report_flaws(
            place,
            "atom",
            operands,
            split_elements(sums, kind),
            checks,
            lanes.shape.select_index(lanes.index[positions]),
            None,
        )


def check_copy(site: Site, lane: Lanes, kind: str, old: Array, new: Array, total: Array) -> None:
    """Check the sums of a reducing copy. They count for the lane that issued it."""
    if are_finite(total, kind):
        return
    checks, place = locate_session(site)
    before, source, sums = (split_elements(value, kind)[0] for value in (old, new, total))
    nan, infinite = _find_flaws([before, source])
    thread = checks.group_lanes(lane).first
    for is_nan, bad in ((True, np.isnan(sums) & ~nan), (False, np.isinf(sums) & ~nan & ~infinite)):
        positions = np.flatnonzero(bad)
        if len(positions):
            addends = [(name, format_number(part[positions[0]])) for name, part in (("old", before), ("new", source))]
            result = format_number(sums[positions[0]])
            checks.engine.numerics.report_nonfinite(place, thread, is_nan, addends, result, len(positions))


def is_float(name: str | None) -> bool:
    """Tell whether a type, or the elements of a packed one, are floating-point numbers."""
    return name is not None and numbers.is_float(split_packed(name)[0])


def split_elements(value: Any, kind: str | None) -> list[Array]:
    """Return the elements of a value as numbers, lowest bits first; other types count as finite."""
    if isinstance(value, tuple):
        return [part for item in cast("tuple[Any, ...]", value) for part in split_elements(item, kind)]
    if kind == "f64" or not is_float(kind):
        return [np.asarray(value)]
    assert kind is not None
    return unpack(np.asarray(value), kind) if split_packed(kind)[1] > 1 else [_decode(np.asarray(value), kind)]


def _decode(value: Array, kind: str) -> Array:
    return value if kind == "f32" else unpack(value, f"{kind}x1")[0]


def are_finite(value: Array, kind: str) -> bool:
    """Tell quickly whether a value is finite in all lanes."""
    name = split_packed(kind)[0]
    if name in ("f32", "f64"):
        bits = value if value.dtype.kind == "f" else np.ascontiguousarray(value).view(np.float32)
        return bool(np.isfinite(bits).all())
    form = FORMATS[name]
    if form.special is not Special.IEEE:
        return not any(np.isnan(part).any() for part in split_elements(value, kind))
    unit = code_dtype(form)
    units, exponent = np.ascontiguousarray(value).view(unit), unit.type(form.exponent_mask << form.shift)
    return not (units & exponent == exponent).any()


def _compute_checked(
    inner: Function, place: Place, opcode: str, result: Operand, operands: list[Operand], machine: Batch, lanes: Lanes,
    mask: Any, *values: Any,
) -> Any:  # fmt: skip
    result_value = inner(*values)
    assert result.type is not None
    if not are_finite(np.asarray(result_value), result.type):
        elements = [
            (operand.name, split_elements(value, operand.type))
            for operand, value in zip(operands, values, strict=False)
        ]
        parts = split_elements(np.asarray(result_value), result.type)
        _report_flaws(place, opcode, elements, parts, find_session(machine), lanes, mask)
    return result_value


def _report_flaws(
    place: Place, opcode: str, operands: list[tuple[str, list[Array]]], results: list[Array], checks: Session,
    lanes: Lanes, mask: Any,
) -> None:  # fmt: skip
    """Report NaN elements without NaN operands, and infinite elements of finite operands."""
    for index, result in enumerate(results):
        used = _select_used(operands, index, len(results), opcode)
        nan, infinite = _find_flaws([value for _, value in used])
        for is_nan, bad in ((True, np.isnan(result) & ~nan), (False, np.isinf(result) & ~nan & ~infinite)):
            is_bad = np.broadcast_to(bad, lanes.n)
            positions = np.flatnonzero(is_bad if mask is None else is_bad & mask)
            if len(positions):
                part = f"element {index}" if len(results) > 1 else ""
                _report(place, opcode, is_nan, used, result, checks, lanes, positions, part)


def _select_used(
    operands: list[tuple[str, list[Array]]], index: int, count: int, opcode: str
) -> list[tuple[str, Array]]:
    """Return the operands of one element of a result: the same element of each operand. A packing conversion takes its
    operands highest first; other operands of a different count are used as a whole."""
    if all(len(parts) == count for _, parts in operands):
        return [(name, parts[index]) for name, parts in operands]
    elements = [(name, part) for name, parts in operands for part in parts]
    return [elements[count - 1 - index]] if opcode == "cvt" and len(elements) == count else elements


def _find_flaws(values: list[Array]) -> tuple[Array, Array]:
    nan, infinite = np.False_, np.False_
    for value in values:
        if value.dtype.kind == "f":
            nan, infinite = nan | np.isnan(value), infinite | np.isinf(value)
    return np.asarray(nan), np.asarray(infinite)


def _report(
    place: Place, opcode: str, nan: bool, used: list[tuple[str, Array]], values: Array, checks: Session, lanes: Lanes,
    positions: Array, part: str,
) -> None:  # fmt: skip
    position = int(positions[0])
    descriptions = [(name, format_number(_read_value(value, position))) for name, value in used]
    divisor = _DIVISOR.get(opcode)
    if divisor is not None and divisor < len(used) and _read_value(used[divisor][1], position) == 0:
        descriptions[divisor] = f"divisor {descriptions[divisor][0]}", descriptions[divisor][1]
    thread = int(checks.threads[int(lanes.index[position])])
    result = format_number(_read_value(values, position))
    checks.engine.numerics.report_nonfinite(place, thread, nan, descriptions, result, len(positions), part)


def _read_value(value: Array, position: int) -> Any:
    return value.reshape(-1)[0] if value.size == 1 else value[position]


def format_number(value: Any) -> str:
    """Format a number with as many digits as its type holds."""
    return str(np.asarray(value)[()])
