"""The recorded part of a run: the clock of every recorded warp, and what it waited for.

A warp is identified by its row in the batch, as in `Shape.warp`. Knows no barrier, no engine and no file format.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.check.body import Step
from pyptx.ir import Instruction
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.observers.timeline.names import Names
from pyptx.sim.observers.timeline.places import Places
from pyptx.sim.observers.timeline.records import Cause, Recorded, Track, Wait
from pyptx.sim.program.blocks import Program
from pyptx.sim.state.memory import Site

MOST_RECORDS = 200_000
"""The most runs, waits and transfers; later ones are counted, not kept."""


@dataclass(frozen=True, slots=True)
class Now:
    """The current call of a block: its instruction, its position in the block, and the executing lanes."""

    site: Site
    step: Step
    offset: int
    lanes: Lanes
    mask: Array | None

    @property
    def active(self) -> Array:
        """The executing lanes."""
        return self.lanes.index if self.mask is None else self.lanes.index[np.broadcast_to(self.mask, self.lanes.n)]


class Record:
    """The recorded warps of the batches of a launch."""

    def __init__(self, program: Program, places: Places, recorded: Recorded) -> None:
        self.program, self.places, self.made = program, places, recorded
        self.names = Names(program)
        self.waited: dict[int, int] = {}
        self.now: Now | None = None
        self.reached = 0
        """How far the current block has run, as far as its calls show."""
        self.clock = np.zeros(0, np.int64)
        self.kept = np.zeros(0, np.bool_)
        self.rows: dict[int, int] = {}
        self.numbers: dict[tuple[int, int], int] = {}
        """The rows of recorded warps by CTA number in the grid and warp number."""
        self._batch: Batch | None = None

    @property
    def batch(self) -> Batch:
        """The current batch."""
        assert self._batch is not None
        return self._batch

    def attach(self, machine: Batch) -> None:
        """Prepare for a machine that will run the next batches."""
        self._batch = machine

    def begin(self, numbers: Array, most_ctas: int) -> int:
        """Begin a batch: record as many of its first CTAs, in whole clusters, as are still wanted; return how many."""
        batch = self.batch
        shape, size = batch.shape, batch.launch.cluster_size
        left = max(0, most_ctas - len(self.made.ctas)) // size * size
        if not self.made.ctas and not left:
            left = size
        count = min(left, shape.ctas)
        self.made.left_out += shape.ctas - count
        self.clock = np.zeros(shape.warps * shape.ctas, np.int64)
        self.kept = np.arange(len(self.clock)) % shape.ctas < count
        self.rows, self.numbers = {}, {}
        for cta in range(count):
            at = len(self.made.ctas)
            self.made.ctas.append((int(batch.ctaid[0, cta]), int(batch.ctaid[1, cta]), int(batch.ctaid[2, cta])))
            for warp in range(shape.warps):
                self.numbers[int(numbers[cta]), warp] = warp * shape.ctas + cta
                self.rows[warp * shape.ctas + cta] = len(self.made.tracks)
                self.made.tracks.append(Track(at, f"warp {warp}", False))
        return count

    def warps(self, lanes: Lanes) -> tuple[Array, Array]:
        """Return the warps of these lanes, and how many lanes of each there are."""
        return lanes.compute_once("timeline warps", lambda: np.unique(lanes.shape.warp[lanes.sel], return_counts=True))

    def kept_warps(self, lanes: Lanes) -> tuple[list[int], list[int]]:
        """Return the recorded warps of these lanes, and how many lanes of each there are."""
        warps, counts = self.warps(lanes)
        kept = self.kept[warps]
        return warps[kept].tolist(), counts[kept].tolist()

    def warp_of(self, lane: int) -> int:
        """Return the warp of a lane."""
        return int(self.batch.shape.warp[lane])

    def time(self, warp: int) -> int:
        """Return the time of the instruction that a warp executes now."""
        return int(self.clock[warp]) + (self.now.offset if self.now is not None else self.reached)

    def cause(self, warp: int, time: int) -> Cause:
        """Return an action of a warp as a cause."""
        return Cause(self.rows[warp], max(0, time - 1))

    def waits(self, warp: int, until: int, barrier: str, phase: int, instruction: Instruction, cause: Cause | None,
              offset: int = 0) -> None:  # fmt: skip
        """Record that a warp waited until a time; `offset` is the distance of the waiting instruction from the warp's
        clock."""
        start = int(self.clock[warp]) + offset
        if until <= start:
            return
        line = self.places.find_line(instruction)
        self.waited[line] = self.waited.get(line, 0) + until - start
        if self.room():
            self.made.waits.append(Wait(self.rows[warp], start, until, barrier, phase, line, cause))
        self.clock[warp] = until - offset

    def room(self) -> bool:
        """Tell whether there is room for another record."""
        recorded = self.made
        recorded.truncated = (
            recorded.truncated or len(recorded.runs) + len(recorded.waits) + len(recorded.transfers) >= MOST_RECORDS
        )
        return not recorded.truncated
