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
from pyptx.sim.observers.timeline.records import Cause, RunRecord, Track, Wait
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

    def __init__(self, program: Program, places: Places, run_record: RunRecord) -> None:
        self.program, self.places, self.run_record = program, places, run_record
        self.names = Names(program)
        self.wait_steps: dict[int, int] = {}
        self.now: Now | None = None
        self.reached = 0
        """How far the current block has run, as far as its calls show."""
        self.clock = np.zeros(0, np.int64)
        self.is_recorded = np.zeros(0, np.bool_)
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
        """Begin a batch: record its first CTAs, in whole clusters, up to `most_ctas` of the launch; return how many."""
        batch = self.batch
        shape, size = batch.shape, batch.launch.cluster_size
        capacity = max(0, most_ctas - len(self.run_record.ctas)) // size * size
        if not self.run_record.ctas and not capacity:
            capacity = size
        count = min(capacity, shape.ctas)
        self.run_record.ctas_left_out += shape.ctas - count
        self.clock = np.zeros(shape.warps * shape.ctas, np.int64)
        self.is_recorded = np.arange(len(self.clock)) % shape.ctas < count
        self.rows, self.numbers = {}, {}
        for cta in range(count):
            index = len(self.run_record.ctas)
            self.run_record.ctas.append((int(batch.ctaid[0, cta]), int(batch.ctaid[1, cta]), int(batch.ctaid[2, cta])))
            for warp in range(shape.warps):
                self.numbers[int(numbers[cta]), warp] = warp * shape.ctas + cta
                self.rows[warp * shape.ctas + cta] = len(self.run_record.tracks)
                self.run_record.tracks.append(Track(index, f"warp {warp}", False))
        return count

    def count_warps(self, lanes: Lanes) -> tuple[Array, Array]:
        """Return the warps of these lanes, and how many lanes of each there are."""
        return lanes.compute_once("timeline warps", lambda: np.unique(lanes.shape.warp[lanes.sel], return_counts=True))

    def find_recorded_warps(self, lanes: Lanes) -> tuple[list[int], list[int]]:
        """Return the recorded warps of these lanes, and how many lanes of each there are."""
        warps, counts = self.count_warps(lanes)
        selection = self.is_recorded[warps]
        return warps[selection].tolist(), counts[selection].tolist()

    def find_warp(self, lane: int) -> int:
        """Return the warp of a lane."""
        return int(self.batch.shape.warp[lane])

    def read_clock(self, warp: int) -> int:
        """Return the time of the instruction that a warp executes now."""
        return int(self.clock[warp]) + (self.now.offset if self.now is not None else self.reached)

    def make_cause(self, warp: int, time: int) -> Cause:
        """Return an action of a warp as a cause."""
        return Cause(self.rows[warp], max(0, time - 1))

    def record_wait(self, warp: int, until: int, barrier: str, phase: int, instruction: Instruction,
                    cause: Cause | None, offset: int = 0) -> None:  # fmt: skip
        """Record that a warp waited until a time; `offset` is the distance of the waiting instruction from the warp's
        clock."""
        start = int(self.clock[warp]) + offset
        if until <= start:
            return
        line = self.places.find_line(instruction)
        self.wait_steps[line] = self.wait_steps.get(line, 0) + until - start
        if self.has_room():
            self.run_record.waits.append(Wait(self.rows[warp], start, until, barrier, phase, line, cause))
        self.clock[warp] = until - offset

    def has_room(self) -> bool:
        """Tell whether there is room for another record."""
        run_record = self.run_record
        run_record.is_truncated = (
            run_record.is_truncated
            or len(run_record.runs) + len(run_record.waits) + len(run_record.transfers) >= MOST_RECORDS
        )
        return not run_record.is_truncated
