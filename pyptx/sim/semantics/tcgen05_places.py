"""Pairs of CTAs, and errors of accesses to tensor memory."""

from __future__ import annotations

from pyptx.diagnostics import PtxError
from pyptx.sim import rules as hazards
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.rules import faults
from pyptx.sim.state.memory import Site


def make_place_error(site: Site, group: Lanes, position: int, problem: str) -> PtxError:
    """Return the error of an access to tensor memory."""
    text = f"`{site.instruction.full_opcode}`: {problem}"
    return faults.error(
        faults.TENSOR, site.origin, text, notes=(site.memory.describe_thread(group, position, site.function),)
    )


def find_pair(site: Site, lane: Lanes) -> tuple[int, int]:
    """Return the pair of CTAs that a lane's CTA belongs to, the one of even rank first."""
    cta = int(lane.cta[0])
    if site.memory.cluster % 2:
        problem = f"`{site.instruction.full_opcode}` needs pairs of CTAs, the cluster has size {site.memory.cluster}"
        notes, rule = (site.memory.describe_thread(lane, 0, site.function),), hazards.CTA_PAIR
        raise faults.error(rule, site.origin, f"{rule.title}: {problem}", notes=notes, help=hazards.REMEDIES[rule.code])
    return cta & ~1, cta | 1
