"""`pyptx cache`: shows what is in the user's cache, and removes it."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pyptx.cache import explain_problem, find_cache, probe
from pyptx.cli import OK, UNUSABLE
from pyptx.cli.output import complain, print_json
from pyptx.diagnostics import escape_unprintable, format_count
from pyptx.driver.library import list_folders

PARTS = {
    "cubins": "machine code of kernels",
    "code": "Python code of simulated kernels",
    "tuning": "choices of Kernel.tune",
    "driver": "the libraries of the simulated driver, built in this checkout",
}
"""The folders of the cache."""
_REMOVED = ".removed-"
"""How folders begin whose contents are being removed, perhaps by a process that was killed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--clear", nargs="?", const=(*PARTS,), metavar="PART", help=f"remove all, or {', '.join(PARTS)}"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    folder = find_cache()
    if isinstance(args.clear, str) and args.clear not in PARTS:
        complain(f"--clear {args.clear or repr('')}: expected one of {', '.join(PARTS)}, or nothing for all")
        return UNUSABLE
    parts = [args.clear] if isinstance(args.clear, str) else [*PARTS]
    sizes = {part: _measure(folder / part) for part in parts}
    if args.clear is not None:
        _remove(folder, parts)
    problems = {part: _explain(part) for part in PARTS}
    if args.json:
        counts = {
            part: {"files": count, "bytes": size, "problem": problems[part]} for part, (count, size) in sizes.items()
        }
        print_json({"folder": str(folder), **counts})
        return OK
    print(escape_unprintable(str(folder)))
    for problem in dict.fromkeys(filter(None, problems.values())):
        affected = [part for part in PARTS if problems[part] == problem]
        names = "" if len(affected) == len(PARTS) else f"{', '.join(affected)}: "
        print(escape_unprintable(f"{names}nothing is kept: {problem}"))
    for part, (count, size) in sizes.items():
        removed = "removed " if args.clear is not None else ""
        print(f"{part:8}{removed}{format_count('file', count)}, {-(-size // 1000):,} kB: {PARTS[part]}")
    return OK


def _remove(folder: Path, parts: Sequence[str]) -> None:
    """Remove parts. They are moved first, so that no other process writes into what is removed, except for what it is
    just creating or renaming: so there is a second pass, which fails if something cannot be removed."""
    present = [part for part in parts if (folder / part).is_dir() and not (folder / part).is_symlink()]
    if not present:
        return
    place = Path(tempfile.mkdtemp(prefix=_REMOVED, dir=folder))
    for part in present:
        with suppress(FileNotFoundError):
            (folder / part).rename(place / part)
    for rest in folder.glob(f"{_REMOVED}*"):
        shutil.rmtree(rest, ignore_errors=True)
    if place.exists():
        shutil.rmtree(place)


def _explain(part: str) -> str:
    """Return why nothing is kept in a part; empty if it can be."""
    if part != "driver":
        return explain_problem(part)
    # A program needs the libraries, also without caches.
    return next(filter(None, (probe(*names) for names in list_folders())), "")


def _measure(folder: Path) -> tuple[int, int]:
    """Return how many files are below a folder, and their bytes."""
    sizes: list[int] = []
    for root, _, names in os.walk(folder):
        for name in names:
            # Other processes rename and remove files.
            with suppress(FileNotFoundError):
                sizes.append(os.lstat(os.path.join(root, name)).st_size)
    return len(sizes), sum(sizes)
