"""The memory that grids accessed, and what another grid knew of it: against the naive model."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Access, Group, Hazards, Place, Scope, Sem, Space, atomic, load, store
from pyptx.sim.hazards.ranges import AccessedMemory, Ranges, find_accessed_memory
from pyptx.sim.hazards.state import Grid, Overlap
from tests.sim.hazards.model import SEEN, Model, Thread, unite

DATA, FLAGS, WIDTH, CTAS = 1 << 20, 1 << 16, 64, 2
KINDS = {
    "reads": [(Sem.WEAK, Scope.CTA), (Sem.RELAXED, Scope.CTA), (Sem.RELAXED, Scope.CLUSTER)],
    "strong_reads": [(Sem.RELAXED, Scope.GPU), (Sem.RELAXED, Scope.SYS)],
    "writes": [(Sem.WEAK, Scope.CTA), (Sem.RELAXED, Scope.CLUSTER)],
    "strong_writes": [(Sem.RELAXED, Scope.GPU)],
}
Found = dict[str, dict[int, int]]
"""Per kind of access: the bytes, each with the line of its instruction."""


def place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


def expand(ranges: Ranges, accesses: Sequence[Access]) -> dict[int, int]:
    triples = zip(ranges.starts.tolist(), ranges.ends.tolist(), ranges.sources.tolist(), strict=True)
    return {
        byte: int(accesses[int(source)].place.text.removeprefix("line "))
        for start, end, source in triples for byte in range(start, end) if byte < DATA + FLAGS
    }  # fmt: skip


def describe(memory: AccessedMemory) -> Found:
    return {kind: expand(getattr(memory, kind), memory.accesses) for kind in KINDS}


class Execution:
    """Grids that run at once, in the engine and in the model: each instruction accesses bytes of its own."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.engine, self.model = Hazards(), Model()
        self.engine.state.add_buffer(DATA, 2 * FLAGS)
        self.grids = [self._launch(number) for number in range(3)]
        self.next = DATA
        self.instructions: list[tuple[Grid, str, int, dict[int, list[int]]]] = []
        """Each with its line, and the accesses in the model of each byte."""
        for _ in range(80):
            self.choice.choice([self.access, self.pass_message])()

    def _launch(self, number: int) -> Grid:
        grid = self.engine.launch(place(1), WIDTH, slots=CTAS, overlap=Overlap.INDEPENDENT)
        self.engine.start(grid, range(CTAS), range(CTAS))
        for slot in range(CTAS):
            for rank, thread in enumerate(grid.list_threads(slot).tolist()):
                cta = number * CTAS + slot
                self.model.start(thread, Thread(cta, cta, rank // 32, rank % 32))
        return grid

    def _choose(self) -> tuple[Grid, Group]:
        """Return a lane, some lanes, a warp, or all threads of one or two CTAs."""
        grid, choice = self.choice.choice(self.grids), self.choice
        cta = grid.list_threads(choice.randrange(CTAS))
        warp = cta[32:] if choice.random() < 0.5 else cta[:32]
        some = warp[sorted(choice.sample(range(32), choice.randint(2, 8)))]
        both = np.concatenate([grid.list_threads(slot) for slot in range(CTAS)])
        return grid, Group(choice.choice([warp[[choice.randrange(32)]], some, warp, cta, both]))

    def access(self) -> None:
        (grid, group), line = self._choose(), len(self.instructions) + 10
        kind, size = self.choice.choice([*KINDS]), self.choice.choice([1, 2, 4, 8])
        (sem, scope), writes = self.choice.choice(KINDS[kind]), "writes" in kind
        access = (store if writes else load)(place(line), Space.GLOBAL, size, sem, scope)
        spread = self.choice.choice([0, 1, 3])
        if kind == "writes":
            spread = max(spread, 1)
        addresses = self.next + spread * size * np.arange(len(group))
        self.next = (int(addresses[-1]) + 32) // 16 * 16
        accessed: defaultdict[int, list[int]] = defaultdict(list)
        # Threads that repeat a read, knowing what all have read, are recorded together.
        for again in range(1 if writes or self.choice.random() < 0.4 else 2):
            if again:
                self.synchronize(group.first)
            self.engine.access(access, group, addresses)
            numbers = self.model.record(access, group.thread_list, addresses.tolist())
            for address, number in zip(addresses.tolist(), numbers, strict=True):
                for byte in range(address, address + size):
                    accessed[byte].append(number)
        self.instructions.append((grid, kind, line, accessed))

    def pass_message(self) -> None:
        flag = np.array([DATA + FLAGS + 16 * self.choice.randrange(3)])
        for make, sem in ((store, Sem.RELEASE), (load, Sem.ACQUIRE)):
            group = self._choose()[1]
            if sem is Sem.RELEASE and self.choice.random() < 0.6:
                self.synchronize(group.first)
            group, access = group[[self.choice.randrange(len(group))]], make(place(2), Space.GLOBAL, 4, sem, Scope.GPU)
            self.engine.access(access, group, flag)
            self.model.record(access, group.thread_list, flag.tolist())
            self.model.access_strongly(access, group.thread_list, flag.tolist())

    def synchronize(self, thread: int) -> None:
        """All threads of a thread's CTA."""
        grid = self.engine.state.find_grid(thread)
        group = Group(grid.list_threads(grid.find_slot(thread)))
        self.engine.barriers.bar(group, place(3), 0, None, "sync")
        self.model.synchronize(group.thread_list)

    def list_threads(self, grid: Grid) -> list[int]:
        return [thread for slot in range(CTAS) for thread in grid.list_threads(slot).tolist()]

    def expect(self, grid: Grid, known: int) -> Found:
        found: Found = {kind: {} for kind in KINDS}
        for owner, kind, line, accessed in self.instructions:
            for byte, numbers in accessed.items() if owner is grid else ():
                if any(not known >> number & 1 for number in numbers):
                    found[kind][byte] = line
        return found


@pytest.mark.parametrize("part", range(2))
def test_what_a_grid_accessed_less_what_another_knew_is_that_of_the_model(seed: int, part: int) -> None:
    known_bytes = 0
    for key in range((seed * 2 + part) * 4, (seed * 2 + part) * 4 + 4):
        execution = Execution(key)
        engine, model = execution.engine, execution.model
        for grid in execution.grids:
            for slot in range(CTAS):
                engine.exit(Group(grid.list_threads(slot)), place(4))
        for grid in execution.grids:
            everything = describe(find_accessed_memory(engine.state, grid))
            assert everything == execution.expect(grid, 0)
            for observer in execution.grids:
                if observer is not grid:
                    known = unite(*(model.known[thread] for thread in execution.list_threads(observer)))[SEEN]
                    left = engine.sync.find_left(observer)
                    unknown = describe(find_accessed_memory(engine.state, grid, left))
                    assert unknown == execution.expect(grid, known), (key, grid.number, observer.number)
                    known_bytes += sum(len(everything[kind]) - len(unknown[kind]) for kind in KINDS)
    assert known_bytes


@pytest.mark.parametrize("part", range(2))
def test_reads_of_the_same_places_by_many_instructions_of_several_grids(seed: int, part: int) -> None:
    choice = random.Random(seed * 4 + part)
    engine = Hazards()
    engine.state.add_buffer(DATA, 4096)
    grids = [engine.launch(place(1), 32, slots=2, overlap=Overlap.INDEPENDENT) for _ in range(3)]
    accesses = [load(place(2), Space.GLOBAL, 4), load(place(3), Space.GLOBAL, 4)]
    accesses += [load(place(line), Space.GLOBAL, 4, Sem.RELAXED, Scope.GPU) for line in (4, 5)]
    update = atomic(place(6), Space.GLOBAL, 4, Sem.RELAXED, Scope.GPU)
    for grid in grids:
        engine.start(grid, range(2), range(2))
    expected: list[dict[str, defaultdict[int, set[int]]]] = [{kind: defaultdict(set) for kind in KINDS} for _ in grids]
    for _ in range(160):
        grid, access, first = choice.choice(grids), choice.choice(accesses), choice.randrange(8)
        count = choice.choice([1, 1, 2, 8])
        thread = grid.find_thread(choice.randrange(2), choice.randrange(32 - count))
        engine.access(access, Group(thread + np.arange(count)), DATA + 4 * (first + np.arange(count)))
        for byte in range(DATA + 4 * first, DATA + 4 * (first + count)):
            expected[grid.number]["strong_reads" if access.strong else "reads"][byte].add(int(access.place.text[5:]))
    engine.access(update, Group(grids[1].list_threads(0)), np.full(32, DATA + 1024))
    for byte in range(DATA + 1024, DATA + 1028):
        expected[1]["strong_writes"][byte].add(6)
    for grid in grids:
        found = describe(find_accessed_memory(engine.state, grid))
        for kind, lines_of in expected[grid.number].items():
            assert found[kind].keys() == lines_of.keys()
            assert all(line in lines_of[byte] for byte, line in found[kind].items())
