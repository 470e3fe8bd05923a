"""Lanes that execute one warp-wide instruction from several places in the code, and its results for each lane.

Knows no schedule: the code that brings lanes together computes the results, and each place takes its part when it runs.
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
    """The lanes of an instruction, its result or results for each, and which lanes of the batch have yet to take
    theirs."""

    lanes: Lanes
    result: Array | tuple[Array, ...]
    pending: Array

    def take(self, index: Array) -> tuple[Array, ...]:
        """Return the results of lanes, which then no longer wait for them."""
        self.pending[index] = False
        positions = np.searchsorted(self.lanes.index, index)
        return tuple(array[positions] for array in _as_tuple(self.result))


class Meeter(Protocol):
    """A batch whose lanes meet."""

    meetings: list[Meeting]


def wrap_warp_wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes a warp-wide instruction. Lanes of a meeting get the results that the meeting
    stored for them."""
    return partial(_run_at_place, function)


def find_pending(machine: Meeter, lanes: Lanes) -> Array:
    """Return which lanes are in a meeting and have yet to take their results."""
    pending = np.zeros(lanes.n, np.bool_)
    for meeting in machine.meetings:
        pending |= meeting.pending[lanes.sel]
    return pending


def add_met_lanes(machine: Meeter, lanes: Lanes) -> Lanes:
    """Return lanes together with the other lanes of their meetings."""
    indices = [meeting.lanes.index for meeting in machine.meetings if meeting.pending[lanes.sel].any()]
    return lanes.shape.select_index(np.unique(np.concatenate([lanes.index, *indices]))) if indices else lanes


def _as_tuple(result: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return result if isinstance(result, tuple) else (result,)


def _run_at_place(function: Callable[..., Any], machine: Meeter, group: Lanes, *operands: Array) -> Any:
    if not machine.meetings:
        return function(machine, group, *operands)
    is_new = np.ones(group.n, np.bool_)
    pieces: list[tuple[Array, tuple[Array, ...]]] = []
    is_single = True
    for meeting in machine.meetings:
        is_mine = meeting.pending[group.sel].copy()  # a range of lanes is a view, which `take` clears
        if is_mine.any():
            pieces.append((is_mine, meeting.take(group.index[is_mine])))
            is_single, is_new = not isinstance(meeting.result, tuple), is_new & ~is_mine
    machine.meetings = [meeting for meeting in machine.meetings if meeting.pending.any()]
    new_lanes = group.subset(is_new)
    if new_lanes is not None:
        values = [np.asarray(value) for value in operands]
        result = function(machine, new_lanes, *(value[is_new] if value.ndim else value for value in values))
        pieces.append((is_new, _as_tuple(result)))
        is_single = not isinstance(result, tuple)
    results = tuple(np.zeros(group.n, part.dtype) for part in pieces[0][1])
    for is_mine, parts in pieces:
        for array, part in zip(results, parts, strict=True):
            array[is_mine] = part
    return results[0] if is_single else results
