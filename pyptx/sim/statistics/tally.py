"""Counts the accesses of a run by instruction, as memory tells of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.ir import Instruction
from pyptx.sim.formats import Array
from pyptx.sim.lanes import Lanes
from pyptx.sim.memory import Region, Site
from pyptx.sim.statistics.transactions import sectors, wavefronts

_ENGINES = frozenset(("mbarrier", "wgmma", "tcgen05", "tensormap", "prefetch", "clusterlaunchcontrol"))


@dataclass(slots=True)
class Access:
    """What one instruction did to one state space. `pieces` are wavefronts or sectors, `ideal` the fewest possible."""

    instruction: Instruction
    space: str
    requests: int = 0
    lanes: int = 0
    pieces: int = 0
    ideal: int = 0
    most: int = 0
    bytes: int = 0


class Tally:
    """The accesses of a launch."""

    def __init__(self) -> None:
        self.accesses: dict[tuple[int, str], Access] = {}
        self.bytes: dict[str, int] = {}
        self._shared_base = 0

    def access(self, site: Site, lanes: Lanes, region: Region, offsets: Array, size: int, kind: str) -> None:
        """Count bytes `offsets … offsets+size-1` of some lanes, read (`r`), written (`w`) or both. Other kinds are no
        accesses of lanes."""
        instruction = site.instruction
        if kind not in ("r", "w", "rw") or instruction.opcode in _ENGINES or "bulk" in instruction.full_opcode:
            return
        where = np.broadcast_to(offsets, lanes.n)
        moved = size * lanes.n
        for letter, what in (("r", "read"), ("w", "written")):
            if letter in kind:
                key = f"{region.space} {what}"
                self.bytes[key] = self.bytes.get(key, 0) + moved
        if region.space not in ("shared", "global"):
            return
        found = self.accesses.get((id(instruction), region.space))
        if found is None:
            found = self.accesses[id(instruction), region.space] = Access(instruction, region.space)
        shape = lanes.shape
        warp = lanes.of("warp", shape.warp)
        if region.space == "shared":
            banks = where % shape.shared_stride + region.low
            pieces, ideal, most = wavefronts(banks, warp, lanes.of("lane", shape.lane), size)
        else:
            pieces, ideal, most = sectors(where + region.low, warp, size)
        found.requests += len(np.unique(warp))
        found.lanes += lanes.n
        found.pieces += pieces
        found.ideal += ideal
        found.most = max(found.most, most)
        found.bytes += moved
