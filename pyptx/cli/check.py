"""`pyptx check FILE…`: every finding with its place, the source line and the remedy."""

from __future__ import annotations

import argparse

from pyptx.check import check
from pyptx.cli import FINDINGS, OK, UNUSABLE
from pyptx.cli.output import complain, count_findings, has_errors, place_findings, print_findings, print_json
from pyptx.cli.sources import Source, Unreadable, add_files, read
from pyptx.diagnostics import Diagnostic
from pyptx.isa.targets import find_target
from pyptx.parser import parse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    parser.add_argument(
        "--target", metavar="SM", help="check for this target instead of the one in .target (sm_90a, …)"
    )
    parser.add_argument("--strict", action="store_true", help="also exit 1 on warnings")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    if args.target is not None:
        try:
            find_target(args.target)
        except ValueError as error:
            complain(f"--target: {error}")
            return UNUSABLE
    status, reports = OK, list[dict[str, object]]()
    every: list[Diagnostic] = []
    for name in args.files:
        try:
            source = read(name)
        except Unreadable as error:
            complain(str(error))
            status = UNUSABLE
            continue
        diagnostics = find_diagnostics(source, args.target)
        every += diagnostics
        reports.append({"file": source.name, "diagnostics": [d.as_json() for d in diagnostics]})
        if not args.json:
            print_findings(diagnostics, source)
    if args.json:
        print_json(reports)
    elif every or len(args.files) > 1:
        print(f"{count_findings(every)} in {len(reports)} file{'' if len(reports) == 1 else 's'}")
    has_findings = bool(every) if args.strict else has_errors(every)
    return status or (FINDINGS if has_findings else OK)


def find_diagnostics(source: Source, target_name: str | None = None) -> list[Diagnostic]:
    """Return the syntax errors of a file, or if there are none, the findings of the checker."""
    module, syntax = parse(source.text, recover=True)
    return place_findings(syntax or check(module, target_name), source)
