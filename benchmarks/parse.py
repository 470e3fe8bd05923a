"""Measure how fast one core parses and prints PTX, and the memory per statement.

    python benchmarks/parse.py [FILE.ptx ...]

The default is every file of the test corpus. The yardstick is the standard library's `tokenize` on as many bytes of
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

from benchmarks.ratios import Pairs, Round, interleave, make_python_source, measure_best, tokenize_all  # noqa: E402
from pyptx.emitter import emit  # noqa: E402
from pyptx.ir import Instruction, visit  # noqa: E402
from pyptx.parser import parse  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    options = _parse_arguments(arguments)
    paths: list[Path] = options.files or sorted((ROOT / "tests" / "corpus").rglob("*.ptx"))
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    size = sum(map(len, texts))
    if not size:
        print("no PTX to parse: name files", file=sys.stderr)
        return 2
    modules = [parse(text) for text in texts]
    python = make_python_source(min(size, 2_000_000))
    parsed = measure_best(lambda: [parse(text) for text in texts])
    printed = measure_best(lambda: [emit(module) for module in modules])
    tokenized = measure_best(lambda: tokenize_all(python))
    print(f"{len(texts)} files, {size:,} bytes")
    print(f"parse      {size / parsed / 1e6:6.1f} MB/s")
    print(f"emit       {size / printed / 1e6:6.1f} MB/s")
    yardstick = len(python) / tokenized
    print(f"tokenize   {yardstick / 1e6:6.1f} MB/s  (parse is {size / parsed / yardstick:.1f} x as fast)")
    _print_memory(texts)
    return 0


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time parsing and printing.")
    parser.add_argument("files", nargs="*", type=Path, help="PTX files; default: the test corpus")
    return parser.parse_args(arguments)


def list_pairs() -> Pairs:
    """Compare parsing with the standard library's `tokenize` on as many bytes, and printing with parsing."""
    return {"parsing / tokenize on as many bytes": parse_and_tokenize, "printing / parsing": print_and_parse}


def parse_and_tokenize() -> Round:
    """Compare parsing PTX with tokenizing as many bytes of Python."""
    texts = _read_largest_texts()
    python = make_python_source(sum(map(len, texts)))
    return interleave(lambda: [parse(text) for text in texts], lambda: tokenize_all(python))


def print_and_parse() -> Round:
    """Compare printing modules with parsing their texts."""
    texts = _read_largest_texts()
    modules = [parse(text) for text in texts]
    return interleave(lambda: [emit(module) for module in modules], lambda: [parse(text) for text in texts])


def _read_largest_texts() -> list[str]:
    paths = sorted((ROOT / "tests" / "corpus").rglob("*.ptx"), key=lambda path: path.stat().st_size)[-5:]
    return [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]


def _print_memory(texts: Sequence[str]) -> None:
    """Print the bytes that stay allocated per statement of the largest texts."""
    largest = sorted(texts, key=len)[-5:]
    tracemalloc.start()
    modules = [parse(text) for text in largest]
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    statements = [statement for module in modules for statement in visit(module)]
    instructions = sum(isinstance(statement, Instruction) for statement in statements)
    print(
        f"memory     {size / len(statements):6.0f} bytes/statement ({len(statements):,}, {instructions:,} instructions)"
    )
    print(f"           {size / sum(map(len, largest)):6.1f} bytes/byte of text, in the {len(largest)} largest files")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
