"""Count the accesses of a run by instruction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.ir import Instruction
from pyptx.isa.lookup import find_traits
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.observers.observer import Observer
from pyptx.sim.observers.statistics.transactions import BANKS, WARP, WORD, count_sectors, count_wavefronts
from pyptx.sim.state.memory import Site
from pyptx.sim.state.regions import Region

_NOT_BY_LANES = frozenset((Trait.OPAQUE, Trait.ALLOCATES, Trait.HINTS))
_BY_LANES = frozenset(("", "cp.async", "store"))
"""Engines that serve lanes one by one."""


@dataclass(slots=True)
class Access:
    """The accesses of one instruction to one state space. `pieces` are wavefronts or sectors, `ideal` the fewest
    possible."""

    instruction: Instruction
    space: str
    requests: int = 0
    pieces: int = 0
    ideal: int = 0
    most: int = 0
    bytes: int = 0


class Tally(Observer):
    """The accesses of a launch."""

    def __init__(self) -> None:
        self.accesses: dict[tuple[int, str], Access] = {}
        self.bytes: dict[str, int] = {}
        self._shared_base = 0

    def on_access(self, site: Site, lanes: Lanes, region: Region, offsets: Array, size: int, kind: str) -> None:
        instruction = site.instruction
        instruction_traits = find_traits(instruction.opcode, instruction.modifiers)
        by_lanes = instruction_traits.get(Trait.ISSUES, "") in _BY_LANES and _NOT_BY_LANES.isdisjoint(
            instruction_traits
        )
        if kind not in ("r", "w", "rw") or not by_lanes:
            return
        lane_offsets = np.broadcast_to(offsets, lanes.n)
        byte_count = size * lanes.n
        for letter, direction in (("r", "read"), ("w", "written")):
            if letter in kind:
                key = f"{region.space} {direction}"
                self.bytes[key] = self.bytes.get(key, 0) + byte_count
        if region.space not in ("shared", "global"):
            return
        entry = self.accesses.get((id(instruction), region.space))
        if entry is None:
            entry = self.accesses[id(instruction), region.space] = Access(instruction, region.space)
        places = (
            lane_offsets % lanes.shape.shared_stride + region.low
            if region.space == "shared"
            else lane_offsets + region.low
        )
        pieces, ideal, worst, requests = _count_pieces(lanes, places, region.space, size)
        entry.requests += requests
        entry.pieces += pieces
        entry.ideal += ideal
        entry.most = max(entry.most, worst)
        entry.bytes += byte_count


def _count_pieces(lanes: Lanes, places: Array, space: str, size: int) -> tuple[int, int, int, int]:
    """Return the pieces, the fewest possible, the most of a warp, and the number of warps. If whole warps access memory
    in the same pattern, as is usual, one of them represents all."""
    shape = lanes.shape
    rows = _split_by_warp(lanes, places)
    if rows is not None and _is_repeated(rows):
        warp_index, order = np.zeros(WARP, np.int64), np.arange(WARP)
        pieces, ideal, worst = (
            count_wavefronts(rows[0], warp_index, order, size)
            if space == "shared"
            else count_sectors(rows[0], warp_index, size)
        )
        return pieces * len(rows), ideal * len(rows), worst, len(rows)
    warp = lanes.select_values("warp", shape.warp)
    pieces_by_warp = (
        count_wavefronts(places, warp, lanes.select_values("lane", shape.lane), size)
        if space == "shared"
        else count_sectors(places, warp, size)
    )
    return *pieces_by_warp, len(np.unique(warp))


def _split_by_warp(lanes: Lanes, places: Array) -> Array | None:
    """Return the places that each warp's lanes access, `[warp, lane]`, None unless all lanes of the warps
    participate."""
    ctas = lanes.shape.ctas
    if lanes.positions is not None or lanes.lo % (WARP * ctas) or lanes.n % (WARP * ctas):
        return None
    return places.reshape(-1, WARP, ctas).swapaxes(1, 2).reshape(-1, WARP)


def _is_repeated(rows: Array) -> bool:
    """Tell whether rows are the same pattern, shifted by a multiple of all banks."""
    first = rows[:, :1]
    whole_rounds = ((first - rows[0, 0]) % (BANKS * WORD) == 0).all()
    return bool(whole_rounds and ((rows - first) == (rows[0] - rows[0, 0])).all())
