"""`pyptx fmt FILE…`: prints, compares or rewrites PTX in canonical form. Keeps comments; never changes tokens."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

from pyptx.cli import FINDINGS, OK, UNUSABLE
from pyptx.cli.output import complain, place_findings, print_findings, print_foreign, replace_file
from pyptx.cli.sources import STDIN, Source, Unreadable, add_files, read
from pyptx.diagnostics import escape_unprintable
from pyptx.emitter import STYLES, formatted
from pyptx.parser import parse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    parser.add_argument("--style", choices=list(STYLES), default="default", help="spacing style (default: %(default)s)")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--check", action="store_true", help="print the names of files that would change; exit 1 if any would"
    )
    modes.add_argument("--diff", action="store_true", help="print the changes; exit 1 if there are any")
    modes.add_argument("--write", action="store_true", help="rewrite the files in place")


def run(args: argparse.Namespace) -> int:
    if args.write and STDIN in args.files:
        complain("--write needs files, not standard input")
        return UNUSABLE
    return max(_format_file(name, args) for name in args.files)


def _format_file(name: str, args: argparse.Namespace) -> int:
    try:
        source = read(name)
    except Unreadable as error:
        complain(str(error))
        return UNUSABLE
    module, syntax = parse(source.text, recover=True)
    if syntax:
        # A file with syntax errors stays unchanged.
        print_findings(place_findings(syntax, source), source, sys.stderr)
        return FINDINGS
    text = formatted(module, style=STYLES[args.style])
    if parse(text) != module:
        raise AssertionError(f"{name}: formatting would change the meaning of the file; please report this")
    differs = text != source.text
    if args.write:
        if differs:
            replace_file(Path(name), text)
            print(escape_unprintable(f"formatted {name}"))
        return OK
    if args.check or args.diff:
        if differs:
            print_foreign("".join(_compute_diff(source, text)) if args.diff else f"{source.name}\n")
        return FINDINGS if differs else OK
    print_foreign(text)
    return OK


def _compute_diff(source: Source, text: str) -> Iterator[str]:
    old, new = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    for line in difflib.unified_diff(old, new, source.name, f"{source.name} (formatted)"):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
