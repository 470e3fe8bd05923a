"""The clusters of a grid that have not started: batches take the next ones, and CTAs that run may cancel one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pyptx.sim.formats import Array
from pyptx.sim.special import Dim3, coordinates


@dataclass(slots=True)
class Unstarted:
    """The numbers of the first CTAs of clusters, the next to start first."""

    cluster: Dim3 = (1, 1, 1)
    grid: Dim3 = (1, 1, 1)
    firsts: list[int] = field(default_factory=list[int])

    @property
    def size(self) -> int:
        """How many CTAs a cluster has."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    def place(self, number: int) -> tuple[int, int, int]:
        """Return the coordinates of a CTA."""
        found = coordinates(np.array([number]), self.grid, self.cluster)[0]
        return int(found[0, 0]), int(found[1, 0]), int(found[2, 0])

    def start(self, ctas: int) -> Array:
        """Return the numbers of the CTAs of the next clusters, at most `ctas`."""
        count = max(1, ctas // self.size)
        taken, self.firsts = self.firsts[:count], self.firsts[count:]
        return (np.array(taken, np.int64)[:, None] + np.arange(self.size)).reshape(-1)

    def cancel(self) -> int | None:
        """Take the next cluster away, so that it never starts; return its first CTA, None when all have started."""
        return self.firsts.pop(0) if self.firsts else None
