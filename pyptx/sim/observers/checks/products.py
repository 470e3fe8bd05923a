"""NaN and infinity that first appear in matrix products: an element of D whose row of A, column of B and accumulator
were finite. `mma` and `wmma` are checked per warp: a flaw anywhere in A or B counts for all of its D."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from pyptx.check.body import Step
from pyptx.isa.descriptors import InstructionDescriptor
from pyptx.isa.traits import Trait
from pyptx.numbers import FORMATS, is_float
from pyptx.sim.base.formats import Array, numpy_code
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import bulk
from pyptx.sim.engines.issuing import select_lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Place
from pyptx.sim.observers.checks.numerics import are_finite, format_number, split_elements
from pyptx.sim.observers.checks.session import Session, find_session, locate_session, make_place
from pyptx.sim.semantics import tcgen05_mma as blackwell
from pyptx.sim.semantics import tcgen05_operands as read
from pyptx.sim.semantics import wgmma as hopper
from pyptx.sim.semantics.vocabulary import Operation
from pyptx.sim.semantics.warp_matrices import order_by_warp
from pyptx.sim.state import warpgroups as wg
from pyptx.sim.state.accumulators import find_accumulator
from pyptx.sim.state.memory import Site
from pyptx.types import ALL

Function = Callable[..., Any]
_TYPES = frozenset(t.name for t in ALL)


def watch_warp_product(step: Step, inner: Function) -> Function | None:
    """Return a function that runs `mma` or `wmma.mma` and checks D in the registers of the warp."""
    if step.plan is None or Trait.MULTIPLIES not in step.traits or Trait.ISSUES in step.traits:
        return None
    flat = [part for modifier in step.plan.match.modifiers for part in modifier.split(".")]
    types = [part for part in flat if part in _TYPES]
    if len(types) == 2:  # `wmma` names only the types of D and C.
        types = [types[0], "f16", "f16", types[-1]]
    if types[0] not in ("f16", "f32", "f64"):
        return None
    # The scale factors of A and B follow the metadata of a sparse A.
    first = 2 if any(part.startswith("sp") for part in flat) else 0
    scales = (first, first + 2) if "block_scale" in flat else ()
    return partial(_multiply_in_warp, inner, make_place(step.instruction), types[:4], scales)


def watch_warpgroup_product(operation: Operation, inner: Function) -> Function | None:
    """Return a function that runs a warpgroup product and checks D."""
    function = operation.function
    spelling = getattr(function, "args", (None,))[0]
    if isinstance(spelling, hopper.Spelling) and is_float(spelling.types[0]):
        return partial(_multiply_in_warpgroup, spelling, inner)
    return None


def watch_issue(operation: Operation) -> Operation:
    """Return the operation that runs a tcgen05 product and checks D; return others unchanged."""
    function = operation.function
    spelling = getattr(function, "args", (None,))[0]
    if function is None or not isinstance(spelling, blackwell.Spelling):
        return operation
    return Operation(operation.kind, partial(_issue, spelling, function), operation.carry, operation.selects)


@dataclass(frozen=True, slots=True)
class Flaws:
    """Where values are NaN, and where they are infinite."""

    nan: Array
    infinite: Array

    @staticmethod
    def find(value: Array) -> Flaws:
        return Flaws(np.isnan(value), np.isinf(value))

    def collapse(self, axis: int) -> Flaws:
        """Return which rows, or columns, have flaws."""
        return Flaws(np.asarray(self.nan.any(axis)), np.asarray(self.infinite.any(axis)))

    def select(self, index: Any) -> Flaws:
        return Flaws(self.nan[index], self.infinite[index])

    def __or__(self, other: Flaws) -> Flaws:
        return Flaws(self.nan | other.nan, self.infinite | other.infinite)

    def find_new(self, values: Array) -> list[tuple[bool, Array]]:
        """Return where NaN, and where infinity, appears without a flaw in the operands."""
        return [(True, np.isnan(values) & ~self.nan), (False, np.isinf(values) & ~self.nan & ~self.infinite)]


# Registers of warps


def _multiply_in_warp(
    inner: Function, place: Place, types: list[str], scales: tuple[int, ...], machine: Batch, lanes: Lanes, mask: Any,
    a: Any, b: Any, c: Any, *options: Any,
) -> Any:  # fmt: skip
    product = inner(machine, lanes, a, b, c, *options)
    kind = _spell_register(types[0])
    if all(are_finite(np.asarray(value), kind) for value in product):
        return product
    flaws = _find_flaws(lanes, a, types[1]) | _find_flaws(lanes, b, types[2])
    if scales:
        words = [np.ascontiguousarray(lanes.broadcast(options[index])) for index in scales]
        bad = [(word.view("u1") == 0xFF).reshape(lanes.n, -1) for word in words]
        flaws |= _spread_to_warps(lanes, Flaws(np.asarray(np.concatenate(bad, 1).any(1)), np.zeros(lanes.n, np.bool_)))
    elements, start = _stack_elements(lanes, product, kind), _stack_elements(lanes, c, _spell_register(types[3]))
    same_type = types[0] == types[3]
    flaws |= Flaws.find(start) if same_type else _spread_to_warps(lanes, Flaws.find(start).collapse(0))
    for nan, bad in flaws.find_new(elements):
        if bad.any():
            index, lane = (int(positions[0]) for positions in np.nonzero(bad))
            operands = [("c", format_number(start[index, lane]))] if same_type else []
            operands += [("largest a of the warp", format_number(_find_largest(lanes, a, types[1], lane))),
                      ("largest b of the warp", format_number(_find_largest(lanes, b, types[2], lane)))]  # fmt: skip
            thread, result = (
                int(find_session(machine).threads[int(lanes.index[lane])]),
                format_number(elements[index, lane]),
            )
            numerics = find_session(machine).engine.numerics
            numerics.report_nonfinite(place, thread, nan, operands, result, int(bad.sum()), f"element {index} of D")
    return product


def _spell_register(kind: str) -> str:
    """Return the type of a register of elements: f16x2 for f16."""
    count = 32 // FORMATS[kind].width
    return f"{kind}x{count}" if is_float(kind) and count > 1 else kind


def _stack_elements(lanes: Lanes, registers: Any, kind: str) -> Array:
    """Return the elements of accumulators, `[element, lane]`."""
    return np.stack([np.broadcast_to(part, lanes.n) for part in split_elements(tuple(registers), kind)])


def _read_numbers(lanes: Lanes, operand: Any, kind: str) -> Array:
    """Return the numbers in the registers of an operand, `[element, lane]`."""
    if is_float(kind) and FORMATS[kind].nan is None:
        return np.zeros((1, lanes.n))
    bits = tuple(v if np.asarray(v).dtype.kind != "i" else v.view(f"u{v.dtype.itemsize}") for v in operand)
    parts = split_elements(tuple(bits), _spell_register(kind))
    return np.stack([np.broadcast_to(np.asarray(part, np.float64), lanes.n) for part in parts])


def _find_flaws(lanes: Lanes, operand: Any, kind: str) -> Flaws:
    return _spread_to_warps(lanes, Flaws.find(_read_numbers(lanes, operand, kind)).collapse(0))


def _spread_to_warps(lanes: Lanes, flaws: Flaws) -> Flaws:
    """Spread the flaws of lanes to all lanes of their warps."""
    order = order_by_warp(lanes)
    warp_flaws: list[Array] = []
    for values in (flaws.nan, flaws.infinite):
        warp_flags = np.empty(lanes.n, np.bool_)
        warp_flags[order] = np.repeat(values[order].reshape(-1, 32).any(1), 32)
        warp_flaws.append(warp_flags)
    return Flaws(*warp_flaws)


def _find_largest(lanes: Lanes, operand: Any, kind: str, lane: int) -> float:
    order = order_by_warp(lanes)
    mine = order.reshape(-1, 32)[int(np.flatnonzero(order == lane)[0]) // 32]
    return float(np.abs(_read_numbers(lanes, operand, kind)[:, mine]).max())


# Registers of warpgroups


def _multiply_in_warpgroup(
    spelling: hopper.Spelling, inner: Function, site: Site, lanes: Lanes, mask: Any, outs: Any, d: Any, *values: Any
) -> None:
    groups = wg.get_groups(lanes)
    operands = dict(zip(spelling.names, values, strict=True))
    scale_d: Array = lanes.broadcast(operands["scale_d"])[groups.first]
    kind = numpy_code(spelling.types[0])
    start = _read_accumulators(site, lanes, groups, d, kind)
    before = None if np.isfinite(start).all() else Flaws.find(start)
    inner(site, lanes, mask, outs, d, *values)
    result = _read_accumulators(site, lanes, groups, d, kind)
    if np.isfinite(result).all():
        return
    a_rows, b_columns = hopper.read_operands(spelling, site, lanes, groups, operands)
    if len(b_columns) < groups.count:
        b_columns = np.tile(b_columns, (groups.count // len(b_columns), 1, 1))
    flaws = Flaws.find(a_rows).collapse(2).select((slice(None), slice(None), None))
    flaws |= Flaws.find(b_columns).collapse(2).select((slice(None), None))
    if before is not None:
        accumulates = scale_d.astype(bool)[:, None, None]
        flaws |= Flaws(before.nan & accumulates, before.infinite & accumulates)
    checks, place = locate_session(site)
    for nan, bad in flaws.find_new(result):
        if bad.any():
            group, row, column = (int(axis_indices[0]) for axis_indices in np.nonzero(bad))
            first = int(checks.threads[int(lanes.index[groups.first[group]])])
            thread = first + row // 16 * 32 + row % 8 * 4 + column % 8 // 2
            factors = a_rows[group, row], b_columns[group, column]
            _report(checks, place, thread, nan, factors, result[group, row, column], bad, (row, column))


def _read_accumulators(site: Site, lanes: Lanes, groups: wg.Groups, d: tuple[Array, ...], kind: str) -> Array:
    """Return D of every warpgroup, `[group, row, column]`."""
    accumulators = (
        find_accumulator(site.memory.accumulators, site.number, lanes, kind)
        if site.number >= 0 and groups.plain
        else None
    )
    return wg.load_accumulator(groups, d, kind) if accumulators is None else accumulators.matrix


def _report(
    checks: Session, place: Place, thread: int, nan: bool, factors: tuple[Array, Array], result: Any, bad: Array,
    position: tuple[int, int],
) -> None:  # fmt: skip
    operands = [(f"largest {name}", format_number(np.abs(part).max())) for name, part in zip(
        ("of the row of a", "of the column of b"), factors, strict=True)]  # fmt: skip
    element = f"row {position[0]}, column {position[1]} of D"
    checks.engine.numerics.report_nonfinite(
        place, thread, nan, operands, format_number(result), int(bad.sum()), element
    )


# Tensor memory


def _issue(spelling: blackwell.Spelling, inner: Function, site: Site, group: Lanes, mask: Any, *arguments: Any) -> None:
    """Run the product that one lane issues, or equal products of many lanes."""
    checks, place = locate_session(site)
    raw_operands = blackwell.name_operands(spelling, arguments)
    active, values = select_lanes(group, mask, *raw_operands.values())
    if active is None:
        return
    ctas = np.unique(active.cta if spelling.ctas == 1 else active.cta[:, None] & ~1 | np.arange(2))
    if len(ctas) < active.n * spelling.ctas or not all(_is_uniform(value) for value in values):
        for lane in active.index.tolist():
            _issue(spelling, inner, site, group, group.index == lane, *arguments)
        return
    operands = {name: blackwell.read_number(value, 0) for name, value in zip(raw_operands, values, strict=True)}
    lanes = [lane for _, lane in bulk.split_lanes(active)]
    halves = _split_halves(spelling, site, lanes[0], operands)
    column, descriptor = operands["d"] & 0xFFFF, halves[0].descriptor if halves else None
    if descriptor is None or not is_float(descriptor.d.name):
        inner(site, group, mask, *arguments)
        return
    before = (
        _read_unless_finite(site, ctas, column, descriptor)
        if operands["accumulate"] or "disabled" in operands
        else None
    )
    inner(site, group, mask, *arguments)
    if _read_unless_finite(site, ctas, column, descriptor) is None:
        return
    for issuer in lanes:
        halves = _split_halves(spelling, site, issuer, operands)
        for half in halves:
            index = int(np.searchsorted(ctas, half.cta))
            start = None if before is None else before[index][half.lanes, : descriptor.n // half.lanes.shape[0]]
            _check_half(spelling, halves, half, operands, start, checks, place, checks.group_lanes(issuer).first)


def _is_uniform(value: Any) -> bool:
    """Tell whether an operand is the same in all lanes."""
    words = cast("tuple[Array, ...]", value) if isinstance(value, tuple) else (np.asarray(value),)
    return all((word == word[0]).all() for word in words)


def _split_halves(spelling: blackwell.Spelling, site: Site, lane: Lanes, operands: dict[str, Any]) -> list[read.Half]:
    """Return the shares of a product; none if it is not legal, which the product itself reports."""
    try:
        return blackwell.find_halves(spelling, site, lane, operands)
    except (ValueError, IndexError):
        return []


def _read_unless_finite(site: Site, ctas: Array, column: int, descriptor: InstructionDescriptor) -> Array | None:
    """Return D in tensor memory, `[cta, lane, column]`, None if all of it is finite."""
    is_contiguous = int(ctas[-1]) - int(ctas[0]) + 1 == len(ctas)
    cta_index = slice(int(ctas[0]), int(ctas[-1]) + 1) if is_contiguous else ctas
    accumulators = blackwell.decode_words(
        site.memory.tensor.cells[cta_index, :, column : column + descriptor.n], descriptor.d.name
    )
    return None if np.isfinite(accumulators).all() else accumulators.copy()


def _read_half(half: read.Half, operands: dict[str, Any]) -> Array:
    """Return the accumulators of one CTA, `[part of N, row, column of the part]`."""
    width = half.descriptor.n // half.lanes.shape[0]
    return blackwell.decode_words(read.read_words(half, "D", half.lanes, operands["d"], width), half.descriptor.d.name)


def _check_half(
    spelling: blackwell.Spelling, halves: list[read.Half], half: read.Half, operands: dict[str, Any],
    start: Array | None, checks: Session, place: Place, thread: int,
) -> None:  # fmt: skip
    result = _read_half(half, operands)
    if np.isfinite(result).all():
        return
    parts, _, width = result.shape
    a_rows = blackwell.read_rows(spelling, half, operands)
    b_columns = blackwell.read_columns(halves, operands).reshape(parts, width, -1)
    flaws = Flaws.find(a_rows).collapse(2).select((slice(None), slice(None), None))
    flaws |= Flaws.find(b_columns).collapse(2).select((slice(None), None))
    if spelling.block:
        for_a, for_b = blackwell.read_scales(spelling, half, width, operands)
        flaws |= Flaws.find(for_a).collapse(2).select((slice(None), slice(None), None))
        flaws |= Flaws.find(for_b).collapse(1).select((slice(None), None))
    if start is not None:
        flaws |= Flaws.find(start)
    for nan, bad in flaws.find_new(result):
        if bad.any():
            part, row, column = (int(indices[0]) for indices in np.nonzero(bad))
            factors = a_rows[min(part, len(a_rows) - 1), row], b_columns[part, column]
            _report(checks, place, thread, nan, factors, result[part, row, column], bad, (row, part * width + column))
