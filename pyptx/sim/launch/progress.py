"""Show the progress of a long run (on a terminal only), warn if it will take very long, and describe a run that was
interrupted."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any

from pyptx.diagnostics import PtxError, UserTraceback, count_stack_levels
from pyptx.sim.launch.prepared import Prepared
from pyptx.sim.program.assignment import find_successors
from pyptx.sim.program.blocks import EXIT, RET, TRAP, Program
from pyptx.sim.scheduling.places import describe_places
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.printing import Printed

_DELAY = 1.0
"""Seconds after which the bar appears."""
_EVERY = 64
_SETTLED = 2.0
"""Seconds after which the rate of a run is meaningful."""
_VERY_LONG = 600.0
"""Seconds that a run may take without a warning."""
_FASTEST = 1e9
"""An upper limit of thread-instructions per second, above every rate that benchmarks/sim.py measures."""
Tell = Callable[[State], None]


class Interrupted(UserTraceback, KeyboardInterrupt):
    """Control-C stopped a run. The message says where its threads were; the caller's arrays are unchanged."""

    printed = ""


def make_interrupt(states: Sequence[State], instructions: int) -> Interrupted:
    """Return the exception for a run that was interrupted in these batches."""
    rows = [row for state in states for row in describe_places(state)]
    return Interrupted("\n  ".join([f"stopped after {instructions} instructions; arrays are unchanged", *rows]))


class Pace:
    """Estimates how long a launch of many batches will take, and warns once if that is very long."""

    def __init__(self, batches: int, launch: str, is_checked: bool, least: int) -> None:
        """Start the clock. `least` is a lower bound of the thread-instructions that the launch executes."""
        self._batches, self._launch = batches, launch
        self._remedy = 'a smaller grid, or check="none" (--check none)' if is_checked else "a smaller grid"
        self._begun, self._ended, self._said, self._least = time.monotonic(), 0, False, least

    def begin_batch(self) -> None:
        """Warn before the first batch if even the fastest run would take very long."""
        seconds, self._least = self._least / _FASTEST, 0
        if seconds > _VERY_LONG:
            rate = f"even at {_FASTEST:.0e} thread-instructions per second, faster than any run"
            self._say(f"at least {format_duration(seconds)}, {rate}")

    def end_batch(self) -> None:
        """Count a completed batch."""
        self._ended += 1
        self.look()

    def look(self) -> None:
        """Warn if the remaining batches will take very long. During the first batch the estimate is a lower bound."""
        seconds, complete = time.monotonic() - self._begun, max(1, self._ended)
        remaining = seconds / complete * (self._batches - complete)
        if self._said or seconds < _SETTLED or remaining <= _VERY_LONG:
            return
        self._said = True
        about = "about" if self._ended else "at least"
        progress = f"{complete} of {self._batches} batches took {format_duration(seconds)}"
        self._say(f"{about} {format_duration(remaining)} more: {progress}")

    def _say(self, time_text: str) -> None:
        text = f"{self._launch} needs {time_text}; take {self._remedy}; Control-C stops the run"
        if sys.stderr.isatty():
            from tqdm import tqdm

            tqdm.write(f"note: {text}", file=sys.stderr)
        else:
            warnings.warn(text, RuntimeWarning, stacklevel=count_stack_levels())


def make_pace(launches: Sequence[Prepared], is_checked: bool) -> Pace:
    """Return the pace of a launch, or of the launches of a stream."""
    threads = sum(launch.ctas * launch.threads for launch in launches)
    description = f"a stream of {len(launches)} grids, {threads} threads in all,"
    if len(launches) == 1:
        description = f"a grid of {launches[0].ctas} CTAs of {launches[0].threads} threads"
    least = sum(launch.ctas * launch.threads * count_least_instructions(launch.launch.program) for launch in launches)
    return Pace(sum(-(-launch.ctas // launch.at_once) for launch in launches), description, is_checked, least)


def count_least_instructions(program: Program) -> int:
    """Return the number of instructions on the shortest path through an entry, without called functions; 0 if no path
    exits."""
    ways, blocks_done = [(0, program.entry.entry)], set[int]()
    while ways:
        count, pc = heappop(ways)
        if pc < 0:
            return count
        if pc in blocks_done:
            continue
        blocks_done.add(pc)
        block = program.blocks[pc]
        count += len(block.steps)
        out = (-1,) if block.ending in (RET, EXIT, TRAP) else ()
        for after in (*out, *find_successors(block)):
            heappush(ways, (count, after))
    return 0


def format_duration(seconds: float) -> str:
    """Format a time in the largest unit that fits at least twice: `3 hours`."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} seconds"


@contextmanager
def show_progress(threads: int, pace: Pace) -> Generator[Tell | None]:
    """Show how many threads of a launch have exited while the block runs. Yield None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    # Both are needed only on a terminal.
    from multiprocessing import parent_process

    from tqdm import tqdm

    # A bar without a thread that watches it: processes with threads are not copied.
    bar_type: Any = type("Bar", (tqdm,), {"monitor_interval": 0})
    # One of several processes shows none, which would overwrite those of the others.
    options: dict[str, Any] = {"disable": parent_process() is not None, "delay": _DELAY, "leave": False}
    with bar_type(total=threads, unit=" threads", unit_scale=True, file=sys.stderr, **options) as bar:
        current: State | None = None
        before = turns = 0

        def tell(state: State) -> None:
            nonlocal current, before, turns
            turns += 1
            if state is not current:
                before += 0 if current is None else current.shape.lanes
                current = state
            if turns % _EVERY == 0:
                pace.look()
                bar.set_postfix_str(f"{state.machine.stats.instructions} instructions", refresh=False)
                bar.update(before + state.shape.lanes - state.live - bar.n)

        yield tell


@contextmanager
def attach(outputs: Iterable[Printed]) -> Generator[None]:
    """Attach the printed text to an error that ends the run."""
    try:
        yield
    except (PtxError, Interrupted) as why:
        why.printed = "".join(map(str, outputs))
        raise
