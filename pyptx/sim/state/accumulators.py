"""Accumulators of warpgroups as matrices: products read and update them, and registers receive them on demand.

Generated code calls `settle` before another instruction reads or writes the registers. `settle_all` writes all of them
before anything else reads registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.numerics.rounding import canonicalize_nan
from pyptx.sim.state import warpgroups as wg

Rows = tuple[int, ...]


@dataclass(slots=True)
class Accumulator:
    """The accumulators of some lanes. `outs` are views of their registers, which are outdated while it `is_dirty`."""

    groups: wg.Groups
    outs: tuple[Array, ...]
    kind: str
    matrix: Array
    is_dirty: bool = True

    def write(self) -> None:
        """Write the matrix to the registers."""
        if not self.is_dirty:
            return
        if self.kind == "f4":
            canonicalize_nan(self.matrix)
        for out, row in zip(self.outs, wg.split_registers(self.groups, self.matrix, self.kind), strict=True):
            out[...] = row.view(out.dtype)
        self.is_dirty = False


HeldOf = dict[int, dict[Lanes, Accumulator]]
"""Accumulators by the number of their registers, then by lanes."""


def add_accumulator(accumulators: HeldOf, number: int, lanes: Lanes, item: Accumulator) -> None:
    """Add accumulators of these lanes; the registers of this number are outdated from now on."""
    accumulators.setdefault(number, {})[lanes] = item


def find_accumulator(accumulators: HeldOf, number: int, lanes: Lanes, kind: str) -> Accumulator | None:
    """Return these lanes' accumulators of a number. Write those of overlapping sets of lanes to their registers."""
    by_lanes = accumulators.get(number)
    if by_lanes is None:
        return None
    accumulator = by_lanes.get(lanes)
    if accumulator is None or accumulator.kind != kind or len(by_lanes) > 1:
        for other_lanes, item in list(by_lanes.items()):
            if (
                (other_lanes is not lanes or item.kind != kind)
                and other_lanes.lo < lanes.hi
                and lanes.lo < other_lanes.hi
            ):
                item.write()
                del by_lanes[other_lanes]
        accumulator = by_lanes.get(lanes)
    return accumulator


def settle(accumulators: HeldOf, lanes: Lanes, numbers: Rows, drops: bool) -> None:
    """Write these lanes' accumulators to registers; with `drops`, forget them, as the registers are about to be
    written."""
    for number in numbers:
        by_lanes = accumulators.get(number)
        if by_lanes is None:
            continue
        for other_lanes, item in list(by_lanes.items()):
            if other_lanes.lo < lanes.hi and lanes.lo < other_lanes.hi:
                item.write()
                if drops:
                    del by_lanes[other_lanes]
        if not by_lanes:
            del accumulators[number]


def settle_all(accumulators: HeldOf) -> None:
    """Write all accumulators to their registers and forget them."""
    for by_lanes in accumulators.values():
        for item in by_lanes.values():
            item.write()
    accumulators.clear()
