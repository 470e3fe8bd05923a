"""Fences, strong accesses and dependent launches: release patterns, acquire patterns and what they connect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyptx.sim.hazards.clocks import KINDS, PRIOR, Stamp
from pyptx.sim.hazards.events import Access, Ints, Scope, Sem, Space
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.state import Grid, Release, State


class Synchronisation:
    """Knowledge handed on through memory locations."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._at: dict[tuple[Space, int], list[Release]] = {}
        self._sc: list[Release] = []
        self._triggers: dict[int, Stamp] = {}

    def forget(self, threads: Ints) -> None:
        """Threads begin whose numbers others had before."""
        for thread in threads.tolist() if self.state.fenced or self.state.observed else ():
            self.state.fenced.pop(thread, None)
            self.state.observed.pop(thread, None)

    def _reaches(self, scope: Scope, other: Scope, thread: int, who: int) -> bool:
        """Tell whether the scopes of two strong operations hold each other's thread."""
        narrow = min(scope, other)
        if narrow >= Scope.GPU:
            return True
        state = self.state
        if state.domain_of(thread) is not state.domain_of(who):
            return False
        grid = state.grid_of(thread)
        return narrow is Scope.CLUSTER or grid.slot_of(thread) == grid.slot_of(who)

    def fence(self, group: Group, sem: Sem, scope: Scope) -> None:
        """`fence{.sc,.acq_rel,.acquire,.release}` and `membar`."""
        clocks = self.state.clocks
        for thread in group.threads.tolist():
            one = np.array([thread], np.int64)
            observed = self.state.observed.pop(thread, {}).values() if sem.acquires else ()
            for release in (release for releases in observed for release in releases):
                if self._reaches(scope, release.scope, thread, release.thread):
                    clocks.acquire(one, release.stamp)
            if sem is Sem.SC:
                for release in self._sc:
                    if self._reaches(scope, release.scope, thread, release.thread):
                        clocks.acquire(one, release.stamp)
        if sem.releases:
            for thread, stamp in clocks.snapshot(group.threads).items():
                self.state.fenced[thread] = release = Release(stamp, scope, thread)
                if sem is Sem.SC:
                    self._note_sc(release)
            clocks.tick()

    def _note_sc(self, release: Release) -> None:
        """Keep the latest fence.sc of each thread; the order of fences is the order of execution."""
        self._sc = [kept for kept in self._sc if kept.thread != release.thread]
        self._sc.append(release)

    def strong(self, access: Access, group: Group, addresses: Ints) -> None:
        """The synchronising side of strong accesses; call it with every load, store and atomic that is not weak."""
        active = access.sem.releases or access.sem.acquires or self.state.fenced or self._at
        if not active:
            return
        for thread, address in zip(group.threads.tolist(), addresses.tolist(), strict=True):
            self._one(access, thread, (access.space, address))
        if access.sem.releases:
            self.state.clocks.tick()

    def _one(self, access: Access, thread: int, location: tuple[Space, int]) -> None:
        there = self._at.get(location, [])
        one = np.array([thread], np.int64)
        # `red` and stores read nothing that they could acquire.
        if access.reads and there and not access.red:
            for release in there:
                if access.sem.acquires and self._reaches(access.scope, release.scope, thread, release.thread):
                    self.state.clocks.acquire(one, release.stamp)
            self.state.observed.setdefault(thread, {})[location] = there
        if access.writes:
            kept = [r for r in there if r.thread != thread] if access.reads else []
            if access.sem.releases:
                kept.append(Release(self.state.clocks.publish(one), access.scope, thread))
            elif thread in self.state.fenced:
                fence = self.state.fenced[thread]
                kept.append(Release(fence.stamp, min(fence.scope, access.scope), thread))
            if kept:
                self._at[location] = kept
            else:
                self._at.pop(location, None)

    def weak_store(self, access: Access, addresses: Ints) -> None:
        """A weak store ends what was released at its location."""
        if self._at:
            low, high = int(addresses.min()), int(addresses.max())
            for space, address in list(self._at):
                if space is access.space and low <= address <= high and (addresses == address).any():
                    del self._at[space, address]

    def proxy_fence(self, group: Group, spaces: Sequence[Space]) -> None:
        """`fence.proxy.async`, for the spaces it names."""
        self.state.clocks.cross(group.threads, spaces)

    def launch_dependents(self, group: Group) -> None:
        """`griddepcontrol.launch_dependents`: after a release fence, dependents start with what it released."""
        grid = self.state.grid_of(group.first)
        for thread in group.threads.tolist():
            fence = self.state.fenced.get(thread)
            if fence is not None and fence.scope >= Scope.GPU:
                held = self._triggers.get(grid.number)
                self._triggers[grid.number] = fence.stamp if held is None else held.merge(fence.stamp)

    def started(self, grid: Grid, threads: Ints) -> None:
        """A CTA of a dependent grid starts."""
        stamp = self._triggers.get(grid.number - 1) if grid.overlaps else None
        if stamp is not None:
            self.state.clocks.acquire(threads, stamp)

    def grid_wait(self, group: Group) -> None:
        """`griddepcontrol.wait` that went on: the prerequisite grids have ended."""
        clocks = self.state.clocks
        clocks.learn(group.threads, PRIOR, clocks.tick(), range(KINDS))
