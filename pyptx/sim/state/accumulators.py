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
class Held:
    """The accumulators of some lanes, whose registers `outs` are views of; `changed` since these had them last."""

    groups: wg.Groups
    outs: tuple[Array, ...]
    kind: str
    made: Array
    changed: bool = True

    def write(self) -> None:
        """Give the registers what the matrix holds."""
        if not self.changed:
            return
        if self.kind == "f4":
            canonicalize_nan(self.made)
        for out, row in zip(self.outs, wg.registers_of(self.groups, self.made, self.kind), strict=True):
            out[...] = row.view(out.dtype)
        self.changed = False


HeldOf = dict[int, dict[Lanes, Held]]
"""What is held, by the number of the registers and the lanes."""


def hold(held: HeldOf, number: int, lanes: Lanes, item: Held) -> None:
    """Let registers of this number have an older value than these lanes' accumulators."""
    held.setdefault(number, {})[lanes] = item


def held_for(held: HeldOf, number: int, lanes: Lanes, kind: str) -> Held | None:
    """Return what these lanes hold in the registers of this number; what other lanes, some of which are among them,
    hold there goes to the registers."""
    inner = held.get(number)
    if inner is None:
        return None
    found = inner.get(lanes)
    if found is None or found.kind != kind or len(inner) > 1:
        for other, item in list(inner.items()):
            if (other is not lanes or item.kind != kind) and other.lo < lanes.hi and lanes.lo < other.hi:
                item.write()
                del inner[other]
        found = inner.get(lanes)
    return found


def settle(held: HeldOf, lanes: Lanes, numbers: Rows, drops: bool) -> None:
    """Give registers what these lanes hold in them; with `drops` they are about to be written."""
    for number in numbers:
        inner = held.get(number)
        if inner is None:
            continue
        for other, item in list(inner.items()):
            if other.lo < lanes.hi and lanes.lo < other.hi:
                item.write()
                if drops:
                    del inner[other]
        if not inner:
            del held[number]


def settle_all(held: HeldOf) -> None:
    """Give all registers what is held in them, and hold nothing."""
    for inner in held.values():
        for item in inner.values():
            item.write()
    held.clear()
