"""The clusters of a grid that have not started, in the order in which batches start them."""

from __future__ import annotations

import pytest

from pyptx.sim.state.unstarted import PendingClusters


def list_firsts(clusters: int, size: int, reverse_batch: int) -> list[int]:
    """Return the first CTA of each cluster in the order of starts."""
    firsts = [number * size for number in range(clusters)]
    batches = [firsts[start : start + reverse_batch] for start in range(0, clusters, reverse_batch or clusters)]
    return firsts if not reverse_batch else [first for batch in batches[::-1] for first in batch]


@pytest.mark.parametrize("reverse_batch", [0, 1, 3, 4, 11, 12, 13])
def test_each_cluster_starts_once(reverse_batch: int) -> None:
    for ctas in (1, 2, 3, 7, 8, 100):
        pending = PendingClusters((2, 1, 1), (4, 3, 2), reverse_batch)
        assert (pending.size, pending.remaining) == (2, 12)
        order = list_firsts(12, 2, reverse_batch)
        while order:
            count = min(max(1, ctas // 2), len(order))
            first, order = order[:count], order[count:]
            assert pending.start(ctas).tolist() == [cta for number in first for cta in (number, number + 1)]
            assert pending.remaining == len(order)
            if order:
                assert pending.cancel() == order.pop(0)
        assert pending.cancel() is None
        assert pending.remaining == 0
        assert pending.start(ctas).tolist() == []


def test_the_ctas_of_a_cluster_follow_one_another() -> None:
    pending = PendingClusters((2, 3, 1), (4, 6, 2), 0)
    ctas = [pending.find_coordinates(number) for number in range(48)]
    assert ctas[:6] == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 2, 0), (1, 2, 0)]
    assert ctas[6] == (2, 0, 0)
    assert ctas[12] == (0, 3, 0)
    assert ctas[24] == (0, 0, 1)
    assert len(set(ctas)) == 48
    assert PendingClusters((4, 2, 3), (8, 4, 6), 0).size == 24
