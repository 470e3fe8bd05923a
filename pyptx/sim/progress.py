"""A bar that shows how far a long run is, on a terminal only; and what a run says that was interrupted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from pyptx.sim.scheduling.places import report
from pyptx.sim.scheduling.state import State

_DELAY = 1.0
"""Seconds after which the bar appears."""
_EVERY = 64
Tell = Callable[[State], None]


class Interrupted(KeyboardInterrupt):
    """Control-C stopped a run. The message says where its threads were; the callers' arrays are as they were."""


def interrupted(states: Sequence[State], instructions: int) -> Interrupted:
    """Return what to raise when a run was interrupted in these batches."""
    rows = [row for state in states for row in report(state)]
    return Interrupted("\n  ".join([f"stopped after {instructions} instructions; arrays are unchanged", *rows]))


@contextmanager
def progress(threads: int) -> Generator[Tell | None]:
    """Show how many of a launch's threads have ended while the block runs; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # only runs on a terminal need it

    with tqdm(total=threads, unit=" threads", unit_scale=True, delay=_DELAY, leave=False, file=sys.stderr) as bar:
        current: State | None = None
        before = turns = 0

        def tell(state: State) -> None:
            nonlocal current, before, turns
            turns += 1
            if state is not current:
                before += 0 if current is None else current.shape.lanes
                current = state
            if turns % _EVERY == 0:
                bar.set_postfix_str(f"{state.machine.stats.instructions} instructions", refresh=False)
                bar.update(before + state.shape.lanes - state.live - bar.n)

        yield tell
