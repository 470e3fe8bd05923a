"""`pyptx transpile FILE`: translates PTX, including PTX in cubins, fatbins and executables, to equivalent Python."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from pyptx.cli import FINDINGS, INTERRUPTED, OK, UNUSABLE
from pyptx.cli.output import complain, place_findings, print_findings
from pyptx.cli.sources import STDIN, Source, Unreadable, read
from pyptx.codegen import ptx_to_python
from pyptx.diagnostics import PtxError, escape_unprintable
from pyptx.toolchain.extraction import extract_ptx, holds_ptx

_EVERY = 0.5
"""Seconds between checks of a watched file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a PTX file, a cubin, fatbin or executable that contains PTX, or - for standard input",
    )
    parser.add_argument(
        "--sugar", action="store_true", help="make the Python readable: names, loops, expressions, arrays"
    )
    parser.add_argument("--name", default="", help="the Python name of the first kernel (default: its own)")
    parser.add_argument("--from", dest="part", metavar="NAME", help="select one of several PTX texts in a binary")
    parser.add_argument("-o", "--output", metavar="OUT", help="the output file (default: standard output)")
    parser.add_argument("--watch", action="store_true", help="rewrite the output whenever the file changes")


def run(args: argparse.Namespace) -> int:
    if not args.watch:
        return _transpile_once(args)
    if args.output is None or args.file == STDIN:
        complain("--watch needs an input file and -o OUT")
        return UNUSABLE
    return _watch(args)


def _watch(args: argparse.Namespace) -> int:
    """Write the output whenever the file changes, until interrupted."""
    last_stamp: tuple[int, int] | None = None
    try:
        while True:
            now = _read_stamp(Path(args.file))
            if now is not None and now != last_stamp:
                status = _transpile_once(args)
                state = "written" if status == OK else "not written"
                print(escape_unprintable(f"{args.output}: {state}"), file=sys.stderr, flush=True)
            last_stamp = now
            time.sleep(_EVERY)
    except KeyboardInterrupt:
        return INTERRUPTED


def _read_stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _transpile_once(args: argparse.Namespace) -> int:
    try:
        source = _read_source(args)
    except Unreadable as error:
        complain(str(error))
        return UNUSABLE
    except PtxError as error:
        complain("; ".join(f"{d.message}{f' ({d.help})' if d.help else ''}" for d in error.diagnostics))
        return UNUSABLE
    try:
        code = ptx_to_python(source.text, sugar=args.sugar, kernel_name=args.name)
    except PtxError as error:
        print_findings(place_findings(error.diagnostics, source), source, sys.stderr)
        return FINDINGS
    if args.output is None:
        sys.stdout.write(code)
        return OK
    try:
        Path(args.output).write_text(code, "utf-8", newline="\n")
    except OSError as error:
        complain(f"{args.output}: {error.strerror or error}")
        return UNUSABLE
    return OK


def _read_source(args: argparse.Namespace) -> Source:
    """Return the PTX of a text file or binary."""
    if args.file != STDIN:
        try:
            data = Path(args.file).read_bytes()
        except OSError:
            return read(args.file)
        if holds_ptx(data):
            return _choose_part(args, extract_ptx(data))
    if args.part is not None:
        raise Unreadable(f"{args.file}: a text file has only one PTX; omit --from {args.part}")
    return read(args.file)


def _choose_part(args: argparse.Namespace, parts: dict[str, str]) -> Source:
    names = [args.part] if args.part is not None else list(parts)
    if len(names) != 1 or names[0] not in parts:
        problem = f"no PTX named {args.part}" if args.part is not None else "several PTX texts"
        raise Unreadable(f"{args.file}: {problem}; select one with --from: {', '.join(parts)}")
    return Source(f"{args.file}:{names[0]}", parts[names[0]])
