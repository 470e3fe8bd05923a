"""What a product or copy of tcgen05 touches: shared granules, and granules of tensor memory, which are a column of 16
lanes each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pyptx.isa.descriptors import Tcgen05Descriptor, WgmmaDescriptor
from pyptx.sim.base.formats import Array

_GRANULE = 16
Cells = list[tuple[Array, Array]]
"""CTAs, and the numbers of the granules that are touched in each, counted from its memory."""


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
        """Say whether it has more bytes than the 16-byte granules that it lies in."""
        return granules * _GRANULE < self.rows * self.columns * self.size


def may_run_together(trace: Trace | None) -> bool:
    """Say whether an instruction may run for many lanes as one: nobody looks, or who does takes it so."""
    return trace is None or trace.for_all_lanes


def defer_to_lanes(trace: Trace | None) -> bool:
    """Say whether an instruction that does not run for many lanes as one shall not run now: it will, for each lane."""
    if trace is None or not trace.for_all_lanes:
        return False
    trace.for_all_lanes = False
    return True


def record_touch(trace: Trace | None, cta: int | Array, lanes: Array, column: int, count: int, *, writes: bool) -> None:
    """Columns of tensor memory are read or written in some lanes; nobody asks in unchecked runs."""
    if trace is not None:
        trace.record_tensor(cta, lanes, column, count, writes=writes)


def is_only_traced(trace: Trace | None) -> bool:
    """Say whether an operation that runs shows what it touches and changes nothing: it takes effect later."""
    return trace is not None and trace.is_deferred


@dataclass(slots=True)
class Trace:
    """The granules of one operation, or of the like ones of all lanes that issue it: it is `whole` in that case, until
    it turns out that they are not alike. `later`: it does not take effect now."""

    for_all_lanes: bool = False
    is_deferred: bool = False
    shared: Cells = field(default_factory=list[tuple[Array, Array]])
    matrices: list[Matrix] = field(default_factory=list[Matrix])
    """What the descriptor of each of `shared` says."""
    overlapping: list[Matrix] = field(default_factory=list[Matrix])
    """Those whose elements share bytes."""
    byte_counts: list[int] = field(default_factory=list[int])
    """How many bytes of its granules each of `shared` reads, from their beginning: padding may follow."""
    reads: Cells = field(default_factory=list[tuple[Array, Array]])
    writes: Cells = field(default_factory=list[tuple[Array, Array]])

    def record_shared(self, cta: int | Array, addresses: Array, used: int, matrix: Matrix) -> None:
        """Note elements, which never lie across granules; they are in the first `used` bytes of each."""
        granules = np.unique(addresses // _GRANULE)
        self.shared.append((np.ravel(cta), granules))
        self.matrices.append(matrix)
        self.byte_counts.append(used)
        if matrix.overlaps(len(granules)):
            self.overlapping.append(matrix)

    def record_tensor(self, cta: int | Array, lanes: Array, column: int, count: int, *, writes: bool) -> None:
        """Note columns of tensor memory in some lanes."""
        rows = np.unique(np.asarray(lanes) // _GRANULE)
        cells = (np.arange(column, column + count)[:, None] * 8 + rows).ravel()
        (self.writes if writes else self.reads).append((np.ravel(cta), cells))
