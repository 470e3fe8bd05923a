"""The registers of CTAs whose warps change their count (manual: setmaxnreg)."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyptx.sim.base.formats import Array
from pyptx.sim.state.barriers import Waiter


@dataclass(slots=True)
class RegisterPool:
    """Per warp how many registers each of its threads has, per CTA how many are free, and who waits for some."""

    counts: Array
    free: Array
    waiters: list[Waiter] = field(default_factory=list[Waiter])
