"""The memory that a tcgen05 product or copy accesses: granules of shared memory and of tensor memory. A granule of
tensor memory is 16 lanes of a column."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pyptx.isa.descriptors import Tcgen05Descriptor, WgmmaDescriptor
from pyptx.sim.base.formats import Array

_GRANULE = 16
Cells = list[tuple[Array, Array]]
"""CTAs, and the granules accessed in each, numbered from the start of its memory."""


Descriptor = WgmmaDescriptor | Tcgen05Descriptor


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operand in shared memory: its name, the type of its elements, its descriptor, rows of M or N, columns of K,
    the bytes of an element, and whether it is contiguous along M or N."""

    name: str
    kind: str
    descriptor: Descriptor
    rows: int
    columns: int
    size: int
    across: bool

    def overlaps(self, granules: int) -> bool:
        """Return whether its elements have more bytes than the 16-byte granules that contain them."""
        return granules * _GRANULE < self.rows * self.columns * self.size


def may_run_together(trace: Trace | None) -> bool:
    """Return whether an instruction may run for many lanes at once: it has no trace, or a trace for all lanes."""
    return trace is None or trace.for_all_lanes


def defer_to_lanes(trace: Trace | None) -> bool:
    """Return whether an instruction that cannot run for many lanes at once must not run now; it then runs for each
    lane."""
    if trace is None or not trace.for_all_lanes:
        return False
    trace.for_all_lanes = False
    return True


def record_touch(trace: Trace | None, cta: int | Array, lanes: Array, column: int, count: int, *, writes: bool) -> None:
    """Record an access to columns of tensor memory in some lanes; unchecked runs have no trace."""
    if trace is not None:
        trace.record_tensor(cta, lanes, column, count, writes=writes)


def is_only_traced(trace: Trace | None) -> bool:
    """Return whether an operation only records its accesses and takes effect later."""
    return trace is not None and trace.is_deferred


@dataclass(slots=True)
class Trace:
    """The granules that an operation accesses. `for_all_lanes`: they are the same for all lanes that issue it, unless
    tracing shows that they differ. `is_deferred`: the operation takes effect later."""

    for_all_lanes: bool = False
    is_deferred: bool = False
    shared: Cells = field(default_factory=list[tuple[Array, Array]])
    matrices: list[Matrix] = field(default_factory=list[Matrix])
    """The matrix of each entry of `shared`."""
    overlapping: list[Matrix] = field(default_factory=list[Matrix])
    """Matrices whose elements share bytes."""
    byte_counts: list[int] = field(default_factory=list[int])
    """The number of leading bytes per granule that each entry of `shared` reads; the rest is padding."""
    reads: Cells = field(default_factory=list[tuple[Array, Array]])
    writes: Cells = field(default_factory=list[tuple[Array, Array]])

    def record_shared(self, cta: int | Array, addresses: Array, used: int, matrix: Matrix) -> None:
        """Record elements of a matrix in shared memory; they lie in the first `used` bytes of granules."""
        granules = np.unique(addresses // _GRANULE)
        self.shared.append((np.ravel(cta), granules))
        self.matrices.append(matrix)
        self.byte_counts.append(used)
        if matrix.overlaps(len(granules)):
            self.overlapping.append(matrix)

    def record_tensor(self, cta: int | Array, lanes: Array, column: int, count: int, *, writes: bool) -> None:
        """Record columns of tensor memory in some lanes."""
        rows = np.unique(np.asarray(lanes) // _GRANULE)
        cells = (np.arange(column, column + count)[:, None] * 8 + rows).ravel()
        (self.writes if writes else self.reads).append((np.ravel(cta), cells))
