"""Strong writes that a strong read observed precede what follows the read; others do not."""

from __future__ import annotations

import numpy as np

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Access, Group, Hazards, Place, Scope, Sem, Space, load, store

BUFFER = 1 << 20


def make_place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


def make_store(line: int, sem: Sem = Sem.RELAXED, scope: Scope = Scope.GPU) -> Access:
    return store(make_place(line), Space.GLOBAL, 4, sem, scope)


def make_load(line: int, sem: Sem = Sem.RELAXED) -> Access:
    return load(make_place(line), Space.GLOBAL, 4, sem, Scope.GPU)


def list_races(*accesses: tuple[int, Access]) -> list[tuple[int, int]]:
    """Let threads access a word, each as (thread, access); return the lines of the accesses that race."""
    engine = Hazards()
    engine.state.add_buffer(BUFFER, 1 << 16, "buffer")
    engine.start(engine.launch(make_place(1), 128, slots=2, shared_bytes=1024), range(2), range(2))
    for thread, access in accesses:
        engine.access(access, Group(np.array([thread])), np.array([BUFFER]))
        engine.state.clocks.tick()
    return sorted((finding.other.line if finding.other else 0, finding.place.line) for finding in engine.findings)


WEAK = make_store(9, Sem.WEAK)


def test_a_write_that_was_read_precedes_a_weak_store() -> None:
    assert list_races((0, make_store(2)), (32, make_load(3)), (32, WEAK)) == []


def test_a_write_that_nobody_read_does_not() -> None:
    assert list_races((0, make_store(2)), (32, WEAK)) == [(2, 9)]


def test_a_read_before_the_write_observes_nothing() -> None:
    assert list_races((32, make_load(3)), (0, make_store(2)), (32, WEAK)) == [(2, 9)]


def test_a_weak_read_observes_nothing() -> None:
    assert (2, 9) in list_races((0, make_store(2)), (32, make_load(3, Sem.WEAK)), (32, WEAK))


def test_a_write_of_a_narrow_scope_is_not_observed_elsewhere() -> None:
    assert (2, 9) in list_races((128, make_store(2, scope=Scope.CTA)), (32, make_load(3)), (32, WEAK))


def test_only_the_last_of_two_writes_is_observed() -> None:
    writes = (0, make_store(2)), (64, make_store(4))
    assert list_races(*writes, (32, make_load(3)), (32, WEAK)) == [(2, 9)]


def test_a_read_by_a_thread_that_has_not_synchronized_orders_nothing() -> None:
    assert (2, 9) in list_races((0, make_store(2)), (64, make_load(3)), (32, WEAK))
