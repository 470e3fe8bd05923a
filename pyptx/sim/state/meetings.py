"""Lanes that execute a warp-wide instruction together from several places: what it gives to each.

Knows no schedule: whoever brings lanes together computes the results, and each place takes its part when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes


@dataclass(slots=True, eq=False)
class Meeting:
    """The lanes of an instruction, its result (or results) for each, and which lanes of the batch still want theirs."""

    lanes: Lanes
    result: Array | tuple[Array, ...]
    waiting: Array

    def take(self, index: Array) -> tuple[Array, ...]:
        """Return the results of lanes that waited for them."""
        self.waiting[index] = False
        at = np.searchsorted(self.lanes.index, index)
        return tuple(one[at] for one in _several(self.result))


class Meeter(Protocol):
    """A batch whose lanes meet."""

    meetings: list[Meeting]


def warp_wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of lanes that gives those of a meeting what this gives to all of it."""
    return partial(_at_one_place, function)


def waiting(machine: Meeter, lanes: Lanes) -> Array:
    """Tell which lanes have met others and still want their results."""
    found = np.zeros(lanes.n, np.bool_)
    for meeting in machine.meetings:
        found |= meeting.waiting[lanes.sel]
    return found


def present(machine: Meeter, lanes: Lanes) -> Lanes:
    """Return lanes with those that they have met."""
    met = [meeting.lanes.index for meeting in machine.meetings if meeting.waiting[lanes.sel].any()]
    return lanes.shape.select_index(np.unique(np.concatenate([lanes.index, *met]))) if met else lanes


def _several(result: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return result if isinstance(result, tuple) else (result,)


def _at_one_place(function: Callable[..., Any], machine: Meeter, group: Lanes, *operands: Array) -> Any:
    if not machine.meetings:
        return function(machine, group, *operands)
    alone = np.ones(group.n, np.bool_)
    made: list[tuple[Array, tuple[Array, ...]]] = []
    single = True
    for meeting in machine.meetings:
        mine = meeting.waiting[group.sel].copy()  # a range of lanes is a view, which `take` clears
        if mine.any():
            made.append((mine, meeting.take(group.index[mine])))
            single, alone = not isinstance(meeting.result, tuple), alone & ~mine
    machine.meetings = [meeting for meeting in machine.meetings if meeting.waiting.any()]
    others = group.subset(alone)
    if others is not None:
        values = [np.asarray(one) for one in operands]
        result = function(machine, others, *(one[alone] if one.ndim else one for one in values))
        made.append((alone, _several(result)))
        single = not isinstance(result, tuple)
    whole = tuple(np.zeros(group.n, one.dtype) for one in made[0][1])
    for mine, parts in made:
        for one, part in zip(whole, parts, strict=True):
            one[mine] = part
    return whole[0] if single else whole
