"""The clusters of a grid that have not started: batches take the next ones, and CTAs that run may cancel one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.state.special import Dim3, coordinates


@dataclass(slots=True)
class Unstarted:
    """How many clusters of a grid have been handed out. They are numbered when they start: a grid may have 2^47."""

    cluster: Dim3 = (1, 1, 1)
    grid: Dim3 = (0, 0, 0)
    reversed_by: int = 0
    """Batches of so many clusters start in reverse, so that a batch of consecutive CTAs stays one; 0: in order."""
    started: int = 0

    @property
    def size(self) -> int:
        """How many CTAs a cluster has."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def left(self) -> int:
        """How many clusters have not started."""
        return self._clusters - self.started

    @property
    def _clusters(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2] // self.size

    def place(self, number: int) -> tuple[int, int, int]:
        """Return the coordinates of a CTA."""
        found = coordinates(np.array([number]), self.grid, self.cluster)[0]
        return int(found[0, 0]), int(found[1, 0]), int(found[2, 0])

    def start(self, ctas: int) -> Array:
        """Return the numbers of the CTAs of the next clusters, at most `ctas`."""
        count = min(max(1, ctas // self.size), self.left)
        order = np.arange(self.started, self.started + count)
        self.started += count
        return (self._firsts(order)[:, None] + np.arange(self.size)).reshape(-1)

    def cancel(self) -> int | None:
        """Take the next cluster away, so that it never starts; return its first CTA, None when all have started."""
        if not self.left:
            return None
        self.started += 1
        return int(self._firsts(np.array([self.started - 1]))[0])

    def _firsts(self, order: Array) -> Array:
        """Return the first CTAs of the clusters that start as the n-th ones."""
        if not self.reversed_by:
            return order * self.size
        # The last batch, which may be short, starts first.
        batches = -(-self._clusters // self.reversed_by)
        short = self._clusters - (batches - 1) * self.reversed_by
        behind = order - short
        batch = np.where(behind < 0, batches - 1, batches - 2 - behind // self.reversed_by)
        return (batch * self.reversed_by + np.where(behind < 0, order, behind % self.reversed_by)) * self.size
