"""Runs an entry of a module over a grid: arguments in, batches of CTAs, results out. The public entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError, Severity
from pyptx.ir import Module
from pyptx.isa.targets import target
from pyptx.sim import rules
from pyptx.sim.arguments import Buffers, parameter_bytes
from pyptx.sim.checks import Checks, Selection, selection
from pyptx.sim.checks.selection import Check
from pyptx.sim.codegen import Source
from pyptx.sim.formats import Array
from pyptx.sim.hazards import Finding
from pyptx.sim.images.binding import bind_variables
from pyptx.sim.machine import Batch, Launch, Stats
from pyptx.sim.memory import Region, regions_of
from pyptx.sim.program import Program, prepare
from pyptx.sim.scheduling.orders import SCHEDULES, reversed_ctas
from pyptx.sim.scheduling.scheduler import Scheduler
from pyptx.sim.timeline import Timeline
from pyptx.sim.timeline.recorder import Recorder, recording
from pyptx.sim.variables import PARAM_BASE

Dim = int | Sequence[int]
BATCH_LANES = 8192
MAX_STEPS = 50_000_000
_MOST_THREADS = 1024
_MOST_SHARED = 232448


@dataclass(slots=True)
class Result:
    """What a launch left: the arrays it was given (updated in place), what it printed, and counts."""

    outputs: dict[str, Array]
    stats: Stats
    printed: str = ""
    hazards: list[Finding] = field(default_factory=list[Finding])
    timeline: Timeline | None = None


def run(
    module: Module,
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
    check: Check = "none",
    on_hazard: str = "raise",
    images: Mapping[str, Any] | None = None,
    timeline: bool | int = False,
) -> Result:
    """Run a kernel and return what it did. Arrays among `args` are passed by address and written back when the whole
    launch succeeded. PtxError says what was wrong with the launch or the kernel.

    `check` is `all`, `none`, `strict` (warnings are errors) or classes of hazards: `races,proxies`. Errors among the
    findings end in a PtxError unless `on_hazard="report"`; all of them are the result's `hazards`.

    With `precision="hardware"` products
    of matrices are summed bit for bit as the tensor cores of the module's target do, else quickly in float32.
    `images` binds the module's textures, samplers and surfaces: `{"name": sim.Texture(array)}`."""
    selected = selection(check, on_hazard)
    program, sources = _prepared(module, entry, selected is not None)
    shape = _shape(program, _dim3(grid, "grid"), _dim3(block, "block"), _dim3(cluster, "cluster"), shared)
    if schedule not in SCHEDULES:
        raise rules.error(rules.LAUNCH_SHAPE, None, f"no schedule {schedule!r}; there are {', '.join(SCHEDULES)}")
    if precision not in ("float32", "hardware"):
        raise rules.error(
            rules.LAUNCH_SHAPE, None, f"precision {precision!r} is not there; `float32` and `hardware` are"
        )
    exact = (
        max(target(name).arch for name in module.target.targets if name.startswith("sm_"))
        if precision == "hardware"
        else 0
    )
    buffers = Buffers(program.variables.next_global)
    workspace = buffers.reserve(256, "grid workspace") if cooperative else 0
    launch = Launch(program, *shape, shared, max_steps, workspace, schedule, seed, images=buffers.images)
    bind_variables(module, program.variables, images or {}, buffers.images)
    data, order = parameter_bytes(program.entry.function.params, args, buffers, program.entry.function.origin)
    regions = regions_of([*program.variables.allocations, *buffers.allocations])
    params = Region("parameters", "param", PARAM_BASE, len(data), _padded(data), writable=False)
    stats, printed = Stats(), list[str]()
    checks = Checks(selected) if selected is not None else None
    recorder = recording(launch, schedule, int(timeline) if timeline is not True else None) if timeline else None
    try:
        _run_batches(launch, regions, params, sources, stats, printed, cooperative, batch_lanes, exact, checks, recorder)
    except PtxError as why:
        raise _with_findings(why, checks) from None
    except MemoryError as why:
        lanes = launch.grid[0] * launch.grid[1] * launch.grid[2] * launch.block[0] * launch.block[1] * launch.block[2]
        text = f"no memory for a grid of {lanes} threads: {why}"
        raise rules.error(rules.OUT_OF_MEMORY, program.entry.function.origin, text) from None
    hazards = [] if selected is None or checks is None else _judged(selected, checks)
    buffers.write_back(regions)
    buffers.images.write_back()
    drawn = None if recorder is None else Timeline(recorder.finish(), hazards)
    return Result(order, stats, "".join(printed), hazards, drawn)


def _judged(selected: Selection, checks: Checks) -> list[Finding]:
    """Return what was found; PtxError when something of it is an error."""
    found = selected.chosen(checks.engine.findings)
    fatal = selected.fatal(found)
    if fatal:
        raise PtxError(finding.diagnostic() for finding in fatal)
    return found


def _with_findings(why: PtxError, checks: Checks | None) -> PtxError:
    """Return the error that ended a run, behind the hazards that may have caused it."""
    found = [] if checks is None else checks.selected.chosen(checks.engine.findings)
    errors = [finding.diagnostic() for finding in found if finding.severity is Severity.ERROR]
    return PtxError([*errors, *why.diagnostics]) if errors else why


_MOST_PREPARED = 16
_PREPARED: dict[tuple[int, str | None], tuple[Module, Program, dict[bool, dict[int, Source]]]] = {}
"""The programs of the last modules, each with the module, which its key names by identity."""


def _prepared(module: Module, entry: str | None, checked: bool) -> tuple[Program, dict[int, Source]]:
    """Return the program of an entry and its blocks' sources, made once for a module that runs again and again."""
    found = _PREPARED.pop((id(module), entry), None)
    if found is None:
        found = module, prepare(module, entry), dict[bool, dict[int, Source]]()
        if len(_PREPARED) >= _MOST_PREPARED:
            del _PREPARED[next(iter(_PREPARED))]
    _PREPARED[id(module), entry] = found
    return found[1], found[2].setdefault(checked, {})


def _run_batches(
    launch: Launch, regions: list[Region], params: Region, sources: dict[int, Source], stats: Stats,
    printed: list[str], cooperative: bool, batch_lanes: int, exact: int, checks: Checks | None,
    recorder: Recorder | None,
) -> None:  # fmt: skip
    total = launch.grid[0] * launch.grid[1] * launch.grid[2]
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    at_once = total
    if not (cooperative or launch.program.communicates):
        at_once = max(1, batch_lanes // (threads * launch.cluster_size)) * launch.cluster_size
    at_once = min(at_once, total)
    machine: Batch | None = None
    with np.errstate(all="ignore"):
        firsts = range(0, total, at_once)
        for first in reversed(firsts) if reversed_ctas(launch.schedule, launch.seed) else firsts:
            ctas = min(at_once, total - first)
            if machine is None or machine.shape.ctas != ctas:
                machine = Batch(launch, ctas, regions, params, sources, stats, printed)
                machine.memory.tensor.exact = exact
                machine.recorder = recorder
                if checks is not None:
                    checks.attach(machine, at_once)
            machine.begin(np.arange(first, first + ctas))
            Scheduler(machine, first).run()
            stats.batches += 1
    if checks is not None:
        checks.finish()
    stats.lanes = total * threads


def _dim3(value: Dim, what: str) -> tuple[int, int, int]:
    values = [value] if isinstance(value, int) else [int(v) for v in value]
    values += [1] * (3 - len(values))
    if len(values) != 3 or any(v < 1 for v in values):
        raise rules.error(
            rules.LAUNCH_SHAPE, None, f"{what} is {tuple(values)}: one to three positive numbers expected"
        )
    return values[0], values[1], values[2]


def _shape(
    program: Program,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    cluster: tuple[int, int, int],
    shared: int,
) -> tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]:
    """Return the launch's dimensions, checked against the entry's own directives."""
    function = program.entry.function
    directives = {d.name: d.values for d in function.directives}
    required = directives.get("reqntid")
    if required is not None:
        wanted = tuple(int(v) for v in (*required, 1, 1)[:3])
        if wanted != block:
            raise rules.error(rules.LAUNCH_SHAPE, function.origin, f"block is {block}, the kernel requires {wanted}")
    named = directives.get("reqnctapercluster")
    if named and cluster == (1, 1, 1):
        made = [int(v) for v in (*named, 1, 1)[:3]]
        cluster = (made[0], made[1], made[2])
    threads = block[0] * block[1] * block[2]
    if threads > _MOST_THREADS:
        raise rules.error(
            rules.LAUNCH_SHAPE, None, f"a block of {threads} threads; at most {_MOST_THREADS} are possible"
        )
    if any(g % c for g, c in zip(grid, cluster, strict=True)):
        raise rules.error(rules.LAUNCH_SHAPE, None, f"grid {grid} is no multiple of the cluster {cluster}")
    used = program.variables.dynamic_base() - program.variables.shared_base + shared
    if shared < 0 or used > _MOST_SHARED:
        raise rules.error(
            rules.LAUNCH_SHAPE, None, f"{used} bytes of shared memory; at most {_MOST_SHARED} are possible"
        )
    return grid, block, cluster


def _padded(data: bytearray) -> Array:
    made = np.zeros(-(-max(1, len(data)) // 16) * 16, np.uint8)
    made[: len(data)] = np.frombuffer(bytes(data), np.uint8)
    return made
