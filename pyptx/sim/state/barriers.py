"""Barriers of CTAs and clusters (manual: bar, barrier, barrier.cluster). Counts arrivals per CTA and barrier, and says
which waiting lanes may go on. Knows nothing of blocks but their numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes, Shape

BARRIERS = 16


@dataclass(frozen=True, slots=True)
class Waiter:
    """Lanes that wait: where they go on, at which depth, and which instruction they wait in."""

    lanes: Lanes
    pc: int
    depth: int
    at: int


class CtaBarriers:
    """The sixteen barriers of every CTA of a batch."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.arrivals = np.zeros((shape.ctas, BARRIERS), np.int64)
        self.thread_counts = np.zeros((shape.ctas, BARRIERS), np.int64)
        self.live = np.full(shape.ctas, shape.threads)
        self.true_lanes = np.zeros((shape.ctas, BARRIERS), np.int64)
        self.waiters: dict[int, list[Waiter]] = {}
        self.pending: set[int] = set()
        """The barriers at which somebody has arrived."""
        self.counting_lanes: dict[int, list[Lanes]] = {}
        """Who has arrived at barriers that wait for a count."""
        self.has_exited = np.zeros(shape.lanes, np.bool_)

    def remove_lanes(self, lanes: Lanes) -> None:
        """Lanes end: nobody waits for them."""
        self.live -= np.bincount(lanes.cta, minlength=self.shape.ctas)
        self.has_exited[lanes.sel] = True

    def arrive(self, lanes: Lanes, number: int, count: int | None, predicate: Array | None) -> None:
        """Count lanes as arrived; a predicate joins the reduction."""
        self.pending.add(number)
        # Arrivals are counted in lanes: of a CTA whose last warp is not full, fewer than a count of whole warps.
        whole_warps = -(-self.shape.threads // 32) * 32 if self.shape.threads % 32 else None
        self.arrivals[:, number] += np.bincount(lanes.cta, minlength=self.shape.ctas)
        ctas = np.unique(lanes.cta)
        self.thread_counts[ctas, number] = 0 if count is None or count == whole_warps else count
        if count is not None:
            self.counting_lanes.setdefault(number, []).append(lanes)
        if predicate is not None:
            self.true_lanes[:, number] += np.bincount(lanes.cta[predicate], minlength=self.shape.ctas)

    def find_complete(self, number: int) -> Array:
        """Return which CTAs' barrier of this number has everybody it needs."""
        need = np.where(self.thread_counts[:, number] == 0, self.live, self.thread_counts[:, number])
        arrivals = self.arrivals[:, number]
        if ((arrivals > 0) & (arrivals < self.thread_counts[:, number]) & (self.live < self.shape.threads)).any():
            arrivals = arrivals + self._count_absent(number)
        return (arrivals >= need) & (self.arrivals[:, number] > 0)

    def _count_absent(self, number: int) -> Array:
        """Return how many lanes of warps that have arrived ended without arriving: a count is one of whole warps."""
        has_arrived = np.zeros(self.shape.lanes, np.bool_)
        for lanes in self.counting_lanes[number]:
            has_arrived[lanes.sel] = True
        is_absent = self.has_exited & ~has_arrived & np.isin(self.shape.warp, self.shape.warp[has_arrived])
        return np.bincount(self.shape.cta[is_absent], minlength=self.shape.ctas)

    def release(self, number: int) -> tuple[list[tuple[Waiter, Lanes]], Array, Array, Array]:
        """Return the lanes that may continue, in which CTAs the round has ended, and per CTA how many lanes arrived and
        had a true predicate."""
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
                    waiters.append(Waiter(stay, item.pc, item.depth, item.at))
            if waiters:
                self.waiters[number] = waiters
            remaining = [lanes.subset(~is_complete[lanes.cta]) for lanes in self.counting_lanes.pop(number, [])]
            if any(lanes is not None for lanes in remaining):
                self.counting_lanes[number] = [lanes for lanes in remaining if lanes is not None]
            self.arrivals[is_complete, number] = 0
            self.true_lanes[is_complete, number] = 0
            if not self.arrivals[:, number].any():
                self.pending.discard(number)
        return ready, np.flatnonzero(is_complete), arrivals, true_lanes


class ClusterBarriers:
    """The barrier of every cluster of a batch: arrive and wait are apart."""

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
        """Count lanes as arrived in the running phase."""
        cluster = self.find_cluster(lanes)
        self.arrival_phase[lanes.sel] = self.phase[cluster]
        self.arrivals += np.bincount(cluster, minlength=len(self.arrivals))
        self.advance_phase()

    def advance_phase(self) -> None:
        """Start the next phase where everybody has arrived."""
        is_complete = (self.arrivals >= self.live) & (self.arrivals > 0)
        self.phase[is_complete] += 1
        self.arrivals[is_complete] = 0

    def has_passed(self, lanes: Lanes) -> Array:
        """Return which lanes' phase is over."""
        return self.phase[self.find_cluster(lanes)] > self.arrival_phase[lanes.sel]

    def release(self) -> list[tuple[Waiter, Lanes]]:
        """Return the waiting lanes that may go on."""
        ready: list[tuple[Waiter, Lanes]] = []
        waiters: list[Waiter] = []
        for item in self.waiters:
            free, stay = item.lanes.split(self.has_passed(item.lanes))
            if free is not None:
                ready.append((item, free))
            if stay is not None:
                waiters.append(Waiter(stay, item.pc, item.depth, item.at))
        self.waiters = waiters
        return ready
