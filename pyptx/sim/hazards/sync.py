"""Fences, strong accesses and dependent launches: release patterns, acquire patterns and what they connect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyptx.sim.hazards.clocks import KINDS, PRIOR, Stamp, joined
from pyptx.sim.hazards.events import Access, Ints, Scope, Sem, Space
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.state import Grid, Later, Release, State

_MANY = 64
"""So many releases of one location, or threads at it, are no longer kept apart."""


def _merged(releases: list[Release]) -> list[Release]:
    """Return releases of which those that reach every thread of the grid are one."""
    wide = [release for release in releases if release.scope >= Scope.GPU]
    if len(wide) < 2:
        return releases
    stamp = wide[0].stamp
    for release in wide[1:]:
        stamp = stamp.merge(release.stamp)
    one = Release(stamp, min(release.scope for release in wide), -1)
    return [one, *(release for release in releases if release.scope < Scope.GPU)]


class Synchronisation:
    """Knowledge handed on through memory locations."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._at: dict[tuple[Space, int], list[Release]] = {}
        self._unions: dict[tuple[Space, int], tuple[list[Release], Stamp]] = {}
        """All that the releases of a location hand on to every thread of the grid, where nothing else is there."""
        self._sc: dict[tuple[int, int], Stamp] = {}
        """What has gone into each total order of fence.sc."""
        self._triggers: dict[int, Stamp] = {}
        self._left: dict[int, Stamp] = {}
        """What threads of grids that overlap those before knew of these when they exited, by the grid's number."""

    def forget(self, threads: Ints) -> None:
        """Threads begin whose numbers others had before."""
        for thread in threads.tolist() if self.state.fenced or self.state.observed else ():
            self.state.fenced.pop(thread, None)
            self.state.observed.pop(thread, None)

    def _reaches(self, scope: Scope, other: Scope, thread: int, who: int) -> bool:
        """Tell whether the scopes of two strong operations hold each other's thread."""
        narrow = min(scope, other)
        if narrow >= Scope.GPU or who < 0:
            return True
        state = self.state
        if state.domain_of(thread) is not state.domain_of(who):
            return False
        grid = state.grid_of(thread)
        return narrow is Scope.CLUSTER or grid.slot_of(thread) == grid.slot_of(who)

    def fence(self, group: Group, sem: Sem, scope: Scope) -> None:
        """`fence{.sc,.acq_rel,.acquire,.release}` and `membar`."""
        clocks = self.state.clocks
        if sem.acquires:
            self._acquire_observed(group, scope)
        if sem is Sem.SC:
            for key, threads in self._order_of(group, scope):
                if key in self._sc:
                    clocks.acquire(threads, self._sc[key])
        if sem.releases:
            for thread, stamp in clocks.snapshot(group.threads).items():
                self.state.fenced[thread] = Release(stamp, scope, thread)
            for key, threads in self._order_of(group, scope) if sem is Sem.SC else ():
                stamp, held = clocks.publish(threads), self._sc.get(key)
                self._sc[key] = stamp if held is None else held.merge(stamp)
            clocks.tick()

    def _acquire_observed(self, group: Group, scope: Scope) -> None:
        """Let threads learn what was released where they have read since their last fence."""
        if not self.state.observed:
            return
        learned: dict[int, tuple[Release, list[int]]] = {}
        for thread in group.threads.tolist():
            for releases in self.state.observed.pop(thread, {}).values():
                for release in releases:
                    if self._reaches(scope, release.scope, thread, release.thread):
                        learned.setdefault(id(release), (release, []))[1].append(thread)
        for release, threads in learned.values():
            self.state.clocks.acquire(np.array(threads, np.int64), release.stamp)

    def _order_of(self, group: Group, scope: Scope) -> list[tuple[tuple[int, int], Ints]]:
        """Return the total orders of fence.sc that threads take part in: of all, or of their cluster or CTA."""
        if scope >= Scope.GPU:
            return [((-1, -1), group.threads)]
        grid, domains = self.state.grid_of(group.first), self.state.clocks.domain_of
        found: list[tuple[tuple[int, int], Ints]] = []
        for members in group.ctas(grid.first_thread, grid.stride).members:
            slot = grid.slot_of(int(members[0])) if scope is Scope.CTA else -1
            found.append(((int(domains[int(members[0]) >> 5]), slot), members))
        return found

    def strong(self, access: Access, group: Group, addresses: Ints) -> None:
        """The synchronising side of strong accesses; call it with every load, store and atomic that is not weak."""
        active = access.sem.releases or access.sem.acquires or self.state.fenced or self._at
        if not active:
            return
        threads = group.threads
        if len(group) > _MANY and access.scope >= Scope.GPU:
            threads, addresses = self._crowds(access, threads, addresses)
        commons: dict[int, Stamp] = {}
        for thread, address in zip(threads.tolist(), addresses.tolist(), strict=True):
            self._one(access, thread, (access.space, address), commons)
        if access.sem.releases:
            self.state.clocks.tick()

    def _crowds(self, access: Access, threads: Ints, addresses: Ints) -> tuple[Ints, Ints]:
        """Let threads of which very many access one location do so together: each observes what all have released.
        Return the others."""
        places, which, counts = np.unique(addresses, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        for at in np.flatnonzero(counts > _MANY).tolist():
            self._together(access, threads[which == at], (access.space, int(places[at])))
        few = counts[which] <= _MANY
        return threads[few], addresses[few]

    def _together(self, access: Access, threads: Ints, location: tuple[Space, int]) -> None:
        there, fenced = self._at.get(location, []), self.state.fenced
        if access.writes:
            there = list(there) if access.reads else []
            held = [fenced[thread] for thread in threads.tolist() if thread in fenced]
            if access.sem.releases:
                there.append(Release(self.state.clocks.publish(threads), access.scope, int(threads[0])))
            elif held:
                there += held
            self._at[location] = there = _merged(there)
        if access.reads and there and not access.red:
            for release in there if access.sem.acquires else ():
                mine = [t for t in threads.tolist() if self._reaches(access.scope, release.scope, t, release.thread)]
                if mine:
                    self.state.clocks.acquire(np.array(mine, np.int64), release.stamp)
            for thread in threads.tolist():
                self.state.observed.setdefault(thread, {})[location] = there

    def _one(self, access: Access, thread: int, location: tuple[Space, int], commons: dict[int, Stamp]) -> None:
        """One thread's access. `commons`: what rows knew when the instruction began."""
        there = self._at.get(location, [])
        one = np.array([thread], np.int64)
        # `red` and stores read nothing that they could acquire.
        if access.reads and there and not access.red:
            union = self._unions.get(location)
            if access.sem.acquires and access.scope >= Scope.GPU and union is not None and union[0] is there:
                self.state.clocks.acquire(one, union[1])
            else:
                for release in there:
                    if access.sem.acquires and self._reaches(access.scope, release.scope, thread, release.thread):
                        self.state.clocks.acquire(one, release.stamp)
            self.state.observed.setdefault(thread, {})[location] = there
        if access.writes:
            kept = [r for r in there if r.thread != thread] if access.reads else []
            if access.sem.releases:
                learned = bool(there) and access.reads and access.sem.acquires
                kept.append(Release(self._handed_on(one, learned, commons), access.scope, thread))
            elif thread in self.state.fenced:
                fence = self.state.fenced[thread]
                kept.append(Release(fence.stamp, min(fence.scope, access.scope), thread))
            if kept:
                self._at[location] = _merged(kept) if len(kept) > _MANY else kept
                self._unite(location, there, self._at[location], access.sem.releases)
            else:
                self._at.pop(location, None)

    def _handed_on(self, one: Ints, learned: bool, commons: dict[int, Stamp]) -> Stamp | Later:
        """Return what a thread releases. Until it learns something by this instruction, it knows what its row did."""
        clocks, thread = self.state.clocks, int(one[0])
        warp, row = thread >> 5, int(clocks.row_of[thread])
        if learned or clocks.crossed_at >= 0 or clocks.copy_column[warp]:
            return clocks.publish(one)
        common = commons.get(row)
        if common is None:
            common = commons[row] = clocks.knowledge(row)
        return Later(common, thread - int(clocks.first_thread[warp]) + 1, clocks.now)

    def _unite(
        self, location: tuple[Space, int], before: list[Release], now: list[Release], released: bool
    ) -> None:  # fmt: skip
        """Keep the union of releases that reach every thread of the grid. A thread's release holds its earlier ones."""
        union = self._unions.pop(location, None)
        if len(now) < 2 or not all(release.scope >= Scope.GPU for release in now):
            return
        if released and union is not None and union[0] is before:
            self._unions[location] = now, joined(union[1], now[-1].stamp.copy())
            return
        stamp = now[0].stamp.copy()
        for release in now[1:]:
            stamp = joined(stamp, release.stamp.copy())
        self._unions[location] = now, stamp

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

    def exits(self, grid: Grid, threads: Ints) -> None:
        """Threads exit: what they know of other grids is known to whoever waits for the end of their own."""
        foreign = self.state.clocks.foreign
        if not grid.overlaps or not foreign:
            return
        for row in self.state.clocks.rows(threads):
            for domain, known in foreign.get(row, {}).items():
                if self.state.domains[domain].grid is not grid:
                    stamp = Stamp(domain, known.copy(), {})
                    held = self._left.get(grid.number)
                    self._left[grid.number] = stamp if held is None else held.merge(stamp)

    def grid_wait(self, group: Group) -> None:
        """`griddepcontrol.wait` that went on: the grid before has ended, and those that it waited for itself. What was
        handed on to that grid is known, too."""
        clocks, grid = self.state.clocks, self.state.grid_of(group.first)
        if grid.overlaps and grid.number:
            before = self.state.grids[grid.number - 1]
            if before.number in self._left:
                clocks.acquire(group.threads, self._left[before.number])
            grid.waited, grid.covered = True, before.completes
            self.state.uncovered = self.state.uncovered or grid.covered > 0
        clocks.learn(group.threads, PRIOR, clocks.tick(), range(KINDS))
