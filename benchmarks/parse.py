"""How fast PTX is parsed and printed on one core, and what a statement costs in memory.

    python benchmarks/parse.py [FILE.ptx ...]

Without files: every file of the test corpus. The yardstick is the standard library's `tokenize` on as many bytes of
Python source, timed in the same run. Times are processor times, the best of several rounds.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.ratios import Pairs, Round, best, interleave, python_source, tokenize_all  # noqa: E402
from pyptx.emitter import emit  # noqa: E402
from pyptx.ir import Instruction, visit  # noqa: E402
from pyptx.parser import parse  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    options = _options(arguments)
    paths: list[Path] = options.files or sorted((ROOT / "tests" / "corpus").rglob("*.ptx"))
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    size = sum(map(len, texts))
    if not size:
        print("no PTX to parse: name files", file=sys.stderr)
        return 2
    modules = [parse(text) for text in texts]
    python = python_source(min(size, 2_000_000))
    parsed = best(lambda: [parse(text) for text in texts])
    printed = best(lambda: [emit(module) for module in modules])
    tokenized = best(lambda: tokenize_all(python))
    print(f"{len(texts)} files, {size:,} bytes")
    print(f"parse      {size / parsed / 1e6:6.1f} MB/s")
    print(f"emit       {size / printed / 1e6:6.1f} MB/s")
    yardstick = len(python) / tokenized
    print(f"tokenize   {yardstick / 1e6:6.1f} MB/s  (parse is {size / parsed / yardstick:.1f} x as fast)")
    _memory(texts)
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time parsing and printing.")
    parser.add_argument("files", nargs="*", type=Path, help="PTX files; without any, the test corpus")
    return parser.parse_args(arguments)


def pairs() -> Pairs:
    """Return parsing against the standard library's `tokenize` on as many bytes, and printing against parsing."""
    return {"parsing / tokenize on as many bytes": parse_and_tokenize, "printing / parsing": print_and_parse}


def parse_and_tokenize() -> Round:
    """Return parsing PTX, and reading as many bytes of Python."""
    texts = _largest_texts()
    python = python_source(sum(map(len, texts)))
    return interleave(lambda: [parse(text) for text in texts], lambda: tokenize_all(python))


def print_and_parse() -> Round:
    """Return printing modules, and parsing their texts."""
    texts = _largest_texts()
    modules = [parse(text) for text in texts]
    return interleave(lambda: [emit(module) for module in modules], lambda: [parse(text) for text in texts])


def _largest_texts() -> list[str]:
    paths = sorted((ROOT / "tests" / "corpus").rglob("*.ptx"), key=lambda path: path.stat().st_size)[-5:]
    return [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]


def _memory(texts: Sequence[str]) -> None:
    """Print the bytes that stay allocated per statement, over the largest texts."""
    chosen = sorted(texts, key=len)[-5:]
    tracemalloc.start()
    modules = [parse(text) for text in chosen]
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    statements = [statement for module in modules for statement in visit(module)]
    instructions = sum(isinstance(statement, Instruction) for statement in statements)
    print(
        f"memory     {held / len(statements):6.0f} bytes/statement ({len(statements):,}, {instructions:,} instructions)"
    )
    print(f"           {held / sum(map(len, chosen)):6.1f} bytes/byte of text, in the {len(chosen)} largest files")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
