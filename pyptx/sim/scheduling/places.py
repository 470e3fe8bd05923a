"""Where every thread of a batch is: what a debugger shows and an interrupted run reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import Origin, format_count
from pyptx.sim.base.events import Place
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.reports.findings import Cta
from pyptx.sim.scheduling.awaited_events import find_next_step, make_place
from pyptx.sim.scheduling.hang import list_waits
from pyptx.sim.scheduling.state import State

_SHOWN = 16


@dataclass(frozen=True, slots=True)
class Stand:
    """Lanes of one warp at one place. `doing`: `runs`, `polls` (it lets others run first), `waits` or `exited`."""

    cta: Cta
    warp: int
    lanes: int
    doing: str
    place: Place

    @property
    def origin(self) -> Origin | None:
        return self.place.origin

    @property
    def line(self) -> int:
        """The line of the instruction, 0 if it has none."""
        return self.place.line

    def __str__(self) -> str:
        suffix = "" if self.lanes == 32 else f" ({format_count('lane', self.lanes)})"
        return f"CTA {self.cta} warp {self.warp}{suffix} {_WORDS[self.doing]} {self.place}"


_WORDS = {"runs": "is at", "polls": "polls, now at", "waits": "waits at", "exited": "exited at"}


def list_groups(state: State) -> list[tuple[str, int, Place, Lanes]]:
    """Return all lanes of a batch by activity and position: the block and the instruction."""
    groups: list[tuple[str, int, Place, Lanes]] = []
    has_place = np.zeros(state.shape.lanes, np.bool_)

    def add(doing: str, pc: int, lanes: Lanes, step: Step) -> None:
        groups.append((doing, pc, make_place(state.blocks[pc], step), lanes))
        has_place[lanes.sel] = True

    for key, sets in state.ready.items():
        for lanes in sets:
            add("runs", abs(key[2]), lanes, find_next_step(state, abs(key[2])))
    for key, lanes in state.polling:
        add("polls", abs(key[2]), lanes, find_next_step(state, abs(key[2])))
    for _, _, lanes, item in list_waits(state):
        groups.append(("waits", item.block, make_place(state.blocks[item.block]), lanes))
        has_place[lanes.sel] = True
    dead_lanes = np.flatnonzero(~state.alive)
    for pc in sorted({int(pc) for pc in state.exit_blocks[dead_lanes]}):
        exited_lanes = state.shape.select_index(dead_lanes[state.exit_blocks[dead_lanes] == pc])
        add("exited", pc, exited_lanes, state.blocks[pc].steps[-1])
    remainder = np.flatnonzero(~has_place)
    if len(remainder) and state.running is not None:
        pc = state.running[0].pc
        add("runs", pc, state.shape.select_index(remainder), find_next_step(state, pc))
    return groups


def list_stands(state: State) -> list[Stand]:
    """Return the place of each warp, in the order of CTAs and warps."""
    shape, numbers = state.shape, number_ctas(state)
    stands: list[Stand] = []
    for doing, _, place, lanes in list_groups(state):
        warps = shape.thread[lanes.sel] // 32
        for cta, warp in {(int(c), int(w)) for c, w in zip(lanes.cta, warps, strict=True)}:
            count = int(((lanes.cta == cta) & (warps == warp)).sum())
            stands.append(Stand(numbers[cta], warp, count, doing, place))
    return sorted(stands, key=lambda stand: (stand.cta, stand.warp, stand.line))


def number_ctas(state: State) -> list[Cta]:
    """Return the number in the grid of each CTA of a batch."""
    return [Cta.from_ctaid(ctaid, state.machine.launch.grid) for ctaid in state.machine.ctaid.T.tolist()]


def describe_places(state: State) -> list[str]:
    """Describe in a few lines where the threads of a batch are."""
    numbers = number_ctas(state)
    grid = f"`{state.machine.launch.label}` " if state.machine.launch.label else ""
    counts: dict[tuple[str, str], tuple[int, str]] = {}
    for doing, _, place, lanes in sorted(list_groups(state), key=lambda group: group[0] == "exited"):
        first = f"{grid}CTA {numbers[int(lanes.cta[0])]} warp {int(lanes.index[0]) // state.shape.ctas // 32}"
        count, example = counts.get((doing, str(place)), (0, first))
        counts[doing, str(place)] = count + lanes.n, example
    rows = [f"{count} × {_DOING[doing]} at {place}: {example} …" for (doing, place), (count, example) in counts.items()]
    return rows[:_SHOWN] + ([f"and {format_count('more place', len(rows) - _SHOWN)}"] if len(rows) > _SHOWN else [])


_DOING = {"runs": "running", "polls": "polling", "waits": "waiting", "exited": "exited"}
