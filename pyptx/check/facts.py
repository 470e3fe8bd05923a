"""Solves for facts that hold on every path to a run. A fact is a bit whose meaning only the caller knows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from pyptx.check.flow import Run

Leave = Callable[[Run, int], Iterable[tuple[int, int]]]
"""Maps the facts that enter a run to the facts at each successor."""


def solve_facts(runs: Sequence[Run], start: int, leave: Leave) -> list[int]:
    """Return, for each run, the facts that hold on every path to it, with `start` at the entry; -1 if the run is
    unreachable."""
    unreachable = -1
    entering = [unreachable] * len(runs)
    entering[0] = start
    todo = deque([0])
    pending = {0}
    while todo:
        index = todo.popleft()
        pending.discard(index)
        for successor, leaving in leave(runs[index], entering[index]):
            meet = entering[successor] & leaving
            if meet != entering[successor]:
                entering[successor] = meet
                if successor not in pending:
                    pending.add(successor)
                    todo.append(successor)
    return entering
