"""What every recipe of this directory shares: short declarations, relative names, one PTX file with its manifest rows.

Runs inside each producer's environment, so it imports only the standard library and the manifest's schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tools.corpus.manifest import Argument, Array, Dim3, Entry, File, Output, Run, Scalar, digest, read_declarations

REFERENCES = "python_producers.references."
ROOT = Path(__file__).parents[3]


def installed(package: str) -> str:
    """The version of an installed package."""
    return version(package)


def array(name: str, dtype: str, *shape: int, init: str = "zeros", hidden: bool = False, **parameters: Any) -> Array:
    """An array argument in one line."""
    return Array(name, dtype, shape, init, parameters or None, hidden)


def scalar(name: str, dtype: str, value: float) -> Scalar:
    """A scalar argument in one line."""
    return Scalar(name, dtype, value)


def launch(
    grid: Sequence[int],
    block: Sequence[int],
    arguments: Iterable[Argument],
    outputs: Mapping[str, tuple[float, float]],
    reference: str,
    **more: Any,
) -> Run:
    """A run; `outputs` maps an argument to its relative and absolute tolerance."""
    compared = tuple(Output(name, *tolerance) for name, tolerance in outputs.items())
    return Run(dim3(grid), dim3(block), tuple(arguments), compared, REFERENCES + reference, **more)


def dim3(values: Sequence[int]) -> Dim3:
    """Three extents, ones where fewer are given."""
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def entry(algorithm: str, run: Run | None = None, reason: str | None = None) -> Entry:
    """An entry whose name the PTX decides."""
    return Entry("", algorithm, run, reason)


def thread_count(text: bytes) -> Dim3 | None:
    """The block that `.reqntid` demands, if the first entry has one."""
    found = re.search(rb"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", text)
    return None if found is None else dim3([int(value or 1) for value in found.groups()])


def relative(text: bytes) -> tuple[bytes, str | None]:
    """Replace the directories of `.file` names by nothing; the second value says so where it happened."""
    changed = re.sub(rb'(\.file\s+\d+\s+")/[^"]*/([^"/]+")', rb"\1\2", text)
    return changed, None if changed == text else "directories removed from the names in .file"


def write(
    directory: Path,
    stem: str,
    text: bytes,
    entries: Mapping[str, Entry],
    *,
    version: str,
    flags: Sequence[str],
    source: str,
    rewritten: str | None = None,
) -> File:
    """Write one PTX file; `entries` maps a part of each mangled name to its row, in any order."""
    text, removed = relative(text)
    target, ptx, names = read_declarations(text)
    rows = [replace(_row(name, entries), name=name) for name in names]
    directory.mkdir(parents=True, exist_ok=True)
    path = f"{stem}.{target}.ptx"
    (directory / path).write_bytes(text)
    found = Path(source).resolve().relative_to(ROOT / "tools" / "corpus").as_posix()
    return File(path, version, tuple(flags), found, target, ptx, digest(text), tuple(rows), rewritten or removed)


def _row(name: str, entries: Mapping[str, Entry]) -> Entry:
    for part, row in sorted(entries.items(), key=lambda item: -len(item[0])):
        if part in name:
            return row
    raise KeyError(f"no row for the entry {name}")
