"""`pyptx simulate SCRIPT.py`: runs a program that launches CUDA kernels on the simulated driver."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from pyptx.cache import Untrusted
from pyptx.cli import FINDINGS, OK, UNUSABLE
from pyptx.cli.output import complain, replace_file
from pyptx.diagnostics import PtxError, Severity, format_count
from pyptx.driver.devices import DEVICES
from pyptx.driver.folders import open_folder
from pyptx.driver.launcher import run_program
from pyptx.driver.reports import SUFFIXES, Baseline, Record, format_report, list_new, read_records
from pyptx.driver.settings import ORDERS, Settings
from pyptx.driver.sources import NoCompiler
from pyptx.sim.scheduling.schedules import SCHEDULES

_RECORDS = "pyptx-simulate-"
_SHELL_SIGNAL = 128
"""Shells report a program that a signal ended with this number more."""


NOTICE = (
    "For developing kernels that will run on NVIDIA GPUs; not a runtime for other hardware. Mind the licenses of the "
    "tools whose output you run."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = NOTICE
    parser.add_argument(
        "--device", default="h100", choices=DEVICES, metavar="GPU", help=f"what to pretend: {', '.join(DEVICES)}"
    )
    parser.add_argument("--devices", type=int, default=1, metavar="N", help="how many of them (default: 1)")
    parser.add_argument("--check", default="all", help="classes of hazards to check, as for `pyptx sim` (default: all)")
    parser.add_argument(
        "--schedule", default="eager", choices=SCHEDULES, metavar="NAME", help=f"one of {', '.join(SCHEDULES)}"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the schedule (default: 0)")
    parser.add_argument(
        "--order", default="sync", choices=ORDERS, help="when work of streams runs: at once, or as late as it may"
    )
    parser.add_argument("--stop", action="store_true", help="make a launch with an error fail, like a fault")
    parser.add_argument(
        "--from-images", action="store_true", help="simulate the PTX that compilers stored in cubins and fatbins"
    )
    parser.add_argument(
        "--no-line-info", action="store_true", help="with --from-images, do not add -lineinfo for NVRTC and nvJitLink"
    )
    parser.add_argument(
        "--no-audit",
        action="store_true",
        help="do not audit the dynamic linker: programs find the driver by its folder",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="do not keep code that is compiled for kernels in the user's cache"
    )
    parser.add_argument(
        "--report", metavar="FILE", help="write every launch and what was found: .json, .sarif or .html"
    )
    parser.add_argument(
        "--dump", metavar="FOLDER", help="write the PTX of every kernel, and a timeline of its first launch"
    )
    parser.add_argument("--leaks", action="store_true", help="report memory that is never freed")
    parser.add_argument(
        "--watch-host",
        action="store_true",
        help="report the program's own accesses to managed and page-locked memory that the device may be using",
    )
    parser.add_argument("--baseline", metavar="FILE", help="a report whose findings are known; only new ones count")
    parser.add_argument("program", metavar="PROGRAM", help="a Python file, or after `--` any program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments").required = False


def run(args: argparse.Namespace) -> int:
    words = [args.program, *args.arguments]
    report = Path(args.report) if args.report else None
    if report is not None and report.suffix not in SUFFIXES:
        complain(f"--report {args.report}: the name must end in {', '.join(SUFFIXES)}")
        return UNUSABLE
    if report is not None and not report.parent.is_dir():
        complain(f"--report {args.report}: there is no directory {report.parent}")
        return UNUSABLE
    try:
        baseline = Baseline.read(Path(args.baseline)) if args.baseline else None
    except (ValueError, OSError) as why:
        complain(f"--baseline {args.baseline}: {why.strerror if isinstance(why, OSError) else why}")
        return UNUSABLE
    with open_folder(_RECORDS, Path(tempfile.gettempdir())) as folder:
        try:
            if args.check != "all":
                # Loads the simulator, which takes longer than all else here.
                import_module("pyptx.sim.observers.checks").parse_choice(args.check, "report")
            settings = Settings(
                args.device, args.devices, args.check, args.schedule, args.seed, args.order, stop=args.stop,
                from_images=args.from_images, line_info=not args.no_line_info, audit=not args.no_audit,
                cache=not args.no_cache, records=str(folder), leaks=args.leaks, watch_host=args.watch_host,
                dump=str(make_folder(Path(args.dump))) if args.dump else "",
                baseline=str(Path(args.baseline).resolve()) if args.baseline else "",
            )  # fmt: skip
            status = run_program(words, settings)
        except PtxError as why:
            complain(why.diagnostics[0].message)
            return UNUSABLE
        except (NoCompiler, Untrusted, ValueError, OSError) as why:
            complain(explain_start(args.program, why) if isinstance(why, OSError) and why.strerror else str(why))
            return UNUSABLE
        launches, cut = read_records(folder)
    if cut:
        complain(
            f"{format_count('process', cut, plural='processes')} ended while recording a launch, which is left out"
        )
    for launch in launches:
        for key in ("ptx", "timeline"):
            launch[key] = os.path.relpath(launch[key], report.parent if report else ".") if launch.get(key) else ""
    if report is not None:
        replace_file(report, format_report(report.suffix, args.device, launches, baseline))
    new = list_new(launches, baseline)
    print(f"pyptx: {summarize(launches, new)}", file=sys.stderr)
    if status:
        return status if status > 0 else _SHELL_SIGNAL - status
    return FINDINGS if any(item["severity"] == str(Severity.ERROR) for item in new) else OK


def explain_start(program: str, why: OSError) -> str:
    """Return why a program did not start."""
    if program.endswith(".ptx") and Path(program).is_file():
        return f"{program}: PTX is not a program; to simulate its kernel: `pyptx sim {program}`"
    if not isinstance(why, FileNotFoundError) or why.filename != program or not Path(program).is_file():
        return f"{why.filename or program}: {why.strerror}"
    if os.sep in program:
        return f"{program}: the interpreter that it names does not exist"
    return f"{program}: not found in PATH; to run the file in this directory: `-- ./{program}` or `-- python {program}`"


def make_folder(folder: Path) -> Path:
    """Create a folder, and return its absolute path."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def summarize(launches: Sequence[Record], new: Sequence[Record]) -> str:
    """Return how many kernels ran, and how many different findings are new."""
    if not launches:
        return "no kernel was launched, so nothing was checked"
    real = [launch for launch in launches if launch["grid"]]
    kernels = {launch["kernel"] for launch in real}
    counts = Counter(item["severity"] for item in new)
    text = f"{format_count('launch', len(real), plural='launches')} of {format_count('kernel', len(kernels))}"
    if cut := sum(launch.get("is_cut", False) for launch in real):
        text += f", {cut} of which did not end"
    parts = [format_count(str(severity), counts[str(severity)]) for severity in Severity if counts[str(severity)]]
    codes = sorted({item["code"] for item in new})
    known = any(launch["diagnostics"] for launch in launches) and not new
    return f"{text}: {', '.join(parts)} ({', '.join(codes)})" if parts else f"{text}: no{' new' * known} findings"
