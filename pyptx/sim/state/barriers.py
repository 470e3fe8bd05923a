"""Barriers of CTAs and clusters (manual: bar, barrier, barrier.cluster). Counts arrivals per CTA and barrier, and
returns the waiting lanes that may continue. Knows only the numbers of blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes, Shape

BARRIERS = 16


@dataclass(frozen=True, slots=True)
class Waiter:
    """Lanes that wait: the block in which they continue, their call depth, and the block in which they wait."""

    lanes: Lanes
    pc: int
    depth: int
    block: int


class CtaBarriers:
    """The 16 barriers of each CTA of a batch."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.arrivals = np.zeros((shape.ctas, BARRIERS), np.int64)
        self.thread_counts = np.zeros((shape.ctas, BARRIERS), np.int64)
        self.live = np.full(shape.ctas, shape.threads)
        self.true_lanes = np.zeros((shape.ctas, BARRIERS), np.int64)
        self.waiters: dict[int, list[Waiter]] = {}
        self.pending: set[int] = set()
        """The barriers with arrivals."""
        self.counting_lanes: dict[int, list[Lanes]] = {}
        """The lanes that have arrived at barriers with a thread count."""
        self.has_exited = np.zeros(shape.lanes, np.bool_)

    def remove_lanes(self, lanes: Lanes) -> None:
        """Remove lanes that exit; barriers no longer wait for them."""
        self.live -= np.bincount(lanes.cta, minlength=self.shape.ctas)
        self.has_exited[lanes.sel] = True

    def arrive(self, lanes: Lanes, number: int, count: int | None, predicate: Array | None) -> None:
        """Count the arrival of lanes, and their predicates for a reduction."""
        self.pending.add(number)
        # Arrivals count lanes. If the last warp is not full, the CTA has fewer lanes than whole warps would.
        whole_warps = -(-self.shape.threads // 32) * 32 if self.shape.threads % 32 else None
        self.arrivals[:, number] += np.bincount(lanes.cta, minlength=self.shape.ctas)
        ctas = np.unique(lanes.cta)
        self.thread_counts[ctas, number] = 0 if count is None or count == whole_warps else count
        if count is not None:
            self.counting_lanes.setdefault(number, []).append(lanes)
        if predicate is not None:
            self.true_lanes[:, number] += np.bincount(lanes.cta[predicate], minlength=self.shape.ctas)

    def find_complete(self, number: int) -> Array:
        """Return in which CTAs this barrier has all arrivals."""
        need = np.where(self.thread_counts[:, number] == 0, self.live, self.thread_counts[:, number])
        arrivals = self.arrivals[:, number]
        if ((arrivals > 0) & (arrivals < self.thread_counts[:, number]) & (self.live < self.shape.threads)).any():
            arrivals = arrivals + self._count_absent(number)
        return (arrivals >= need) & (self.arrivals[:, number] > 0)

    def _count_absent(self, number: int) -> Array:
        """Count the lanes that exited in warps of which others have arrived: thread counts include whole warps."""
        has_arrived = np.zeros(self.shape.lanes, np.bool_)
        for lanes in self.counting_lanes[number]:
            has_arrived[lanes.sel] = True
        is_absent = self.has_exited & ~has_arrived & np.isin(self.shape.warp, self.shape.warp[has_arrived])
        return np.bincount(self.shape.cta[is_absent], minlength=self.shape.ctas)

    def release(self, number: int) -> tuple[list[tuple[Waiter, Lanes]], Array, Array, Array]:
        """Return the lanes that may continue, the CTAs whose barrier completed, and per CTA the number of arrivals and
        of true predicates."""
        is_complete = self.find_complete(number)
        ready: list[tuple[Waiter, Lanes]] = []
        arrivals, true_lanes = self.arrivals[:, number].copy(), self.true_lanes[:, number].copy()
        if is_complete.any():
            waiters: list[Waiter] = []
            for item in self.waiters.pop(number, []):
                free, stay = item.lanes.split(is_complete[item.lanes.cta])
                if free is not None:
                    ready.append((item, free))
                if stay is not None:
                    waiters.append(Waiter(stay, item.pc, item.depth, item.block))
            if waiters:
                self.waiters[number] = waiters
            remaining = [lanes.subset(~is_complete[lanes.cta]) for lanes in self.counting_lanes.get(number, [])]
            self.counting_lanes[number] = [lanes for lanes in remaining if lanes is not None]
            self.arrivals[is_complete, number] = 0
            self.true_lanes[is_complete, number] = 0
            if not self.arrivals[:, number].any():
                self.pending.discard(number)
        return ready, np.flatnonzero(is_complete), arrivals, true_lanes


class ClusterBarriers:
    """The barrier of each cluster of a batch; arrive and wait are separate instructions."""

    def __init__(self, shape: Shape, size: int) -> None:
        self.shape, self.size = shape, size
        clusters = -(-shape.ctas // size)
        self.arrivals = np.zeros(clusters, np.int64)
        self.phase = np.zeros(clusters, np.int64)
        self.arrival_phase = np.full(shape.lanes, -1)
        self.live = np.full(clusters, shape.threads * size)
        self.waiters: list[Waiter] = []

    def find_cluster(self, lanes: Lanes) -> Array:
        """Return the cluster of each lane."""
        return lanes.cta // self.size

    def arrive(self, lanes: Lanes) -> None:
        """Count the arrival of lanes in the current phase."""
        cluster = self.find_cluster(lanes)
        self.arrival_phase[lanes.sel] = self.phase[cluster]
        self.arrivals += np.bincount(cluster, minlength=len(self.arrivals))
        self.advance_phase()

    def advance_phase(self) -> None:
        """Start the next phase of clusters in which all lanes have arrived."""
        is_complete = (self.arrivals >= self.live) & (self.arrivals > 0)
        self.phase[is_complete] += 1
        self.arrivals[is_complete] = 0

    def has_passed(self, lanes: Lanes) -> Array:
        """Return which lanes' phase has completed."""
        return self.phase[self.find_cluster(lanes)] > self.arrival_phase[lanes.sel]

    def release(self) -> list[tuple[Waiter, Lanes]]:
        """Return the waiting lanes that may continue."""
        ready: list[tuple[Waiter, Lanes]] = []
        waiters: list[Waiter] = []
        for item in self.waiters:
            free, stay = item.lanes.split(self.has_passed(item.lanes))
            if free is not None:
                ready.append((item, free))
            if stay is not None:
                waiters.append(Waiter(stay, item.pc, item.depth, item.block))
        self.waiters = waiters
        return ready
