"""tcgen05: which columns, lanes and shared bytes its operations use.

A `Trace` records what products and copies read and write when they are issued.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.ir import Instruction
from pyptx.isa.fragments.tensor_memory import tmem_registers
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import bulk
from pyptx.sim.engines.issuing import locate_objects, select_lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Group, Movement, Space
from pyptx.sim.hazards.rows import Rows, get_row_bytes, place_at_bases
from pyptx.sim.observers.checks import layouts
from pyptx.sim.observers.checks.accesses import split_modifiers
from pyptx.sim.observers.checks.session import Session, find_session, locate_session
from pyptx.sim.semantics.tcgen05 import Move
from pyptx.sim.state.memory import Site
from pyptx.sim.state.tracing import Trace

Inner = Callable[..., None]


def hook(step: Step, inner: Inner) -> Inner | None:
    """Return a function that runs a tcgen05 instruction and reports it."""
    pair = _find_pair(step.instruction)
    match step.traits:
        case {Trait.ALLOCATES: _}:
            return partial(_alloc, inner, pair, "exclusive" in split_modifiers(step.instruction))
        case {Trait.FREES: "columns"}:
            return partial(_dealloc, inner)
        case {Trait.ISSUES: "tcgen05.ld" | "tcgen05.st" as engine}:
            move: Move = inner.args[0]  # pyright: ignore[reportFunctionMemberAccess]
            return partial(_move, inner, move, engine == "tcgen05.st")
        case {Trait.COMMITS: _}:
            return partial(_commit, inner, pair)
        case _:
            return None


def _find_pair(instruction: Instruction) -> int:
    """Return how many CTAs an instruction is for."""
    return 2 if "cta_group::2" in split_modifiers(instruction) else 1


def make_event(step: Step) -> Callable[..., None] | None:
    """Return the function that reports a wait, a fence or the end of allocations."""
    match step.traits:
        case {Trait.LANDS: engine}:
            return partial(_wait, engine == "tcgen05.st")
        case {Trait.ORDERS: _}:
            return partial(_fence, "fence::before_thread_sync" in split_modifiers(step.instruction))
        case {Trait.FREES: "permit"}:
            return _relinquish
        case _:
            return None


def split_by_warp(checks: Session, lanes: Lanes) -> list[tuple[int, int, Group]]:
    """Return the lanes of each warp, with the position of the first and its CTA."""

    def make_groups() -> list[tuple[int, int, Group]]:
        threads, warp = checks.group_lanes(lanes).threads, lanes.shape.warp[lanes.sel]
        numbers, first = np.unique(warp, return_index=True)
        return [
            (position, int(lanes.cta[position]), Group(threads[warp == number]))
            for number, position in zip(numbers.tolist(), first.tolist(), strict=True)
        ]

    return lanes.compute_once("hazards by warp", make_groups)


def group_by_warp(checks: Session, lanes: Lanes) -> tuple[Array, list[Group]]:
    """Return the position of the first lane of each warp, and the warp's lanes."""

    def make_groups() -> tuple[Array, list[Group]]:
        warps = split_by_warp(checks, lanes)
        return np.array([position for position, _, _ in warps]), [group for _, _, group in warps]

    return lanes.compute_once("hazards of warps", make_groups)


def _alloc(
    inner: Inner, pair: int, exclusive: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any,
    columns: Any,
) -> None:  # fmt: skip
    inner(site, lanes, mask, space, address, outs, columns)
    checks, place = locate_session(site)
    counts, addresses = np.broadcast_to(columns, lanes.n), np.broadcast_to(address, lanes.n)
    checks.engine.warps.check_uniform(checks.group_lanes(lanes), place, counts.astype(np.int64), "columns")
    waiters = {int(lane) for positions in site.memory.tensor.refused_lanes for lane in positions}
    for position, _, group in split_by_warp(checks, lanes):
        lane = lanes.shape.select_index(lanes.index[position : position + 1])
        if lane.lo in waiters:
            continue
        region, offsets = site.memory.resolve(site, "shared", lane, addresses[position : position + 1], 4, "silent")
        offset = int(np.atleast_1d(offsets)[0])
        column = int(region.data[offset : offset + 4].view(np.uint32)[0]) & 0xFFFF
        checks.engine.tensor.alloc(group, place, column, int(counts[position]), pair, exclusive)
        checks.engine.tensor.write_address(group, place, offset)


def _dealloc(inner: Inner, site: Site, lanes: Lanes, mask: Any, outs: Any, address: Any, columns: Any) -> None:
    checks, place = locate_session(site)
    addresses, counts = np.broadcast_to(address, lanes.n), np.broadcast_to(columns, lanes.n)
    for name, values in (("address", addresses), ("columns", counts)):
        checks.engine.warps.check_uniform(checks.group_lanes(lanes), place, values.astype(np.int64), name)
    for position, cta, group in split_by_warp(checks, lanes):
        checks.engine.tensor.dealloc(group, place, int(addresses[position]) & 0xFFFF, int(counts[position]))
        if checks.unread is not None:
            checks.unread.free(cta, int(addresses[position]) & 0xFFFF, int(counts[position]))
    inner(site, lanes, mask, outs, address, columns)


@cache
def _measure_extent(shape: str, num: int) -> tuple[int, int]:
    """Return how many lanes and columns a load or store accesses."""
    fragment = tmem_registers(shape, num)
    positions = [fragment.position(lane, register) for lane in range(32) for register in range(fragment.count)]
    return max(row for row, _ in positions) + 1, max(column for _, column in positions) + 1


def _move(
    inner: Inner, move: Move, stores: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any,
    *operands: Any,
) -> None:  # fmt: skip
    checks, place = locate_session(site)
    rows, columns = _measure_extent(move.shape, move.num)
    columns *= 2 if move.packed else 1
    lane_addresses = np.broadcast_to(address, lanes.n)
    split = int(operands[0] if stores else operands[-1]) if move.split else 0
    checks.engine.warps.check_uniform(checks.group_lanes(lanes), place, lane_addresses.astype(np.int64), "address")
    first, groups = group_by_warp(checks, lanes)
    addresses = lane_addresses[first].astype(np.int64)
    lane, column = addresses >> 16, addresses & 0xFFFF
    for start in (column, column + split) if split else (column,):
        height = 16 if split else rows
        if checks.unread is not None:
            checks.unread.move(lanes.cta[first], start, columns, lane, height, stores=stores)
        checks.engine.tensor.move_all(groups, place, start, columns, lane, height, stores=stores)
    inner(site, lanes, mask, space, address, outs, *operands)


def report_operation(checks: Session, site: Site, lanes: Lanes, trace: Trace) -> None:
    """Report the accesses of a product, copy or shift that a lane has issued, or of equal products of many lanes."""
    _, place = locate_session(site)
    pair, rows = _find_pair(site.instruction), _collect_rows(checks, site, trace)
    threads = checks.group_lanes(lanes).threads
    first, movement = int(threads[0]), Movement(site.step.traits.get(Trait.MOVES, ""))
    if trace.for_all_lanes:
        checks.engine.tensor.operate_all(threads, place, *rows, pair)
    else:
        reads, writes = ([get_row_bytes(space, access_rows, 0) for space, access_rows in part] for part in rows)
        for index, used in enumerate(trace.byte_counts):
            reads[index] = replace(reads[index], length=used)
        checks.engine.tensor.operate(first, place, reads, writes, pair, movement)
    if checks.unread is not None:
        checks.unread.operate(place, first, *rows, Trait.MULTIPLIES in site.step.traits)
    layouts.check_tensor_operands(site, threads, [operand_rows for _, operand_rows in rows[0]], trace)


def _collect_rows(
    checks: Session, site: Site, trace: Trace
) -> tuple[list[tuple[Space, Rows]], list[tuple[Space, Rows]]]:
    """Return what one operation, or several equal ones, read and wrote, by the engine's numbers."""
    assert checks.grid is not None
    memory, grid = site.memory, checks.grid
    stride, low, high = (
        size // 16 for size in (memory.shape.shared_stride, memory.shared.low, grid.find_tensor_base(1))
    )
    reads = [(Space.SHARED, place_at_bases(cells - low, ctas * stride)) for ctas, cells in trace.shared]
    reads += [(Space.TENSOR, place_at_bases(cells, ctas * high)) for ctas, cells in trace.reads]
    return reads, [(Space.TENSOR, place_at_bases(cells, ctas * high)) for ctas, cells in trace.writes]


def _commit(
    inner: Inner, pair: int, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, ctas: Any = None
) -> None:
    checks, place = locate_session(site)
    active, (addresses, cta_masks) = select_lanes(lanes, mask, address, np.array(0) if ctas is None else ctas)
    if active is None:
        return
    offsets, commits = locate_objects(site, active, space, addresses), list[int]()
    for position, lane in bulk.split_lanes(active):
        offset = int(offsets[position])
        ends = [offset] if ctas is None else bulk.locate_in_ctas(site, lane, offset, int(cta_masks[position]))
        thread = checks.group_lanes(lane).first
        commits.append(checks.engine.tensor.commit(thread, place, ends, pair))
    operands = [] if ctas is None else [ctas]
    checks.run_issues(
        partial(_land_commits, checks, commits), lambda: inner(site, lanes, mask, space, address, outs, *operands)
    )


def _land_commits(checks: Session, commits: list[int], positions: Array) -> None:
    """Report completion of the operations that these lanes committed."""
    for position in positions:
        checks.engine.tensor.land_commit(commits[int(position)])


def _wait(stores: bool, machine: Batch, lanes: Lanes, mask: Any) -> None:
    checks = find_session(machine)
    active = checks.select_active(lanes, mask)
    if active is not None:
        checks.engine.tensor.wait_all(group_by_warp(checks, active)[1], stores=stores)


def _fence(before: bool, machine: Batch, lanes: Lanes, mask: Any) -> None:
    checks = find_session(machine)
    active = checks.select_active(lanes, mask)
    if active is not None:
        checks.engine.tensor.fence(checks.group_lanes(active), before=before)


def _relinquish(machine: Batch, lanes: Lanes, mask: Any) -> None:
    checks = find_session(machine)
    active = checks.select_active(lanes, mask)
    for _, group in [] if active is None else checks.split_by_cta(active):
        checks.engine.tensor.relinquish(group)
