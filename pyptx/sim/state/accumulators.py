"""Accumulators of warpgroups as matrices: products continue with them, registers get them when somebody else looks.

Generated code calls `settle` before another instruction reads or writes their registers; `settle_all` serves who looks
at registers from outside.
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
    """The accumulators of some lanes, whose registers `outs` are views of; `changed` since these had them last."""

    groups: wg.Groups
    outs: tuple[Array, ...]
    kind: str
    matrix: Array
    is_dirty: bool = True

    def write(self) -> None:
        """Give the registers what the matrix holds."""
        if not self.is_dirty:
            return
        if self.kind == "f4":
            canonicalize_nan(self.matrix)
        for out, row in zip(self.outs, wg.split_registers(self.groups, self.matrix, self.kind), strict=True):
            out[...] = row.view(out.dtype)
        self.is_dirty = False


HeldOf = dict[int, dict[Lanes, Accumulator]]
"""What is held, by the number of the registers and the lanes."""


def add_accumulator(accumulators: HeldOf, number: int, lanes: Lanes, item: Accumulator) -> None:
    """Let registers of this number have an older value than these lanes' accumulators."""
    accumulators.setdefault(number, {})[lanes] = item


def find_accumulator(accumulators: HeldOf, number: int, lanes: Lanes, kind: str) -> Accumulator | None:
    """Return what these lanes hold in the registers of this number; what other lanes, some of which are among them,
    hold there goes to the registers."""
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
    """Give registers what these lanes hold in them; with `drops` they are about to be written."""
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
    """Give all registers what is held in them, and hold nothing."""
    for by_lanes in accumulators.values():
        for item in by_lanes.values():
            item.write()
    accumulators.clear()
