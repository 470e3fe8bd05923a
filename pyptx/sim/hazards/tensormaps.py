"""Tensor maps in global memory: their changes, releases and acquires through the tensormap proxy, and use by copies.

Maps in `.param` and `.const` space need no checks: do not report them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Access, Place, Scope, Space, store
from pyptx.sim.hazards.conflicts import precedes
from pyptx.sim.hazards.state import Grid, State


@dataclass(slots=True)
class Map:
    """One map. A version is a set of changes; `acquisitions` has the version that each CTA has acquired."""

    by_host: bool = True
    version: int = 1
    release_version: int = 1
    edit_place: Place | None = None
    editor: int = -1
    ref: int = 0
    """The release, as an access that an acquiring thread must know."""
    acquisitions: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    users: list[tuple[int, Place]] = field(default_factory=list[tuple[int, Place]])


class TensorMaps:
    """The maps of all grids, by address."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._maps: dict[int, Map] = {}
        self._accesses: dict[Place, Access] = {}

    def replace(self, thread: int, place: Place, address: int, copies_in_flight: set[int]) -> None:
        """Execute `tensormap.replace`, or any other write to a map."""
        tensor_map = self._maps.setdefault(address, Map())
        for operation, user in tensor_map.users:
            if operation in copies_in_flight:
                detail = f"the map at 0x{address:x}"
                self.state.report(rules.MAP_IN_USE, place, detail, thread=thread, other=user)
        tensor_map.users = []
        if tensor_map.release_version == tensor_map.version:
            tensor_map.version += 1
        tensor_map.by_host = False
        tensor_map.edit_place, tensor_map.editor = place, thread

    def release_edits(self, threads: Iterable[int]) -> None:
        """Execute `fence.proxy.tensormap::generic.release` by threads, for the maps that they have changed."""
        members = set(threads)
        for tensor_map in self._maps.values():
            if tensor_map.editor in members:
                self._release(tensor_map)

    def release(self, address: int) -> None:
        """Release a map, as at the end of `tensormap.cp_fenceproxy`."""
        self._release(self._maps.setdefault(address, Map()))

    def _release(self, tensor_map: Map) -> None:
        tensor_map.release_version = tensor_map.version
        if tensor_map.edit_place is None:
            return
        clocks, records, thread = self.state.clocks, self.state.records, tensor_map.editor
        warp = thread >> 5
        number = records.number_access(
            self._accesses.setdefault(tensor_map.edit_place, store(tensor_map.edit_place, Space.GLOBAL, 16))
        )
        column = np.array([warp * 32 - clocks.first_thread[warp] + 1], np.int32)
        masks = np.array([1 << (thread & 31)], np.int64)
        numbers = records.add_warps(number, clocks.life_of[warp : warp + 1], column, masks, clocks.now, False)
        tensor_map.ref = int(numbers[0]) * 64 + (thread & 31)

    def acquire(self, thread: int, address: int, scope: Scope) -> None:
        """Execute `fence.proxy.tensormap::generic.acquire` by a thread, for its CTA."""
        tensor_map = self._maps.setdefault(address, Map())
        if (
            tensor_map.ref
            and not precedes(self.state, np.array([tensor_map.ref], np.int64), np.array([thread], np.int64))[0]
        ):
            return
        if not tensor_map.by_host or scope is Scope.SYS:
            grid = self.state.find_grid(thread)
            tensor_map.acquisitions[grid.number, grid.find_slot(thread)] = tensor_map.release_version

    def use(self, thread: int, place: Place, address: int, operation: int) -> None:
        """Check a tensor copy that reads its map."""
        tensor_map = self._maps.setdefault(address, Map())
        grid = self.state.find_grid(thread)
        detail = f"the map at 0x{address:x}"
        if tensor_map.release_version < tensor_map.version:
            self.state.report(rules.MAP_NOT_RELEASED, place, detail, thread=thread, other=tensor_map.edit_place)
        elif tensor_map.acquisitions.get((grid.number, grid.find_slot(thread)), 0) < tensor_map.version:
            self.state.report(rules.MAP_NOT_ACQUIRED, place, detail, thread=thread, other=tensor_map.edit_place)
        tensor_map.users.append((operation, place))

    def forget_cta(self, grid: int, slot: int) -> None:
        """Forget the acquires of an ended CTA."""
        for tensor_map in self._maps.values():
            tensor_map.acquisitions.pop((grid, slot), None)

    def end_grid(self, grid: Grid) -> None:
        """Release the maps that an ended grid has changed."""
        for tensor_map in self._maps.values():
            if tensor_map.editor >= 0 and self.state.find_grid(tensor_map.editor) is grid:
                tensor_map.release_version = tensor_map.version
