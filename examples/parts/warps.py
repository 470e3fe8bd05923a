"""Warps with a task of their own, and the lane that issues their asynchronous instructions."""

from __future__ import annotations

from pyptx import ptx, reg


def elect() -> reg.Reg:
    """Return a predicate that is true in one lane of the warp, which is converged here; always in the same lane.

    TMA and tcgen05 instructions take their operands from uniform registers. Under this predicate ptxas knows that one
    lane is active and copies that lane's operands once. Under `lane == 0` it emits a loop over the active lanes around
    every such instruction.
    """
    return ptx.warp.elect(leader=False)


def elect_in_group(thread: reg.Reg) -> reg.Reg:
    """Return a predicate that is true in one thread of each warpgroup, all of whose warps are converged here."""
    return ((thread >> 5) & 3 == 0) & elect()
