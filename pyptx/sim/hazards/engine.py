"""The interface of the hazard engine: launches, CTAs and accesses here, other events in its parts.

Report every event in the order in which it happens. docs/hazards.md is the guide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Access, Ints, Place, Space
from pyptx.sim.hazards.barriers import Barriers
from pyptx.sim.hazards.boxes import Boxes
from pyptx.sim.hazards.copies import Copies
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.layouts import Layouts
from pyptx.sim.hazards.lifetimes import Lifetimes
from pyptx.sim.hazards.mbarriers import MBarriers
from pyptx.sim.hazards.memory import Benign, Memory, Unchanged
from pyptx.sim.hazards.numerics import Numerics
from pyptx.sim.hazards.shadow import Shadow
from pyptx.sim.hazards.state import TENSOR_BYTES, AddUnknown, Domain, Grid, Overlap, State
from pyptx.sim.hazards.sync import Synchronization
from pyptx.sim.hazards.tensor import TensorMemory
from pyptx.sim.hazards.tensormaps import TensorMaps
from pyptx.sim.hazards.tiles import Tiles
from pyptx.sim.hazards.warps import Warps
from pyptx.sim.hazards.wgmma import Wgmma
from pyptx.sim.reports.findings import Ledger


def _merge_runs(slots: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending slots as ranges: the first slot of each, and the one after its last."""
    runs: list[tuple[int, int]] = []
    for slot in slots:
        if runs and runs[-1][1] == slot:
            runs[-1] = runs[-1][0], slot + 1
        else:
            runs.append((slot, slot + 1))
    return runs


class Hazards:
    """The engine of one run of one or several grids. Its parts are public, with the names of docs/hazards.md."""

    def __init__(self, limit: int = 1000, add_unknown: AddUnknown | None = None) -> None:
        self.state = State(limit, add_unknown)
        self.memory = Memory(self.state, self._explain_bytes)
        self.tiles = Tiles(self.state, self.memory)
        self.barriers = Barriers(self.state)
        self.sync = Synchronization(self.state)
        self.lifetimes = Lifetimes(self.state)
        self.mbarriers = MBarriers(self.state, self.memory, self.barriers, self.lifetimes)
        self.copies = Copies(self.state, self.tiles, self.mbarriers, self.lifetimes)
        self.wgmma = Wgmma(self.state, self.tiles)
        self.tensor = TensorMemory(self.state, self.tiles, self.mbarriers)
        self.maps = TensorMaps(self.state)
        self.warps = Warps(self.state)
        self.numerics = Numerics(self.state)
        self.layouts = Layouts(self.state)
        self.boxes = Boxes(self.state)

    @property
    def findings(self) -> Ledger:
        return self.state.ledger

    def _explain_bytes(self, thread: int, column: int) -> tuple[str, ...]:
        return self.mbarriers.explain_bytes(thread, column)

    # Grids and CTAs

    def launch(
        self,
        place: Place,
        threads: int,
        *,
        slots: int = 1,
        cluster: int = 1,
        shared_bytes: int = 0,
        tensor: bool = False,
        overlap: Overlap = Overlap.NONE,
        names: Callable[[int], str] = "shared {:#x}".format,
        label: str = "",
    ) -> Grid:
        """Begin a grid whose CTAs of `threads` threads run in `slots` places at a time.

        Nothing orders a grid that overlaps the previous one after it, even if it starts later. `names` returns the name
        of an offset in shared memory for findings, `label` is the name of the grid.
        """
        state = self.state
        stride = -(-threads // 32) * 32
        warp = state.clocks.add_warps(slots * stride // 32)
        shared_stride = -(-max(shared_bytes, 16) // 16) * 16
        earlier = [grid for grid in state.grids if not grid.has_ended]
        overlaps = overlap is not Overlap.NONE
        assert overlaps or not earlier, "a grid without overlap must start after all earlier grids have ended"
        prior = state.grids[-1].prior if overlaps and state.grids else state.clocks.tick()
        grid = Grid(
            number=len(state.grids),
            first_thread=warp * 32,
            threads=threads,
            stride=stride,
            slots=slots,
            cluster=cluster,
            shared_stride=shared_stride,
            shared=Shadow(slots * shared_stride, True, "shared"),
            tensor=Shadow(slots * TENSOR_BYTES if tensor else 0, True, "tensor memory"),
            prior=prior,
            overlap=overlap,
            place=place,
            domain_of_slot=[None] * slots,
            names=names,
            label=label,
        )
        state.add_grid(grid)
        return grid

    def start(self, grid: Grid, slots: Sequence[int], ctas: Sequence[int]) -> None:
        """Start CTAs in free slots: whole clusters, in rank order."""
        state = self.state
        if state.live[grid.first_thread : grid.first_thread + grid.slots * grid.stride].any():
            grid.shared.settle()
        else:
            grid.shared.begin()
        domains: list[Domain] = []
        for first in range(0, len(slots), grid.cluster):
            mine = list(slots[first : first + grid.cluster])
            domains += [state.add_domain(grid, mine, list(ctas[first : first + grid.cluster]))] * len(mine)
        numbers, firsts = (
            np.array(list(values)) for values in ((d.number for d in domains), (d.first_thread for d in domains))
        )
        base = grid.first_thread + np.array(slots, np.int64) * grid.stride
        warps = (base[:, None] >> 5) + np.arange(grid.stride >> 5)
        threads = (base[:, None] + np.arange(grid.threads)).reshape(-1)
        state.clocks.life_of[warps] = state.records.begin_lives(warps, numbers)
        state.clocks.start(threads, warps, numbers, firsts, base - firsts + 1, grid.stride, grid.prior)
        state.live[threads] = True
        state.rounds[threads] = 0
        for slot, domain in zip(slots, domains, strict=True):
            grid.domain_of_slot[slot] = domain
        for low, high in _merge_runs(slots):
            base, size = grid.find_shared_base(low), (high - low) * grid.shared_stride
            grid.shared.clear(base, size)
            self.sync.forget_shared(base + self._find_offset(grid), base + size + self._find_offset(grid))
        self.barriers.forget(grid, slots, threads)
        for part in (self.sync, self.copies, self.tensor):
            part.forget(threads)
        self.sync.start_cta(grid, threads)

    def _find_offset(self, grid: Grid) -> int:
        """Return what to add to a grid's shared addresses so that they differ from those of other grids."""
        return grid.number << 40

    def exit(self, group: Group, place: Place) -> list[int]:
        """Record that threads exit. Return the threads that CTA barriers release because of it."""
        state = self.state
        threads_released: list[int] = []
        last_threads: list[Ints] = []
        grid = state.find_grid(group.first)
        for members in group.split_by_cta(grid.first_thread, grid.stride).members:
            slot = grid.find_slot(int(members[0]))
            for thread in (
                [member for member in members.tolist() if member in self.copies.stores] if self.copies.stores else ()
            ):
                open_store = self.copies.pop_unread_store(thread)
                if open_store is not None:
                    state.report(rules.STORE_AT_EXIT, place, "its source was not read", thread=thread, other=open_store)
            self.copies.forget_observed(grid.number, slot, members)
            state.live[members] = False
            self.sync.record_exits(grid, members)
            first = grid.find_thread(slot)
            if np.count_nonzero(state.live[first : first + grid.threads]):
                self.lifetimes.complete_uses(grid, slot, members)
                threads_released += self.barriers.complete_after_exit(grid, slot)
                state.clocks.stop(members)
            else:
                self._end_cta(grid, slot, members, place)
                last_threads.append(members)
            if self.barriers.clusters:
                self.barriers.complete_cluster_after_exit(state.find_domain(int(members[0])))
        if last_threads:
            state.clocks.stop(np.concatenate(last_threads))
        return threads_released

    def _end_cta(self, grid: Grid, slot: int, last: Ints, place: Place) -> None:
        thread = int(last[0])
        self.copies.report_landing(grid.number, slot, place, thread)
        self.lifetimes.check_exit(grid, slot, last, place)
        self.memory.explain_unread(grid, slot)
        self.tensor.check_exit(grid.number, slot, place, thread)
        for barrier in self.mbarriers.list_barriers(grid, slot) if self.mbarriers.live else ():
            if not self.copies.signals(barrier):
                self.mbarriers.check_bytes(barrier, place)
            del self.mbarriers.live[grid.number, barrier.address]
        warps = np.arange(grid.find_thread(slot) >> 5, (grid.find_thread(slot) + grid.stride) >> 5)
        self.wgmma.forget(warps.tolist())
        self.warps.check_exit(grid.number, warps)
        self.maps.forget_cta(grid.number, slot)

    def finish(self, grid: Grid) -> None:
        """End a grid: its accesses precede all later grids."""
        grid.has_ended = True
        records, now = self.state.records, self.state.clocks.tick()
        domains = [domain.number for domain in self.state.domains if domain.grid is grid]
        late = np.flatnonzero(records.time[1 : records.count] > now) + 1
        records.time[late[np.isin(records.get_domains(late), domains)]] = now
        self.maps.end_grid(grid)
        self.lifetimes.forget_grid(grid)
        self.boxes.finish(grid)

    # Accesses of threads

    def access(
        self,
        access: Access,
        group: Group,
        addresses: Ints,
        *,
        benign: Benign = False,
        unchanged: Unchanged | None = None,
    ) -> None:
        """Check the access of one instruction, one address per thread. Strong accesses also synchronize.

        `benign`: lanes that store to the same bytes store the same values. `unchanged` tells which threads store the
        values that their bytes already have: warps that repeat each other's store are harmless.
        """
        if access.space is Space.SHARED and self.state.find_grid(group.first).cluster > 1:
            self.lifetimes.record_remote_lanes(access.place, group.threads, addresses)
        locations = addresses
        if access.space is Space.SHARED and len(self.state.grids) > 1:
            locations = addresses + self._find_offset(self.state.find_grid(group.first))
        # Check it before its own acquire, which orders only later accesses.
        if access.strong:
            self.memory.access(access, group, addresses, benign=True)
            self.sync.synchronize_strong(access, group, locations)
            return
        self.memory.access(access, group, addresses, benign=benign, unchanged=unchanged)
        if access.writes:
            self.sync.end_sequences(access, locations)
