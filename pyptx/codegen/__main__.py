"""`python -m pyptx.codegen FILE`: the same as `pyptx transpile`, with the arguments that existing programs use."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pyptx.codegen import ptx_to_python
from pyptx.diagnostics import PtxError, Span, render

FINE, WRONG, USAGE = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Write the Python of a PTX file; return 1 if the text is not PTX, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m pyptx.codegen", description="Turn PTX into an equivalent Python program."
    )
    parser.add_argument("file", metavar="FILE", help="a PTX file, or - for standard input")
    parser.add_argument("--sugar", action="store_true", help="write readable code")
    parser.add_argument("--name", default="", help="Python name of the first kernel, instead of its own")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to a file instead of standard output")
    args = parser.parse_args(argv)
    try:
        data = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
        source = data.decode("utf-8")
    except OSError as error:
        sys.stderr.write(f"{args.file}: {error.strerror or error}\n")
        return USAGE
    except UnicodeDecodeError as error:
        sys.stderr.write(f"{args.file}: byte {error.start} is not UTF-8 text\n")
        return WRONG
    try:
        text = ptx_to_python(source, sugar=args.sugar, kernel_name=args.name)
    except PtxError as error:
        file_name = "<stdin>" if args.file == "-" else args.file
        diagnostics = [
            d.move_to(d.origin._replace(file=file_name)) if isinstance(d.origin, Span) else d for d in error.diagnostics
        ]
        sys.stderr.write(f"{render(diagnostics, source)}\n")
        return WRONG
    try:
        if args.output is None:
            sys.stdout.write(text)
        else:
            Path(args.output).write_text(text, "utf-8", newline="\n")
    except OSError as error:
        sys.stderr.write(f"{args.output}: {error.strerror or error}\n")
        return USAGE
    return FINE


if __name__ == "__main__":
    sys.exit(main())
