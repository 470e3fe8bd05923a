"""Manual: tcgen05: allocation, loads and stores, commit; `tcgen05_copies` has copies and shifts. Loads complete with
their instruction; stores land at `wait::st` at the latest, committed operations when their arrival does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from pyptx.diagnostics import format_count
from pyptx.isa.fragments.tensor_memory import tmem_registers
from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import bulk
from pyptx.sim.engines.issuing import (
    act_on_mbarriers,
    find_active,
    find_firsts,
    locate_objects,
    select_lanes,
    spread_firsts,
)
from pyptx.sim.numerics.extremes import maximum, minimum
from pyptx.sim.semantics import tcgen05_copies
from pyptx.sim.semantics.access import as_tuple, store
from pyptx.sim.semantics.tcgen05_places import find_pair, make_place_error, make_unallocated_error
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature, memory
from pyptx.sim.state.effects import TCGEN05, TENSOR_STORES
from pyptx.sim.state.memory import Site
from pyptx.sim.state.tensor_memory import Holding

_U4 = np.dtype("u4")


def _tcgen05(match: Match, signature: Signature) -> Operation | None:
    flags, name = set(match.modifiers), match.modifiers[0]
    pair = "cta_group::2" in flags
    if name == "commit":
        return memory(_commit)
    if name in ("cp", "shift"):
        return tcgen05_copies.build_operation(match, pair)
    if name == "alloc":
        return memory(partial(_alloc, pair, "exclusive" in flags))
    if name == "dealloc":
        return memory(_dealloc)
    if name in ("ld", "st"):
        return _move(match, signature, flags, name == "ld")
    if name == "wait::st":
        return memory(_wait)
    return NOTHING if name in _WITHOUT_EFFECT else None


_WITHOUT_EFFECT = ("relinquish_alloc_permit", "wait::ld", "fence::before_thread_sync", "fence::after_thread_sync")


@dataclass(frozen=True, slots=True)
class Move:
    """One spelling of a load or store. `reduction` is min or max, `kind` its type."""

    shape: str
    num: int
    packed: bool
    split: bool
    reduction: str = ""
    kind: str = ""
    magnitudes: bool = False
    nan: bool = False


def _move(match: Match, signature: Signature, flags: set[str], loads: bool) -> Operation | None:
    shape = next(m for m in match.modifiers if re.fullmatch(r"\d+x\d+b(x2)?", m))
    if any("spcompress" in m for m in flags):
        return None
    kind = next((m for m in match.modifiers if m in ("f32", "s32", "u32")), "")
    move = Move(
        shape, int(match.chosen["num"][1:]), any("16b" in m for m in flags), shape == "16x32bx2",
        next((m for m in ("min", "max") if m in flags), "") if "red" in flags else "", kind, "abs" in flags,
        "NaN" in flags,
    )  # fmt: skip
    return memory(partial(_load if loads else _store, move))


@cache
def _locate_registers(shape: str, num: int, packed: bool) -> tuple[Array, Array]:
    """Return the lane and column, relative to the address, of every register of every lane."""
    fragment = tmem_registers(shape, num)
    positions = np.array(
        [[fragment.position(lane, register) for register in range(fragment.count)] for lane in range(32)]
    )
    return positions[:, :, 0], positions[:, :, 1] * (2 if packed else 1)


def _locate_cells(move: Move, site: Site, group: Lanes, address: Any, split: int) -> tuple[Array, Array, Array]:
    """Return CTA, lane and column of every register of every lane, `[lane of the group, register]`. In the upper half
    of the warp they begin `split` columns later. The first lane's address is that of its warp; the quarter of the lanes
    in it and higher bits are ignored."""
    warp_addresses = spread_firsts(group, np.broadcast_to(address, group.n)).astype(np.int64)
    quarter = group.shape.thread[group.sel] // 32 % 4
    warp_addresses = warp_addresses & ~(0xFFE0 << 16) | quarter.astype(np.int64) << 21
    rows, columns = _locate_registers(move.shape, move.num, move.packed)
    packed = move.packed
    lane = group.shape.lane[group.sel]
    row, column = (warp_addresses >> 16)[:, None] + rows[lane], (warp_addresses & 0xFFFF)[:, None] + columns[lane]
    if split:
        column = column + np.where(lane >= 16, split, 0)[:, None]
    wrong = (row >> 5 != quarter[:, None]).any(1)
    if wrong.any():
        position = int(np.flatnonzero(wrong)[0])
        first = 32 * int(quarter[position])
        lanes = f"warp {quarter[position]} of its warpgroup accesses lanes {first} … {first + 31}"
        text = f"lane {row[position].max()}; {lanes}: add `(warp % 4) << 21` to the base"
        raise make_place_error(site, group, position, text)
    ok = site.memory.tensor.are_allocated(group.cta, column.min(1), column.max(1) + packed)
    if not ok.all():
        position = int(np.flatnonzero(~ok)[0])
        columns_here = column[position]
        raise make_place_error(site, group, position, make_unallocated_error(columns_here.min(), columns_here.max()))
    return group.cta[:, None], row, column


def _load(move: Move, site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, *operands: Any) -> None:
    cta, row, column = _locate_cells(move, site, group, address, int(operands[-1]) if move.split else 0)
    cells = site.memory.tensor.cells
    values_by_lane = cells[cta, row, column]
    if move.packed:
        values_by_lane = values_by_lane & np.uint32(0xFFFF) | cells[cta, row, column + 1] << np.uint32(16)
    registers = list(values_by_lane.T)
    if move.reduction:
        registers.append(_reduce(move, registers))
    for out, values in zip(outs, registers, strict=True):
        if out is not None:
            out[...] = values.view(out.dtype)


def _reduce(move: Move, registers: list[Array]) -> Array:
    """Return the minimum or maximum of the loaded registers of every lane."""
    if move.kind == "f32":
        pick = minimum if move.reduction == "min" else maximum
        return pick(*(np.ascontiguousarray(v).view("f4") for v in registers), nan=move.nan, abs=move.magnitudes).view(
            "u4"
        )
    values = np.stack(registers).view("i4" if move.kind == "s32" else "u4")
    return (values.min(0) if move.reduction == "min" else values.max(0)).view("u4")


def _store(
    move: Move, site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, *operands: Any
) -> None:
    cta, row, column = _locate_cells(move, site, group, address, int(operands[0]) if move.split else 0)
    words = np.stack([np.broadcast_to(v, group.n) for v in as_tuple(operands[-1])], axis=1).astype(np.uint32)

    def land() -> None:
        cells = site.memory.tensor.cells
        if move.packed:
            cells[cta, row, column + 1] = words >> np.uint32(16)
        cells[cta, row, column] = words & np.uint32(0xFFFF) if move.packed else words

    site.memory.effects.issue(TENSOR_STORES, group.index[find_firsts(group)], group.shape.lanes, land)


def _wait(site: Site, group: Lanes, mask: Any, outs: Any) -> None:
    site.memory.effects.wait(TENSOR_STORES, find_active(group, mask), group.shape.lanes, None)


def _alloc(
    pair: bool, exclusive: bool, site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, columns: Any
) -> None:
    """Allocate for each warp; warps without enough columns wait and retry."""
    addresses, counts = (np.broadcast_to(v, group.n) for v in (address, columns))
    tensor = site.memory.tensor
    for position in find_firsts(group).tolist():
        count, lane = int(counts[position]), group.shape.select_index(group.index[position : position + 1])
        if exclusive and (count % 32 or not 32 <= count <= 512):
            raise make_place_error(
                site, group, position, f"{format_count('column', count)}: expected a multiple of 32 up to 512"
            )
        if not exclusive and count not in (32, 64, 128, 256, 512):
            raise make_place_error(
                site, group, position, f"{format_count('column', count)}: expected a power of two from 32 to 512"
            )
        cta = int(lane.cta[0])
        try:
            if pair:
                find_pair(site, lane)
            first = tensor.allocate(cta, count, pair)
        except ValueError as why:
            raise make_place_error(site, group, position, str(why)) from None
        if first is None:
            tensor.refused_lanes.append(group.index[group.shape.warp[group.sel] == group.shape.warp[lane.lo]])
            continue
        tensor.record_holder(cta, Holding(first, count, lane.lo, site.instruction))
        store(site, lane, None, "shared", addresses[position : position + 1], _U4, (np.array([first], _U4),))


def _dealloc(site: Site, group: Lanes, mask: Any, outs: Any, address: Any, columns: Any) -> None:
    addresses, counts = (np.broadcast_to(v, group.n) for v in (address, columns))
    # A run that collects findings instead of raising gets one (PTX0947): nothing is freed, and the run continues.
    goes_on = site.memory.sink is not None and site.memory.sink.continues
    for position in find_firsts(group).tolist():
        first = int(addresses[position]) & 0xFFFF
        is_freed = site.memory.tensor.free(int(group.cta[position]), first, int(counts[position]))
        if not is_freed and not goes_on:
            raise make_place_error(
                site, group, position, f"columns {first} … {first + int(counts[position]) - 1} are not all allocated"
            )


def _commit(site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, ctas: Any = None) -> None:
    active, (addresses, cta_masks) = select_lanes(group, mask, address, np.array(0) if ctas is None else ctas)
    if active is None:
        return
    offsets = locate_objects(site, active, space, addresses)
    ends, is_target = offsets[:, None], np.ones((active.n, 1), np.bool_)
    if ctas is not None:
        ends_by_lane = [
            bulk.locate_in_ctas(site, lane, int(offsets[position]), int(cta_masks[position]))
            for position, lane in bulk.split_lanes(active)
        ]
        longest = max(map(len, ends_by_lane))
        is_target = np.arange(longest) < np.array([[len(part)] for part in ends_by_lane])
        ends = np.repeat(offsets[:, None], longest, axis=1)
        ends[is_target] = [end for part in ends_by_lane for end in part]
    rows = act_on_mbarriers(site, active, lambda m: m.find_rows(ends.reshape(-1))).reshape(ends.shape)

    def land(positions: Array) -> None:
        targets: Array = ends[positions][is_target[positions]]
        act_on_mbarriers(site, active, lambda m: m.arrive(m.find_rows(targets), np.ones(len(targets), np.int64)))

    site.memory.effects.issue_each(TCGEN05, active.index, active.shape.lanes, land, mbarrier_rows=rows)


BUILDERS: dict[str, Builder] = {"tcgen05": _tcgen05}
