"""The command line: loads only the selected command and returns its exit status.

0: success; 1: findings; 2: wrong usage, an unreadable file or a missing tool. Commands print and return a status;
nothing below this package prints.
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
from pyptx.diagnostics import escape_unprintable

OK, FINDINGS, UNUSABLE = 0, 1, 2
# As a shell reports a program terminated by SIGINT or SIGPIPE.
INTERRUPTED, NOBODY_READS = 130, 141

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

COMMANDS = {
    "check": "report errors and warnings in PTX files, with remedies",
    "fmt": "print PTX files in canonical form, or rewrite or compare them",
    "info": "summarize PTX files: entries, parameters, registers, instructions, resources",
    "sass": "assemble PTX files and print the machine code",
    "compile": "write the machine code of a kernel in a Python file, with a launcher in C",
    "sim": "run a kernel of a PTX or Python file on the CPU and report hazards",
    "simulate": "run a program that launches CUDA kernels, without a GPU, and report what is wrong with each launch",
    "transpile": "translate PTX, including PTX in binaries, to equivalent Python",
    "diff": "list the statements that an edited Python or PTX file changes",
    "cache": "show or clear what is cached: machine code, compiled code, libraries",
    "explain": "explain a diagnostic code, with a wrong and a right example",
}


class _Parser(argparse.ArgumentParser):
    """Reports an error in the command line on one line and refers to `--help`."""

    def error(self, message: str) -> NoReturn:
        self.exit(UNUSABLE, f"pyptx: {escape_unprintable(message)} (see `{self.prog} --help`)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    _open_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`).
        _abandon_streams()
        status = NOBODY_READS
    except OSError as error:
        if error.filename is None and error.errno not in _UNWRITABLE:
            raise
        _abandon_streams()
        description = (
            "the output cannot be written" if error.filename is None else escape_unprintable(str(error.filename))
        )
        with suppress(OSError):
            print(f"pyptx: {description}: {error.strerror}", file=sys.stderr)
        _abandon_streams()
        status = UNUSABLE
    except MemoryError:
        print("pyptx: out of memory", file=sys.stderr)
        status = UNUSABLE
    except KeyboardInterrupt as stopped:
        if str(stopped):  # A simulated run reports where its threads were.
            print(stopped, file=sys.stderr)
        status = INTERRUPTED
    return status


def _show_warning(message: Warning | str, *place: object, **options: object) -> None:
    """Print a Python warning on one line, without its place in this package."""
    print(f"pyptx: {escape_unprintable(str(message))}", file=sys.stderr)


def _open_streams() -> None:
    """Make the standard streams accept any text; redirect closed ones (`>&-`) to the null device."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    for stream in (sys.stdout, sys.stderr):
        # File names and strings in PTX may not be printable in the user's locale.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def _abandon_streams() -> None:
    """Redirect unwritable streams to the null device, or Python would report them again when it flushes at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(argv: list[str]) -> int:
    command_name = next((word for word in argv if not word.startswith("-")), None)
    parser = _Parser(prog="pyptx", description="Read, check, run, assemble and transpile NVIDIA PTX.")
    parser.add_argument("--version", action="version", version=f"pyptx {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, help_text in COMMANDS.items():
        command = commands.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".")
        if name == command_name:
            module = import_module(f"pyptx.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run, parser=command)
    args, rest = parser.parse_known_args(argv)
    if rest:
        _refuse(args.parser, rest)
    return int(args.run(args))


def _refuse(parser: argparse.ArgumentParser, words: Sequence[str]) -> NoReturn:
    """Report the words that a command does not take, and the option that one lacks the hyphens of."""
    option = next((f"--{word}" for word in words if f"[--{word}" in parser.format_usage()), "")
    parser.error(f"unrecognized arguments: {' '.join(words)}" + (f"; did you mean {option}?" if option else ""))
