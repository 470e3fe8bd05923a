"""The command line: picks a command, loads only that one, and turns what happened into an exit status.

0: fine; 1: findings; 2: wrong usage, an unreadable file or a missing tool. Commands return a status and print; nothing
below this package prints.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from pyptx import __version__
from pyptx.diagnostics import visible

OK, FINDINGS, UNUSABLE = 0, 1, 2
# As a shell reports a program that SIGINT or SIGPIPE ended.
INTERRUPTED, NOBODY_READS = 130, 141

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

COMMANDS = {
    "check": "say what is wrong in PTX files, where, and how to mend it",
    "fmt": "print PTX files in canonical form, or rewrite or compare them",
    "info": "summarize PTX files: entries, parameters, registers, instructions, resources",
    "sass": "assemble PTX files and print the machine code",
    "sim": "run a kernel of a PTX file on the CPU, and say what is wrong with it",
    "transpile": "turn PTX, also inside binaries, into Python that says the same",
    "diff": "say which statements an edited Python or PTX file changed",
    "explain": "print what a diagnostic code means, with a wrong and a right example",
}


class _Parser(argparse.ArgumentParser):
    """Says in a line what is wrong with the command line; `--help` has the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(UNUSABLE, f"pyptx: {visible(message)} (`{self.prog} --help` says more)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    _open_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`).
        _abandon_streams()
        status = NOBODY_READS
    except OSError as error:
        if error.filename is None and error.errno not in _UNWRITABLE:
            raise
        _abandon_streams()
        what = "the output cannot be written" if error.filename is None else visible(str(error.filename))
        with suppress(OSError):
            print(f"pyptx: {what}: {error.strerror}", file=sys.stderr)
        _abandon_streams()
        status = UNUSABLE
    except MemoryError:
        print("pyptx: no memory left", file=sys.stderr)
        status = UNUSABLE
    except KeyboardInterrupt as stopped:
        if str(stopped):  # A simulated run says where its threads were.
            print(stopped, file=sys.stderr)
        status = INTERRUPTED
    return status


def _show_warning(message: Warning | str, *where: object, **more: object) -> None:
    """Print a warning of Python as a line: the user of a command has no use for its place in this package."""
    print(f"pyptx: {visible(str(message))}", file=sys.stderr)


def _open_streams() -> None:
    """Make the standard streams take any text; one that is closed (`>&-`) leads nowhere."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    for stream in (sys.stdout, sys.stderr):
        # A file name or a string in PTX need not be printable in the user's locale.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def _abandon_streams() -> None:
    """Lead streams that cannot be written nowhere: Python would complain again when it flushes at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(argv: list[str]) -> int:
    named = next((word for word in argv if not word.startswith("-")), None)
    parser = _Parser(prog="pyptx", description="Read, check, run, assemble and transpile NVIDIA PTX.")
    parser.add_argument("--version", action="version", version=f"pyptx {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, what in COMMANDS.items():
        command = commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
        if name == named:
            module = import_module(f"pyptx.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    return int(args.run(args))
