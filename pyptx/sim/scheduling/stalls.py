"""Detect that a batch runs forever: its whole state repeats while every group that runs polls or loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.scheduling.state import State

_FIRST = 64
"""The round in which the state is first saved; then every round with twice the number of the last."""
_COMPARED = 4
"""How many later rounds are compared with it."""
_MOST_BYTES = 256 << 20


@dataclass(slots=True)
class Stalls:
    """The rounds of a batch in which only parked groups ran."""

    rounds: int = 0
    snapshot: list[Any] = field(default_factory=list[Any])
    snapshot_round: int = 0
    equal_rounds: int = 0

    def count_round(self, state: State) -> bool:
        """Count a round; tell whether the batch's state has repeated."""
        self.rounds += 1
        if self.rounds >= _FIRST and self.rounds & (self.rounds - 1) == 0:
            self.snapshot, self.snapshot_round, self.equal_rounds = copy_state(state), self.rounds, 0
            return False
        if not self.snapshot or self.rounds > self.snapshot_round + _COMPARED:
            return False
        if self.equal_rounds < self.rounds - self.snapshot_round - 1 or not _is_same(self.snapshot, copy_state(state)):
            self.snapshot = []
            return False
        self.equal_rounds += 1
        return self.equal_rounds == _COMPARED

    def reset(self) -> None:
        """Start again after progress that the saved state does not show."""
        self.rounds, self.snapshot = 0, []


def copy_state(state: State) -> list[Any]:
    """Return copies of everything that decides what happens next, or nothing if they would be too large."""
    memory, barriers = state.machine.memory, state.machine.memory.mbarriers
    arrays: list[Array] = [*state.machine.registers.values(), state.machine.sp, memory.shared.data, memory.local.data]
    arrays += [region.data for region in memory.space.regions if region.writable and not region.lent]
    arrays += [barriers.pending, barriers.tx, barriers.phase, state.barriers.arrivals, state.clusters.arrivals]
    if sum(array.nbytes for array in arrays) > _MOST_BYTES:
        return []
    polling = sorted((key, lanes.n, lanes.lo) for key, lanes in state.polling)
    return [state.live, len(state.mbarrier_waits), len(memory.effects.pending), polling, *(a.copy() for a in arrays)]


def _is_same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(
        a.tobytes() == b.tobytes() if isinstance(a, np.ndarray) else a == b for a, b in zip(first, second, strict=True)
    )
