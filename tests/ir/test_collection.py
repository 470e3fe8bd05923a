"""Pausing the garbage collector leaves it in its previous state."""

from __future__ import annotations

import gc

from pyptx.ir.collection import without_collector


def test_the_collector_rests_inside_and_runs_again_after() -> None:
    assert gc.isenabled()
    with without_collector():
        assert not gc.isenabled()
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_made_is_old_afterwards() -> None:
    with without_collector():
        lists = [list[int]() for _ in range(1000)]
    old = {id(item) for item in gc.get_objects(generation=2)}
    assert all(id(item) in old for item in lists)


def test_what_a_program_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with without_collector():
            pass
        # A few may have died meanwhile, as those of other threads do; to unfreeze would leave none.
        assert count - 100 < gc.get_freeze_count() <= count
    finally:
        gc.unfreeze()
