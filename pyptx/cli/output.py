"""Prints findings with their source, JSON, and color only on terminals."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from pyptx.cli.sources import Source
from pyptx.diagnostics import Diagnostic, Severity, Span, escape_unprintable, render


def needs_colour(stream: TextIO) -> bool:
    """Return whether to color: on a terminal, unless NO_COLOR is set or the terminal is dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def place_findings(findings: Iterable[Diagnostic], source: Source) -> list[Diagnostic]:
    """Return the findings in source order, each with its file."""
    located = (d.move_to(d.origin._replace(file=source.name)) if isinstance(d.origin, Span) else d for d in findings)
    return sorted(located, key=lambda d: (d.line, d.col))


def print_findings(findings: list[Diagnostic], source: Source, stream: TextIO | None = None) -> None:
    """Print findings as text, on standard output by default."""
    output = stream or sys.stdout
    if findings:
        print(render(findings, source.text, colour=needs_colour(output)), file=output)


def print_json(value: object) -> None:
    """Print one JSON document."""
    import json  # slower than checking a small file, and rarely needed

    print(json.dumps(value, indent=2))


def complain(message: str) -> None:
    """Print a usage error on standard error."""
    print(f"pyptx: {escape_unprintable(message)}", file=sys.stderr)


def print_foreign(text: str) -> None:
    """Print the output of a kernel or tool: unchanged to files and pipes, without control characters on a terminal."""
    print(escape_unprintable(text) if sys.stdout.isatty() else text, end="", flush=True)


def replace_file(path: Path, text: str) -> None:
    """Write a temporary file and rename it, so that no reader and no crash leaves half a file."""
    path = path.resolve()
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(beside, path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_read_umask())
        os.replace(beside, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)


def _read_umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def has_errors(findings: Iterable[Diagnostic]) -> bool:
    """Return whether any finding is an error."""
    return any(d.severity is Severity.ERROR for d in findings)


def count_findings(findings: list[Diagnostic]) -> str:
    """Return the counts of findings as text: `2 errors, 1 warning`."""
    words: list[str] = []
    for severity in Severity:
        number = sum(d.severity is severity for d in findings)
        if number:
            words.append(f"{number} {severity}{'s' if number > 1 else ''}")
    return ", ".join(words) or "no findings"
