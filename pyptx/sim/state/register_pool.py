"""The registers of CTAs whose warps change their count (manual: setmaxnreg)."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyptx.sim.base.formats import Array
from pyptx.sim.state.barriers import Waiter


@dataclass(slots=True)
class RegisterPool:
    """The registers per thread of each warp, the free registers of each CTA, and lanes that wait for registers."""

    counts: Array
    free: Array
    waiters: list[Waiter] = field(default_factory=list[Waiter])
