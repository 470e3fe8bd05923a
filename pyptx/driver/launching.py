"""Run a kernel of the program, report what is wrong with it, and fail as the GPU would."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from pyptx.diagnostics import Diagnostic, PtxError, Severity
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.dumping import Files, name_files
from pyptx.driver.findings import report
from pyptx.driver.modules import Kernel
from pyptx.driver.process import Context, Driver
from pyptx.driver.reports import Record
from pyptx.sim.launch.hosted import Outcome, run_in_place
from pyptx.sim.launch.prepared import Options
from pyptx.sim.observers.checks import parse_choice
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
    place: str = ""

    def __str__(self) -> str:
        place = f" at {self.place}" if self.place else ""
        cluster = f", clusters of {self.cluster}" if self.cluster != (1, 1, 1) else ""
        return f"`{self.kernel.name}`, grid {self.grid}, block {self.block}{cluster}{place}"


def launch(driver: Driver, context: Context, request: Request) -> Outcome:
    """Run a launch and return what it left. DriverError if it faults; the context keeps the code of a fault."""
    settings, start = driver.settings, time.perf_counter()
    selection = parse_choice(settings.check, "report")
    options = Options(
        grid=request.grid, block=request.block, cluster=request.cluster, shared=request.shared,
        schedule=settings.schedule, seed=settings.seed, cooperative=request.cooperative,
        parameters=request.parameters,
    )  # fmt: skip
    files = name_files(Path(settings.dump), request.kernel) if settings.dump else None
    try:
        outcome = run_in_place(
            request.kernel.module.loaded, request.kernel.name, options, selection,
            timeline=files is not None and files.is_new,
        )  # fmt: skip
    except PtxError as why:
        _report(driver, request, list(why.diagnostics), why.source, 0, time.perf_counter() - start, files)
        raise DriverError(_CODE_OF.get(why.diagnostics[0].code, Code.ERROR_LAUNCH_FAILED)) from None
    driver.instructions += outcome.instructions
    if selection is None:
        driver.heap.forget_fresh()
    diagnostics = _list_diagnostics(outcome)
    source = outcome.error.source if outcome.error else next((f.source for f in outcome.findings), None)
    if files is not None:
        files.write(request.kernel, outcome.timeline)
    _report(driver, request, diagnostics, source, outcome.instructions, time.perf_counter() - start, files)
    code = _choose_code(outcome, stops=settings.stop)
    if code is not None:
        context.error = code
        raise DriverError(code)
    return outcome


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


def _report(
    driver: Driver, request: Request, diagnostics: list[Diagnostic], source: str | None, instructions: int,
    seconds: float, files: Files | None,
) -> None:  # fmt: skip
    """Print what is new, and record the launch."""
    lines = read_source_lines(request.kernel.module.loaded.module) if diagnostics else None
    record: Record = {
        "kernel": request.kernel.name, "grid": request.grid, "block": request.block, "cluster": request.cluster,
        "shared": request.shared, "place": request.place, "instructions": instructions, "seconds": seconds,
        "diagnostics": [{**item.as_json(), "source": lines.find(item.origin) if lines else ""} for item in diagnostics],
        "ptx": str(files.ptx) if files else "", "timeline": str(files.timeline) if files else "",
    }  # fmt: skip
    report(driver, f"launch of {request}", record, diagnostics, source)
