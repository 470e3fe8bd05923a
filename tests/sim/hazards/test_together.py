"""Equal events of several CTAs have the same findings at once as one by one: copies, products, loads and stores.

Two engines process one random execution, one of them each event at once. Accesses of all threads to all bytes then show
what each engine remembers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.base.events import Ints, Runs
from pyptx.sim.hazards import Access, Agent, Bytes, Group, Hazards, Place, Space, copies_together, load, store
from pyptx.sim.hazards.rows import Rows, get_row_bytes, place_at_bases

GLOBAL, GLOBAL_BYTES = 1 << 20, 1024
SHARED_BYTES, DATA = 1024, 64
"""Of each CTA's shared memory, the first 64 bytes hold mbarriers."""
LOADED, MULTIPLIED, COUNTED = 0, 8, 16
"""The offsets of the mbarriers: of loads, of products in tensor memory, of arrivals."""
COLUMNS = 32
SUMS = frozenset({1, 2})


@cache
def place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


def _name(agent: Agent | None) -> tuple[object, ...]:
    """Return the warp and the lane that issued an operation, and its engine."""
    return (agent.warp, agent.lane, agent.engine) if agent is not None and agent.engine else ()


class Engine:
    """An engine that processes the events of several CTAs at once, or one by one."""

    def __init__(self, together: bool, ctas: int, cluster: int, threads: int) -> None:
        self.together, self.hazards = together, Hazards()
        for part in range(2):
            half = GLOBAL_BYTES // 2
            self.hazards.state.add_buffer(GLOBAL + part * half, half, f"buffer {part}")
        self.hazards.finish(self.hazards.launch(place(0), 96))
        self.grid = self.hazards.launch(
            place(1), threads, slots=ctas, cluster=cluster, shared_bytes=SHARED_BYTES, tensor=True
        )
        self.hazards.start(self.grid, range(ctas), range(ctas))
        self._groups: dict[tuple[int, ...], list[Group]] = {}

    def find_groups(self, parts: Sequence[Ints]) -> list[Group]:
        """Return one list for equal parts: the engine caches what it knows about a list."""
        key = tuple(thread for part in parts for thread in (*part.tolist(), -1))
        return self._groups.setdefault(key, [Group(part) for part in parts])

    def load(
        self, threads: Ints, line: int, source: Runs, targets: Ints, barriers: Ints, size: int
    ) -> Callable[[list[int]], None]:
        """Issue bulk loads, and return a function that lands some of them."""
        copies, numbers = self.hazards.copies, None
        if self.together:
            numbers = copies_together.bulk_load_all(copies, threads, place(line), source, targets, barriers, size)
        if numbers is not None:
            return lambda positions: copies_together.land_all(copies, [numbers[position] for position in positions])
        ends = [
            [(Bytes.run(Space.SHARED, start, size), barrier) for start, barrier in zip(*row, strict=True)]
            for row in zip(targets.tolist(), barriers.tolist(), strict=True)
        ]
        singles = [
            copies.bulk_load(thread, place(line), Bytes(Space.GLOBAL, starts, source.length), end)
            for thread, starts, end in zip(threads.tolist(), source.starts, ends, strict=True)
        ]

        def land(positions: list[int]) -> None:
            for position in positions:
                copies.land(singles[position])

        return land

    def store(self, threads: Ints, line: int, sources: Ints, size: int, target: Runs) -> None:
        copies = self.hazards.copies
        if self.together and copies_together.bulk_store_all(copies, threads, place(line), sources, size, target):
            return
        for thread, source, starts in zip(threads.tolist(), sources.tolist(), target.starts, strict=True):
            end = Bytes(Space.GLOBAL, starts, target.length)
            copies.bulk_store(thread, place(line), Bytes.run(Space.SHARED, source, size), end)

    def multiply(self, groups: list[Group], line: int, operands: list[Rows], shape: str) -> None:
        wgmma = self.hazards.wgmma
        if self.together:
            wgmma.issue_all(groups, place(line), operands, SUMS, shape=shape)
            return
        for index, group in enumerate(groups):
            mine = [get_row_bytes(Space.SHARED, rows, index) for rows in operands]
            wgmma.issue(group, place(line), mine, SUMS, shape=shape)

    def wait_for_products(self, groups: list[Group], pending: int) -> None:
        wgmma = self.hazards.wgmma
        if self.together:
            wgmma.wait_all(groups, pending)
            return
        for group in groups:
            wgmma.wait(group, pending)

    def operate(self, threads: Ints, line: int, operands: list[Rows], sums: Rows, adds: bool) -> None:
        tensor = self.hazards.tensor
        reads = [(Space.SHARED, rows) for rows in operands] + [(Space.TENSOR, sums)] * adds
        if self.together:
            tensor.operate_all(threads, place(line), reads, [(Space.TENSOR, sums)])
            return
        for index, thread in enumerate(threads.tolist()):
            mine = [get_row_bytes(space, rows, index) for space, rows in reads]
            tensor.operate(thread, place(line), mine, [get_row_bytes(Space.TENSOR, sums, index)])

    def commit(self, threads: Ints, line: int, barriers: Ints) -> Callable[[list[int]], None]:
        """Commit the products of each thread, and return a function that completes them."""
        tensor = self.hazards.tensor
        numbers = [
            tensor.commit(thread, place(line), [barrier])
            for thread, barrier in zip(threads.tolist(), barriers.tolist(), strict=True)
        ]

        def land(positions: list[int]) -> None:
            for position in positions:
                tensor.land_commit(numbers[position])

        return land

    def move(self, groups: list[Group], line: int, column: Ints, columns: int, lane: Ints, stores: bool) -> None:
        tensor = self.hazards.tensor
        if self.together:
            tensor.move_all(groups, place(line), column, columns, lane, 32, stores=stores)
            return
        for group, first, low in zip(groups, column.tolist(), lane.tolist(), strict=True):
            tensor.move(group, place(line), first, columns, low, 32, stores=stores)

    def wait_for_moves(self, groups: list[Group], stores: bool) -> None:
        for part in [groups] if self.together else [[group] for group in groups]:
            self.hazards.tensor.wait_all(part, stores=stores)

    def arrive(self, arrivals: list[tuple[Group, int]], line: int) -> None:
        for part in [arrivals] if self.together else [[arrival] for arrival in arrivals]:
            self.hazards.mbarriers.arrive_all(part, place(line))

    def list_findings(self) -> list[tuple[object, ...]]:
        """Return the findings, without what depends on the order of CTAs: which lane is the first, and how operations
        take the slots of a cell."""
        return sorted(
            (finding.rule.code, str(finding.place), str(finding.other), finding.notes, _name(finding.other_agent))
            for finding in self.hazards.findings
        )


@dataclass
class Flight:
    """Copies in flight: the functions that land them in each engine, those that have not landed, their mbarriers."""

    land: list[Callable[[list[int]], None]]
    positions: list[int]
    barriers: set[int]


class Execution:
    """One grid, run by both engines."""

    def __init__(self, seed: int) -> None:
        self.choice = choice = random.Random(seed)
        self.ctas, self.cluster, self.width = choice.choice([2, 4]), choice.choice([1, 1, 2]), choice.choice([128, 256])
        self.engines = [Engine(together, self.ctas, self.cluster, self.width) for together in (True, False)]
        self.grid = self.engines[0].grid
        self.bases = np.array([self.grid.find_shared_base(slot) for slot in range(self.ctas)])
        self.flights: list[Flight] = []
        self.accesses: dict[int, Access] = {}
        self.next_cta = self.ctas
        self._begin(range(self.ctas))
        self.events: list[Callable[[], None]] = [
            self.load, self.load, self.land, self.store, self.store, self.wait_for_stores, self.access, self.access,
            self.multiply, self.multiply, self.wait_for_products, self.operate, self.operate, self.move, self.move,
            self.wait_for_moves, self.arrive, self.restart,
        ]  # fmt: skip

    def run(self, events: int) -> None:
        for _ in range(events):
            self.choice.choice(self.events)()
            self._compare()
            if self.choice.random() < 0.7:
                self.synchronize(self.choice.choice([0, 0, 0, 0.1]))
        self._probe()
        self._exit(range(self.ctas))
        self._compare()

    def _compare(self) -> None:
        together, apart = (engine.list_findings() for engine in self.engines)
        assert together == apart, set(together) ^ set(apart)

    # CTAs

    def _begin(self, slots: Sequence[int]) -> None:
        """Let one thread of each CTA initialize its memory."""
        threads, bases = self._list_threads(slots, 0), self.bases[list(slots)]
        offsets = np.arange(DATA, SHARED_BYTES, 16)
        for engine in self.engines:
            for offset in (LOADED, MULTIPLIED, COUNTED):
                for part in [[*range(len(slots))]] if engine.together else [[index] for index in range(len(slots))]:
                    engine.hazards.mbarriers.init_all(
                        threads[part].tolist(), place(2), (bases[part] + offset).tolist(), 2 if offset == COUNTED else 1
                    )
            for slot, thread, base in zip(slots, threads, bases, strict=True):
                writer = Group(thread.repeat(len(offsets)))
                engine.hazards.access(store(place(3), Space.SHARED, 16), writer, base + offsets)
                warps = [Group(part) for part in self.grid.list_threads(slot).reshape(-1, 32)[:4]]
                engine.hazards.tensor.alloc(warps[0], place(4), 0, COLUMNS)
                engine.move(warps, 4, np.zeros(4, np.int64), COLUMNS, 32 * np.arange(4), stores=True)
        self.synchronize()

    def _exit(self, slots: Sequence[int]) -> None:
        parts = [self.grid.list_threads(slot) for slot in slots]
        for engine in self.engines:
            for slot in slots:
                engine.hazards.tensor.dealloc(Group(self.grid.list_threads(slot)[:32]), place(5), 0, COLUMNS)
            for part in [np.concatenate(parts)] if engine.together else parts:
                engine.hazards.exit(Group(part), place(6))

    def restart(self) -> None:
        """The CTAs of a cluster exit, and others start in their slots."""
        first = self.choice.randrange(0, self.ctas, self.cluster)
        slots = range(first, first + self.cluster)
        self._land_all()
        self._exit(slots)
        for engine in self.engines:
            engine.hazards.start(engine.grid, slots, range(self.next_cta, self.next_cta + self.cluster))
        self.next_cta += self.cluster
        self._begin(slots)

    def _list_threads(self, slots: Sequence[int], tid: int) -> Ints:
        return self.grid.first_thread + np.array(slots) * self.grid.stride + tid

    def _choose_slots(self) -> list[int]:
        return sorted(self.choice.sample(range(self.ctas), self.choice.randint(1, self.ctas)))

    def _choose_warps(self, slots: Sequence[int], size: int) -> list[Ints]:
        """Return the same `size` adjacent threads of each CTA."""
        first = self.choice.randrange(0, self.width, size)
        return [self.grid.list_threads(slot)[first : first + size] for slot in slots]

    def _choose_line(self, first: int, parts: Sequence[Ints]) -> int:
        """Return one of two lines where these threads of a CTA execute an instruction."""
        tid = int(parts[0][0] - self.grid.first_thread) % self.grid.stride
        return first + tid // len(parts[0]) * 2 + self.choice.randrange(2)

    def _choose_issuers(self, slots: Sequence[int], first_line: int) -> tuple[Ints, int]:
        """Return a thread of each CTA, and the line where it issues operations."""
        at = self.choice.choice([0, 0, 0, 1, 2])
        return self._list_threads(slots, (0, 32, 37)[at]), first_line + at

    # Events

    def synchronize(self, omission: float = 0) -> None:
        """Wait for everything, and let all threads know it; omit each step with a probability."""
        choice = self.choice

        def is_done() -> bool:
            return choice.random() >= omission

        if is_done():
            self._land_all()
        for offset in (LOADED, MULTIPLIED, COUNTED):
            for slot in range(self.ctas):
                if is_done():
                    self._observe(slot, offset, self.width)
        if is_done():
            self.wait_for_stores(0, read=False)
        if is_done():
            self.wait_for_products(0)
        for stores in (False, True):
            if is_done():
                self.wait_for_moves(stores)
        steps = [is_done() for _ in range(5)]
        everyone = np.concatenate([self.grid.list_threads(slot) for slot in range(self.ctas)])
        for engine in self.engines:
            (group,), hazards = engine.find_groups([everyone]), engine.hazards
            if steps[0]:
                hazards.sync.proxy_fence(group, [Space.SHARED, Space.GLOBAL])
            if steps[1]:
                hazards.tensor.fence(group, before=True)
            if steps[2]:
                self._meet(hazards, group)
            if steps[3]:
                hazards.tensor.fence(group, before=False)
            if steps[4]:
                hazards.wgmma.fence(group)

    def _meet(self, hazards: Hazards, everyone: Group) -> None:
        if self.cluster == 1:
            hazards.barriers.bar(everyone, place(7), 0, None, "sync")
            return
        for event in (hazards.barriers.cluster_arrive, hazards.barriers.cluster_wait):
            for slot in range(self.ctas):
                event(Group(self.grid.list_threads(slot)), place(7))

    def _observe(self, slot: int, offset: int, threads: int) -> None:
        """Let threads of a CTA wait for the last phase of its mbarrier."""
        for engine in self.engines:
            barrier = engine.hazards.mbarriers.live[self.grid.number, int(self.bases[slot]) + offset]
            if barrier.phase:
                group = Group(self.grid.list_threads(slot)[:threads])
                engine.hazards.mbarriers.wait(group, place(8), barrier.address, phase=barrier.phase - 1)

    def _land_all(self, barriers: Iterable[int] | None = None) -> None:
        for flight in self.flights:
            if barriers is None or flight.barriers.intersection(barriers):
                self._land(flight, flight.positions)
        self.flights = [flight for flight in self.flights if flight.positions]

    def _land(self, flight: Flight, positions: list[int]) -> None:
        for land in flight.land:
            land(positions)
        flight.positions = [position for position in flight.positions if position not in positions]

    def land(self) -> None:
        if self.flights:
            flight = self.choice.choice(self.flights)
            self._land(
                flight, sorted(self.choice.sample(flight.positions, self.choice.randint(1, len(flight.positions))))
            )
            self.flights = [flight for flight in self.flights if flight.positions]

    def _choose_runs(self, slots: Sequence[int]) -> Runs:
        """Return bytes of global memory for each CTA: the same, adjacent, or overlapping."""
        choice = self.choice
        length, count = choice.choice([16, 32, 32, 64]), choice.choice([1, 1, 2, 4])
        pitch, stride = choice.choice([length, 128]), choice.choice([0, 16, 128, 256, 256])
        first = choice.choice([0, 0, 48, 256, 448])
        starts = first + np.array(slots)[:, None] * stride + np.arange(count) * pitch
        starts = GLOBAL + starts // length * length % GLOBAL_BYTES
        return Runs(starts, length, int(starts.min()), int(starts.max()) + length)

    def load(self) -> None:
        """Load to the own CTA, to both of a pair, or to the own CTA with the mbarrier of the leader."""
        choice, kind = (
            self.choice,
            self.choice.choice(["own", "own", "multicast", "leader"]) if self.cluster > 1 else "own",
        )
        slots = self._choose_slots()
        if kind == "multicast":
            slots = sorted({slot & ~1: slot for slot in slots}.values())
        source = self._choose_runs(slots)
        size = source.starts.shape[1] * source.length
        offset = DATA + 16 * choice.randrange(16) if choice.random() < 0.5 else DATA
        owners = np.array([[slot & ~1, slot | 1] if kind == "multicast" else [slot] for slot in slots])
        targets = self.bases[owners] + offset
        barriers = self.bases[owners & ~1 if kind == "leader" else owners] + LOADED
        threads, line = self._choose_issuers(slots, 10)
        self._land_all(barriers.ravel().tolist())
        for address, copies in Counter(barriers.ravel().tolist()).items():
            slot = int(address) // self.grid.shared_stride
            self._observe(slot, LOADED, 32)
            for engine in self.engines:
                group = Group(self._list_threads([slot], 0))
                engine.hazards.mbarriers.arrive(group, place(9), address, expect=copies * size)
        land = [engine.load(threads, line, source, targets, barriers, size) for engine in self.engines]
        self.flights.append(Flight(land, [*range(len(slots))], set(barriers.ravel().tolist())))

    def store(self) -> None:
        slots, commits = self._choose_slots(), self.choice.random() < 0.5
        target = self._choose_runs(slots)
        size = target.starts.shape[1] * target.length
        sources = self.bases[slots] + DATA + 16 * self.choice.choice([0, 0, 3, 8])
        threads, line = self._choose_issuers(slots, 20)
        for engine in self.engines:
            engine.store(threads, line, sources, size, target)
            if commits:
                engine.hazards.copies.commit_bulk(Group(threads), place(line))

    def wait_for_stores(self, pending: int | None = None, read: bool | None = None) -> None:
        pending = self.choice.choice([0, 1]) if pending is None else pending
        read = self.choice.random() < 0.5 if read is None else read
        for tid in (0, 32, 37):
            for engine in self.engines:
                issuers = Group(self._list_threads(range(self.ctas), tid))
                engine.hazards.copies.commit_bulk(issuers, place(18))
                engine.hazards.copies.wait_bulk(issuers, place(18), pending, read)

    def access(self) -> None:
        """Let lanes access shared or global memory."""
        choice, slots, line = self.choice, self._choose_slots(), self.choice.randrange(80, 88)
        make, space, size = (
            load if line & 1 else store, Space.SHARED if line & 2 else Space.GLOBAL, 16 if line & 4 else 4
        )  # fmt: skip
        parts = self._choose_warps(slots, choice.choice([32, 128]))
        access = self.accesses.setdefault(line, make(place(line), space, size))
        lanes = np.arange(len(parts[0])) * size % 512
        offset = DATA + 16 * choice.randrange(8)
        if space is Space.SHARED:
            addresses = [self.bases[slot] + offset % SHARED_BYTES + lanes % 512 for slot in slots]
        else:
            addresses = [GLOBAL + (slot * 256 + lanes) % GLOBAL_BYTES for slot in slots]
        for engine in self.engines:
            (group,) = engine.find_groups([np.concatenate(parts)])
            engine.hazards.access(access, group, np.concatenate(addresses))

    def _choose_operands(self, slots: Sequence[int]) -> list[Rows]:
        choice = self.choice
        return [
            place_at_bases(
                DATA // 16 + choice.choice([0, 4]) + np.arange(choice.choice([1, 4, 8])), self.bases[slots] >> 4
            )
            for _ in range(choice.choice([1, 2]))
        ]

    def multiply(self) -> None:
        slots = self._choose_slots()
        parts, operands = self._choose_warps(slots, 128), self._choose_operands(slots)
        line = self._choose_line(30, parts)
        shape, fences = self.choice.choice(["m64n8k16", "m64n8k16", "m64n16k16"]), self.choice.random() < 0.7
        commits, touches = self.choice.random() < 0.7, self.choice.random() < 0.1
        for engine in self.engines:
            groups, wgmma = engine.find_groups(parts), engine.hazards.wgmma
            (group,) = engine.find_groups([np.concatenate(parts)])
            if fences:
                wgmma.fence(group)
            engine.multiply(groups, line, operands, shape)
            if commits:
                wgmma.commit(group)
            if touches:
                wgmma.record_access(group, place(33), frozenset({2}))

    def wait_for_products(self, pending: int | None = None) -> None:
        """Wait for products in registers and in tensor memory."""
        pending = self.choice.choice([0, 1]) if pending is None else pending
        parts = [part for size in (128,) for part in self._split(size)]
        for engine in self.engines:
            engine.wait_for_products(engine.find_groups(parts), pending)

    def _split(self, size: int) -> list[Ints]:
        threads = np.concatenate([self.grid.list_threads(slot) for slot in range(self.ctas)])
        return [*threads.reshape(-1, size)]

    def operate(self) -> None:
        """Issue products in tensor memory, and commit them."""
        choice, slots = self.choice, self._choose_slots()
        threads, line = self._choose_issuers(slots, 40)
        operands = self._choose_operands(slots)
        column, columns = choice.choice([0, 0, 8]), choice.choice([8, 16])
        bases = np.array([self.grid.find_tensor_base(slot) for slot in slots]) >> 4
        sums = place_at_bases(column * 8 + np.arange(columns * 8), bases)
        adds, commits, lands = choice.random() < 0.5, choice.random() < 0.8, choice.random() < 0.7
        for slot in slots if commits else ():
            self._land_all([int(self.bases[slot]) + MULTIPLIED])
            self._observe(slot, MULTIPLIED, 32)
        land: list[Callable[[list[int]], None]] = []
        for engine in self.engines:
            engine.operate(threads, line, operands, sums, adds)
            if commits:
                land.append(engine.commit(threads, 43, self.bases[slots] + MULTIPLIED))
        if commits:
            flight = Flight(land, [*range(len(slots))], set((self.bases[slots] + MULTIPLIED).tolist()))
            self.flights.append(flight)
            if lands:
                self._land_all(flight.barriers)

    def move(self) -> None:
        """Load or store tensor memory."""
        choice, slots, stores = self.choice, self._choose_slots(), self.choice.random() < 0.5
        parts = self._choose_warps(slots, 32)
        line = self._choose_line(200 if stores else 100, parts)
        quarter = (int(parts[0][0] - self.grid.first_thread) % self.grid.stride >> 5) % 4
        lane = np.full(len(slots), 32 * (quarter if choice.random() < 0.95 else 0))
        column = np.array([choice.choice([0, 0, 8, 20])] * len(slots))
        columns = choice.choice([4, 8, 16])
        for engine in self.engines:
            engine.move(engine.find_groups(parts), line, column, columns, lane, stores)

    def wait_for_moves(self, stores: bool | None = None) -> None:
        stores = self.choice.random() < 0.5 if stores is None else stores
        for engine in self.engines:
            engine.wait_for_moves(engine.find_groups(self._split(32)), stores)

    def arrive(self) -> None:
        """Arrive on mbarriers that need two arrivals."""
        slots, choice = self._choose_slots(), self.choice
        ranks = 1 if self.cluster > 1 and choice.random() < 0.3 else 0
        tids = choice.choice([[0], [32], [0, 1]])
        for slot in slots:
            self._observe(slot ^ ranks, COUNTED, 32)
        for engine in self.engines:
            groups = engine.find_groups([self.grid.list_threads(slot)[tids] for slot in slots])
            arrivals = [
                (group, int(self.bases[slot ^ ranks]) + COUNTED) for group, slot in zip(groups, slots, strict=True)
            ]
            engine.arrive(arrivals, 50)

    def _probe(self) -> None:
        """Access all bytes by threads of every CTA."""
        for slot in self.choice.sample(range(self.ctas), self.ctas):
            tid = self.choice.choice([0, 1, 40, 100])
            own = self.bases[slot] + np.arange(DATA, SHARED_BYTES, 4)
            others = GLOBAL + np.arange(0, GLOBAL_BYTES, 4)
            warp = self.grid.list_threads(slot)[tid // 32 * 32 :][:32]
            for engine in self.engines:
                for make, line in ((load, 60), (store, 61)):
                    for space, addresses in ((Space.SHARED, own), (Space.GLOBAL, others)):
                        group = Group(self._list_threads([slot], tid).repeat(len(addresses)))
                        engine.hazards.access(make(place(line), space, 4), group, addresses)
                    column, lane = np.array([0]), np.array([tid // 32 * 32])
                    engine.move([Group(warp)], line, column, COLUMNS, lane, make is store)
            self._compare()


@pytest.mark.parametrize("part", range(4))
def test_events_of_several_ctas_have_the_same_findings_at_once(seed: int, part: int) -> None:
    first = (seed * 4 + part) * 100
    for key in range(first, first + 8):
        try:
            Execution(key).run(30)
        except AssertionError as error:
            raise AssertionError(f"execution {key}: {error}") from error
