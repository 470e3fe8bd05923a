"""Rules of convergence: which lanes must execute an instruction together, and which lanes it may name."""

from __future__ import annotations

import numpy as np

from pyptx.diagnostics import Rule
from pyptx.sim import rules
from pyptx.sim.base.events import Ints, Place
from pyptx.sim.hazards.conflicts import knows_thread
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.state import Grid, State


def _mask_present(group: Group, among: Group | None) -> Ints:
    """Return, for each warp of a group, the mask of its participating lanes."""
    if among is None or among is group:
        return group.masks
    return among.masks[np.searchsorted(among.warps, group.warps)]


class Warps:
    """Checks of instructions that warps or warpgroups execute together."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._counts: dict[tuple[int, int], int] = {}
        self._requests: dict[tuple[int, int], list[tuple[int, Place, int]]] = {}
        """Per warp: the register counts it has requested, with place and time."""
        self._increases: dict[tuple[int, int], tuple[Place, int, int]] = {}

    def _mask_alive(self, warp: int) -> int:
        lanes = np.flatnonzero(self.state.live[warp * 32 : warp * 32 + 32])
        return int((np.int64(1) << lanes.astype(np.int64)).sum())

    def check_aligned(self, group: Group, place: Place) -> None:
        """Check an `.aligned` instruction: all live lanes of each warp execute it."""
        for warp, mask in zip(group.warps.tolist(), group.masks.tolist(), strict=True):
            missing = self._mask_alive(warp) & ~mask
            if missing:
                detail = f"lanes 0x{missing:08x} do not execute this instruction"
                self.state.report(rules.DIVERGENT, place, detail, thread=warp * 32 + mask.bit_length() - 1)

    def check_members(self, group: Group, place: Place, masks: Ints, among: Group | None = None) -> None:
        """Check `shfl`, `vote`, `match` or `redux` `.sync`: each lane's mask names the lane itself, and other lanes
        only if they participate or have exited. `among`: all participating lanes, if some are at other places."""
        present = _mask_present(group, among)[group.warp_index]
        outside = np.flatnonzero((masks >> group.lanes & 1) == 0)
        if len(outside):
            index = int(outside[0])
            detail = f"lane {int(group.lanes[index])} with mask 0x{int(masks[index]):08x}"
            self.state.report(rules.NOT_IN_MASK, place, detail, thread=int(group.threads[index]), count=len(outside))
        alive = np.array([self._mask_alive(warp) for warp in group.warps.tolist()], np.int64)[group.warp_index]
        absent = np.flatnonzero(masks & alive & ~present)
        if len(absent):
            index = int(absent[0])
            detail = f"mask 0x{int(masks[index]):08x} includes lanes that do not execute this instruction"
            self.state.report(rules.DIVERGENT, place, detail, thread=int(group.threads[index]), count=len(absent))

    def check_sources(self, group: Group, place: Place, lanes: Ints, masks: Ints, among: Group | None = None) -> None:
        """Check `shfl.sync`: the lane that each lane reads participates and is in the mask."""
        present = _mask_present(group, among)[group.warp_index] & masks
        bad = np.flatnonzero((present >> (lanes & 31) & 1) == 0)
        if len(bad):
            index = int(bad[0])
            detail = f"lane {int(group.lanes[index])} reads lane {int(lanes[index])}"
            self.state.report(rules.SHFL_SOURCE, place, detail, thread=int(group.threads[index]), count=len(bad))

    def check_elect(self, group: Group, place: Place, mask: int, among: Group | None = None) -> None:
        """Check `elect.sync`: the mask names exactly the executing lanes."""
        for warp, present in zip(group.warps.tolist(), _mask_present(group, among).tolist(), strict=True):
            if present != mask & self._mask_alive(warp):
                detail = f"mask 0x{mask:08x}, executing 0x{present:08x}"
                self.state.report(rules.ELECT, place, detail, thread=warp * 32 + present.bit_length() - 1)

    def check_uniform(self, group: Group, place: Place, values: Ints, name: str, first: Ints | None = None) -> None:
        """Check an operand that must be equal in all lanes of a warp, or in all lanes with the same `first` lane."""
        if np.count_nonzero(values != values[0]) == 0:
            return
        first_values = values[group.ends[0][group.warp_index] if first is None else first]
        differing = np.flatnonzero(values != first_values)
        if len(differing):
            index = int(differing[0])
            detail = f"{name} {int(values[index]):#x}, in the first lane {int(first_values[index]):#x}"
            count = len(np.unique(group.warp_index[differing]))
            self.state.report(rules.OPERANDS_DIFFER, place, detail, thread=int(group.threads[index]), count=count)

    def setmaxnreg(
        self, group: Group, place: Place, count: int, increases: bool, entry: int | None, pool: int | None = None
    ) -> None:
        """Execute `setmaxnreg`. `entry` is the count per thread at launch and `pool` the CTA's total, None if the
        compiler chooses. The pool is checked when the CTA ends, as an increase waits until others release registers."""
        for warp in group.warps.tolist():
            key = (self.state.find_grid(warp * 32).number, warp)
            current = self._counts.get(key, entry)
            legal = 24 <= count <= 256 and count % 8 == 0
            if not legal or (current is not None and (count < current if increases else count > current)):
                direction = "inc" if increases else "dec"
                detail = f".{direction} from {current or 'the count at entry'} to {count}"
                self.state.report(rules.SETMAXNREG, place, detail, thread=warp * 32)
            self._check_synchronized(
                warp, place, rules.SETMAXNREG_REPEATED if count == current else rules.SETMAXNREG_AGAIN
            )  # fmt: skip
            self._counts[key] = count
            self._requests.setdefault(key, []).append((count, place, self.state.clocks.now))
            if increases and entry is not None and pool is not None:
                self._increases[key] = place, entry, pool

    def _check_synchronized(self, warp: int, place: Place, rule: Rule) -> None:
        """Report a warp that requests registers again before its warpgroup has synchronized."""
        grid = self.state.find_grid(warp * 32)
        before = len(self._requests.get((grid.number, warp), []))
        rank = (warp * 32 - grid.first_thread) % grid.stride >> 5
        first = warp - rank % 4
        for peer in range(first, first + 4) if before and (rank | 3) * 32 < grid.threads else ():
            theirs = self._requests.get((grid.number, peer), [])
            has_reached = len(theirs) >= before
            if not has_reached or not knows_thread(self.state, warp * 32, peer * 32, theirs[before - 1][2]):
                reason = (
                    "has not reached the previous one"
                    if not has_reached
                    else "may not have executed the previous one yet"
                )
                detail = f"warp {rank + peer - warp} of the CTA {reason}"
                other_place = theirs[before - 1][1] if has_reached else None
                self.state.report(rule, place, detail, thread=warp * 32, other=other_place)
                return

    def _check_warpgroups(self, grid: Grid, warps: list[int]) -> None:
        """Report warpgroups whose warps requested different sequences of counts. The requests may be at different
        instructions: each of Triton's specialized warps has its own."""
        for first in range(0, len(warps), 4):
            requests = [self._requests.get((grid.number, warp), []) for warp in warps[first : first + 4]]
            longest = max(requests, key=len)
            counts = [[count for count, _, _ in sequence] for sequence in requests]
            if any(sequence != counts[0] for sequence in counts) or (longest and len(requests) < 4):
                place, thread = longest[-1][1], warps[first + requests.index(longest)] * 32
                detail = f"its warps requested {', '.join(str(sequence or 'nothing') for sequence in counts)}"
                if len(requests) < 4:
                    detail = f"the CTA has {len(requests)} of the four warps of the warpgroup that requests registers"
                self.state.report(rules.WARPGROUP, place, detail, thread=thread)

    def _check_pool(self, grid: Grid, first: int, place: Place, entry: int, pool: int) -> None:
        """Report registers that the CTA whose first warp is `first` holds beyond its pool."""
        total = sum(self._counts.get((grid.number, first + i), entry) * 32 for i in range(-(-grid.threads // 32)))
        if total > pool:
            detail = f"the CTA's warps request {total} of {pool} registers"
            self.state.report(rules.SETMAXNREG, place, detail, thread=first * 32)

    def report_uninitialized(self, group: Group, place: Place, registers: list[str], help: str = "") -> None:
        """Report registers that lanes of the group read before writing them."""
        detail = ", ".join(registers)
        self.state.report(
            rules.UNINITIALISED_REGISTER, place, detail, thread=group.first, count=len(group) * len(registers),
            help=help,
        )  # fmt: skip

    def check_exit(self, grid: int, warps: Ints) -> None:
        """Check the register requests of an ended CTA."""
        if not self._counts:
            return
        self._check_warpgroups(self.state.grids[grid], warps.tolist())
        increases = [self._increases.pop((grid, warp)) for warp in warps.tolist() if (grid, warp) in self._increases]
        if increases:
            self._check_pool(self.state.grids[grid], int(warps[0]), *increases[0])
        for warp in warps.tolist():
            self._counts.pop((grid, warp), None)
            self._requests.pop((grid, warp), None)
