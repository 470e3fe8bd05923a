"""`pyptx simulate SCRIPT.py`: runs a program that launches CUDA kernels on the simulated driver."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from pyptx.cli import FINDINGS, OK, UNUSABLE
from pyptx.cli.output import complain
from pyptx.diagnostics import PtxError, Severity, format_count
from pyptx.driver.build import NoCompiler
from pyptx.driver.devices import DEVICES
from pyptx.driver.launcher import run_program
from pyptx.driver.library import Untrusted
from pyptx.driver.settings import Settings
from pyptx.sim.observers.checks import parse_choice
from pyptx.sim.scheduling.orders import SCHEDULES

_SHELL_SIGNAL = 128
"""Shells report a program that a signal ended with this number more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", default="h100", choices=DEVICES, metavar="GPU", help=f"what to pretend: {', '.join(DEVICES)}"
    )
    parser.add_argument("--devices", type=int, default=1, metavar="N", help="how many of them (default: 1)")
    parser.add_argument("--check", default="all", help="classes of hazards to check, as for `pyptx sim` (default: all)")
    parser.add_argument(
        "--schedule", default="eager", choices=SCHEDULES, metavar="NAME", help=f"one of {', '.join(SCHEDULES)}"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the schedule (default: 0)")
    parser.add_argument("--stop", action="store_true", help="make a launch with an error fail, like a fault")
    parser.add_argument(
        "--from-images", action="store_true", help="simulate the PTX that compilers stored in cubins and fatbins"
    )
    parser.add_argument("--report", metavar="FILE.json", help="write every launch and what was found")
    parser.add_argument("program", metavar="PROGRAM", help="a Python file, or after `--` any program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")


def run(args: argparse.Namespace) -> int:
    words = [args.program, *args.arguments]
    with tempfile.TemporaryDirectory(prefix="pyptx-") as folder:
        try:
            parse_choice(args.check, "report")
            settings = Settings(
                args.device, args.devices, args.check, args.schedule, args.seed, stop=args.stop,
                from_images=args.from_images, records=folder,
            )  # fmt: skip
            status = run_program(words, settings)
        except PtxError as why:
            complain(why.diagnostics[0].message)
            return UNUSABLE
        except (NoCompiler, Untrusted, ValueError, OSError) as why:
            complain(f"{args.program}: {why.strerror}" if isinstance(why, OSError) and why.strerror else str(why))
            return UNUSABLE
        launches = read_records(Path(folder))
    if args.report:
        Path(args.report).write_text(
            json.dumps({"device": args.device, "launches": launches}, indent=2) + "\n", "utf-8"
        )
    print(f"pyptx: {summarize(launches)}", file=sys.stderr)
    if status:
        return status if status > 0 else _SHELL_SIGNAL - status
    return FINDINGS if any(_is_error(item) for launch in launches for item in launch["diagnostics"]) else OK


def read_records(folder: Path) -> list[dict[str, Any]]:
    """Return the launches that the program's processes recorded."""
    return [
        json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()
    ]


def summarize(launches: list[dict[str, Any]]) -> str:
    """Return how many kernels ran, and what was found in which."""
    kernels = Counter(launch["kernel"] for launch in launches)
    counts = Counter(item["severity"] for launch in launches for item in launch["diagnostics"])
    text = f"{format_count('launch', len(launches), plural='launches')} of {format_count('kernel', len(kernels))}"
    found = [format_count(str(severity), counts[str(severity)]) for severity in Severity if counts[str(severity)]]
    codes = sorted({item["code"] for launch in launches for item in launch["diagnostics"]})
    return f"{text}: {', '.join(found)} ({', '.join(codes)})" if found else f"{text}: no findings"


def _is_error(item: dict[str, Any]) -> bool:
    return item["severity"] == str(Severity.ERROR)
