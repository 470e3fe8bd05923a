"""The clusters of a grid that have not started: batches start the next ones, and running CTAs may cancel one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.state.special import Dim3, compute_coordinates


@dataclass(slots=True)
class PendingClusters:
    """Counts the started clusters of a grid; computes their numbers on demand, as a grid may have 2^47."""

    cluster: Dim3
    grid: Dim3
    reverse_batch: int
    """The clusters per batch if batches start in reverse order, 0 to start in order."""
    start_count: int = 0

    @property
    def size(self) -> int:
        """The number of CTAs of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def remaining(self) -> int:
        """The number of clusters that have not started."""
        return self._clusters - self.start_count

    @property
    def _clusters(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2] // self.size

    def find_coordinates(self, number: int) -> tuple[int, int, int]:
        """Return the coordinates of a CTA."""
        coordinates = compute_coordinates(np.array([number]), self.grid, self.cluster)[0]
        return int(coordinates[0, 0]), int(coordinates[1, 0]), int(coordinates[2, 0])

    def start(self, ctas: int) -> Array:
        """Return the numbers of the CTAs of the next clusters, at most `ctas`."""
        count = min(max(1, ctas // self.size), self.remaining)
        order = np.arange(self.start_count, self.start_count + count)
        self.start_count += count
        return (self._find_first_ctas(order)[:, None] + np.arange(self.size)).reshape(-1)

    def cancel(self) -> int | None:
        """Cancel the next cluster and return its first CTA, or None if all have started."""
        if not self.remaining:
            return None
        self.start_count += 1
        return int(self._find_first_ctas(np.array([self.start_count - 1]))[0])

    def _find_first_ctas(self, order: Array) -> Array:
        """Return the first CTA of each cluster, by position in the order of starts."""
        if not self.reverse_batch:
            return order * self.size
        # The last batch, which may be short, starts first.
        batches = -(-self._clusters // self.reverse_batch)
        short = self._clusters - (batches - 1) * self.reverse_batch
        behind = order - short
        batch = batches - 2 - behind // self.reverse_batch
        return (batch * self.reverse_batch + np.where(behind < 0, order, behind % self.reverse_batch)) * self.size
