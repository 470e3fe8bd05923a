"""Fences, strong accesses and dependent launches: release patterns, acquire patterns and the edges between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyptx.sim.base.events import Access, Ints, Scope, Sem, Space
from pyptx.sim.hazards.clocks import KINDS, NEVER, PRIOR
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.stamps import LazyStamp, Stamp, make_lazy_stamp
from pyptx.sim.hazards.state import Grid, NarrowEdge, Release, State

_MANY = 64
"""The most releases of one location, or threads at it, that are kept separately."""
_MOST_NARROW = 1 << 12
"""The most acquires that order nothing to keep: they only explain findings."""


def _number_locations(space: Space, addresses: Ints) -> list[int]:
    """Return numbers of the locations at these addresses, distinct in each space."""
    numbers: list[int] = (addresses * 2 + (space is Space.SHARED)).tolist()
    return numbers


def _merge(releases: list[Release]) -> list[Release]:
    """Merge the releases that reach every thread of the grid into one."""
    wide = [release for release in releases if release.scope >= Scope.GPU]
    if len(wide) < 2:
        return releases
    handed = tuple(release.source for release in wide)
    together = make_lazy_stamp(
        None, 0, max(merged.now if isinstance(merged, LazyStamp) else NEVER for merged in handed), handed
    )
    one = Release(together, min(release.scope for release in wide), -1)
    return [one, *(release for release in releases if release.scope < Scope.GPU)]


class Synchronisation:
    """Knowledge passed on through memory locations."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._at: dict[int, list[Release]] = {}
        self._last: dict[int, tuple[list[Release], list[Release]]] = {}
        """The releases of a location, if all reach every thread of the grid, and those that include all others."""
        self._sc: dict[tuple[int, int], Stamp] = {}
        """What has entered each total order of fence.sc."""
        self._triggers: dict[int, Stamp] = {}
        self._left: dict[int, Stamp] = {}
        """What exited threads of overlapping grids knew of the previous grids, by the grid's number."""

    def forget(self, threads: Ints) -> None:
        """Forget threads whose numbers begin new lives."""
        for thread in threads.tolist() if self.state.fences or self.state.observations else ():
            self.state.fences.pop(thread, None)
            self.state.observations.pop(thread, None)

    def _is_in_scope(self, scope: Scope, other: Scope, thread: int, who: int) -> bool:
        """Tell whether the scopes of two strong operations include each other's thread."""
        narrow = min(scope, other)
        if narrow >= Scope.GPU or who < 0:
            return True
        state = self.state
        if state.find_domain(thread) is not state.find_domain(who):
            return False
        grid = state.find_grid(thread)
        return narrow is Scope.CLUSTER or grid.find_slot(thread) == grid.find_slot(who)

    def _hands_on(self, release: Release, thread: int, scope: Scope) -> bool:
        """Tell whether an acquired release orders anything; record it if a scope is too narrow."""
        if self._is_in_scope(scope, release.scope, thread, release.thread):
            return True
        key, narrow = (thread, release), self.state.narrow
        if key not in narrow and len(narrow) < _MOST_NARROW:
            narrow[key] = NarrowEdge(release, thread, scope, self.state.clocks.now)
        return False

    def fence(self, group: Group, sem: Sem, scope: Scope) -> None:
        """`fence{.sc,.acq_rel,.acquire,.release}` and `membar`."""
        clocks = self.state.clocks
        if sem.acquires:
            self._acquire_observed(group, scope)
        if sem is Sem.SC:
            for key, threads in self._list_orders(group, scope):
                if key in self._sc:
                    clocks.acquire_from_other_warps(threads, self._sc[key])
        if sem.releases:
            for thread in group.threads.tolist():
                self.state.fences[thread] = Release(clocks.publish_lazily(thread), scope, thread)
            for key, threads in self._list_orders(group, scope) if sem is Sem.SC else ():
                stamp, held = clocks.publish(threads), self._sc.get(key)
                self._sc[key] = stamp if held is None else held.merge(stamp)
            clocks.tick()

    def _acquire_observed(self, group: Group, scope: Scope) -> None:
        """Let threads learn the releases that they have read since their last fence."""
        if not self.state.observations:
            return
        for thread in group.threads.tolist():
            for releases in self.state.observations.pop(thread, {}).values():
                for release in releases:
                    if self._hands_on(release, thread, scope):
                        self.state.clocks.learn_later(thread, release.source)

    def _list_orders(self, group: Group, scope: Scope) -> list[tuple[tuple[int, int], Ints]]:
        """Return the total orders of fence.sc in which threads participate: of all, or of their cluster or CTA."""
        if scope >= Scope.GPU:
            return [((-1, -1), group.threads)]
        grid, domains = self.state.find_grid(group.first), self.state.clocks.domain_of
        orders: list[tuple[tuple[int, int], Ints]] = []
        for members in group.ctas(grid.first_thread, grid.stride).members:
            slot = grid.find_slot(int(members[0])) if scope is Scope.CTA else -1
            orders.append(((int(domains[int(members[0]) >> 5]), slot), members))
        return orders

    def strong(self, access: Access, group: Group, addresses: Ints) -> None:
        """Synchronize strong accesses; call it with every load, store and atomic that is not weak."""
        active = access.sem.releases or access.sem.acquires or self.state.fences or self._at
        if not active:
            return
        threads = group.threads
        if len(group) > _MANY and access.scope >= Scope.GPU:
            threads, addresses = self._synchronize_crowds(access, threads, addresses)
        # `red` and stores read nothing that they could acquire.
        reads, acquires, releases = access.reads and not access.red, access.sem.acquires, access.sem.releases
        for thread, location in zip(threads.tolist(), _number_locations(access.space, addresses), strict=True):
            there = self._at.get(location)
            learned = reads and there is not None and self._read_released(access, thread, location, there, acquires)
            if access.writes:
                self._write_released(access, thread, location, there or [], learned, releases)
        if releases:
            self.state.clocks.tick()

    def _synchronize_crowds(self, access: Access, threads: Ints, addresses: Ints) -> tuple[Ints, Ints]:
        """Process many threads that access one location together: each observes what all have released. Return the
        others."""
        places, which, counts = np.unique(addresses, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        for at in np.flatnonzero(counts > _MANY).tolist():
            self._synchronize_together(
                access, threads[which == at], _number_locations(access.space, places[at : at + 1])[0]
            )
        few = counts[which] <= _MANY
        return threads[few], addresses[few]

    def _synchronize_together(self, access: Access, threads: Ints, location: int) -> None:
        there, fenced = self._at.get(location, []), self.state.fences
        if access.writes:
            there = list(there) if access.reads else []
            held = [fenced[thread] for thread in threads.tolist() if thread in fenced]
            if access.sem.releases:
                there.append(Release(self.state.clocks.publish(threads), access.scope, int(threads[0])))
            elif held:
                there += held
            self._at[location] = there = _merge(there)
        if access.reads and there and not access.red:
            for release in there if access.sem.acquires else ():
                mine = [thread for thread in threads.tolist() if self._hands_on(release, thread, access.scope)]
                if mine:
                    self.state.clocks.acquire(np.array(mine, np.int64), release.stamp)
            for thread in threads.tolist():
                self.state.observations.setdefault(thread, {})[location] = there

    def _read_released(
        self, access: Access, thread: int, location: int, there: list[Release], acquires: bool
    ) -> bool:  # fmt: skip
        """Let a thread read a released location. Tell whether it has learned all of it."""
        observed = self.state.observations
        if acquires and self._learn_released(access, thread, location, there):
            if thread in observed:
                observed[thread].pop(location, None)
            return True
        observed.setdefault(thread, {})[location] = there
        return False

    def _write_released(
        self, access: Access, thread: int, location: int, there: list[Release], learned: bool, releases: bool
    ) -> None:  # fmt: skip
        """Let a thread write to a location; an atomic continues its release sequence. `learned`: the thread knows
        it."""
        now = [one for one in there if one.thread != thread] if access.reads else []
        if releases:
            now.append(Release(self.state.clocks.publish_lazily(thread), access.scope, thread))
        elif thread in self.state.fences:
            fence = self.state.fences[thread]
            now.append(Release(fence.source, min(fence.scope, access.scope), thread))
        if not now:
            self._at.pop(location, None)
            return
        if len(now) > _MANY:
            now = _merge(now)
        self._at[location] = now
        if there:
            self._note_last(location, there, now, learned and releases, releases)

    def _learn_released(self, access: Access, thread: int, location: int, there: list[Release]) -> bool:
        """Let a thread learn the releases of a location. Tell whether that is all of them."""
        last, every = self._last.get(location), True
        if last is not None and last[0] is there and access.scope >= Scope.GPU:
            there = last[1]
        for release in there:
            if self._hands_on(release, thread, access.scope):
                self.state.clocks.learn_later(thread, release.source)
            else:
                every = False
        return every

    def _note_last(
        self, location: int, before: list[Release], now: list[Release], all_held: bool, released: bool
    ) -> None:  # fmt: skip
        """Keep the releases that include all others of a location."""
        held = self._last.pop(location, None)
        if len(now) < 2 or not all(release.scope >= Scope.GPU for release in now):
            return
        latest = now[-1]
        if all_held:
            self._last[location] = now, [latest]
        elif released and held is not None and held[0] is before:
            several = [*held[1], latest]
            self._last[location] = now, _merge(several) if len(several) > _MANY else several
        else:
            self._last[location] = now, now

    def weak_store(self, access: Access, addresses: Ints) -> None:
        """End the release sequences at the location of a weak store."""
        if len(self._at) > _MANY:
            for location in _number_locations(access.space, addresses):
                self._at.pop(location, None)
        elif self._at:
            stored = set(_number_locations(access.space, addresses))
            for location in [location for location in self._at if location in stored]:
                del self._at[location]

    def proxy_fence(self, group: Group, spaces: Sequence[Space]) -> None:
        """`fence.proxy.async`, for the spaces it names."""
        self.state.clocks.cross(group.threads, spaces)

    def launch_dependents(self, group: Group) -> None:
        """`griddepcontrol.launch_dependents`: after a release fence, dependents start with what it released."""
        grid = self.state.find_grid(group.first)
        for thread in group.threads.tolist():
            fence = self.state.fences.get(thread)
            if fence is not None and fence.scope >= Scope.GPU:
                held = self._triggers.get(grid.number)
                self._triggers[grid.number] = fence.stamp if held is None else held.merge(fence.stamp)

    def started(self, grid: Grid, threads: Ints) -> None:
        """Start a CTA of a dependent grid."""
        stamp = self._triggers.get(grid.number - 1) if grid.overlaps else None
        if stamp is not None:
            self.state.clocks.acquire(threads, stamp)

    def exits(self, grid: Grid, threads: Ints) -> None:
        """Keep what exiting threads know of other grids for threads that wait for their own grid."""
        foreign = self.state.clocks.foreign
        if not grid.overlaps or not foreign:
            return
        for row in self.state.clocks.find_rows(threads):
            for domain, known in foreign.get(row, {}).items():
                if self.state.domains[domain].grid is not grid:
                    stamp = Stamp(domain, known.copy(), {})
                    held = self._left.get(grid.number)
                    self._left[grid.number] = stamp if held is None else held.merge(stamp)

    def grid_wait(self, group: Group) -> None:
        """`griddepcontrol.wait` that returned: the previous grid has ended, and those that it waited for, and what they
        passed on is known."""
        clocks, grid = self.state.clocks, self.state.find_grid(group.first)
        if grid.overlaps and grid.number:
            before = self.state.grids[grid.number - 1]
            if before.number in self._left:
                clocks.acquire(group.threads, self._left[before.number])
            grid.has_waited, grid.first_covered = True, before.first_complete
            self.state.uncovered = self.state.uncovered or grid.first_covered > 0
        clocks.learn(group.threads, PRIOR, clocks.tick(), range(KINDS))
