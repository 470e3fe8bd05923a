"""Release sequences: atomics that count releases hand on what all of them released, not only the last one's.

The counter of a split-K product: each CTA writes its part and counts with a release; the last one alone acquires.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyptx.sim.hazards import Scope, Sem
from tests.sim.hazards.patterns import GLOBAL, buffers
from tests.sim.hazards.trace import Pattern, Role, Trace, found

PARTS = 1 << 20
GPU = Scope.GPU
Count = Callable[[Role, int], None]


def by_release(role: Role, cta: int) -> None:
    role.set_flag(f"count {cta}", GLOBAL, Sem.RELEASE, GPU, adds=True)


def by_fence(role: Role, cta: int) -> None:
    role.fence(f"fence {cta}", Sem.RELEASE, GPU)
    role.set_flag(f"count {cta}", GLOBAL, Sem.RELAXED, GPU, adds=True)


def by_either(role: Role, cta: int) -> None:
    (by_fence if cta % 2 else by_release)(role, cta)


def counter(count: Count, ctas: int, fenced: bool = False, seen: int | None = None) -> Pattern:
    """Return the pattern of CTAs that count; the last one acquires by its access or by a fence behind it."""

    def pattern(t: Trace) -> None:
        buffers(t)
        grid = t.grid(32, ctas + 1)
        for cta in range(ctas):
            role = t.role(grid, [0], cta)
            role.gst(f"write {cta}", PARTS + 4 * cta, each=False)
            count(role, cta)
        last = t.role(grid, [0], ctas)
        last.see_flag("see", GLOBAL, Sem.RELAXED if fenced else Sem.ACQUIRE, GPU, seen or ctas)
        if fenced:
            last.fence("acquire", Sem.ACQUIRE, GPU)
        for cta in range(ctas):
            last.gld(f"read {cta}", PARTS + 4 * cta, each=False)

    return pattern


@pytest.mark.parametrize("fenced", [False, True], ids=["acquire", "acquire fence"])
@pytest.mark.parametrize("ctas", [2, 3])
@pytest.mark.parametrize("count", [by_release, by_fence, by_either], ids=lambda count: count.__name__)
def test_the_last_of_a_counter_may_read_what_all_have_written(count: Count, ctas: int, fenced: bool) -> None:
    assert found(counter(count, ctas, fenced), seeds=1) == {}


def test_the_last_of_very_many_may_read_what_all_have_written() -> None:
    assert found(counter(by_either, 66), seeds=0) == {}


@pytest.mark.parametrize("ctas", [2, 3])
def test_a_count_that_releases_nothing_goes_on_with_the_sequence_and_hands_on_nothing_of_its_own(ctas: int) -> None:
    def count(role: Role, cta: int) -> None:
        if cta == 1:
            role.set_flag("count 1", GLOBAL, Sem.RELAXED, GPU, adds=True)
        else:
            by_release(role, cta)

    assert "PTX0901" in found(counter(count, ctas), seeds=0)
    assert found(counter(count, ctas), "write 1", seeds=0) == {}


@pytest.mark.parametrize("sem", [Sem.RELAXED, Sem.RELEASE])
def test_a_store_between_ends_the_sequence(sem: Sem) -> None:
    def pattern(t: Trace) -> None:
        counter(by_release, 2, seen=3)(t)
        other = t.role(t.roles[0].grid, [1], 0)
        other.see_flag("see both", GLOBAL, Sem.RELAXED, GPU, 2)
        other.set_flag("store", GLOBAL, sem, GPU)

    assert found(pattern, seeds=1).keys() == {"PTX0901"}


@pytest.mark.parametrize("fenced", [False, True], ids=["release", "fence"])
def test_very_many_threads_that_count_at_once_hand_on_what_each_has_written(fenced: bool) -> None:
    def pattern(t: Trace) -> None:
        buffers(t)
        grid = t.grid(128, 3)
        for cta in range(2):
            role = t.role(grid, range(128), cta)
            role.gst(f"write {cta}", PARTS + 512 * cta)
            if fenced:
                role.fence(f"fence {cta}", Sem.RELEASE, GPU)
            role.set_flag(f"count {cta}", GLOBAL, Sem.RELAXED if fenced else Sem.RELEASE, GPU, adds=True)
        last = t.role(grid, range(128), 2)
        last.see_flag("see", GLOBAL, Sem.ACQUIRE, GPU, 2)
        for cta in range(2):
            last.gld(f"read {cta}", PARTS + 512 * cta, rotate=64)

    assert found(pattern) == {}
    if fenced:
        assert "PTX0901" in found(pattern, "fence 0")
