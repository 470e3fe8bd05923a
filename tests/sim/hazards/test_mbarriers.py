"""The lifetime of mbarriers, event by event: one case per rule, each with its correct version."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Bytes, Group, Hazards, Place, Scope, Space, load, store
from pyptx.sim.hazards.state import Grid

ONE = Group(np.array([0]))
OTHER = Group(np.array([1]))


def place(line: int = 1) -> Place:
    return Place(Span(line, 1), f"line {line}")


def _copy(engine: Hazards, size: int) -> int:
    return engine.copies.bulk_load(0, place(5), None, [(Bytes.run(Space.SHARED, 256, size), 0)])


def initialize_twice(engine: Hazards, grid: Grid, wrong: bool) -> None:
    if not wrong:
        engine.mbarriers.inval(0, place(2), 0)
    engine.mbarriers.init(0, place(3), 0, 1)


def expect_too_many_bytes(engine: Hazards, grid: Grid, wrong: bool) -> None:
    engine.mbarriers.arrive(ONE, place(2), 0, expect=16 if wrong else 32)
    engine.copies.land(_copy(engine, 32))
    engine.mbarriers.wait(ONE, place(3), 0, 0) if not wrong else None


def leave_phase_unobserved(engine: Hazards, grid: Grid, wrong: bool) -> None:
    engine.mbarriers.arrive(ONE, place(2), 0)
    if not wrong:
        engine.mbarriers.wait(ONE, place(3), 0, 0)
    engine.mbarriers.arrive(ONE, place(4), 0)


def alias(engine: Hazards, grid: Grid, wrong: bool) -> None:
    engine.barriers.warp_sync(Group(grid.list_threads(0)), place(2), 0xFFFFFFFF)
    for phase in range(3):
        engine.mbarriers.arrive(ONE, place(3), 0)
        engine.mbarriers.wait(ONE, place(4), 0, phase & 1)
        if not wrong:
            engine.mbarriers.wait(OTHER, place(5), 0, phase & 1)
    if wrong:
        engine.mbarriers.wait(OTHER, place(5), 0, 0)


def lands_late(engine: Hazards, grid: Grid, wrong: bool) -> None:
    engine.mbarriers.arrive(ONE, place(2), 0, expect=32)
    number = _copy(engine, 32)
    if not wrong:
        engine.copies.land(number)
        engine.mbarriers.wait(ONE, place(3), 0, 0)
    engine.exit(Group(grid.list_threads(0)), place(4))


CASES: dict[Callable[[Hazards, Grid, bool], None], str] = {
    initialize_twice: "PTX0951",
    expect_too_many_bytes: "PTX0955",
    leave_phase_unobserved: "PTX0957",
    alias: "PTX0956",
    lands_late: "PTX0982",
}


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
@pytest.mark.parametrize("act", list(CASES), ids=lambda act: act.__name__)
def test_a_rule_of_mbarriers(act: Callable[[Hazards, Grid, bool], None], wrong: bool) -> None:
    engine = Hazards()
    grid = engine.launch(place(), 32, shared_bytes=1024)
    engine.start(grid, [0], [0])
    engine.mbarriers.init(0, place(1), 0, 1)
    act(engine, grid, wrong)
    codes = {finding.rule.code for finding in engine.findings}
    assert codes == ({CASES[act]} if wrong else set())


@pytest.mark.parametrize("expected", [16, 32])
def test_a_copy_beyond_the_expected_bytes_is_noted_where_its_data_is_used(expected: int) -> None:
    engine = Hazards()
    grid = engine.launch(place(), 32, shared_bytes=1024)
    engine.start(grid, [0], [0])
    engine.mbarriers.init(0, place(1), 0, 1)
    engine.mbarriers.arrive(ONE, place(2), 0, expect=expected)
    for start in (256, 272):
        copy = engine.copies.bulk_load(0, place(3), None, [(Bytes.run(Space.SHARED, start, 16), 0)])
        engine.copies.land(copy)
    engine.mbarriers.wait(ONE, place(4), 0, 0)
    engine.access(load(place(5), Space.SHARED, 16), ONE, np.array([272]))
    notes = [finding.notes for finding in engine.findings]
    assert notes == ([] if expected == 32 else [(
        "so far, `line 2` at <ptx>:2:1 has expected 16 bytes for shared 0x0 of CTA 0, and copies of 32 bytes signal "
        "it: unless it expects more, its phases complete before their last bytes arrive",
    )])  # fmt: skip


@pytest.mark.parametrize("knows", [True, False])
def test_a_wait_may_skip_a_phase_whose_arrivals_the_thread_knows(knows: bool) -> None:
    """One thread releases two slots, and the other waits for the second release only."""
    engine = Hazards()
    grid = engine.launch(place(), 32, shared_bytes=1024)
    engine.start(grid, [0], [0])
    for address in (0, 8):
        engine.mbarriers.init(0, place(1), address, 1)
    engine.barriers.warp_sync(Group(grid.list_threads(0)), place(2), 0xFFFFFFFF)
    for address in (0, 8):
        engine.mbarriers.arrive(ONE, place(3), address)
    if knows:
        engine.mbarriers.wait(OTHER, place(4), 8, 0)
    engine.mbarriers.arrive(ONE, place(3), 0)
    engine.mbarriers.wait(OTHER, place(5), 0, 1)
    codes = [finding.rule.code for finding in engine.findings]
    assert codes == (["PTX0957"] if knows else ["PTX0957", "PTX0956"])


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.parametrize("fences", [False, True], ids=["no fence", "proxy fence"])
def test_a_wait_may_skip_a_phase_whose_arrivals_precede_a_barrier(fences: bool, ctas: int, knows: bool) -> None:
    engine = Hazards()
    grid = engine.launch(place(), 64, slots=ctas, shared_bytes=1024)
    engine.start(grid, range(ctas), range(ctas))
    threads = Group(np.concatenate([grid.list_threads(slot) for slot in range(ctas)]))
    engine.mbarriers.init(0, place(1), 0, 1)
    engine.barriers.bar(threads, place(2), 0, None, "sync")
    engine.mbarriers.arrive(ONE, place(3), 0)
    if fences:
        engine.sync.proxy_fence(threads, [Space.SHARED])
    if knows:
        engine.barriers.bar(threads, place(4), 0, None, "sync")
    for event, line in ((engine.mbarriers.wait, 5), (engine.mbarriers.arrive, 6)):
        event(Group(np.array([32])), place(line), 0)
    engine.mbarriers.wait(OTHER, place(7), 0, 1)
    assert [finding.rule.code for finding in engine.findings] == ([] if knows else ["PTX0956"])


@pytest.mark.parametrize("expects", [True, False])
def test_the_expectation_of_bytes_that_have_come_completes_the_phase(expects: bool) -> None:
    """The last arrival comes between the bytes and their expectation."""
    engine = Hazards()
    grid = engine.launch(place(), 32, shared_bytes=1024)
    engine.start(grid, [0], [0])
    engine.mbarriers.init(0, place(1), 0, 1)
    engine.copies.land(_copy(engine, 32))
    engine.mbarriers.arrive(ONE, place(2), 0)
    if expects:
        engine.mbarriers.expect(ONE, place(3), 0, 32)
    assert engine.mbarriers.live[grid.number, 0].phase == (1 if expects else 0)


@pytest.mark.parametrize("waits", [True, False])
def test_the_bytes_of_an_invalidated_barrier_are_written_after_it(waits: bool) -> None:
    engine = Hazards()
    grid = engine.launch(place(), 64, shared_bytes=1024)
    engine.start(grid, [0], [0])
    threads = Group(grid.list_threads(0))
    engine.mbarriers.init(0, place(1), 0, 1)
    engine.barriers.bar(threads, place(2), 0, None, "sync")
    engine.mbarriers.inval(0, place(3), 0)
    if waits:
        engine.barriers.bar(threads, place(4), 0, None, "sync")
    engine.access(store(place(5), Space.SHARED, 4), Group(np.array([32])), np.array([4]))
    assert [finding.rule.code for finding in engine.findings] == ([] if waits else ["PTX0901"])


@pytest.mark.parametrize(
    ("release", "acquire", "line"),
    [(Scope.CTA, Scope.CLUSTER, 4), (Scope.CLUSTER, Scope.CTA, 5), (Scope.CLUSTER, Scope.CLUSTER, None)],
)
def test_a_race_between_ctas_names_the_arrival_or_wait_whose_scope_is_too_narrow(
    release: Scope, acquire: Scope, line: int | None
) -> None:
    engine, address = Hazards(), np.array([1 << 20])
    engine.state.add_buffer(1 << 20, 1024, "buffer")
    grid = engine.launch(place(), 32, slots=2, cluster=2, shared_bytes=1024)
    engine.start(grid, [0, 1], [0, 1])
    writer = Group(np.array([grid.find_thread(1)]))
    engine.mbarriers.init(0, place(1), 0, 1)
    for event in (engine.barriers.cluster_arrive, engine.barriers.cluster_wait):
        for slot in range(2):
            event(Group(grid.list_threads(slot)), place(2))
    engine.access(store(place(3), Space.GLOBAL, 4), writer, address)
    engine.mbarriers.arrive(writer, place(4), 0, scope=release)
    engine.mbarriers.wait(ONE, place(5), 0, 0, scope=acquire)
    engine.access(load(place(6), Space.GLOBAL, 4), ONE, address)
    expected = [] if line is None else [
        ("PTX0903", (f"`line {line}` at <ptx>:{line}:1 has scope `.cta`, which does not include the other CTA",))
    ]  # fmt: skip
    assert [(finding.rule.code, finding.notes) for finding in engine.findings] == expected


@pytest.mark.parametrize("earlier_stores", [4, 5])
def test_a_later_initialization_by_a_known_thread_is_not_visible_yet(earlier_stores: int) -> None:
    """The thread knows all that the initializing thread did before the barrier, and only that."""
    engine = Hazards()
    grid = engine.launch(place(), 64, shared_bytes=1024)
    engine.start(grid, [0], [0])
    for line in range(earlier_stores):
        engine.access(store(place(line), Space.SHARED, 4), ONE, np.array([256]))
    engine.mbarriers.init(0, place(11), 0, 1)
    engine.barriers.bar(Group(grid.list_threads(0)), place(12), 0, None, "sync")
    engine.mbarriers.arrive(OTHER, place(13), 0)
    engine.mbarriers.init(0, place(14), 8, 1)
    assert not engine.findings
    engine.mbarriers.arrive(OTHER, place(15), 8)
    assert [(finding.rule.code, finding.other) for finding in engine.findings] == [("PTX0928", place(14))]
