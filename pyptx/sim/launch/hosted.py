"""Run kernels in the memory of a host: in place, at real addresses, with the bytes of their parameters.

The host owns an `AddressSpace`; the variables of a loaded module live there until it is unloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyptx.check import checker
from pyptx.check.symbols import Symbol
from pyptx.diagnostics import PtxError
from pyptx.ir import Module, VarDecl
from pyptx.sim.base.formats import Array
from pyptx.sim.execution.codegen import Compile, compile_text
from pyptx.sim.hazards.ranges import AccessedMemory, find_accessed_memory
from pyptx.sim.launch.arguments import Buffers
from pyptx.sim.launch.observing import Observers
from pyptx.sim.launch.prepared import Artifacts, Options, make_labels, make_prepared, prepare_program
from pyptx.sim.launch.progress import attach
from pyptx.sim.launch.run import run_batches
from pyptx.sim.launch.streams import Start, run_grids
from pyptx.sim.launch.verdicts import add_findings, cite_findings, cite_lines, note_seed
from pyptx.sim.observers.checks import Checks
from pyptx.sim.observers.checks.choice import Selection
from pyptx.sim.observers.timeline import Timeline
from pyptx.sim.program.variables import Globals, Variables
from pyptx.sim.reports.findings import Finding
from pyptx.sim.state.address_space import AddressSpace

Allocate = Callable[[int, int], tuple[int, Array]]
"""Returns an address and memory of a size and alignment."""


@dataclass(slots=True)
class HostedGlobals(Globals):
    """Variables in the memory of a host."""

    source: Allocate | None = None

    def allocate(self, size: int, alignment: int) -> tuple[int, Array]:
        """Return zeroed memory of the host."""
        assert self.source is not None
        return self.source(size, alignment)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a launch left besides the contents of memory: its counts, printed text, findings, and the error that ended
    it."""

    instructions: int
    printed: str
    findings: list[Finding]
    error: PtxError | None
    timeline: Timeline | None
    checks: Checks | None

    def find_accessed_memory(self, observer: Outcome | None = None) -> AccessedMemory:
        """Return the global memory that the launch accessed, without what the threads of an `observer` that ran with it
        knew when they exited; nothing if it was not checked."""
        if self.checks is None or self.checks.grid is None:
            return AccessedMemory()
        known = None
        if observer is not None and observer.checks is not None and observer.checks.grid is not None:
            known = observer.checks.engine.sync.find_left(observer.checks.grid)
        return find_accessed_memory(self.checks.engine.state, self.checks.grid, known)


@dataclass(slots=True)
class LoadedModule:
    """A module whose variables are in the memory of a host."""

    module: Module
    space: AddressSpace
    variables: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """The addresses and sizes of the variables that the host may ask for."""
    _globals: Globals = field(default_factory=Globals)
    _compile: Compile = compile_text
    _registered: int = 0
    _programs: dict[tuple[str, bool, bool], Artifacts] = field(default_factory=dict[tuple[str, bool, bool], Artifacts])

    @classmethod
    def load(
        cls, module: Module, space: AddressSpace, allocate: Allocate, compile: Compile = compile_text
    ) -> LoadedModule:
        """Place and initialize the variables of a module. `compile` compiles the text of blocks. Raise PtxError if an
        initializer has no value."""
        loaded = cls(module, space, _globals=HostedGlobals(source=allocate), _compile=compile)
        bodies, names, _ = checker.collect_bodies(module)
        numbers = {body.function.name: number for number, body in enumerate(bodies)}
        variables = Variables(module, names, lambda name: numbers.get(name, -1), 0, loaded._globals)
        for statement in module.directives:
            if isinstance(statement, VarDecl) and statement.state_space.ptx in (".global", ".const"):
                for item in statement.declarators:
                    symbol = names.find(item.name)
                    if isinstance(symbol, Symbol) and symbol.declaration is statement:
                        variables.find_address(item.name, symbol)
        loaded._register()
        return loaded

    def unload(self) -> None:
        """Free the variables."""
        for allocation in self._globals.allocations:
            self.space.free(allocation.address)

    def prepare(self, entry: str, *, is_checked: bool, poison: bool) -> Artifacts:
        """Return the program of an entry; prepare it at the first launch."""
        key = entry, is_checked, poison
        artifacts = self._programs.get(key)
        if artifacts is None:
            artifacts = self._programs[key] = prepare_program(
                self.module, entry, self._globals, is_checked, False, poison, self._compile
            )
            self._register()
        return artifacts

    def _register(self) -> None:
        """Register the variables that were placed since the last time."""
        for item in self._globals.allocations[self._registered :]:
            self.space.register(item.name, item.address, item.data, space=item.space, writable=item.writable)
            self.variables.setdefault(item.name, (item.address, item.size))
        self._registered = len(self._globals.allocations)


@dataclass(frozen=True, slots=True)
class Member:
    """A launch among others that run together, and when it may start."""

    loaded: LoadedModule
    entry: str
    options: Options
    start: Start


def run_together(members: Sequence[Member], selection: Selection | None) -> list[Outcome]:
    """Run launches of one host in turns. Raise PtxError for a launch that cannot start; a fault ends all of them, and
    is part of the outcome of the launch that ran last."""
    is_checked = selection is not None
    artifacts = [item.loaded.prepare(item.entry, is_checked=is_checked, poison=item.options.poison) for item in members]
    buffers = Buffers(members[0].loaded.space)
    labels = make_labels([""] * len(members), [program for program, _, _ in artifacts])
    launches = [
        make_prepared(artifacts[index], item.loaded.module, item.options, buffers, labels[index], index)
        for index, item in enumerate(members)
    ]
    options = members[0].options
    try:
        checks, error, last = run_grids(
            launches, [item.start for item in members], selection, options.schedule, options.seed
        )
    finally:
        for launch in launches:
            if launch.launch.workspace:
                buffers.space.free(launch.launch.workspace)
    modules = list({id(item.loaded.module): item.loaded.module for item in members}.values())
    findings = [] if selection is None or checks[-1] is None else cite_findings(modules, selection, checks[-1])
    outcomes: list[Outcome] = []
    for index, launch in enumerate(launches):
        own = [item for item in findings if find_owner(item, labels) == index]
        stop, counts = error if index == last else None, launch.stats.lane_instructions
        outcomes.append(Outcome(counts, str(launch.printed), own, stop, None, checks[index]))
    return outcomes


def find_owner(finding: Finding, labels: Sequence[str]) -> int:
    """Return which of the grids with these labels a finding is about; the first if that is not known."""
    grid = finding.agent.grid if finding.agent else ""
    return labels.index(grid) if grid in labels else 0


def run_in_place(
    loaded: LoadedModule, entry: str, options: Options, selection: Selection | None, *, timeline: bool = False
) -> Outcome:
    """Run an entry on the host's memory. Raise PtxError for a launch that cannot start; a fault that ends the run is
    part of the outcome, because memory has changed by then."""
    artifacts = loaded.prepare(entry, is_checked=selection is not None, poison=options.poison)
    buffers = Buffers(loaded.space)
    launch = make_prepared(artifacts, loaded.module, options, buffers, "", 0)
    observers = Observers.create(launch.launch, selection, options.schedule, timeline, False, ())
    checks, error = observers.checks, None
    try:
        with attach([launch.printed]):
            run_batches(launch, observers)
    except PtxError as why:
        error = note_seed(cite_lines(loaded.module, add_findings(why, checks)), options.schedule, options.seed)
    finally:
        if launch.launch.workspace:
            loaded.space.free(launch.launch.workspace)
    findings = [] if selection is None or checks is None else cite_findings([loaded.module], selection, checks)
    drawing: Any = observers.draw(launch.stats, findings)
    printed = str(launch.printed)
    return Outcome(launch.stats.lane_instructions, printed, findings, error, drawing if timeline else None, checks)
