"""Fences, strong accesses and dependent launches: release and acquire patterns, and the edges between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyptx.sim.base.events import Access, Ints, Scope, Sem, Space
from pyptx.sim.hazards.clocks import KINDS, NEVER, PRIOR
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.stamps import LazyStamp, Stamp, make_lazy_stamp
from pyptx.sim.hazards.state import Grid, NarrowEdge, Release, State

_MANY = 64
"""The most releases at one location, and threads of an access to it, to process separately."""
_MOST_NARROW = 1 << 12
"""The most narrow edges to keep; they only explain findings."""


def _number_locations(space: Space, addresses: Ints) -> list[int]:
    """Return the numbers of locations, distinct between spaces."""
    numbers: list[int] = (addresses * 2 + (space is Space.SHARED)).tolist()
    return numbers


def _merge(releases: list[Release]) -> list[Release]:
    """Merge the releases of `.gpu` scope or wider into one."""
    wide = [release for release in releases if release.scope >= Scope.GPU]
    if len(wide) < 2:
        return releases
    sources = tuple(release.source for release in wide)
    together = make_lazy_stamp(
        None, 0, max(source.now if isinstance(source, LazyStamp) else NEVER for source in sources), sources
    )
    union = Release(together, min(release.scope for release in wide), -1)
    return [union, *(release for release in releases if release.scope < Scope.GPU)]


class Synchronization:
    """The synchronization of threads through memory locations."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._releases: dict[int, list[Release]] = {}
        self._last: dict[int, tuple[list[Release], list[Release]]] = {}
        """Per location whose releases all have `.gpu` scope or wider: its releases, and those that include all
        others."""
        self._sc: dict[tuple[int, int], Stamp] = {}
        """The stamps released into each total order of `fence.sc`."""
        self._triggers: dict[int, Stamp] = {}
        self._left: dict[int, Stamp] = {}
        """Per overlapping grid: what its exited threads knew of other grids."""

    def forget(self, threads: Ints) -> None:
        """Forget threads whose numbers are reused."""
        for thread in threads.tolist() if self.state.fences or self.state.observations else ():
            self.state.fences.pop(thread, None)
            self.state.observations.pop(thread, None)
        if self.state.narrow:
            members, edges = set(threads.tolist()), self.state.narrow
            for key in [key for key, edge in edges.items() if edge.thread in members]:
                del edges[key]

    def forget_shared(self, low: int, high: int) -> None:
        """Forget the releases in shared memory that starting CTAs reuse."""
        first, last = (_number_locations(Space.SHARED, np.array([address]))[0] for address in (low, high))
        for location in [number for number in self._releases if first <= number < last and number & 1]:
            del self._releases[location]

    def _is_in_scope(self, release: Release, thread: int, scope: Scope) -> bool:
        """Tell whether the scopes of a release and of a strong operation include each other's thread."""
        narrow, state = min(scope, release.scope), self.state
        if narrow >= Scope.GPU or release.thread < 0:
            return True
        clocks = state.clocks
        life = release.life or int(clocks.life_of[release.thread >> 5])
        if clocks.domain_of[thread >> 5] != state.records.life_domain[life]:
            return False
        grid = state.find_grid(thread)
        return narrow is Scope.CLUSTER or grid.find_slot(thread) == grid.find_slot(release.thread)

    def _hands_on(self, release: Release, thread: int, scope: Scope) -> bool:
        """Tell whether an acquired release orders its accesses; record a narrow edge if a scope prevents it."""
        if self._is_in_scope(release, thread, scope):
            return True
        key, narrow = (thread, release), self.state.narrow
        if key not in narrow and len(narrow) < _MOST_NARROW:
            narrow[key] = NarrowEdge(release, thread, scope, self.state.clocks.now)
        return False

    def fence(self, group: Group, sem: Sem, scope: Scope) -> None:
        """Execute `fence{.sc,.acq_rel,.acquire,.release}` or `membar`."""
        clocks = self.state.clocks
        if sem.acquires:
            self._acquire_observed(group, scope)
        if sem is Sem.SC:
            for key, threads in self._list_orders(group, scope):
                if key in self._sc:
                    clocks.acquire_from_other_warps(threads, self._sc[key])
        if sem.releases:
            for thread in group.threads.tolist():
                wider = [fence for fence in self.state.fences.get(thread, ()) if fence.scope > scope]
                self.state.fences[thread] = [*wider, self._release(thread, scope)]
            for key, threads in self._list_orders(group, scope) if sem is Sem.SC else ():
                stamp, earlier = clocks.publish(threads), self._sc.get(key)
                self._sc[key] = stamp if earlier is None else earlier.merge(stamp)
            clocks.tick()

    def _release(self, thread: int, scope: Scope) -> Release:
        """Return the release of a thread now."""
        clocks = self.state.clocks
        return Release(clocks.publish_lazily(thread), scope, thread, int(clocks.life_of[thread >> 5]), clocks.now)

    def _acquire_observed(self, group: Group, scope: Scope) -> None:
        """Let threads acquire the releases that they observed since their last fence."""
        if not self.state.observations:
            return
        for thread in group.threads.tolist():
            for releases in self.state.observations.pop(thread, {}).values():
                for release in releases:
                    if self._hands_on(release, thread, scope):
                        self.state.clocks.learn_later(thread, release.source)

    def _list_orders(self, group: Group, scope: Scope) -> list[tuple[tuple[int, int], Ints]]:
        """Return the total orders of `fence.sc` that threads take part in, by scope: one for all, or one per cluster or
        CTA."""
        if scope >= Scope.GPU:
            return [((-1, -1), group.threads)]
        grid, domains = self.state.find_grid(group.first), self.state.clocks.domain_of
        orders: list[tuple[tuple[int, int], Ints]] = []
        for members in group.split_by_cta(grid.first_thread, grid.stride).members:
            slot = grid.find_slot(int(members[0])) if scope is Scope.CTA else -1
            orders.append(((int(domains[int(members[0]) >> 5]), slot), members))
        return orders

    def synchronize_strong(self, access: Access, group: Group, addresses: Ints) -> None:
        """Synchronize threads through a strong access: every load, store and atomic that is not weak."""
        active = access.sem.releases or access.sem.acquires or self.state.fences or self._releases
        if not active:
            return
        threads = group.threads
        if len(group) > _MANY and access.scope >= Scope.GPU:
            threads, addresses = self._synchronize_crowds(access, threads, addresses)
        # `red` and stores return no value, so they never acquire.
        reads, acquires, releases = access.reads and not access.red, access.sem.acquires, access.sem.releases
        lives, observations = self.state.clocks.life_of[threads >> 5].tolist(), self.state.observations
        locations = _number_locations(access.space, addresses)
        for thread, life, location in zip(threads.tolist(), lives, locations, strict=True):
            location_releases = self._releases.get(location, [])
            knows_all = (
                reads
                and bool(location_releases or thread in observations)
                and self._read_released(access, thread, location, location_releases, acquires)
            )
            if access.writes:
                self._write_released(access, thread, life, location, location_releases, knows_all, releases)
        if releases or (access.writes and any(thread in self.state.fences for thread in group.threads.tolist())):
            self.state.clocks.tick()

    def _synchronize_crowds(self, access: Access, threads: Ints, addresses: Ints) -> tuple[Ints, Ints]:
        """Process locations that many threads access at once: each observes what all have released. Return the other
        threads and addresses."""
        places, index, counts = np.unique(addresses, return_inverse=True, return_counts=True)
        index = index.reshape(-1)
        for position in np.flatnonzero(counts > _MANY).tolist():
            self._synchronize_together(
                access, threads[index == position], _number_locations(access.space, places[position : position + 1])[0]
            )
        is_small = counts[index] <= _MANY
        return threads[is_small], addresses[is_small]

    def _synchronize_together(self, access: Access, threads: Ints, location: int) -> None:
        location_releases, fences = self._releases.get(location, []), self.state.fences
        if access.writes:
            location_releases = list(location_releases) if access.reads else []
            thread_fences = [fence for thread in threads.tolist() for fence in fences.get(thread, ())]
            if access.sem.releases:
                location_releases.append(Release(self.state.clocks.publish(threads), access.scope, int(threads[0])))
            elif thread_fences:
                location_releases += thread_fences
            self._releases[location] = location_releases = _merge(location_releases)
        if access.reads and location_releases and not access.red:
            for release in location_releases if access.sem.acquires else ():
                mine = [thread for thread in threads.tolist() if self._hands_on(release, thread, access.scope)]
                if mine:
                    self.state.clocks.acquire(np.array(mine, np.int64), release.stamp)
            for thread in threads.tolist():
                self.state.observations.setdefault(thread, {})[location] = location_releases

    def _read_released(
        self, access: Access, thread: int, location: int, location_releases: list[Release], acquires: bool
    ) -> bool:  # fmt: skip
        """Let a thread read a location. Tell whether it acquired all releases there."""
        observed = self.state.observations.get(thread, {})
        earlier = observed.get(location, location_releases)
        if earlier is not location_releases:
            # What earlier reads of the location observed counts too, though it has been overwritten.
            survivors = [old for old in earlier if not any(new is old or new.covers(old) for new in location_releases)]
            location_releases = [*location_releases, *survivors] if survivors else location_releases
        if acquires and self._learn_released(access, thread, location, location_releases):
            observed.pop(location, None)
            return True
        if location_releases:
            self.state.observations.setdefault(thread, {})[location] = location_releases
        return False

    def _write_released(
        self, access: Access, thread: int, life: int, location: int, location_releases: list[Release],
        knows_all: bool, releases: bool,
    ) -> None:  # fmt: skip
        """Let a thread write to a location; an atomic continues its release sequence, and any strong write its own
        releases there. `knows_all`: the thread acquired the whole sequence."""
        clocks, sequence, scope = self.state.clocks, location_releases, access.scope
        if not access.reads:
            sequence = [release for release in sequence if release.thread == thread and release.life == life]
        if releases:
            # It covers what the thread released before.
            now = [old for old in sequence if old.thread != thread or old.life != life or old.scope > scope]
            now.append(Release(clocks.publish_lazily(thread), scope, thread, life, clocks.now))
        else:
            mine = [
                Release(fence.source, min(fence.scope, scope), thread, life, fence.time)
                for fence in self.state.fences.get(thread, ())
            ]
            now = [old for old in sequence if old.thread != thread or not any(new.covers(old) for new in mine)]
            now += mine
        if not now:
            self._releases.pop(location, None)
            return
        if len(now) > _MANY:
            now = _merge(now)
        self._releases[location] = now
        if location_releases:
            self._note_last(location, location_releases, now, knows_all and releases, releases and access.reads)

    def _learn_released(self, access: Access, thread: int, location: int, location_releases: list[Release]) -> bool:
        """Let a thread acquire the releases of a location. Tell whether its scopes allow all of them."""
        last, is_complete = self._last.get(location), True
        if last is not None and last[0] is location_releases and access.scope >= Scope.GPU:
            location_releases = last[1]
        for release in location_releases:
            if self._hands_on(release, thread, access.scope):
                self.state.clocks.learn_later(thread, release.source)
            else:
                is_complete = False
        return is_complete

    def _note_last(
        self, location: int, before: list[Release], now: list[Release], knows_all: bool, continues: bool
    ) -> None:  # fmt: skip
        """Record the releases of a location that include all others. `continues`: an atomic added its release to
        those before."""
        last = self._last.pop(location, None)
        if len(now) < 2 or not all(release.scope >= Scope.GPU for release in now):
            return
        latest = now[-1]
        if knows_all:
            self._last[location] = now, [latest]
        elif continues and last is not None and last[0] is before:
            several = [*last[1], latest]
            self._last[location] = now, _merge(several) if len(several) > _MANY else several
        else:
            self._last[location] = now, now

    def end_sequences(self, access: Access, addresses: Ints) -> None:
        """End the release sequences at the locations of a weak store."""
        if len(self._releases) > _MANY:
            for location in _number_locations(access.space, addresses):
                self._releases.pop(location, None)
        elif self._releases:
            store_locations = set(_number_locations(access.space, addresses))
            for location in [location for location in self._releases if location in store_locations]:
                del self._releases[location]

    def proxy_fence(self, group: Group, spaces: Sequence[Space]) -> None:
        """Execute `fence.proxy.async` for the spaces it names."""
        self.state.clocks.cross(group.threads, spaces)

    def launch_dependents(self, group: Group) -> None:
        """Execute `griddepcontrol.launch_dependents`: dependents acquire the last release fence of each thread at their
        start."""
        grid = self.state.find_grid(group.first)
        for thread in group.threads.tolist():
            for fence in self.state.fences.get(thread, ()):
                if fence.scope < Scope.GPU:
                    continue
                trigger = self._triggers.get(grid.number)
                self._triggers[grid.number] = fence.stamp if trigger is None else trigger.merge(fence.stamp)

    def start_cta(self, grid: Grid, threads: Ints) -> None:
        """Let the starting threads of a dependent grid acquire what triggered it."""
        stamp = self._triggers.get(grid.number - 1) if grid.is_dependent else None
        if stamp is not None:
            self.state.clocks.acquire(threads, stamp)

    def record_exits(self, grid: Grid, threads: Ints) -> None:
        """Keep what exiting threads know of other grids, for threads that wait for the exiting grid."""
        foreign = self.state.clocks.foreign
        if not grid.overlaps or not foreign:
            return
        for row in self.state.clocks.find_rows(threads):
            for domain, clock in foreign.get(row, {}).items():
                if self.state.domains[domain].grid is not grid:
                    stamp = Stamp(domain, clock.copy(), {})
                    earlier = self._left.get(grid.number)
                    self._left[grid.number] = stamp if earlier is None else earlier.merge(stamp)

    def find_left(self, grid: Grid) -> Stamp | None:
        """Return what the exited threads of an overlapping grid knew of other grids."""
        return self._left.get(grid.number)

    def grid_wait(self, group: Group) -> None:
        """Record that `griddepcontrol.wait` returned: the previous grid has ended, as have those that it waited for,
        and their accesses are known."""
        clocks, grid = self.state.clocks, self.state.find_grid(group.first)
        if grid.is_dependent and grid.number:
            primary = self.state.grids[grid.number - 1]
            stamp = self.find_left(primary)
            if stamp is not None:
                clocks.acquire(group.threads, stamp)
            grid.has_waited, grid.first_covered = True, primary.first_complete
            self.state.uncovered = self.state.uncovered or grid.first_covered > 0
        clocks.learn(group.threads, PRIOR, clocks.tick(), range(KINDS))
