"""`pyptx sass FILE…`: assembles files and prints the machine code."""

from __future__ import annotations

import argparse
import sys

from pyptx.cli import FINDINGS, OK, UNUSABLE
from pyptx.cli.output import complain, place_findings, print_findings, print_foreign
from pyptx.cli.sources import Unreadable, add_files, read
from pyptx.diagnostics import PtxError
from pyptx.toolchain import AssemblyError, sass


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    parser.add_argument(
        "--target", metavar="SM", help="assemble for this target instead of the one in .target (sm_90a, …)"
    )
    parser.add_argument("--lines", action="store_true", help="show the PTX line of each instruction")


def run(args: argparse.Namespace) -> int:
    return max(_disassemble(name, args.target, args.lines) for name in args.files)


def _disassemble(name: str, target: str | None, lines: bool) -> int:
    try:
        source = read(name)
    except Unreadable as error:
        complain(str(error))
        return UNUSABLE
    try:
        print_foreign(sass(source.text, target, lines=lines))
    except AssemblyError as error:
        print_findings(place_findings(error.diagnostics, source), source, sys.stderr)
        return FINDINGS
    except PtxError as error:
        # A tool is missing or failed, or the target does not exist; the file itself may be fine.
        print(error, file=sys.stderr)
        return UNUSABLE
    return OK
