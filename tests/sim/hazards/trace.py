"""A minimal machine: roles are lists of events; a schedule chooses the next role and when copies land.

Every event has a label; a trace is built without one label, and runs until its roles end or nothing can proceed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from pyptx.diagnostics import Severity, Span
from pyptx.sim import rules
from pyptx.sim.base.events import Ints
from pyptx.sim.hazards import (
    Access,
    Bytes,
    Family,
    Group,
    Hazards,
    Place,
    Scope,
    Sem,
    Space,
    atomic,
    load,
    store,
    tensor_cells,
)
from pyptx.sim.hazards.barriers import BarKind
from pyptx.sim.hazards.state import Grid, Overlap

Ready = Callable[[], bool]
Run = Callable[[], object]


def would_pass(engine: Hazards, thread: int, address: int, parity: int) -> bool:
    """Tell whether a wait for a parity of an mbarrier would return true now."""
    barrier = engine.mbarriers.live.get((engine.state.find_grid(thread).number, address))
    return barrier is None or (barrier.phase - 1) & 1 == parity


def may_cluster_pass(engine: Hazards, thread: int) -> bool:
    """Tell whether `barrier.cluster.wait` of a thread would return: it has arrived, and its round is complete."""
    barriers = engine.barriers
    cluster_round = barriers.clusters.get(engine.state.find_domain(thread).number)
    has_arrived = thread < len(barriers.arrivals) and barriers.arrivals[thread] > barriers.waits[thread]
    return cluster_round is not None and bool(has_arrived) and thread not in cluster_round.arrivals


@dataclass
class Action:
    """One event of a role: it runs when it is `ready`."""

    place: Place
    ready: Ready
    run: Run


def _always() -> bool:
    return True


class Trace:
    """One run of one pattern. `without` is the omitted label."""

    def __init__(self, without: str = "", lazy: bool = False, seed: int | None = None, reverse: bool = False) -> None:
        self.without, self.lazy, self.reverse = without, lazy, reverse
        self.choice = random.Random(seed) if seed is not None else None
        self.engine = Hazards()
        self.labels: list[str] = []
        self.roles: list[Role] = []
        self.flying: list[Run] = []
        self.values: dict[int, int] = {}

    def has(self, label: str) -> bool:
        """Return whether a label's event or property is present in this run."""
        if label not in self.labels:
            self.labels.append(label)
        return label != self.without

    def make_place(self, label: str) -> Place:
        self.has(label)
        return Place(Span(self.labels.index(label) + 1, 1), label)

    def add_grid(self, threads: int = 128, ctas: int = 1, cluster: int = 1, overlaps: bool = False) -> Grid:
        grid = self.engine.launch(
            self.make_place("launch"),
            threads,
            slots=ctas,
            cluster=cluster,
            shared_bytes=65536,
            tensor=True,
            overlap=Overlap.DEPENDENT if overlaps else Overlap.NONE,
        )
        self.engine.start(grid, range(ctas), range(ctas))
        return grid

    def add_role(self, grid: Grid, threads: Sequence[int], cta: int = 0) -> Role:
        role = Role(self, grid, cta, Group(np.array([grid.find_thread(cta, t) for t in threads])))
        self.roles.append(role)
        return role

    def land_later(self, land: Run) -> None:
        """An asynchronous operation: it takes effect immediately, or when nothing else can proceed."""
        if self.lazy:
            self.flying.append(land)
        else:
            land()

    def run(self) -> None:
        while any(role.actions for role in self.roles):
            able = [role for role in self.roles if role.actions and role.actions[0].ready()]
            if self.flying and (not able or (self.choice and self.choice.random() < 0.1)):
                self.flying.pop(0)()
            elif able:
                next_role = self.choice.choice(able) if self.choice else able[-1 if self.reverse else 0]
                action = next_role.actions.pop(0)
                action.run()
            else:
                place = next(role.actions[0].place for role in self.roles if role.actions)
                self.engine.state.report(rules.DEADLOCK, place, "nothing can proceed")
                return
        for land in self.flying:
            land()


@dataclass
class Role:
    """The events of some threads of a CTA, in order."""

    trace: Trace
    grid: Grid
    cta: int
    group: Group
    actions: list[Action] = field(default_factory=list[Action])
    is_released: bool = False

    def add(self, label: str, run: Callable[[Place], object], ready: Ready = _always) -> None:
        """Append an event unless its label is omitted."""
        if self.trace.has(label):
            place = self.trace.make_place(label)
            self.actions.append(Action(place, ready, lambda: run(place)))

    def leader(self) -> Role:
        """Return a role of the first thread, whose events are added to those of the whole."""
        return Role(self.trace, self.grid, self.cta, self.group[[0]])

    # Addresses

    def find_shared(self, offset: int, cta: int | None = None) -> int:
        return self.grid.find_shared_base(self.cta if cta is None else cta) + offset

    def list_addresses(self, offset: int, size: int, rotate: int = 0, cta: int | None = None) -> Ints:
        """One address per thread, by its number in the CTA."""
        lanes = (self.group.threads - self.grid.first_thread) % self.grid.stride
        return self.find_shared(offset, cta) + (lanes + rotate) % self.grid.threads * size

    def _access(self, label: str, access: Callable[[Place], Access], addresses: Callable[[], Ints]) -> None:
        accesses: list[Access] = []

        def run(place: Place) -> None:
            if not accesses:
                accesses.append(access(place))
            self.trace.engine.access(accesses[0], self.group, addresses())

        self.add(label, run)

    def st(self, label: str, offset: int, size: int = 16, rotate: int = 0, cta: int | None = None) -> None:
        self._access(
            label, lambda p: store(p, Space.SHARED, size), lambda: self.list_addresses(offset, size, rotate, cta)
        )

    def ld(self, label: str, offset: int, size: int = 16, rotate: int = 0, cta: int | None = None) -> None:
        self._access(
            label, lambda p: load(p, Space.SHARED, size), lambda: self.list_addresses(offset, size, rotate, cta)
        )

    def ld_same(self, label: str, offset: int, size: int = 4) -> None:
        self._access(
            label, lambda p: load(p, Space.SHARED, size), lambda: np.full(len(self.group), self.find_shared(offset))
        )

    def st_one(self, label: str, offset: int, size: int = 4, cta: int | None = None) -> None:
        self._access(
            label,
            lambda p: store(p, Space.SHARED, size),
            lambda: np.full(len(self.group), self.find_shared(offset, cta)),
        )

    def gst(self, label: str, address: int, size: int = 4, per_thread: bool = True) -> None:
        self._access(
            label, lambda p: store(p, Space.GLOBAL, size), lambda: self._list_global(address, size, per_thread)
        )

    def gld(
        self, label: str, address: int, size: int = 4, rotate: int = 0, per_thread: bool = True, readonly: bool = False
    ) -> None:
        self._access(
            label,
            lambda p: Access(p, Space.GLOBAL, size, False, readonly=readonly),
            lambda: self._list_global(address, size, per_thread, rotate),
        )

    def _list_global(self, address: int, size: int, per_thread: bool, rotate: int = 0) -> Ints:
        lanes = (self.group.threads - self.grid.first_thread) % self.grid.stride
        return address + ((lanes + rotate) % self.grid.threads if per_thread else lanes * 0) * size

    # Flags in global memory

    def set_flag(self, label: str, address: int, sem: Sem, scope: Scope, *, adds: bool = False, size: int = 4) -> None:
        def run(place: Place) -> None:
            access = (atomic if adds else store)(place, Space.GLOBAL, size, sem, scope)
            self.trace.engine.access(access, self.group, np.full(len(self.group), address))
            self.trace.values[address] = self.trace.values.get(address, 0) + 1

        self.add(label, run)

    def see_flag(self, label: str, address: int, sem: Sem, scope: Scope, value: int = 1) -> None:
        def ready() -> bool:
            return self.trace.values.get(address, 0) >= value

        def run(place: Place) -> None:
            access = load(place, Space.GLOBAL, 4, sem, scope)
            self.trace.engine.access(access, self.group, np.full(len(self.group), address))

        self.add(label, run, ready)

    def weak_see_flag(self, label: str, address: int) -> None:
        self.see_flag(label, address, Sem.WEAK, Scope.CTA)

    def fence(self, label: str, sem: Sem, scope: Scope) -> None:
        self.add(label, lambda p: self.trace.engine.sync.fence(self.group, sem, scope))

    def proxy_fence(self, label: str, *spaces: Space) -> None:
        targets = spaces or (Space.SHARED, Space.GLOBAL)
        self.add(label, lambda p: self.trace.engine.sync.proxy_fence(self.group, targets))

    # Barriers

    def bar(self, label: str, number: int = 0, count: int | None = None, kind: BarKind = "sync") -> None:
        """Arrive; unless the kind is `arrive`, the next event waits for the round."""
        engine, trace = self.trace.engine, self.trace
        if not trace.has(label):
            return

        def run(place: Place) -> None:
            threads = set(engine.barriers.bar(self.group, place, number, count, kind))
            for role in trace.roles:
                if set(role.group.threads.tolist()) <= threads:
                    role.is_released = True

        def leave(place: Place) -> None:
            self.is_released = False

        self.actions.append(Action(trace.make_place(label), _always, lambda: run(trace.make_place(label))))
        if kind != "arrive":
            self.actions.append(
                Action(trace.make_place(label), lambda: self.is_released, lambda: leave(trace.make_place(label)))
            )

    def warp_sync(self, label: str, mask: int = 0xFFFFFFFF) -> None:
        self.add(label, lambda p: self.trace.engine.barriers.warp_sync(self.group, p, mask))

    def cluster_arrive(self, label: str, sem: Sem = Sem.RELEASE) -> None:
        self.add(label, lambda p: self.trace.engine.barriers.cluster_arrive(self.group, p, sem))

    def cluster_wait(self, label: str, sem: Sem = Sem.ACQUIRE) -> None:
        barriers = self.trace.engine.barriers

        def ready() -> bool:
            return all(may_cluster_pass(self.trace.engine, thread) for thread in self.group.threads.tolist())

        self.add(label, lambda p: barriers.cluster_wait(self.group, p, sem), ready)

    def cluster_sync(self, label: str) -> None:
        self.cluster_arrive(label)
        self.cluster_wait(label)

    # mbarriers

    def init(self, label: str, offset: int, count: int) -> None:
        self.add(
            label, lambda p: self.trace.engine.mbarriers.init(self.group.first, p, self.find_shared(offset), count)
        )

    def inval(self, label: str, offset: int) -> None:
        self.add(label, lambda p: self.trace.engine.mbarriers.inval(self.group.first, p, self.find_shared(offset)))

    def fence_init(self, label: str) -> None:
        self.add(label, lambda p: self.trace.engine.barriers.fence_inits(self.group))

    def arrive(
        self,
        label: str,
        offset: int,
        expect: int = 0,
        cta: int | None = None,
        sem: Sem = Sem.RELEASE,
        scope: Scope = Scope.CTA,
    ) -> None:
        self.add(
            label,
            lambda p: self.trace.engine.mbarriers.arrive(
                self.group, p, self.find_shared(offset, cta), expect=expect, sem=sem, scope=scope
            ),
        )

    def expect(self, label: str, offset: int, size: int) -> None:
        self.add(label, lambda p: self.trace.engine.mbarriers.expect(self.group, p, self.find_shared(offset), size))

    def wait(self, label: str, offset: int, parity: int, sem: Sem = Sem.ACQUIRE, scope: Scope = Scope.CTA) -> None:
        mbarriers = self.trace.engine.mbarriers

        def ready() -> bool:
            return would_pass(self.trace.engine, self.group.first, self.find_shared(offset), parity)

        self.add(
            label,
            lambda p: mbarriers.wait(self.group, p, self.find_shared(offset), parity, sem=sem, scope=scope),
            ready,
        )

    # Copies

    def tma_load(
        self, label: str, offset: int, size: int, barrier: int, source: int = 1 << 20, ctas: Sequence[int] = ()
    ) -> None:
        targets = [
            (Bytes.run(Space.SHARED, self.find_shared(offset, cta), size), self.find_shared(barrier, cta))
            for cta in (ctas or [self.cta])
        ]

        def run(place: Place) -> None:
            copies = self.trace.engine.copies
            number = copies.bulk_load(self.group.first, place, Bytes.run(Space.GLOBAL, source, size), targets)
            for index in range(len(targets)):
                self.trace.land_later(lambda index=index: copies.land(number, index))

        self.add(label, run)

    def tma_store(self, label: str, offset: int, size: int, target: int = 2 << 20, reduces: int = 0) -> None:
        source = Bytes.run(Space.SHARED, self.find_shared(offset), size)
        self.add(
            label,
            lambda p: self.trace.engine.copies.bulk_store(
                self.group.first, p, source, Bytes.run(Space.GLOBAL, target, size), reduces
            ),
        )

    def commit_bulk(self, label: str) -> None:
        self.add(label, lambda p: self.trace.engine.copies.commit_bulk(self.group, p))

    def wait_bulk(self, label: str, pending: int = 0, read: bool = True) -> None:
        self.add(label, lambda p: self.trace.engine.copies.wait_bulk(self.group, p, pending, read))

    def cp_async(self, label: str, offset: int, source: int = 1 << 20) -> None:
        def run(place: Place) -> None:
            target = Access(place, Space.SHARED, 16, True, False, family=Family.CP_ASYNC)
            read = Access(place, Space.GLOBAL, 16, False, family=Family.CP_ASYNC)
            sources = self._list_global(source, 16, True)
            self.trace.engine.copies.cp_async(self.group, target, self.list_addresses(offset, 16), read, sources)

        self.add(label, run)

    def commit_cp(self, label: str) -> None:
        self.add(label, lambda p: self.trace.engine.copies.commit_cp(self.group))

    def wait_cp(self, label: str, pending: int = 0) -> None:
        self.add(label, lambda p: self.trace.engine.copies.wait_cp(self.group, pending))

    def cp_arrive(self, label: str, offset: int) -> None:
        def run(place: Place) -> None:
            copies = self.trace.engine.copies
            self.trace.land_later(lambda: copies.cp_arrive(self.group, place, self.find_shared(offset), True))

        self.add(label, run)

    def st_async(self, label: str, offset: int, barrier: int, cta: int) -> None:
        def run(place: Place) -> None:
            copies = self.trace.engine.copies
            access = Access(place, Space.SHARED, 4, True, False, Sem.WEAK, family=Family.ST_ASYNC)
            number = copies.st_async(
                self.group, access, self.list_addresses(offset, 4, 0, cta), self.find_shared(barrier, cta)
            )
            self.trace.land_later(lambda: copies.land_st(number))

        self.add(label, run)

    # Tensor cores

    def wgmma_fence(self, label: str) -> None:
        self.add(label, lambda p: self.trace.engine.wgmma.fence(self.group))

    def wgmma(self, label: str, runs: Sequence[tuple[int, int]], registers: range, shape: str = "m64n64k16") -> None:
        operands = [Bytes.run(Space.SHARED, self.find_shared(offset), size) for offset, size in runs]
        self.add(
            label,
            lambda p: self.trace.engine.wgmma.issue(self.group, p, operands, frozenset(registers), shape=shape),
        )

    def wgmma_commit(self, label: str) -> None:
        self.add(label, lambda p: self.trace.engine.wgmma.commit(self.group))

    def wgmma_wait(self, label: str, pending: int = 0) -> None:
        self.add(label, lambda p: self.trace.engine.wgmma.wait(self.group, pending))

    def registers(self, label: str, registers: range) -> None:
        self.add(label, lambda p: self.trace.engine.wgmma.record_access(self.group, p, frozenset(registers)))

    def alloc(self, label: str, column: int, columns: int) -> None:
        self.add(label, lambda p: self.trace.engine.tensor.alloc(self.group, p, column, columns))

    def dealloc(self, label: str, column: int, columns: int) -> None:
        self.add(label, lambda p: self.trace.engine.tensor.dealloc(self.group, p, column, columns))

    def cells(self, column: int, columns: int) -> Bytes:
        return tensor_cells(self.grid.find_tensor_base(self.cta), column, columns)

    def mma(self, label: str, runs: Sequence[tuple[int, int]], column: int, columns: int, adds: bool = False) -> None:
        operands = [Bytes.run(Space.SHARED, self.find_shared(offset), size) for offset, size in runs]
        d = self.cells(column, columns)
        self.add(
            label,
            lambda p: self.trace.engine.tensor.operate(self.group.first, p, [*operands, *([d] if adds else [])], [d]),
        )

    def tc_commit(self, label: str, barrier: int) -> None:
        def run(place: Place) -> None:
            tensor = self.trace.engine.tensor
            number = tensor.commit(self.group.first, place, [self.find_shared(barrier)])
            self.trace.land_later(lambda: tensor.land_commit(number))

        self.add(label, run)

    def tc_fence(self, label: str, before: bool) -> None:
        self.add(label, lambda p: self.trace.engine.tensor.fence(self.group, before=before))

    def tc_move(self, label: str, column: int, columns: int, stores: bool = False) -> None:
        def run(place: Place) -> None:
            for warp in self.group.warps.tolist():
                quarter = warp % 4
                warp_group = Group(np.arange(32) + warp * 32)
                self.trace.engine.tensor.move(warp_group, place, column, columns, 32 * quarter, 32, stores=stores)

        self.add(label, run)

    def tc_wait(self, label: str, stores: bool = False) -> None:
        self.add(label, lambda p: self.trace.engine.tensor.wait(self.group, stores=stores))

    def exit(self, label: str = "exit") -> None:
        def run(place: Place) -> None:
            threads = set(self.trace.engine.exit(self.group, place))
            for role in self.trace.roles:
                if threads and set(role.group.threads.tolist()) <= threads:
                    role.is_released = True

        self.add(label, run)


Pattern = Callable[[Trace], None]


def list_schedules(seeds: int = 3) -> Iterator[tuple[bool, int | None, bool]]:
    """Yield (lazy, seed, reverse) of every schedule for a pattern."""
    for lazy in (False, True):
        yield lazy, None, False
        yield lazy, None, True
        for seed in range(seeds):
            yield lazy, seed, False


def find_codes(pattern: Pattern, without: str = "", seeds: int = 3) -> dict[str, Severity]:
    """Return the codes reported for a pattern under all schedules, with their severities."""
    codes: dict[str, Severity] = {}
    for lazy, seed, reverse in list_schedules(seeds):
        trace = Trace(without, lazy, seed, reverse)
        pattern(trace)
        trace.run()
        for finding in trace.engine.findings:
            codes[finding.rule.code] = finding.severity
    return codes


def list_labels(pattern: Pattern) -> list[str]:
    """Return the labels of a pattern, in order of their first use."""
    trace = Trace()
    pattern(trace)
    return trace.labels
