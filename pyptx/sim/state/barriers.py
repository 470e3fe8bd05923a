"""Barriers of CTAs and clusters (manual: bar, barrier, barrier.cluster). Counts arrivals per CTA and barrier, and says
which waiting lanes may go on. Knows nothing of blocks but their numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes, Shape

BARRIERS = 16


@dataclass(frozen=True, slots=True)
class Waiting:
    """Lanes that wait: where they go on, at which depth, and which instruction they wait in."""

    lanes: Lanes
    pc: int
    depth: int
    at: int


class CtaBarriers:
    """The sixteen barriers of every CTA of a batch."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.arrived = np.zeros((shape.ctas, BARRIERS), np.int64)
        self.needed = np.zeros((shape.ctas, BARRIERS), np.int64)
        self.live = np.full(shape.ctas, shape.threads)
        self.true_lanes = np.zeros((shape.ctas, BARRIERS), np.int64)
        self.waiting: dict[int, list[Waiting]] = {}
        self.pending: set[int] = set()
        """The barriers at which somebody has arrived."""
        self.counted: dict[int, list[Lanes]] = {}
        """Who has arrived at barriers that wait for a count."""
        self.gone = np.zeros(shape.lanes, np.bool_)

    def exits(self, lanes: Lanes) -> None:
        """Lanes end: nobody waits for them."""
        self.live -= np.bincount(lanes.cta, minlength=self.shape.ctas)
        self.gone[lanes.sel] = True

    def arrive(self, lanes: Lanes, number: int, count: int | None, predicate: Array | None) -> None:
        """Count lanes as arrived; a predicate joins the reduction."""
        self.pending.add(number)
        # Arrivals are counted in lanes: of a CTA whose last warp is not full, fewer than a count of whole warps.
        whole = -(-self.shape.threads // 32) * 32 if self.shape.threads % 32 else None
        self.arrived[:, number] += np.bincount(lanes.cta, minlength=self.shape.ctas)
        touched = np.unique(lanes.cta)
        self.needed[touched, number] = 0 if count is None or count == whole else count
        if count is not None:
            self.counted.setdefault(number, []).append(lanes)
        if predicate is not None:
            self.true_lanes[:, number] += np.bincount(lanes.cta[predicate], minlength=self.shape.ctas)

    def complete(self, number: int) -> Array:
        """Return which CTAs' barrier of this number has everybody it needs."""
        need = np.where(self.needed[:, number] == 0, self.live, self.needed[:, number])
        come = self.arrived[:, number]
        if ((come > 0) & (come < self.needed[:, number]) & (self.live < self.shape.threads)).any():
            come = come + self._absent(number)
        return (come >= need) & (self.arrived[:, number] > 0)

    def _absent(self, number: int) -> Array:
        """Return how many lanes of warps that have arrived ended without arriving: a count is one of whole warps."""
        came = np.zeros(self.shape.lanes, np.bool_)
        for lanes in self.counted[number]:
            came[lanes.sel] = True
        dead = self.gone & ~came & np.isin(self.shape.warp, self.shape.warp[came])
        return np.bincount(self.shape.cta[dead], minlength=self.shape.ctas)

    def release(self, number: int) -> tuple[list[tuple[Waiting, Lanes]], Array, Array, Array]:
        """Return the lanes that may continue, in which CTAs the round has ended, and per CTA how many lanes arrived and
        had a true predicate."""
        done = self.complete(number)
        gone: list[tuple[Waiting, Lanes]] = []
        arrived, true = self.arrived[:, number].copy(), self.true_lanes[:, number].copy()
        if done.any():
            kept: list[Waiting] = []
            for item in self.waiting.pop(number, []):
                free, stay = item.lanes.split(done[item.lanes.cta])
                if free is not None:
                    gone.append((item, free))
                if stay is not None:
                    kept.append(Waiting(stay, item.pc, item.depth, item.at))
            if kept:
                self.waiting[number] = kept
            left = [lanes.subset(~done[lanes.cta]) for lanes in self.counted.pop(number, [])]
            if any(lanes is not None for lanes in left):
                self.counted[number] = [lanes for lanes in left if lanes is not None]
            self.arrived[done, number] = 0
            self.true_lanes[done, number] = 0
            if not self.arrived[:, number].any():
                self.pending.discard(number)
        return gone, np.flatnonzero(done), arrived, true


class ClusterBarriers:
    """The barrier of every cluster of a batch: arrive and wait are apart."""

    def __init__(self, shape: Shape, size: int) -> None:
        self.shape, self.size = shape, size
        clusters = -(-shape.ctas // size)
        self.arrived = np.zeros(clusters, np.int64)
        self.phase = np.zeros(clusters, np.int64)
        self.seen = np.full(shape.lanes, -1)
        self.live = np.full(clusters, shape.threads * size)
        self.waiting: list[Waiting] = []

    def cluster(self, lanes: Lanes) -> Array:
        """Return the cluster of each lane."""
        return lanes.cta // self.size

    def arrive(self, lanes: Lanes) -> None:
        """Count lanes as arrived in the running phase."""
        cluster = self.cluster(lanes)
        self.seen[lanes.sel] = self.phase[cluster]
        self.arrived += np.bincount(cluster, minlength=len(self.arrived))
        self.turn()

    def turn(self) -> None:
        """Start the next phase where everybody has arrived."""
        done = (self.arrived >= self.live) & (self.arrived > 0)
        self.phase[done] += 1
        self.arrived[done] = 0

    def passed(self, lanes: Lanes) -> Array:
        """Return which lanes' phase is over."""
        return self.phase[self.cluster(lanes)] > self.seen[lanes.sel]

    def release(self) -> list[tuple[Waiting, Lanes]]:
        """Return the waiting lanes that may go on."""
        gone: list[tuple[Waiting, Lanes]] = []
        kept: list[Waiting] = []
        for item in self.waiting:
            free, stay = item.lanes.split(self.passed(item.lanes))
            if free is not None:
                gone.append((item, free))
            if stay is not None:
                kept.append(Waiting(stay, item.pc, item.depth, item.at))
        self.waiting = kept
        return gone
