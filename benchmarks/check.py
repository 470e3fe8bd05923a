"""How fast PTX is checked on one core, in instructions per second and against the time that parsing takes.

    python benchmarks/check.py [--seconds 6] [--largest 20] [FILE.ptx ...]

Without files: the largest of the test corpus. Times are process times, the best of several rounds; the first round
fills the memo tables of the instruction table and does not count.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pyptx.check import check  # noqa: E402
from pyptx.ir import Instruction, Module, visit  # noqa: E402
from pyptx.parser import parse  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    options = _options(arguments)
    corpus = sorted((ROOT / "tests" / "corpus").rglob("*.ptx"), key=lambda path: path.stat().st_size)
    paths: list[Path] = options.files or corpus[-options.largest :]
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    modules = [parse(text) for text in texts]
    instructions = sum(map(_instructions, modules))
    if not instructions:
        print("no instructions to check: name files", file=sys.stderr)
        return 2
    for module in modules:
        check(module)
    checked = _best(lambda: [check(module) for module in modules], options.seconds / 2)
    parsed = _best(lambda: [parse(text) for text in texts], options.seconds / 2)
    print(f"{len(texts)} files, {instructions:,} instructions, {sum(map(len, texts)):,} bytes")
    print(f"check      {instructions / checked:9,.0f} instructions/s")
    print(f"           {checked / parsed:9.2f} x the time that parsing takes")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time checking.")
    parser.add_argument("files", nargs="*", type=Path, help="PTX files; without any, the largest of the test corpus")
    parser.add_argument("--largest", type=int, default=20, help="how many files of the corpus")
    parser.add_argument("--seconds", type=float, default=6, help="about how long to measure")
    return parser.parse_args(arguments)


def _instructions(module: Module) -> int:
    return sum(isinstance(statement, Instruction) for statement in visit(module))


def _best(work: Callable[[], object], seconds: float) -> float:
    """Return the least process time that `work` took, over about so many seconds."""
    best, end = float("inf"), time.monotonic() + seconds
    while True:
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
        if time.monotonic() > end:
            return best


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
