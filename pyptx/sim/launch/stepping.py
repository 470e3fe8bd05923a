"""Run a launch step by step: stop at labels, lines and conditions, and inspect registers, memory and barriers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError, hide_frames
from pyptx.ir import Module
from pyptx.sim.base.formats import Array, dtype_of
from pyptx.sim.hazards import Finding
from pyptx.sim.launch.outputs import report_unwritten
from pyptx.sim.launch.prepared import Options, prepare_launch
from pyptx.sim.launch.progress import attach, make_pace
from pyptx.sim.launch.results import Coverage, Result
from pyptx.sim.launch.verdicts import add_findings, cite_lines, judge_findings, note_seed
from pyptx.sim.observers import watching
from pyptx.sim.observers.checks import Checks, parse_choice
from pyptx.sim.observers.checks.choice import Check
from pyptx.sim.program.linking import combine_modules
from pyptx.sim.program.python_names import find_python_names
from pyptx.sim.reports.findings import group_by_cause
from pyptx.sim.rules import faults
from pyptx.sim.scheduling.places import Stand, list_groups, list_stands, number_ctas
from pyptx.sim.scheduling.scheduler import Scheduler

Until = str | int | Callable[["Machine"], bool]
"""Where to stop: a label, a line, or a condition on the machine."""


@dataclass(frozen=True, slots=True)
class MBarrier:
    """The state of an mbarrier: the number of completed phases, the pending and expected arrival counts of the current
    phase, and its tx-count in bytes."""

    name: str
    address: int
    phase: int
    pending: int
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier of a CTA with arrivals: how many threads have arrived, and how many it needs."""

    number: int
    arrived: int
    needed: int


class Machine:
    """A kernel that runs step by step. Takes the launch options of `sim.run`, and `watch`; `finish` checks `outputs`.

    `check` is `none` by default. A finding that is an error is raised once, at the step that reveals it, and the
    machine still shows the state that led to it; with `on_hazard="report"` it is only added to `hazards`."""

    @hide_frames
    def __init__(
        self, module: Module | Sequence[Module], entry: str | None = None, *, watch: Sequence[str] = (),
        check: Check = "none", on_hazard: str = "raise", outputs: Sequence[Array] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self._module = combine_modules(module)
        unknown = sorted(options.keys() - {item.name for item in fields(Options)})
        if unknown:
            text = f"sim.Machine has no option `{unknown[0]}`; it takes the launch options of sim.run"
            raise faults.error(faults.LAUNCH_SHAPE, None, text)
        self._options, selection = Options(**options), parse_choice(check, on_hazard)
        self._launch = prepare_launch(self._module, entry, self._options, is_checked=selection is not None, single=True)
        self._watch = watching.watch(self._launch.launch.program, watch) if watch else None
        self._checks, self._outputs = None if selection is None else Checks(selection), outputs
        names = find_python_names(self._launch.launch.program)
        counts = Counter(names.values())
        self._variables = {name: variable for name, variable in names.items() if counts[variable] == 1}
        self._raised: set[int] = set()
        self._looked = False
        self._batches = self._launch.batches([] if self._checks is None else [self._checks])
        self._batch: Scheduler | None = None
        self._batch = self._next_batch()

    @property
    def done(self) -> bool:
        """Whether every thread of the grid has exited."""
        return not self._batch

    @property
    def hazards(self) -> list[Finding]:
        """The findings so far of the selected checks."""
        return [] if self._checks is None else self._checks.selection.select(self._checks.engine.findings)

    @hide_frames
    def step(self, count: int = 1) -> bool:
        """Run `count` instructions, each of one group of lanes; return whether any are left."""
        for _ in range(count):
            if self._batch is None:
                return False
            self._advance(self._batch)
        return self._batch is not None

    @hide_frames
    def run(self, until: Until | None = None) -> bool:
        """Run until a group of lanes is about to execute the first instruction of a label or a line, or until a
        condition holds. Return True if the run stopped there, False if the kernel has ended."""
        pcs, pace = self._find_blocks(until), None
        if until is None and not self._launch.stats.instructions:
            pace = make_pace([self._launch], self._checks is not None)
            pace.begin_batch()
        while (batch := self._batch) is not None:
            self._advance(batch)
            if pace is not None and self._batch is not batch:
                pace.end_batch()
            if self._stops(until, pcs):
                return True
        return False

    @hide_frames
    def finish(self) -> Result:
        """Run to the end and write the results back to the caller's arrays, unless a finding is an error."""
        self.run()
        launch, checks = self._launch, self._checks
        if checks is not None and not self._looked:
            self._looked = True
            fresh = [(checks, array) for array in self._options.fresh]
            report_unwritten(checks, launch.buffers, self._outputs, fresh)
        with attach([launch.printed]):
            hazards = [] if checks is None else judge_findings([self._module], checks.selection, checks)
        launch.write_back()
        changes = [] if self._watch is None else self._watch.changes
        selection = None if checks is None else checks.selection
        coverage = Coverage.from_run(
            self._options.schedule, self._options.seed, selection, launch.stats, self._outputs, self._options.fresh
        )  # fmt: skip
        return Result(launch.outputs, launch.stats, str(launch.printed), hazards, watched=changes, coverage=coverage)

    def where(self) -> list[Stand]:
        """Return the place of each warp of the running CTAs."""
        return [] if self._batch is None else list_stands(self._batch)

    @hide_frames
    def registers(self, cta: int = 0, thread: int | tuple[int, ...] = 0) -> dict[str, Any]:
        """Return the registers of the function that a thread executes, in their declared types: by their PTX names, and
        by the variable of a Python kernel if it names only one register."""
        batch, lane = self._find_lane(cta, thread)
        code = next(batch.blocks[pc].code for _, pc, _, lanes in list_groups(batch) if lane in lanes.index)
        rows = sorted(code.rows.by_name.items())
        values = {name: watching.read_register(batch.machine, row)[lane] for (name, _), row in rows}
        return values | {variable: values[name] for name, variable in self._variables.items() if name in values}

    @hide_frames
    def shared(
        self, cta: int = 0, at: str | int | None = None, dtype: Any = "u1", count: int | None = None
    ) -> Array:  # fmt: skip
        """Return a copy of elements of a CTA's shared memory, starting at a variable, `name+offset` or an address. The
        dtype is a NumPy dtype or a PTX type."""
        batch, lane = self._find_lane(cta, 0)
        memory, kind = batch.machine.memory, _parse_dtype(dtype)
        low = memory.shared_base
        begin = low if at is None else self._find_address(at) if isinstance(at, str) else at
        room = low + memory.shared_size - begin
        size = room // kind.itemsize if count is None else count
        if begin < low or size < 0 or size * kind.itemsize > room:
            text = f"{size} × {kind} at {begin:#x} is outside shared memory, {low:#x} … {low + memory.shared_size:#x}"
            raise faults.error(faults.ARGUMENTS, None, text)
        first = int(batch.shape.shared_base[lane]) + begin - low
        return memory.shared.data[first : first + size * kind.itemsize].copy().view(kind)

    @hide_frames
    def memory(self, name: str) -> Array:
        """Return a copy of the current contents of an array argument or a variable in global memory."""
        array = self._launch.outputs.get(name)
        address = None if array is None else self._launch.buffers.find(array)
        for region in self._launch.space.regions:
            if array is not None and address is not None and region.low <= address < region.low + max(1, region.size):
                data = region.data[address - region.low :][: array.nbytes].copy()
                return data.view(array.dtype).reshape(array.shape)
            if array is None and region.name == name:
                return region.data.copy()
        names = ", ".join(region.name for region in self._launch.space.regions)
        raise faults.error(faults.ARGUMENTS, None, f"no array or global variable `{name}`; expected one of {names}")

    @hide_frames
    def barriers(self, cta: int = 0) -> list[MBarrier | Barrier]:
        """Return the live mbarriers of a CTA, and its barriers with arrivals."""
        batch, lane = self._find_lane(cta, 0)
        place, shape = int(batch.shape.cta[lane]), batch.shape
        memory = batch.machine.memory
        own = place * shape.shared_stride
        barriers: list[MBarrier | Barrier] = []
        for row in memory.mbarriers.find_live(own, own + shape.shared_stride).tolist():
            b = memory.mbarriers
            address = int(b.places[row]) - own + memory.shared_base
            name = batch.machine.launch.shared_names.format_address(address).replace("`", "")
            counts = (int(v[row]) for v in (b.phase, b.pending, b.expected, b.tx))
            barriers.append(MBarrier(name, address, *counts))
        bars = batch.barriers
        for number in np.flatnonzero(bars.arrivals[place]).tolist():
            thread_count = int(bars.thread_counts[place, number]) or int(bars.live[place])
            barriers.append(Barrier(number, int(bars.arrivals[place, number]), thread_count))
        return barriers

    def __repr__(self) -> str:
        name = self._launch.launch.program.entry.function.name
        state = "done" if self.done else f"{len(self.where())} warps or parts of warps"
        return f"<machine of {name}: {self._launch.stats.instructions} instructions, {state}>"

    def _next_batch(self) -> Scheduler | None:
        batch = next(self._batches, None)
        if batch is not None and self._watch is not None:
            self._watch.follow(batch)
        return batch

    def _advance(self, batch: Scheduler) -> None:
        """Run one instruction of one group; attach the printed text to an error."""
        with attach([self._launch.printed]):
            self._run_instruction(batch)

    def _run_instruction(self, batch: Scheduler) -> None:
        try:
            with np.errstate(all="ignore"):
                has_next = batch.step(once=True)
                if has_next and self._watch is not None:
                    self._watch.record_changes()
                has_next = has_next and batch.choose_next() is not None
        except PtxError as why:
            raise self._repeatable(add_findings(why, self._checks)) from None
        if not has_next:
            self._batch = self._next_batch()
        new = [] if self._checks is None else self._checks.selection.select_fatal(self.hazards)
        new = [finding for finding in new if id(finding) not in self._raised]
        if new:
            self._raised |= {id(finding) for finding in new}
            raise self._repeatable(PtxError(finding.diagnostic() for finding in group_by_cause(new)))

    def _repeatable(self, why: PtxError) -> PtxError:
        return note_seed(cite_lines(self._module, why), self._options.schedule, self._options.seed)

    def _stops(self, until: Until | None, pcs: set[int]) -> bool:
        key = None if self._batch is None else self._batch.choose_next()
        if key is None or until is None:
            return False
        return until(self) if callable(until) else abs(key[2]) in pcs

    def _find_blocks(self, until: Until | None) -> set[int]:
        """Return the blocks at which a label or a line begins."""
        blocks = self._launch.launch.program.blocks
        if until is None or callable(until):
            return set()
        if isinstance(until, str):
            pcs = {b.pc for b in blocks if until in b.labels}
            labels = [label for block in blocks for label in block.labels]
            problem = f"no label `{until}`; the labels are {', '.join(labels) or 'none'}"
        else:
            lines = {b.pc: origin.line for b in blocks if b.steps and (origin := b.steps[0].instruction.origin)}
            pcs = {pc for pc, line in lines.items() if line == until}
            problem = (
                f"no instruction at line {until}; instructions are at lines {min(lines.values())} to "
                f"{max(lines.values())}"
            )
        if not pcs:
            raise faults.error(faults.ARGUMENTS, None, problem)
        return pcs

    def _find_lane(self, cta: int, thread: int | tuple[int, ...]) -> tuple[Scheduler, int]:
        """Return the batch of a CTA and the lane of a thread."""
        if self._batch is None:
            raise faults.error(faults.ARGUMENTS, None, "the kernel has ended: there is nothing to show")
        numbers, shape = number_ctas(self._batch), self._batch.shape
        if not isinstance(cta, int | np.integer) or not isinstance(thread, int | np.integer | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            expected = "expected the number of a CTA in the grid, and the number or coordinates of a thread"
            text = f"CTA {cta!r}, thread {thread!r}: {expected}"
            raise faults.error(faults.ARGUMENTS, None, text)
        if isinstance(thread, Sequence):
            thread = sum(
                t * stride
                for t, stride in zip(thread, (1, shape.block[0], shape.block[0] * shape.block[1]), strict=False)
            )
        if cta not in numbers or not 0 <= thread < shape.threads:
            text = f"CTAs {min(numbers)} … {max(numbers)} are running, with threads 0 … {shape.threads - 1}"
            raise faults.error(faults.ARGUMENTS, None, f"CTA {cta}, thread {thread}: {text}")
        return self._batch, thread * shape.ctas + [*map(int, numbers)].index(cta)

    def _find_address(self, location: str) -> int:
        name, _, offset = location.partition("+")
        places = self._launch.launch.shared_names.places
        starts = [start for start, label in places if label == name]
        if not starts:
            labels = ", ".join(label for _, label in places)
            raise faults.error(faults.ARGUMENTS, None, f"no shared variable `{name}`; expected one of {labels}")
        try:
            return starts[0] + int(offset or "0", 0)
        except ValueError:
            text = f"`{location}`: expected a number of bytes after `{name}+`, found `{offset}`"
            raise faults.error(faults.ARGUMENTS, None, text) from None


def _parse_dtype(dtype: Any) -> np.dtype[Any]:
    text = dtype.removeprefix(".") if isinstance(dtype, str) else dtype
    if isinstance(text, str) and text[:1] in tuple("busf") and text[1:].isdigit() and int(text[1:]) >= 8:
        return dtype_of(text)
    try:
        return np.dtype(text)
    except TypeError:
        text = f"expected a NumPy dtype, or a PTX type such as 'u32', found {dtype!r}"
        raise faults.error(faults.ARGUMENTS, None, text) from None
