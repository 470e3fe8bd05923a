"""Warpgroup products: the shared bytes and the registers that they use while they run.

An instruction of all warpgroups of a batch is reported once, with a matrix of addresses, one row per warpgroup.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.ir import LabelOperand, RegisterOperand, VectorOperand
from pyptx.ir.operands import Operand
from pyptx.isa.descriptors import WgmmaDescriptor
from pyptx.isa.traits import Trait
from pyptx.numbers import compute_type_bits
from pyptx.sim import rules as hazards
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Group, Place
from pyptx.sim.hazards.rows import Rows, merge_granules, place_at_bases
from pyptx.sim.observers.checks import layouts
from pyptx.sim.observers.checks.descriptors import report_overlap, report_start
from pyptx.sim.observers.checks.session import Session, find_session, locate_session, make_place
from pyptx.sim.program.blocks import find_names, is_product
from pyptx.sim.rules import faults
from pyptx.sim.semantics.wgmma import Spelling
from pyptx.sim.state import warpgroups as wg
from pyptx.sim.state.memory import Site

_GRANULE = 16
_CACHE_BYTES = 1 << 24
"""Bytes of operand places that are kept for a set of lanes."""
Inner = Callable[..., None]
Registers = frozenset[int]
Numbering = Callable[[str], int | None]
"""Returns the number of a register."""


def hook(step: Step, inner: Inner, numbering: Numbering, read_registers: Registers) -> Inner | None:
    """Return a function that runs a product and reports it. `read_registers` are those that other instructions
    read."""
    if not is_product(step):
        return None
    product: Spelling = inner.args[0]  # pyright: ignore[reportFunctionMemberAccess]
    operands = step.instruction.operands
    accumulators = number_registers(operands[0], numbering)
    factors = number_registers(operands[1], numbering) if product.in_registers else frozenset[int]()
    names = list(find_names(operands[0]))
    unread_names = [name for name in names if numbering(name) not in read_registers]
    unread = f"{len(unread_names)} of {len(names)} registers, the first is {unread_names[0]}" if unread_names else ""
    return partial(_multiply, inner, product, accumulators, factors, unread)


def make_event(step: Step) -> Callable[..., None] | None:
    """Return the function that reports a fence, the end of a group or a wait for groups."""
    place = make_place(step.instruction)
    match step.traits:
        case {Trait.ORDERS: _}:
            return partial(_fence, place)
        case {Trait.COMMITS: _}:
            return partial(_commit, place)
        case {Trait.LANDS: _}:
            return partial(_wait, place)
        case _:
            return None


def number_registers(operand: Operand, numbering: Numbering) -> Registers:
    """Return the numbers of the registers that an operand names."""
    elements = operand.elements if isinstance(operand, VectorOperand) else (operand,)
    names = (e.name for e in elements if isinstance(e, RegisterOperand | LabelOperand))
    return _intern(frozenset(number for name in names if (number := numbering(name)) is not None))


def is_sum(step: Step, name: str) -> bool:
    """Tell whether a register belongs to the accumulator of a `wgmma.mma_async`."""
    return is_product(step) and name in find_names(step.instruction.operands[0])


@lru_cache(maxsize=1024)
def _intern(registers: Registers) -> Registers:
    """Return the same object for equal sets: the engine compares them for every product."""
    return registers


def group_by_warpgroup(checks: Session, lanes: Lanes) -> list[Group]:
    """Return the lanes of each warpgroup."""

    def make_groups() -> list[Group]:
        threads = checks.group_lanes(lanes).threads
        shape = lanes.shape
        key = shape.cta[lanes.sel] * (shape.warps + 3) + shape.thread[lanes.sel] // wg.THREADS
        return [Group(np.sort(threads[key == number])) for number in np.unique(key)]

    return lanes.compute_once("hazards by warpgroup", make_groups)


def _multiply(
    inner: Inner, product: Spelling, accumulators: Registers, factors: Registers, unread: str, site: Site,
    lanes: Lanes, mask: Any, outs: Any, d: Any, *arguments: Any,
) -> None:  # fmt: skip
    inner(site, lanes, mask, outs, d, *arguments)
    checks, place = locate_session(site)
    if unread and checks.unread is not None:
        thread = checks.group_lanes(lanes).first
        checks.engine.state.report(hazards.UNREAD_ACCUMULATOR, place, unread, thread=thread)
    values_by_name = dict(zip(product.names, arguments, strict=True))
    a_columns = product.k // 2 if product.sparse else product.k
    shapes = [("b", 2, product.n, product.k)] + ([] if product.in_registers else [("a", 1, 64, a_columns)])
    operands = [
        _collect_granules(
            site,
            lanes,
            values_by_name[name],
            (name.upper(), product.types[index]),
            rows,
            columns,
            _is_across(values_by_name, name),
        )
        for name, index, rows, columns in shapes
    ]
    for name, *_ in shapes:
        values = lanes.broadcast(values_by_name[name]).astype(np.int64)
        checks.engine.warps.check_uniform(
            checks.group_lanes(lanes), place, values, f"descriptor of {name.upper()}", _find_firsts(lanes)
        )
    shape = f"m64n{product.n}k{product.k}"
    together = group_by_warpgroup(checks, lanes)
    checks.engine.wgmma.issue_all(together, place, operands, accumulators, factors, shape)
    for rows, (name, index, *_) in zip(operands, shapes, strict=True):
        if checks.unread is not None:
            checks.unread.record_product_reads(rows)
        layouts.check_warpgroup_operands(site, lanes, together, rows, values_by_name[name], product.types[index])


def _find_firsts(lanes: Lanes) -> Array:
    """Return, for every lane, the position of the first one of its warpgroup."""

    def find() -> Array:
        key = lanes.shape.cta[lanes.sel] * (lanes.shape.warps + 3) + lanes.shape.thread[lanes.sel] // wg.THREADS
        _, first, group_of_lane = np.unique(key, return_index=True, return_inverse=True)
        return first[group_of_lane]

    return lanes.compute_once("first lanes of warpgroups", find)


def _is_across(values_by_name: dict[str, Any], name: str) -> bool:
    return bool(int(values_by_name.get(f"transpose_{name}", 0)))


@dataclass(slots=True)
class _Operands:
    """Operand places of a set of lanes, by descriptor: a ring of stages repeats them. For each warpgroup in the order
    of `group_by_warpgroup`: the position of its first lane and the CTA's first granule."""

    first: Array
    base: Array
    rows: dict[Any, Rows] = field(default_factory=dict[Any, Rows])

    @staticmethod
    def locate(lanes: Lanes) -> _Operands:
        groups = wg.get_groups(lanes)
        order = np.lexsort((lanes.shape.thread[lanes.sel][groups.first], groups.cta))
        return _Operands(groups.first[order], groups.cta[order] * (lanes.shape.shared_stride // _GRANULE))


def _collect_granules(
    site: Site, lanes: Lanes, descriptors: Any, operand: tuple[str, str], rows: int, columns: int, across: bool
) -> Rows:
    """Return the granules of an operand of each warpgroup; `operand` is its name and type."""
    cache: _Operands = lanes.compute_once("hazards of products", lambda: _Operands.locate(lanes))
    values, bits = lanes.broadcast(descriptors)[cache.first], compute_type_bits(operand[1])
    key = values.tobytes(), rows, columns, bits, across
    granule_rows = cache.rows.get(key)
    if granule_rows is None:
        for value in np.unique(values).tolist():
            granules = _list_granules(value, rows, columns, bits, across)
            _check_inside(site, granules)
            matrix = wg.Matrix(
                *operand, WgmmaDescriptor.decode(value), rows, *_convert_to_bytes(columns, bits), across
            )  # fmt: skip
            checks, place = locate_session(site)
            report_start(checks, place, checks.group_lanes(lanes).first, matrix, site.memory.shared.low)
            if matrix.overlaps(len(granules)):
                report_overlap(checks, place, checks.group_lanes(lanes).first, matrix)
        granule_rows = _spread_rows(cache.base, values, site.memory.shared.low, rows, columns, bits, across)
        if (
            sum(cached_rows.blocks.nbytes for cached_rows in cache.rows.values()) + granule_rows.blocks.nbytes
            > _CACHE_BYTES
        ):
            cache.rows.clear()
        cache.rows[key] = granule_rows
    return granule_rows


def _convert_to_bytes(columns: int, bits: int) -> tuple[int, int]:
    """Return columns of elements as columns of whole bytes, and the bytes of each."""
    return (columns // 8, 1) if bits == 1 else (columns, bits // 8)


def _check_inside(site: Site, granules: Array) -> None:
    """Reject a matrix that extends beyond shared memory: the product itself may be computed later."""
    shared = site.memory.shared
    low, high = int(granules[0]) * _GRANULE, int(granules[-1]) * _GRANULE
    if low < shared.low // _GRANULE * _GRANULE or high >= shared.low + shared.size:
        why = wg.make_outside_error(shared, low, high + 15)
        text = f"`{site.instruction.full_opcode}`: a matrix {why}"
        raise faults.error(faults.MATRIX, site.origin, text, help=why.help)


def _spread_rows(base: Array, values: Array, low: int, rows: int, columns: int, bits: int, across: bool) -> Rows:
    distinct, index = np.unique(values, return_inverse=True)
    if len(distinct) == 1:
        return place_at_bases(_list_granules(int(distinct[0]), rows, columns, bits, across) - low // _GRANULE, base)
    granules = [_list_granules(int(value), rows, columns, bits, across) - low // _GRANULE for value in distinct]
    blocks = [merge_granules(granule_list) for granule_list in granules]
    width = min(size for _, size in blocks)
    if (
        len({len(granule_list) for granule_list in granules}) > 1
        or (base % width).any()
        or any(size != width for _, size in blocks)
    ):
        # Repeat granules of shorter lists to the length of the longest.
        longest = max(len(granule_list) for granule_list in granules)
        blocks, width = (
            [(np.pad(granule_list, (0, longest - len(granule_list)), "edge"), 1) for granule_list in granules],
            1,
        )
    inside = np.array([block for block, _ in blocks])[index.reshape(-1)]
    return Rows(inside + (base // width)[:, None], width)


@lru_cache(maxsize=512)
def _list_granules(bits: int, rows: int, columns: int, width: int, across: bool) -> Array:
    """Return the numbers of a matrix's granules, by shared addresses."""
    descriptor = WgmmaDescriptor.decode(bits)
    columns, size = _convert_to_bytes(columns, width)
    if not across and columns * size % _GRANULE == 0:
        columns, size = columns * size // _GRANULE, _GRANULE
    return np.unique(wg.compute_addresses(descriptor, rows, columns, size, across) // _GRANULE)


def _mask_lanes(machine: Batch, lanes: Lanes, mask: Any, place: Place) -> tuple[Session, Lanes | None]:
    checks = find_session(machine)
    active = checks.select_active(lanes, mask)
    if active is not None:
        checks.check_aligned(active, place)
    return checks, active


def _fence(place: Place, machine: Batch, lanes: Lanes, mask: Any) -> None:
    checks, active = _mask_lanes(machine, lanes, mask, place)
    if active is not None:
        checks.engine.wgmma.fence(checks.group_lanes(active))


def _commit(place: Place, machine: Batch, lanes: Lanes, mask: Any) -> None:
    checks, active = _mask_lanes(machine, lanes, mask, place)
    if active is not None:
        checks.engine.wgmma.commit(checks.group_lanes(active))


def _wait(place: Place, machine: Batch, lanes: Lanes, mask: Any, pending: Any) -> None:
    checks, active = _mask_lanes(machine, lanes, mask, place)
    if active is not None:
        checks.engine.wgmma.wait_all(group_by_warpgroup(checks, active), int(pending))


def record_touch(place: Place, registers: Registers, machine: Batch, lanes: Lanes, mask: Any) -> None:
    """Record that another instruction reads or writes registers of products."""
    checks = find_session(machine)
    active = checks.select_active(lanes, mask)
    if active is not None:
        checks.engine.wgmma.record_access(checks.group_lanes(active), place, registers)
