"""Tensor maps in global memory: changed, released to and acquired from the tensormap proxy, used by copies.

Maps in `.param` and `.const` space need no checks: do not report them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Access, Place, Scope, Space, store
from pyptx.sim.hazards.conflicts import precedes
from pyptx.sim.hazards.state import State


@dataclass(slots=True)
class Map:
    """One map. A version is a set of changes; `acquired` holds the version that each CTA has acquired."""

    by_host: bool = True
    version: int = 1
    released: int = 1
    edited: Place | None = None
    editor: int = -1
    ref: int = 0
    """The release, as an access that the acquiring thread must know."""
    acquired: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    users: list[tuple[int, Place]] = field(default_factory=list[tuple[int, Place]])


class TensorMaps:
    """All maps of the grids, by address."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._maps: dict[int, Map] = {}
        self._accesses: dict[Place, Access] = {}

    def replace(self, thread: int, place: Place, address: int, unfinished: set[int]) -> None:
        """`tensormap.replace`, or any write of the map; `unfinished` are the copies still in flight."""
        edited_map = self._maps.setdefault(address, Map())
        for operation, user in edited_map.users:
            if operation in unfinished:
                detail = f"the map at 0x{address:x}"
                self.state.report(rules.MAP_IN_USE, place, detail, thread=thread, other=user)
        edited_map.users = []
        if edited_map.released == edited_map.version:
            edited_map.version += 1
        edited_map.by_host = False
        edited_map.edited, edited_map.editor = place, thread

    def release_edits(self, threads: Iterable[int]) -> None:
        """`fence.proxy.tensormap::generic.release` by threads: it covers the maps that they have changed."""
        members = set(threads)
        for edited_map in self._maps.values():
            if edited_map.editor in members:
                self._release(edited_map)

    def release(self, address: int) -> None:
        """`fence.proxy.tensormap::generic.release`, or the end of `tensormap.cp_fenceproxy`, on a map."""
        self._release(self._maps.setdefault(address, Map()))

    def _release(self, edited_map: Map) -> None:
        edited_map.released = edited_map.version
        if edited_map.edited is None:
            return
        clocks, records, thread = self.state.clocks, self.state.records, edited_map.editor
        warp = thread >> 5
        number = records.number_access(
            self._accesses.setdefault(edited_map.edited, store(edited_map.edited, Space.GLOBAL, 16))
        )
        column = np.array([warp * 32 - clocks.first_thread[warp] + 1], np.int32)
        masks = np.array([1 << (thread & 31)], np.int64)
        numbers = records.add_warps(number, clocks.life_of[warp : warp + 1], column, masks, clocks.now, False)
        edited_map.ref = int(numbers[0]) * 64 + (thread & 31)

    def acquire(self, thread: int, address: int, scope: Scope) -> None:
        """`fence.proxy.tensormap::generic.acquire` by a thread, for its CTA."""
        used_map = self._maps.setdefault(address, Map())
        if (
            used_map.ref
            and not precedes(self.state, np.array([used_map.ref], np.int64), np.array([thread], np.int64))[0]
        ):
            return
        if not used_map.by_host or scope is Scope.SYS:
            grid = self.state.find_grid(thread)
            used_map.acquired[grid.number, grid.find_slot(thread)] = used_map.released

    def use(self, thread: int, place: Place, address: int, operation: int) -> None:
        """Check a tensor copy that reads its map."""
        used_map = self._maps.setdefault(address, Map())
        grid = self.state.find_grid(thread)
        detail = f"the map at 0x{address:x}"
        if used_map.released < used_map.version:
            self.state.report(rules.MAP_NOT_RELEASED, place, detail, thread=thread, other=used_map.edited)
        elif used_map.acquired.get((grid.number, grid.find_slot(thread)), 0) < used_map.version:
            self.state.report(rules.MAP_NOT_ACQUIRED, place, detail, thread=thread, other=used_map.edited)
        used_map.users.append((operation, place))

    def ends(self, grid: int, slot: int) -> None:
        """Forget what an ended CTA has acquired."""
        for edited_map in self._maps.values():
            edited_map.acquired.pop((grid, slot), None)

    def grid_done(self) -> None:
        """Release all maps at the end of a grid; later grids must acquire them again."""
        for edited_map in self._maps.values():
            edited_map.released = edited_map.version
            edited_map.acquired.clear()
            edited_map.users.clear()
