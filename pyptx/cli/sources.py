"""Reads files and standard input, with a message for the user if they cannot be PTX text."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """PTX text and its display name."""

    name: str
    text: str


class Unreadable(Exception):
    """A file that cannot be read as PTX text; the message is for the user."""


STDIN = "-"
_KNOWN = {
    b"\x7fELF": "an ELF file (a cubin or an object file), not PTX text; `cuobjdump -ptx` extracts PTX from it",
    b"\x50\xed\x55\xba": "a fatbin, not PTX text; `cuobjdump -ptx` extracts PTX from it",
    b"BC\xc0\xde": "LLVM bitcode, not PTX text; `llc -march=nvptx64` compiles it to PTX",
}


def read(name: str) -> Source:
    """Return the text of a file, or of standard input for `-`; raise Unreadable with the reason."""
    label = "<stdin>" if name == STDIN else name
    if name == STDIN and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise Unreadable("<stdin>: standard input is closed; name a file instead of -")
    try:
        data = sys.stdin.buffer.read() if name == STDIN else _read_bytes(name)
    except FileNotFoundError:
        raise Unreadable(f"{label}: no such file") from None
    except IsADirectoryError:
        raise Unreadable(f"{label}: is a directory; name PTX files, for example {label.rstrip('/')}/*.ptx") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise Unreadable(f"{label}: {getattr(error, 'strerror', None) or error}") from None
    return Source(label, _decode(label, data))


def _read_bytes(name: str) -> bytes:
    with open(name, "rb") as file:
        return file.read()


def _decode(label: str, data: bytes) -> str:
    for magic, kind in _KNOWN.items():
        if data.startswith(magic):
            raise Unreadable(f"{label}: {kind}")
    # Some producers end their PTX with a NUL; anywhere else, it means a binary file.
    if b"\0" in data.rstrip(b"\0"):
        raise Unreadable(f"{label}: a binary file, not PTX text")
    if not data.strip(b"\0 \t\r\n"):
        raise Unreadable(f"{label}: the file is empty; a PTX module starts with .version, .target and .address_size")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{label}:{line}: byte 0x{data[error.start]:02x} is not UTF-8 text") from None


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the argument of commands that take files."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a PTX file, or - for standard input")
