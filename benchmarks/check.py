"""Measure how fast one core checks PTX, in instructions per second and relative to the parsing time.

    python benchmarks/check.py [--largest 20] [FILE.ptx ...]

The default files are the largest of the test corpus. Times are processor times, the best of several rounds; the first
round, which fills the caches of the instruction table, does not count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.ratios import Pairs, Round, interleave, measure  # noqa: E402
from pyptx.check import check  # noqa: E402
from pyptx.ir import Instruction, Module, visit  # noqa: E402
from pyptx.parser import parse  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    options = _parse_arguments(arguments)
    paths: list[Path] = options.files or _find_largest(options.largest)
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    modules = [parse(text) for text in texts]
    instructions = sum(map(_count_instructions, modules))
    if not instructions:
        print("no instructions to check: name files", file=sys.stderr)
        return 2
    times = measure(interleave(lambda: [check(module) for module in modules], lambda: [parse(text) for text in texts]))
    print(f"{len(texts)} files, {instructions:,} instructions, {sum(map(len, texts)):,} bytes")
    print(f"check      {instructions / min(times.ours):9,.0f} instructions/s")
    print(f"           {times.median:9.2f} x the parsing time")
    return 0


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time checking.")
    parser.add_argument("files", nargs="*", type=Path, help="PTX files; default: the largest of the test corpus")
    parser.add_argument("--largest", type=int, default=20, help="the number of corpus files")
    return parser.parse_args(arguments)


def _find_largest(count: int) -> list[Path]:
    return sorted((ROOT / "tests" / "corpus").rglob("*.ptx"), key=lambda path: path.stat().st_size)[-count:]


def _count_instructions(module: Module) -> int:
    return sum(isinstance(statement, Instruction) for statement in visit(module))


def list_pairs() -> Pairs:
    """Compare checking with parsing."""
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in _find_largest(5)]

    def check_all() -> Round:
        modules = [parse(text) for text in texts]
        return interleave(lambda: [check(module) for module in modules], lambda: [parse(text) for text in texts])

    return {"checking / parsing": check_all}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
