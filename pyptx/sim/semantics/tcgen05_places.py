"""Pairs of CTAs, and errors of accesses to tensor memory."""

from __future__ import annotations

from pyptx.diagnostics import PtxError
from pyptx.sim import rules as hazards
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.rules import faults
from pyptx.sim.state.memory import Site
from pyptx.sim.state.warpgroups import Outside


def make_unallocated_error(first: int, last: int, operand: str = "") -> Outside:
    """Return the error of columns that are not allocated, of an operand if it has a name."""
    width = ", make N of the instruction descriptor smaller" if operand == "D" else ""
    return Outside(
        f"columns {first} … {last}{f' of {operand}' if operand else ''} are not allocated",
        f"allocate more columns by `tcgen05.alloc`{width}, or correct the address",
    )


def make_place_error(site: Site, group: Lanes, position: int, problem: str | Exception) -> PtxError:
    """Return the error of an access to tensor memory."""
    text = f"`{site.instruction.full_opcode}`: {problem}"
    notes = (site.memory.describe_thread(group, position, site.function),)
    help = problem.help if isinstance(problem, Outside) else None
    return faults.error(faults.TENSOR, site.origin, text, notes=notes, help=help)


def find_pair(site: Site, lane: Lanes) -> tuple[int, int]:
    """Return the pair of CTAs that a lane's CTA belongs to, the one of even rank first."""
    cta = int(lane.cta[0])
    if site.memory.cluster % 2:
        problem = f"`{site.instruction.full_opcode}` needs pairs of CTAs, the cluster has size {site.memory.cluster}"
        notes, rule = (site.memory.describe_thread(lane, 0, site.function),), hazards.CTA_PAIR
        raise faults.error(rule, site.origin, f"{rule.title}: {problem}", notes=notes, help=hazards.REMEDIES[rule.code])
    return cta & ~1, cta | 1
