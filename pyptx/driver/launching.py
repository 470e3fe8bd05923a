"""Run a kernel of the program, report what is wrong with it, and fail as the GPU would."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyptx.diagnostics import Diagnostic, PtxError, Severity
from pyptx.driver import host_memory
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.demangling import list_names
from pyptx.driver.dumping import Files, name_files
from pyptx.driver.findings import begin, report
from pyptx.driver.modules import Kernel
from pyptx.driver.multicasts import list_multicasts
from pyptx.driver.process import Context, Driver
from pyptx.driver.progress import announce
from pyptx.driver.reports import Record
from pyptx.sim.launch.hosted import Member, Outcome, run_in_place, run_together
from pyptx.sim.launch.prepared import Artifacts, Options
from pyptx.sim.launch.streams import Start
from pyptx.sim.observers.checks import parse_choice
from pyptx.sim.program.shapes import check_shape
from pyptx.sim.reports.findings import group_by_cause
from pyptx.sim.reports.graph import Hang
from pyptx.sim.reports.source_lines import read_source_lines
from pyptx.sim.rules import faults

Dim3 = tuple[int, int, int]
_CODES = {
    faults.OUT_OF_BOUNDS: Code.ERROR_ILLEGAL_ADDRESS, faults.READ_ONLY: Code.ERROR_ILLEGAL_ADDRESS,
    faults.MISALIGNED: Code.ERROR_MISALIGNED_ADDRESS, faults.WRONG_SPACE: Code.ERROR_INVALID_ADDRESS_SPACE,
    faults.STEP_LIMIT: Code.ERROR_LAUNCH_TIMEOUT, faults.UNSUPPORTED: Code.ERROR_NOT_SUPPORTED,
    faults.BAD_CALL: Code.ERROR_INVALID_PC, faults.BAD_BRANCH: Code.ERROR_INVALID_PC,
    faults.LAUNCH_SHAPE: Code.ERROR_INVALID_VALUE, faults.ARGUMENTS: Code.ERROR_INVALID_VALUE,
    faults.OUT_OF_MEMORY: Code.ERROR_LAUNCH_OUT_OF_RESOURCES, faults.LINKING: Code.ERROR_INVALID_PTX,
    faults.UNDEFINED_EXTERN: Code.ERROR_INVALID_PTX, faults.ILLEGAL: Code.ERROR_INVALID_PTX,
    faults.ASSERTION: Code.ERROR_ASSERT,
}  # fmt: skip
_CODE_OF = {rule.code: code for rule, code in _CODES.items()}


@dataclass(frozen=True, slots=True)
class Request:
    """A launch as the program asked for it, and where."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    shared: int
    parameters: bytes
    cluster: Dim3 = (1, 1, 1)
    cooperative: bool = False
    stack: tuple[str, ...] = ()
    """The lines of the program that led to the launch, the last call first."""

    @property
    def place(self) -> str:
        """The line of the launch; empty if it is unknown."""
        return self.stack[0] if self.stack else ""

    def __str__(self) -> str:
        place = f" at {', by '.join(self.stack)}" if self.stack else ""
        cluster = f", clusters of {self.cluster}" if self.cluster != (1, 1, 1) else ""
        return f"`{self.kernel.name}`, grid {self.grid}, block {self.block}{cluster}{place}"


def check_request(driver: Driver, request: Request) -> None:
    """Check the dimensions against the kernel. DriverError for a launch that cannot start, which is reported."""
    program, _, _ = _prepare(driver, request)
    try:
        check_shape(program, request.grid, request.block, request.cluster, request.shared)
    except PtxError as why:
        raise _refuse(driver, request, why) from None


def launch(driver: Driver, context: Context, request: Request) -> Outcome:
    """Run a launch and return what it left. DriverError if it faults; the context keeps the code of a fault."""
    host_memory.flush_output()
    start, module = time.perf_counter(), request.kernel.module.loaded
    files = name_files(Path(driver.settings.dump), request.kernel) if driver.settings.dump else None
    selection, options = parse_choice(driver.settings.check, "report"), _make_options(driver, context, request)
    needs_timeline = files is not None and files.is_new
    begin(driver, [_describe(request)])
    try:
        with announce(_name_briefly(request)):
            outcome = run_in_place(module, request.kernel.name, options, selection, timeline=needs_timeline)
    except PtxError as why:
        raise _refuse(driver, request, why) from None
    code = _conclude(driver, context, request, outcome, time.perf_counter() - start, files)
    if code is not None:
        raise DriverError(code)
    return outcome


def launch_together(
    driver: Driver, launches: Sequence[tuple[Context, Request]], starts: Sequence[Start]
) -> list[Outcome]:
    """Run launches in turns and return what each left. DriverError if one faults."""
    host_memory.flush_output()
    start = time.perf_counter()
    selection = parse_choice(driver.settings.check, "report")
    members = [
        Member(request.kernel.module.loaded, request.kernel.name, _make_options(driver, context, request), rule)
        for (context, request), rule in zip(launches, starts, strict=True)
    ]
    begin(driver, [_describe(request) for _, request in launches])
    try:
        with announce(" and ".join(_name_briefly(request) for _, request in launches)):
            outcomes = run_together(members, selection)
    except PtxError as why:
        raise _refuse(driver, launches[0][1], why) from None
    seconds = (time.perf_counter() - start) / len(launches)
    codes = [
        _conclude(driver, context, request, outcome, seconds, None)
        for (context, request), outcome in zip(launches, outcomes, strict=True)
    ]
    for code in filter(None, codes):
        raise DriverError(code)
    return outcomes


def communicates(driver: Driver, request: Request) -> bool:
    """Return whether a kernel polls global memory, which another kernel may have to write first."""
    program, _, _ = _prepare(driver, request)
    return program.communicates


def _prepare(driver: Driver, request: Request) -> Artifacts:
    is_checked = driver.settings.check != "none"
    return request.kernel.module.loaded.prepare(request.kernel.name, is_checked=is_checked, poison=False)


def _make_options(driver: Driver, context: Context, request: Request) -> Options:
    return Options(
        grid=request.grid, block=request.block, cluster=request.cluster, shared=request.shared,
        schedule=driver.settings.schedule, seed=driver.settings.seed, cooperative=request.cooperative,
        parameters=request.parameters, multicasts=list_multicasts(driver, context.device),
    )  # fmt: skip


def _refuse(driver: Driver, request: Request, why: PtxError) -> DriverError:
    """Report a launch that cannot start, and return the error to raise."""
    _report(driver, request, list(why.diagnostics), why.source, 0, 0.0, None)
    return DriverError(_CODE_OF.get(why.diagnostics[0].code, Code.ERROR_LAUNCH_FAILED))


def _conclude(
    driver: Driver, context: Context, request: Request, outcome: Outcome, seconds: float, files: Files | None
) -> Code | None:
    """Report what a launch left. Return the code with which it fails, which the context keeps, None if it does not."""
    driver.instructions += outcome.instructions
    if request.kernel.module.code is not None:
        request.kernel.module.code.save()
    if files is not None:
        files.write(request.kernel, outcome.timeline)
    source = outcome.error.source if outcome.error else next((f.source for f in outcome.findings), None)
    _report(driver, request, _list_diagnostics(outcome), source, outcome.instructions, seconds, files)
    context.error = _choose_code(outcome, stops=driver.settings.stop)
    return context.error


def _list_diagnostics(outcome: Outcome) -> list[Diagnostic]:
    """Return what is wrong with a launch, each cause once: first the error that ended it."""
    diagnostics = list(outcome.error.diagnostics) if outcome.error is not None else []
    diagnostics += [finding.diagnostic() for finding in group_by_cause(outcome.findings)]
    return list({(item.code, item.origin, item.message): item for item in diagnostics}.values())


def _choose_code(outcome: Outcome, *, stops: bool) -> Code | None:
    """Return the code with which a launch fails, None for one that does not."""
    if isinstance(outcome.error, Hang):
        return Code.ERROR_LAUNCH_TIMEOUT
    if outcome.error is not None:
        return next(
            (_CODE_OF[item.code] for item in outcome.error.diagnostics if item.code in _CODE_OF),
            Code.ERROR_LAUNCH_FAILED,
        )
    if stops and any(finding.severity is Severity.ERROR for finding in outcome.findings):
        return Code.ERROR_LAUNCH_FAILED
    return None


def _name_briefly(request: Request) -> str:
    """Return a launch and its line."""
    return str(replace(request, stack=request.stack[:1]))


def _describe(request: Request) -> Record:
    """Return what is known of a launch before it runs."""
    return {
        "kernel": request.kernel.name, "names": list_names([str(request)]), "compiler": request.kernel.module.compiler,
        "grid": request.grid, "block": request.block, "cluster": request.cluster, "shared": request.shared,
        "place": request.place, "stack": request.stack, "instructions": 0, "seconds": 0.0, "diagnostics": [], "ptx": "",
        "timeline": "",
    }  # fmt: skip


def _report(
    driver: Driver, request: Request, diagnostics: list[Diagnostic], source: str | None, instructions: int,
    seconds: float, files: Files | None,
) -> None:  # fmt: skip
    """Print what is new, and record the launch."""
    lines = read_source_lines(request.kernel.module.loaded.module) if diagnostics else None
    record = _describe(request) | {
        "instructions": instructions, "seconds": seconds,
        "diagnostics": [{**item.as_json(), "source": lines.find(item.origin) if lines else ""} for item in diagnostics],
        "ptx": str(files.ptx) if files else "", "timeline": str(files.timeline) if files else "",
    }  # fmt: skip
    report(driver, f"launch of {request}", record, diagnostics, source)
