"""What a product or copy of tcgen05 touches while it runs: shared granules, and granules of tensor memory, which are
a column of 16 lanes each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pyptx.sim.formats import Array

if TYPE_CHECKING:
    from pyptx.sim.memory import Memory

_GRANULE = 16
Cells = list[tuple[int, Array]]
"""Addresses of granules, counted from the memory of a CTA."""


def touches(memory: Memory, cta: int, lanes: Array, column: int, count: int, *, writes: bool) -> None:
    """Columns of tensor memory are read or written in some lanes; nobody asks in unchecked runs."""
    if memory.checks is not None and memory.checks.trace is not None:
        memory.checks.trace.touches(cta, lanes, column, count, writes=writes)


@dataclass(slots=True)
class Trace:
    """The granules of one operation."""

    shared: Cells = field(default_factory=list[tuple[int, Array]])
    read: Cells = field(default_factory=list[tuple[int, Array]])
    written: Cells = field(default_factory=list[tuple[int, Array]])

    def reads_shared(self, cta: int, addresses: Array, size: int) -> None:
        """Note elements of `size` bytes, which never lie across granules."""
        self.shared.append((cta, np.unique(addresses // _GRANULE) * _GRANULE))

    def touches(self, cta: int, lanes: Array, column: int, count: int, *, writes: bool) -> None:
        """Note columns of tensor memory in some lanes."""
        rows = np.unique(np.asarray(lanes) // _GRANULE)
        starts = ((np.arange(column, column + count)[:, None] * 8 + rows) * _GRANULE).ravel()
        (self.written if writes else self.read).append((cta, starts))
