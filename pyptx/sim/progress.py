"""A bar that shows how far a long run is, on a terminal only; and what an error says of a run that it ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

from pyptx.diagnostics import PtxError
from pyptx.sim.printing import Printed
from pyptx.sim.scheduling.places import report
from pyptx.sim.scheduling.state import State

_DELAY = 1.0
"""Seconds after which the bar appears."""
_EVERY = 64
Tell = Callable[[State], None]


class Interrupted(KeyboardInterrupt):
    """Control-C stopped a run. The message says where its threads were; the callers' arrays are as they were."""

    printed = ""


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


@contextmanager
def attach(printed: Iterable[Printed]) -> Generator[None]:
    """Let an error that ends a run carry what the run has printed."""
    try:
        yield
    except (PtxError, Interrupted) as why:
        why.printed = "".join(map(str, printed))
        raise
