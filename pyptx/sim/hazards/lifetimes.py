"""Lifetimes of shared memory: peers must have started, and must not exit while their memory is in use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Bytes, Ints, Place, Space
from pyptx.sim.hazards.clocks import NEVER, RAN, SEEN
from pyptx.sim.hazards.state import Grid, State

_OBSERVED = "before exit, execute a cluster barrier on which the peer arrives after its wait for the bytes"


@dataclass(slots=True)
class Use:
    """The last access of a thread at one place to another CTA's shared memory, or of its copies to its own."""

    thread: int
    time: int
    place: Place
    ref: int
    own: bool = False
    """Whether it is a copy by the CTA's own thread that reads the memory."""


class Lifetimes:
    """Remote accesses, by the CTA that owns the bytes."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._uses: dict[tuple[int, int], dict[tuple[int, Place], Use]] = {}
        self._ended: dict[tuple[int, int], Place] = {}
        """The place where the last threads of each CTA exited."""

    def record_remote(self, place: Place, thread: int, target: Bytes, ref: int) -> None:
        """Record an access if it is to another CTA of the cluster."""
        if target.space is not Space.SHARED:
            return
        state = self.state
        grid = state.find_grid(thread)
        if grid.cluster == 1:
            return
        slot = int(target.starts[0]) // grid.shared_stride
        if slot == grid.find_slot(thread):
            return
        self._check_started(place, thread, grid, slot)
        self._uses.setdefault((grid.number, slot), {})[thread, place] = Use(thread, state.clocks.now, place, ref)

    def end_with(self, place: Place, thread: int, address: int, ref: int) -> None:
        """Let the recorded signal to another CTA's mbarrier end with the copy that sends it."""
        grid = self.state.find_grid(thread)
        use = self._uses.get((grid.number, address // grid.shared_stride), {}).get((thread, place))
        if use is not None:
            use.ref = ref

    def record_source(self, place: Place, thread: int, source: Bytes, ref: int) -> None:
        """Record a copy that reads the CTA's own memory until the peer's mbarrier has its bytes."""
        grid = self.state.find_grid(thread)
        if source.space is Space.SHARED:
            key = grid.number, int(source.starts[0]) // grid.shared_stride
            self._uses.setdefault(key, {})[thread, place] = Use(thread, self.state.clocks.now, place, ref, own=True)

    def record_remote_lanes(self, place: Place, threads: Ints, addresses: Ints) -> None:
        """Record the remote accesses of threads with one address each."""
        grid = self.state.find_grid(int(threads[0]))
        if grid.cluster == 1:
            return
        slots = addresses // grid.shared_stride
        far = np.flatnonzero(slots != (threads - grid.first_thread) // grid.stride)
        for index in far.tolist():
            self.record_remote(place, int(threads[index]), Bytes.run(Space.SHARED, int(addresses[index]), 1), 0)

    def _check_started(self, place: Place, thread: int, grid: Grid, slot: int) -> None:
        state = self.state
        if grid.domain_of_slot[slot] is not state.find_domain(thread):
            state.report(rules.ABSENT_CTA, place, f"slot {slot} is not in this cluster", thread=thread)
        elif state.rounds[thread] == 0 and not self._knows_peer(thread, grid, slot):
            detail = "the peer may not have started"
            state.report(rules.PEER_NOT_STARTED, place, detail, thread=thread)
        if not state.live[grid.find_thread(slot) : grid.find_thread(slot) + grid.threads].any():
            state.report(
                rules.PEER_EXITED,
                place,
                "the peer has exited",
                thread=thread,
                other=self._ended.get((grid.number, slot)),
            )

    def _knows_peer(self, thread: int, grid: Grid, slot: int) -> bool:
        """Tell whether a thread has synchronized with any thread of the peer."""
        clocks = self.state.clocks
        columns = clocks.first_thread[thread >> 5]
        first = grid.find_thread(slot) - int(columns) + 1
        return bool(clocks.table[clocks.row_of[thread], RAN, first : first + grid.stride].any())

    def check_exit(self, grid: Grid, slot: int, threads: Ints, place: Place) -> None:
        """Report remote uses of a CTA's memory that may not be complete when its last threads exit."""
        state = self.state
        self._ended[grid.number, slot] = place
        if (grid.number, slot) not in self._uses:
            return
        self.complete_uses(grid, slot, threads)
        for use in self._uses.pop((grid.number, slot), {}).values():
            if use.own:
                detail, thread = "its source may not have been read yet", int(threads[0])
                state.report(rules.STORE_AT_EXIT, place, detail, thread=thread, other=use.place, help=_OBSERVED)
            else:
                detail = "the CTA exits while a peer may still use its shared memory"
                state.report(rules.PEER_EXITED, place, detail, thread=int(threads[0]), other=use.place)

    def complete_uses(self, grid: Grid, slot: int, threads: Ints) -> None:
        """Forget the uses of a CTA's memory that its exiting threads know to be complete."""
        uses, clocks = self._uses.get((grid.number, slot)), self.state.clocks
        if not uses:
            return
        times = clocks.table[np.unique(clocks.row_of[threads])][:, [SEEN, RAN]].max(axis=(0, 1))
        for key, use in [*uses.items()]:
            if use.ref:
                record = use.ref >> 6
                column, time = int(self.state.records.column[record]), int(self.state.records.time[record])
            else:
                column = use.thread - int(clocks.first_thread[use.thread >> 5]) + 1
                time = use.time
            if time != NEVER and times[column] >= time:
                del uses[key]

    def forget_grid(self, grid: Grid) -> None:
        """Forget a grid."""
        for key in [key for key in self._uses if key[0] == grid.number]:
            del self._uses[key]
