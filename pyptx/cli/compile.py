"""`pyptx compile FILE.py:NAME`: writes a kernel's machine code, with a launcher in C, for use without Python."""

from __future__ import annotations

import argparse
import ast
import os
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pyptx
from pyptx.cache import SWITCH, explain_problem
from pyptx.cli import FINDINGS, OK, UNUSABLE
from pyptx.cli.output import complain
from pyptx.cli.sim_arguments import Unusable
from pyptx.cli.sim_kernels import load_kernel
from pyptx.cli.sources import Unreadable
from pyptx.diagnostics import PtxError, PythonFrame, escape_unprintable
from pyptx.dsl import rules
from pyptx.runtime.rules import GRID
from pyptx.toolchain import ToolFailed, ToolMissing

_FAILURES = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip
"""What the user's code may raise while it is traced; exceptions of its own classes keep their traceback."""
_GRID = "expected one to three positive integers, such as 8,4,1"
_PACKAGE, _LIBRARY = (path + os.sep for path in (pyptx.__path__[0], sysconfig.get_path("stdlib")))
_OF_THE_COMMAND_LINE = frozenset((rules.SPECIALISATION.code, rules.DECLARATION.code, rules.ARGUMENT.code))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", metavar="FILE.py:NAME", help="a kernel, or a function that returns one")
    parser.add_argument(
        "values", nargs="*", default=[], metavar="VARIABLE=VALUE",
        help="shape variables, template parameters, and parameters of the function that returns the kernel: m=4096",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", default=".", help="the directory to write (default: this one)")
    parser.add_argument("--arch", metavar="SM", help="trace the kernel for this target instead of its own")
    parser.add_argument(
        "--target",
        metavar="SM",
        action="append",
        help="assemble for this target, may be repeated (default: the kernel's)",
    )
    parser.add_argument("--grid", metavar="X,Y,Z", help="the grid, for kernels without one")
    report = parser.error
    # What starts with a minus sign is read as an option.
    parser.error = lambda message: report(message.replace("--grid: expected one argument", f"--grid: {_GRID}"))


def run(args: argparse.Namespace) -> int:
    try:
        grid = _parse_grid(args.grid)
        if Path(args.out).exists() and not Path(args.out).is_dir():
            raise Unusable(f"--out {args.out}: expected a directory, found a file")
        kernel, values = load_kernel(args.kernel, _parse_values(args.values))
        if kernel is None:
            raise Unusable(f"expected FILE.py:NAME, found {args.kernel}")
    except (Unreadable, Unusable) as error:
        complain(str(error))
        return UNUSABLE
    except PtxError as error:
        print(error, file=sys.stderr)
        return FINDINGS
    try:
        kernel = kernel.for_arch(args.arch) if args.arch else kernel
        manifest = kernel.export(args.out, targets=args.target, grid=grid, **values)
    except PtxError as error:
        return _report(error, kernel.definition.function.__code__.co_filename)
    except _FAILURES as error:
        if not _print_user_frames(error):
            raise
        return FINDINGS
    for name in (*manifest["sha256"], f"{manifest['kernel']}.json"):
        print(escape_unprintable(str(Path(args.out) / name)))
    if os.environ.get(SWITCH) != "0" and (problem := explain_problem("cubins")):
        complain(f"nothing is kept in the cache, so compiling again takes as long: {problem}")
    return OK


def _print_user_frames(error: Exception) -> bool:
    """Print an error of the user's code with its frames, without those of this package. False if the error is the
    package's own, perhaps in the standard library."""
    shown = traceback.TracebackException.from_exception(error)
    called_last = list(takewhile(lambda frame: not _is_own(frame), reversed(shown.stack)))
    if not called_last or called_last[-1].filename.startswith(_LIBRARY):
        return False
    shown.stack = traceback.StackSummary.from_list([frame for frame in shown.stack if not _is_own(frame)])
    print("".join(shown.format()), end="", file=sys.stderr)
    return True


def _is_own(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(_PACKAGE)


def _report(error: PtxError, file: str) -> int:
    """Print the errors of exporting a kernel of a file, and return the exit status. Those about the command line have
    no place in the file, but for those about the grid: they have the kernel's."""
    if isinstance(error, ToolMissing | ToolFailed):
        print(error, file=sys.stderr)
        return UNUSABLE
    first = error.diagnostics[0]
    if first.code != GRID.code and (first.code not in _OF_THE_COMMAND_LINE or _is_in(file, first.origin)):
        print(error, file=sys.stderr)
        return FINDINGS
    complain("; ".join(filter(None, (first.message, first.help))))
    return UNUSABLE


def _is_in(file: str, origin: object) -> bool:
    return isinstance(origin, PythonFrame) and origin.code.co_filename == file


def _parse_values(texts: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for text in texts:
        name, value = _parse_value(text)
        if name in values:
            raise Unusable(f"{name} has two values: {values[name]} and {value}")
        values[name] = value
    return values


def _parse_value(text: str) -> tuple[str, Any]:
    """Return a name and its value: a Python literal, or a string."""
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise Unusable(f"expected VARIABLE=VALUE, found {text}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _parse_grid(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise Unusable(f"--grid {text}: {_GRID}")
    return tuple(map(int, parts))
