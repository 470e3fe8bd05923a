"""Releases of many groups publish the same whether they are processed at once or one after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Group, Hazards, Place, Scope, Sem, Space
from pyptx.sim.hazards.publishing import release_each

CTAS, THREADS = 4, 64
PLACE = Place(Span(1, 1), "")
THREAD = st.integers(0, CTAS * THREADS - 1)
EVENTS = st.one_of(
    st.tuples(st.sampled_from(["bar"]), st.integers(0, CTAS - 1)),
    st.tuples(st.sampled_from(["bar of a cluster"]), st.integers(0, CTAS // 2 - 1)),
    st.tuples(st.sampled_from(["proxy fence", "warp", "store", "load"]), THREAD),
)


def run_events(events: list[tuple[str, int]]) -> tuple[Hazards, list[np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """Return an engine after some events in clusters of two CTAs, and the threads of each CTA."""
    engine = Hazards()
    engine.state.add_buffer(1 << 20, 4096)
    grid = engine.launch(PLACE, THREADS, slots=CTAS, cluster=2, shared_bytes=64)
    engine.start(grid, range(CTAS), range(CTAS))
    threads = [grid.list_threads(slot) for slot in range(CTAS)]
    all_threads = np.concatenate(threads)
    for event, index in events:
        if event == "bar":
            engine.barriers.bar(Group(threads[index]), PLACE, 0, None, "sync")
        elif event == "bar of a cluster":
            cluster = Group(np.concatenate(threads[2 * index : 2 * index + 2]))
            engine.barriers.cluster_arrive(cluster, PLACE)
            engine.barriers.cluster_wait(cluster, PLACE)
        elif event == "proxy fence":
            engine.sync.proxy_fence(Group(all_threads[index : index + 1]), [Space.SHARED])
        elif event == "warp":
            engine.barriers.warp_sync(Group(all_threads[index // 32 * 32 : index // 32 * 32 + 32]), PLACE, 0xFFFFFFFF)
        else:
            engine.sync.fence(Group(all_threads[index : index + 1]), Sem.ACQ_REL, Scope.GPU)
    return engine, threads


@given(st.lists(EVENTS, max_size=10), st.lists(st.integers(0, THREADS - 1), min_size=1, max_size=4, unique=True))
@settings(max_examples=150)
def test_at_once_is_one_after_the_other(events: list[tuple[str, int]], lanes: list[int]) -> None:
    engine, threads = run_events(events)
    clocks, groups = engine.state.clocks, [mine[sorted(lanes)] for mine in threads]
    references = [clocks.publish(group) for group in groups]
    time = clocks.now
    rows = [np.count_nonzero(np.diff(clocks.row_of[group])) for group in groups]
    stamps = release_each(clocks, groups)
    if len(set(rows)) > 1:
        # Groups that know more kinds of facts than others are released one by one.
        assert stamps is None
        assert clocks.now == time
        return
    assert stamps is not None
    assert clocks.now == time + 1
    for stamp, reference in zip(stamps, references, strict=True):
        assert stamp.domain == reference.domain
        np.testing.assert_array_equal(stamp.clock, reference.clock)


def test_lanes_of_one_warp_that_know_different_things_release_together() -> None:
    engine, threads = run_events([("warp", index * THREADS) for index in range(CTAS)])
    clocks = engine.state.clocks
    for mine in threads:
        engine.sync.proxy_fence(Group(mine[:1]), [Space.SHARED])
    references = [clocks.publish(mine).clock for mine in threads]
    stamps = release_each(clocks, threads)
    assert stamps is not None
    assert all((stamp.clock == reference).all() for stamp, reference in zip(stamps, references, strict=True))


def test_threads_of_both_ctas_release_to_each_ones_barrier() -> None:
    engine, threads = run_events([("bar", 0), ("bar", 1), ("bar of a cluster", 1), ("bar", 3)])
    clocks = engine.state.clocks
    groups = [np.concatenate([threads[index][::32], threads[index ^ 1][::32]]) for index in range(CTAS)]
    references = [clocks.publish(group).clock for group in groups]
    stamps = release_each(clocks, groups)
    assert stamps is not None
    assert all((stamp.clock == reference).all() for stamp, reference in zip(stamps, references, strict=True))
