"""The tensor memory of a batch of CTAs, 128 lanes of 512 32-bit columns per CTA, and its allocations.

Manual: Tensor Memory Addressing, Allocation. An address has the lane in its upper 16 bits and the column in the lower.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.ir import Instruction
from pyptx.isa.fragments.tensor_memory import COLUMNS, LANES
from pyptx.sim.base.formats import Array

_UNIT = 32


@dataclass(frozen=True, slots=True)
class Holding:
    """An allocation: the first column, the number of columns, and the lane and instruction that allocated them."""

    first: int
    columns: int
    lane: int
    instruction: Instruction


class TensorMemory:
    """The columns of every CTA, `[cta, lane, column]`, created at the first allocation. `exact` is the target whose
    tensor core sums are reproduced bit for bit, such as 90 for sm_90; 0 sums quickly. `fresh` is the initial value of
    every cell."""

    def __init__(self, ctas: int, exact: int, fresh: int) -> None:
        self.ctas, self.exact, self.fresh = ctas, exact, fresh
        self.frees = 0
        """The number of times that columns were freed."""
        self.assumes_allocated = False
        """Whether all columns count as allocated because the running operation was issued before some were freed."""
        self._cells: Array | None = None
        self._in_use = np.zeros((ctas, COLUMNS // _UNIT), np.bool_)
        self._partner_runs: dict[int, list[tuple[int, int]]] = {}
        self._holdings: dict[int, list[Holding]] = {}
        self.refused_lanes: list[Array] = []
        """The lanes of warps whose last allocation found no free columns."""

    @property
    def cells(self) -> Array:
        if self._cells is None:
            self._cells = np.full((self.ctas, LANES, COLUMNS), self.fresh, np.uint32)
        return self._cells

    def reset(self) -> None:
        """Free all columns for a new batch."""
        self._in_use.fill(False)
        self._partner_runs.clear()
        self._holdings.clear()
        self.refused_lanes = []
        self.frees = 0
        if self._cells is not None:
            self._cells.fill(self.fresh)

    def allocate(self, cta: int, columns: int, pair: bool = False) -> int | None:
        """Allocate consecutive columns and return the first, or None if there are not enough. Both CTAs of a pair get
        the same columns: the first allocation reserves them for the second CTA."""
        ctas = [cta & ~1, cta | 1] if pair else [cta]
        partner_runs = self._partner_runs.get(cta)
        if pair and partner_runs:
            first, count = partner_runs.pop(0)
            if count != columns:
                raise ValueError(f"{columns} columns, but the other CTA of the pair has allocated {count}")
            return first
        count = columns // _UNIT
        for first in range(COLUMNS // _UNIT - count + 1):
            if not self._in_use[ctas, first : first + count].any():
                self._in_use[ctas, first : first + count] = True
                if pair:
                    self._partner_runs.setdefault(cta ^ 1, []).append((first * _UNIT, columns))
                return first * _UNIT
        return None

    def record_holder(self, cta: int, item: Holding) -> None:
        """Record which lane allocated columns."""
        self._holdings.setdefault(cta, []).append(item)

    def list_holders(self, cta: int) -> list[Holding]:
        """Return the allocations of a CTA in the order of columns."""
        return sorted(self._holdings.get(cta, []), key=lambda item: item.first)

    def free(self, cta: int, column: int, columns: int) -> bool:
        """Free columns and return whether all of them were allocated."""
        self.frees += 1
        self._holdings[cta] = [item for item in self._holdings.get(cta, []) if item.first != column]
        part = self._in_use[cta, column // _UNIT : (column + columns) // _UNIT]
        was_allocated = bool(part.all()) and len(part) == columns // _UNIT
        part[...] = False
        return was_allocated

    def are_allocated(self, cta: Array, first: Array, last: Array) -> Array:
        """Return for each CTA whether both columns are allocated."""
        ok = (first >= 0) & (last < COLUMNS)
        inside = np.clip(np.stack([first, last]), 0, COLUMNS - 1) // _UNIT
        if self.assumes_allocated:
            return ok
        return ok & self._in_use[cta, inside[0]] & self._in_use[cta, inside[1]]
