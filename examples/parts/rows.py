"""A row of a matrix that one CTA reads, computes with, and writes.

The first `KEPT` values of each thread stay in registers, so a row of up to `KEPT` x `threads` values is read once. A
longer row works too: each pass reads its rest again, in a loop that does not grow with the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from examples.parts.vectors import ONCE, choose_width, load_vector
from pyptx import ptx, reg
from pyptx.types import PtxType

KEPT = 64
"""Values per thread in registers: with 256 threads and about 90 registers, two CTAs fit on an SM of every target."""
Visitor = Callable[[list[reg.Reg], reg.Reg], None]
"""Processes one vector of the row, given its values and the index of the first."""


@dataclass(frozen=True)
class Row:
    """One row. All loads of the kept values are issued at once: bytes in flight hide the latency of memory."""

    dtype: PtxType
    source: reg.Reg
    """The global address of the row."""
    length: int
    thread: reg.Reg
    threads: int
    cache: str | None = ONCE
    """The cache operator of the first access to each value."""
    kept: list[list[reg.Reg]] = field(default_factory=list[list[reg.Reg]])

    @property
    def width(self) -> int:
        """The values of a vector."""
        return choose_width(self.dtype, self.length)

    @property
    def step(self) -> int:
        """The values that all threads together access at once."""
        return self.threads * self.width

    def load(self) -> None:
        """Load the kept values. Values past the end of the row are undefined and never visited."""
        for part in range(min(-(-self.length // self.step), KEPT // self.width)):
            first = self._start(part)
            if (part + 1) * self.step <= self.length:
                self.kept.append(self._read(first, self.cache))
                continue
            with ptx.if_(first < self.length):
                self.kept.append(self._read(first, self.cache))

    def visit(self, visitor: Visitor) -> None:
        """Call the visitor for each of the thread's vectors."""
        self.visit_kept(visitor)
        self.visit_rest(visitor)

    def visit_kept(self, visitor: Visitor) -> None:
        """Call the visitor for each vector in registers."""
        for part, values in enumerate(self.kept):
            first = self._start(part)
            if (part + 1) * self.step <= self.length:
                visitor(values, first)
                continue
            with ptx.if_(first < self.length):
                visitor(values, first)

    def visit_rest(self, visitor: Visitor) -> None:
        """Call the visitor for each vector that is not in registers, in a loop on the GPU."""
        if len(self.kept) * self.step < self.length:
            for first in ptx.range_(self._start(len(self.kept)), self.length, self.step):
                visitor(self._read(first, None), first)

    def _start(self, part: int) -> reg.Reg:
        return self.thread * self.width + part * self.step

    def _read(self, first: reg.Reg, cache: str | None) -> list[reg.Reg]:
        return load_vector(self.dtype, ptx.addr(self.source, first * (self.dtype.bits // 8)), self.width, cache=cache)
