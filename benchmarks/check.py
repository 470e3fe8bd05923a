"""How fast PTX is checked on one core, in instructions per second and against the time that parsing takes.

    python benchmarks/check.py [--largest 20] [FILE.ptx ...]

Without files: the largest of the test corpus. Times are processor times, the best of several rounds; the first round
fills the memo tables of the instruction table and does not count.
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
    options = _options(arguments)
    paths: list[Path] = options.files or _largest(options.largest)
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    modules = [parse(text) for text in texts]
    instructions = sum(map(_instructions, modules))
    if not instructions:
        print("no instructions to check: name files", file=sys.stderr)
        return 2
    times = measure(interleave(lambda: [check(module) for module in modules], lambda: [parse(text) for text in texts]))
    print(f"{len(texts)} files, {instructions:,} instructions, {sum(map(len, texts)):,} bytes")
    print(f"check      {instructions / min(times.ours):9,.0f} instructions/s")
    print(f"           {times.median:9.2f} x the time that parsing takes")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time checking.")
    parser.add_argument("files", nargs="*", type=Path, help="PTX files; without any, the largest of the test corpus")
    parser.add_argument("--largest", type=int, default=20, help="how many files of the corpus")
    return parser.parse_args(arguments)


def _largest(count: int) -> list[Path]:
    return sorted((ROOT / "tests" / "corpus").rglob("*.ptx"), key=lambda path: path.stat().st_size)[-count:]


def _instructions(module: Module) -> int:
    return sum(isinstance(statement, Instruction) for statement in visit(module))


def pairs() -> Pairs:
    """Return checking against parsing."""
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in _largest(5)]

    def check_all() -> Round:
        modules = [parse(text) for text in texts]
        return interleave(lambda: [check(module) for module in modules], lambda: [parse(text) for text in texts])

    return {"checking / parsing": check_all}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
