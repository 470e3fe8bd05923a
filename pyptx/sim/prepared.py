"""Makes a launch ready: checked dimensions, arguments as bytes and buffers, the program; and its batches of CTAs.

What runs them, at once or step by step, is in `launch` and `stepping`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyptx.ir import Module
from pyptx.isa.targets import target
from pyptx.sim import rules
from pyptx.sim.arguments import Buffers, parameter_bytes
from pyptx.sim.checks import Checks
from pyptx.sim.codegen import Source
from pyptx.sim.formats import Array
from pyptx.sim.images.binding import bind_variables
from pyptx.sim.machine import Batch, Launch, Stats
from pyptx.sim.memory import Region, regions_of
from pyptx.sim.program import Program, prepare
from pyptx.sim.scheduling.orders import SCHEDULES, reversed_ctas
from pyptx.sim.scheduling.scheduler import Scheduler
from pyptx.sim.timeline.recorder import Recorder
from pyptx.sim.tracking import Tracker
from pyptx.sim.unstarted import Unstarted
from pyptx.sim.variables import PARAM_BASE

Dim = int | Sequence[int]
BATCH_LANES = 8192
MAX_STEPS = 50_000_000
_MOST_THREADS = 1024
_MOST_SHARED = 232448
_WAITING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a kernel is launched; `sim.run` explains each."""

    grid: Dim = 1
    block: Dim = 1
    args: Sequence[Any] | Mapping[str, Any] = ()
    cluster: Dim = 1
    shared: int = 0
    schedule: str = "eager"
    seed: int = 0
    max_steps: int = MAX_STEPS
    cooperative: bool = False
    batch_lanes: int = BATCH_LANES
    precision: str = "float32"
    images: Mapping[str, Any] | None = None
    poison: bool = False
    parts: Mapping[str, int] | None = None


@dataclass(slots=True)
class Prepared:
    """A launch that can begin. Callers' arrays are written by `write_back` only."""

    launch: Launch
    regions: list[Region]
    params: Region
    buffers: Buffers
    outputs: dict[str, Array]
    sources: dict[int, Source]
    exact: int
    at_once: int
    stats: Stats = field(default_factory=Stats)
    printed: list[str] = field(default_factory=list[str])

    @property
    def ctas(self) -> int:
        """How many CTAs the grid has."""
        return self.launch.grid[0] * self.launch.grid[1] * self.launch.grid[2]

    @property
    def threads(self) -> int:
        """How many threads a CTA has."""
        return self.launch.block[0] * self.launch.block[1] * self.launch.block[2]

    def batches(self, checks: Checks | None = None, recorder: Recorder | None = None) -> Iterator[Scheduler]:
        """Yield the batches of the grid one after the other, each ready to run."""
        machine: Batch | None = None
        size = self.launch.cluster_size
        firsts = range(0, self.ctas, size)
        # Whole batches in reverse, so that a batch of consecutive CTAs stays one.
        unstarted = Unstarted(self.launch.cluster, self.launch.grid, list(firsts))
        if reversed_ctas(self.launch.schedule, self.launch.seed):
            parts = [
                unstarted.firsts[at : at + self.at_once // size] for at in range(0, len(firsts), self.at_once // size)
            ]
            unstarted.firsts = [first for part in reversed(parts) for first in part]
        while unstarted.firsts:
            numbers = unstarted.start(self.at_once)
            ctas = len(numbers)
            if machine is None or machine.shape.ctas != ctas:
                machine = Batch(self.launch, ctas, self.regions, self.params, self.sources, self.stats, self.printed)
                machine.memory.tensor.exact = self.exact
                machine.recorder = recorder
                if checks is not None:
                    checks.attach(machine, self.at_once)
                machine.memory.unstarted = unstarted
                machine.memory.multicasts = self.buffers.multicasts
            machine.begin(numbers)
            yield Scheduler(machine, int(numbers[0]))
            self.stats.batches += 1
        if checks is not None:
            checks.finish()
        self.stats.lanes = self.ctas * self.threads

    def write_back(self) -> None:
        """Give the callers what the launch wrote."""
        self.buffers.write_back(self.regions)
        self.buffers.images.write_back()


def prepared(
    module: Module, entry: str | None, options: Options, *, checked: bool = False, single: bool = False
) -> Prepared:
    """Return a launch that can begin; `single`: every instruction is a block of its own."""
    if not isinstance(module, Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(module).__name__
        raise TypeError(f"a module is run, found {kind}: pyptx.parser.parse(text) and kernel.module(…) make one")
    program, sources, tracker = _program(module, entry, checked, single, options.poison)
    grid, block, cluster = (_dim3(getattr(options, name), name) for name in ("grid", "block", "cluster"))
    shape = _shape(program, grid, block, cluster, options.shared)
    if options.schedule not in SCHEDULES:
        known = ", ".join(SCHEDULES)
        raise rules.error(rules.LAUNCH_SHAPE, None, f"no schedule {options.schedule!r}; there are {known}")
    if options.precision not in ("float32", "hardware"):
        text = f"precision {options.precision!r} is not there; `float32` and `hardware` are"
        raise rules.error(rules.LAUNCH_SHAPE, None, text)
    exact = 0
    if options.precision == "hardware":
        exact = max(target(name).arch for name in module.target.targets if name.startswith("sm_"))
    program.variables.parts = dict(options.parts or {})
    buffers = Buffers(program.variables.next_global)
    workspace = buffers.reserve(256, "grid workspace") if options.cooperative else 0
    launch = Launch(
        program, *shape, options.shared, options.max_steps, workspace, options.schedule, options.seed,
        options.poison, tracker, images=buffers.images,
    )  # fmt: skip
    bind_variables(module, program.variables, options.images or {}, buffers.images)
    function = program.entry.function
    data, outputs = parameter_bytes(function.params, options.args, buffers, function.origin)
    regions = regions_of([*program.variables.allocations, *buffers.allocations])
    params = Region("parameters", "param", PARAM_BASE, len(data), _padded(data), writable=False)
    total, threads = launch.grid[0] * launch.grid[1] * launch.grid[2], block[0] * block[1] * block[2]
    at_once = total
    if not (options.cooperative or program.communicates):
        at_once = max(1, options.batch_lanes // (threads * launch.cluster_size)) * launch.cluster_size
        if program.cancels:
            # A grid larger than the machine, which such kernels are for: three quarters of the clusters wait.
            at_once = min(at_once, -(-total // (_WAITING * launch.cluster_size)) * launch.cluster_size)
    return Prepared(launch, regions, params, buffers, outputs, sources, exact, min(at_once, total))


_MOST_PREPARED = 16
_Made = tuple[Program, dict[int, Source], Tracker | None]
_PREPARED: dict[tuple[int, str | None, bool, bool, bool], tuple[Module, _Made]] = {}
"""The programs of the last modules, each with the module, which its key names by identity, and its blocks' sources."""


def _program(module: Module, entry: str | None, checked: bool, single: bool, poison: bool) -> _Made:
    """Return the program of an entry and its blocks' sources, made once for a module that runs again and again, and
    what tracks its registers."""
    key = (id(module), entry, checked, single, poison)
    found = _PREPARED.pop(key, None)
    if found is None:
        program = prepare(module, entry, single)
        found = module, (program, dict[int, Source](), Tracker.of(program) if poison or checked else None)
        if len(_PREPARED) >= _MOST_PREPARED:
            del _PREPARED[next(iter(_PREPARED))]
    _PREPARED[key] = found
    return found[1]


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
