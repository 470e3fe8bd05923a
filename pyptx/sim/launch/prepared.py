"""Prepare a launch: check dimensions, encode arguments, compile the program, and make the batches of CTAs.

`run`, `stepping` and `streams` run the batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from pyptx.ir import Module
from pyptx.isa.targets import find_target
from pyptx.sim.base.formats import Array
from pyptx.sim.execution.codegen import Compile, Sources, compile_text
from pyptx.sim.execution.machine import Batch, Launch, Resources
from pyptx.sim.execution.tracking import Tracker
from pyptx.sim.images.binding import bind_variables
from pyptx.sim.launch.arguments import Buffers, arrays_in, encode_parameters
from pyptx.sim.launch.overlaps import Span, find_entangled, find_spans
from pyptx.sim.launch.results import Stats
from pyptx.sim.launch.room import require_memory
from pyptx.sim.observers.observer import Observer
from pyptx.sim.program.blocks import Program, prepare
from pyptx.sim.program.shapes import Dim, check_integer, check_shape, parse_dim3
from pyptx.sim.program.variables import PARAM_BASE, Globals
from pyptx.sim.rules import faults
from pyptx.sim.scheduling.orders import make_choices, make_order, reverses_ctas
from pyptx.sim.scheduling.scheduler import Scheduler
from pyptx.sim.scheduling.schedules import SCHEDULES
from pyptx.sim.state.address_space import AddressSpace
from pyptx.sim.state.flights import Flight
from pyptx.sim.state.multicasts import Multicasts
from pyptx.sim.state.printing import Printed
from pyptx.sim.state.regions import Region
from pyptx.sim.state.sink import fan_out
from pyptx.sim.state.unstarted import PendingClusters

BATCH_LANES = 8192
MAX_STEPS = 50_000_000
_WAITING = 4
_OVERLAPPED = 4


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
    fresh: Sequence[Array] = ()
    parameters: bytes | None = None
    """The bytes of the parameters, in place of `args`."""
    multicasts: Multicasts | None = None
    """The multicast objects of a host, in place of those in `args`."""


@dataclass(slots=True)
class Prepared:
    """A launch that is ready to run. Only `write_back` writes the caller's arrays."""

    launch: Launch
    space: AddressSpace
    params: Region
    buffers: Buffers
    outputs: dict[str, Array]
    sources: Sources
    multicasts: Multicasts
    pending_clusters: PendingClusters
    exact: int
    at_once: int
    stats: Stats = field(default_factory=Stats)
    printed: Printed = field(default_factory=Printed)

    @property
    def ctas(self) -> int:
        """The number of CTAs of the grid."""
        return self.launch.grid[0] * self.launch.grid[1] * self.launch.grid[2]

    @property
    def threads(self) -> int:
        """The number of threads of a CTA."""
        return self.launch.block[0] * self.launch.block[1] * self.launch.block[2]

    def batches(self, observers: Sequence[Observer] = (), flight: Flight | None = None) -> Iterator[Scheduler]:
        """Yield the batches of the grid in turn, once, each ready to run. `flight` is the grid's state in a stream."""
        machine: Batch | None = None
        require_memory(self.launch, self.at_once)
        pending_clusters = self.pending_clusters
        sink = fan_out(observers)
        instruments = (observer.instrument(self.launch.program) for observer in observers)
        resources = Resources(
            self.space, self.params, self.sources, self.stats, self.printed, pending_clusters, self.multicasts,
            self.exact, sink, next((instrument for instrument in instruments if instrument is not None), None), flight,
        )  # fmt: skip
        while pending_clusters.remaining:
            numbers = pending_clusters.start(self.at_once)
            if machine is None or machine.shape.ctas != len(numbers):
                machine = Batch(self.launch, len(numbers), resources)
                for observer in observers:
                    observer.attach(machine, self.at_once)
            order = make_order(self.launch.schedule, self.launch.seed, int(numbers[0]), machine.shape)
            machine.begin(numbers, make_choices(order))
            scheduler = Scheduler(machine, order)
            for observer in observers:
                observer.follow(scheduler)
            yield scheduler
            self.stats.batches += 1
        if sink is not None:
            sink.on_finish()
        self.stats.lanes = self.ctas * self.threads

    def write_back(self) -> None:
        """Copy the results of the launch to the caller's arrays and images."""
        self.buffers.write_back()
        self.buffers.images.write_back()


def prepare_launch(
    module: Module, entry: str | None, options: Options, *, is_checked: bool = False, single: bool = False
) -> Prepared:
    """Return a launch that is ready to run; with `single`, every instruction is its own block."""
    return prepare_launches([(module, entry, options, None)], is_checked=is_checked, single=single)[0]


def prepare_launches(
    launches: Sequence[tuple[Module, str | None, Options, str | None]],
    *,
    is_checked: bool = False,
    single: bool = False,
) -> list[Prepared]:
    """Return launches that share one memory. The last item of each is its label: empty for the entry's name, None for a
    launch that runs alone. An array that several launches take is placed once."""
    for _, entry, options, _ in launches:
        _require_types(entry, options)
    poison = any(options.poison for _, _, options, _ in launches)
    programs = _prepare_programs([(module, entry) for module, entry, _, _ in launches], is_checked, single, poison)
    variables = programs[0][0].variables.globals
    space = AddressSpace(variables.next)
    space.load(variables.allocations)
    buffers = Buffers(space, spans=_find_overlaps([options for _, _, options, _ in launches]))
    labels = make_labels([label for _, _, _, label in launches], [program for program, _, _ in programs])
    return [
        make_prepared(artifacts, module, options, buffers, label, number)
        for number, (artifacts, label, (module, _, options, _)) in enumerate(
            zip(programs, labels, launches, strict=True)
        )
    ]


def _require_types(entry: Any, options: Options) -> None:
    """Reject an entry name or images of the wrong type."""
    if entry is not None and not isinstance(entry, str):
        raise faults.error(faults.MISSING_ENTRY, None, f"entry: expected a name or None, found {entry!r}")
    if options.images is not None and not isinstance(options.images, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        text = f"images: expected {{'name': sim.Texture(array)}}, found {options.images!r}"
        raise faults.error(faults.ARGUMENTS, None, text)


def _find_overlaps(launches: Sequence[Options]) -> list[Span]:
    """Return the ranges of memory that several arrays of the launches share. Raise PtxError for overlapping arrays that
    are not contiguous."""
    arrays: dict[int, tuple[str, Array]] = {}
    for options in launches:
        for name, value in _name_arguments(options.args):
            arrays.update((id(array), (name, array)) for array in arrays_in(value))
    entries = list(arrays.values())
    pair = find_entangled([array for _, array in entries])
    if pair is not None:
        first, second = (entries[index][0] for index in pair)
        text = f"the arguments {first} and {second} share memory, and one of them is not contiguous"
        help = "pass a copy of one of them, or contiguous arrays, which may overlap"
        raise faults.error(faults.ARGUMENTS, None, text, help=help)
    return find_spans([array for _, array in entries])


def _name_arguments(args: Any) -> list[tuple[str, Any]]:
    """Return arguments with their names or positions. `encode_parameters` rejects `args` of other types."""
    if isinstance(args, Mapping):
        return list(cast("Mapping[str, Any]", args).items())
    values = cast("Sequence[Any]", args) if isinstance(args, Sequence) else ()
    return [(str(index), value) for index, value in enumerate(values)]


def make_labels(labels: Sequence[str | None], programs: Sequence[Program]) -> list[str]:
    """Return the names of launches; add the launch number to a name that several have."""
    names = [
        "" if label is None else label or program.entry.function.name
        for label, program in zip(labels, programs, strict=True)
    ]
    return [f"{name} (launch {number})" if names.count(name) > 1 else name for number, name in enumerate(names, 1)]


def make_prepared(
    artifacts: Artifacts, module: Module, options: Options, buffers: Buffers, label: str, number: int
) -> Prepared:
    """Return a launch that is ready to run."""
    program, sources, tracker = artifacts
    grid, block, cluster = (parse_dim3(getattr(options, name), name) for name in ("grid", "block", "cluster"))
    shape = check_shape(program, grid, block, cluster, check_integer(options.shared, "shared", 0))
    if options.schedule not in SCHEDULES:
        choices = ", ".join(SCHEDULES)
        raise faults.error(faults.LAUNCH_SHAPE, None, f"no schedule {options.schedule!r}; the schedules are {choices}")
    if options.precision not in ("float32", "hardware"):
        text = f"no precision {options.precision!r}; the precisions are float32, hardware"
        raise faults.error(faults.LAUNCH_SHAPE, None, text)
    check_integer(options.seed, "seed", 0)
    check_integer(options.max_steps, "max_steps", 1)
    check_integer(options.batch_lanes, "batch_lanes", 1)
    exact = 0
    if options.precision == "hardware":
        exact = max(find_target(name).arch for name in module.target.targets if name.startswith("sm_"))
    workspace = 0
    if options.cooperative:
        workspace = buffers.space.allocate("grid workspace", np.zeros(256, np.uint8)).low
    launch = Launch(
        program, program.variables.list_shared_names(_check_parts(options.parts)), *shape, options.shared,
        options.max_steps, workspace, options.schedule, options.seed, options.poison, tracker, images=buffers.images,
        label=label, number=number,
    )  # fmt: skip
    bind_variables(module, program.variables, options.images or {}, buffers.images)
    function = program.entry.function
    data, outputs = (
        encode_parameters(function.params, options.args, buffers, function.origin)
        if options.parameters is None
        else (bytearray(options.parameters), {})
    )
    for array in options.fresh:
        buffers.mark_fresh(array)
    params = Region("parameters", "param", PARAM_BASE, len(data), _pad(data), writable=False)
    at_once = _at_once(launch, options, shared_memory=bool(label))
    multicasts = buffers.multicasts if options.multicasts is None else options.multicasts
    reverse_batch = at_once // launch.cluster_size if reverses_ctas(launch.schedule, launch.seed) else 0
    pending_clusters = PendingClusters(launch.cluster, launch.grid, reverse_batch)
    return Prepared(
        launch, buffers.space, params, buffers, outputs, sources, multicasts, pending_clusters, exact, at_once
    )


def _at_once(launch: Launch, options: Options, shared_memory: bool) -> int:
    """Return the number of CTAs per batch: all if they may wait for one another. A grid whose CTAs let the next grid
    start gets larger batches: only its last batch overlaps with that grid."""
    program, size = launch.program, launch.cluster_size
    total, threads = (
        launch.grid[0] * launch.grid[1] * launch.grid[2],
        launch.block[0] * launch.block[1] * launch.block[2],
    )
    if options.cooperative or program.communicates:
        return total
    lanes = options.batch_lanes * (_OVERLAPPED if shared_memory and program.triggers else 1)
    at_once = max(1, lanes // (threads * size)) * size
    if program.cancels:
        # Kernels that cancel clusters are made for grids larger than the machine: three quarters of the clusters wait.
        at_once = min(at_once, -(-total // (_WAITING * size)) * size)
    return min(at_once, total)


_MOST_PREPARED = 16
Artifacts = tuple[Program, Sources, Tracker | None]
_Key = tuple[tuple[tuple[int, str | None], ...], bool, bool, bool]
_PREPARED: dict[_Key, tuple[list[Module], list[Artifacts]]] = {}
"""The most recent programs and the sources of their blocks. The key contains the ids of the modules, which the value
keeps alive so that their ids stay valid."""


def _prepare_programs(
    entries: Sequence[tuple[Module, str | None]], is_checked: bool, single: bool, poison: bool
) -> list[Artifacts]:
    """Return the programs of entries that share one memory, with the sources of their blocks and their register
    trackers. Modules that run repeatedly are prepared once."""
    key = tuple((id(module), entry) for module, entry in entries), is_checked, single, poison
    programs = _PREPARED.pop(key, None)
    if programs is None:
        variables, by_entry = Globals(), dict[tuple[int, str | None], Artifacts]()
        for module, entry in entries:
            if (id(module), entry) not in by_entry:
                by_entry[id(module), entry] = prepare_program(module, entry, variables, is_checked, single, poison)
        programs = [module for module, _ in entries], [by_entry[id(module), entry] for module, entry in entries]
        if len(_PREPARED) >= _MOST_PREPARED:
            del _PREPARED[next(iter(_PREPARED))]
    _PREPARED[key] = programs
    return programs[1]


def prepare_program(
    module: Module, entry: str | None, variables: Globals, is_checked: bool, single: bool, poison: bool,
    compile: Compile = compile_text,
) -> Artifacts:  # fmt: skip
    """Return the program of an entry, with room for the sources of its blocks, and its register tracker."""
    program = prepare(module, entry, single, variables)
    return program, Sources(compile), Tracker.from_program(program) if poison or is_checked else None


def _check_parts(parts: Mapping[str, int] | None) -> dict[str, int]:
    """Return the names and offsets of the parts of dynamic shared memory."""
    if parts is not None and not isinstance(parts, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise faults.error(faults.ARGUMENTS, None, f"parts: expected {{'name': offset}}, found {parts!r}")
    return {
        str(name): check_integer(offset, f"the offset of the part {name!r}", 0)
        for name, offset in (parts or {}).items()
    }


def _pad(data: bytearray) -> Array:
    array = np.zeros(-(-max(1, len(data)) // 16) * 16, np.uint8)
    array[: len(data)] = np.frombuffer(bytes(data), np.uint8)
    return array
