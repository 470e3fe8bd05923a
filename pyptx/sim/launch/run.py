"""Run an entry of a module over a grid and return its results: the public entry point of the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError, hide_frames
from pyptx.ir import Module
from pyptx.sim.base.formats import Array
from pyptx.sim.launch.observing import Observers
from pyptx.sim.launch.outputs import report_unwritten
from pyptx.sim.launch.prepared import BATCH_LANES, MAX_STEPS, Dim, Options, Prepared, prepare_launch
from pyptx.sim.launch.progress import attach, make_interrupt, make_pace, show_progress
from pyptx.sim.launch.results import Coverage, Result
from pyptx.sim.launch.verdicts import add_findings, cite_lines, judge_findings, note_seed
from pyptx.sim.observers.checks import parse_choice
from pyptx.sim.observers.checks.choice import Check, Selection
from pyptx.sim.observers.watching import Watch
from pyptx.sim.program.linking import combine_modules
from pyptx.sim.reports.findings import Finding
from pyptx.sim.rules import faults
from pyptx.sim.scheduling.scheduler import Scheduler


@hide_frames
def run(
    module: Module | Sequence[Module],
    entry: str | None = None,
    *,
    grid: Dim = 1,
    block: Dim = 1,
    args: Sequence[Any] | Mapping[str, Any] = (),
    cluster: Dim = 1,
    shared: int = 0,
    schedule: str = "eager",
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    cooperative: bool = False,
    batch_lanes: int = BATCH_LANES,
    precision: str = "float32",
    check: Check = "all",
    on_hazard: str = "raise",
    images: Mapping[str, Any] | None = None,
    timeline: bool | int = False,
    statistics: bool = False,
    watch: Sequence[str] = (),
    poison: bool = False,
    parts: Mapping[str, int] | None = None,
    outputs: Sequence[Array] | None = None,
    fresh: Sequence[Array] = (),
) -> Result:
    """Run a kernel and return its result. Arrays in `args` are passed by address and written back if the whole launch
    succeeds. Several modules are linked. Raises PtxError for an invalid launch or a fault of the kernel.

    `check` is `all`, `none`, `strict` (warnings are errors) or classes of hazards: `races,proxies`. Findings that are
    errors raise PtxError unless `on_hazard="report"`; the result's `hazards` has all findings. Some classes run only on
    request: `all,numerics` checks values, `all,outputs` reports elements of `outputs` (arrays in `args`) that are never
    written, `all,unused` reports copies and accumulators that are never read, and `all,dependents` reports accesses
    before `griddepcontrol.wait`.
    Arrays in both `args` and `fresh` are uninitialized: reading an element before the kernel writes it is an error, and
    an element that is never written is a warning.

    `precision="hardware"` sums matrix products bit for bit like the tensor cores of the module's target; the default
    sums them quickly in float32. `images` binds the module's textures, samplers and surfaces:
    `{"name": sim.Texture(array)}`.

    `poison=True` fills registers and shared, local and tensor memory with 0x7ffda5a5, a NaN, and reports reads of
    unwritten registers. `watch` names registers; the result's `watched` lists their changes. Control-C reports where
    the threads were. `parts` names parts of dynamic shared memory by their offset."""
    selection, module = parse_choice(check, on_hazard), combine_modules(module)
    options = Options(
        grid=grid, block=block, args=args, cluster=cluster, shared=shared, schedule=schedule, seed=seed,
        max_steps=max_steps, cooperative=cooperative, batch_lanes=batch_lanes, precision=precision, images=images,
        poison=poison, parts=parts, fresh=fresh,
    )  # fmt: skip
    launch = prepare_launch(module, entry, options, is_checked=selection is not None, single=bool(watch))
    observers = Observers.create(launch.launch, selection, schedule, timeline, statistics, watch)
    hazards = _run_checked(module, launch, observers, options, selection, outputs)
    launch.write_back()
    drawing = observers.draw(launch.stats, hazards)
    changes = [] if observers.watch is None else observers.watch.changes
    coverage = Coverage.from_run(schedule, seed, selection, launch.stats, outputs, fresh)
    return Result(
        launch.outputs, launch.stats, str(launch.printed), hazards, drawing if timeline else None, changes, coverage
    )


def _run_checked(
    module: Module, launch: Prepared, observers: Observers, options: Options, selection: Selection | None,
    outputs: Sequence[Array] | None,
) -> list[Finding]:  # fmt: skip
    """Run a launch and return its findings. Raises PtxError for a fault, and for findings that are errors."""
    checks = observers.checks
    with attach([launch.printed]):
        try:
            run_batches(launch, observers)
        except PtxError as why:
            why = cite_lines(module, add_findings(why, checks))
            raise observers.make_stop(note_seed(why, options.schedule, options.seed)) from None
        if selection is None or checks is None:
            return []
        report_unwritten(checks, launch.buffers, outputs, [(checks, array) for array in options.fresh])
        try:
            return judge_findings([module], selection, checks)
        except PtxError as why:
            raise observers.make_stop(note_seed(why, options.schedule, options.seed)) from None


def run_batches(launch: Prepared, observers: Observers) -> None:
    """Run all batches of a launch."""
    batch: Scheduler | None = None
    pace = make_pace([launch], observers.checks is not None)
    try:
        with np.errstate(all="ignore"), show_progress(launch.ctas * launch.threads, pace) as tell:
            for batch in launch.batches(observers.list_listeners()):
                pace.begin_batch()
                if observers.watch is not None:
                    _run_watched(batch, observers.watch)
                else:
                    batch.run(tell)
                pace.end_batch()
    except MemoryError as why:
        text = f"not enough memory for a grid of {launch.ctas * launch.threads} threads: {why}"
        raise faults.error(faults.OUT_OF_MEMORY, launch.launch.program.entry.function.origin, text) from None
    except KeyboardInterrupt:
        raise make_interrupt([] if batch is None else [batch], launch.stats.instructions) from None


def _run_watched(batch: Scheduler, watch: Watch) -> None:
    """Run a batch instruction by instruction."""
    watch.follow(batch)
    while batch.step(once=True):
        watch.record_changes()
