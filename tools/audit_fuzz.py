"""Fuzzes the parser, emitter and `check`: no exception but PtxSyntaxError, no lost text, time linear in its length.

    python -m tools.audit_fuzz [--count 200000] [--seed 1] [--checked 20000]

Inputs are pieces of the corpus with random edits, then shapes that strain parsers: deep nesting, long lines, 100 MB.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pyptx.check import check
from pyptx.emitter import emit
from pyptx.parser import PtxSyntaxError, parse

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"
BITS = tuple(
    '{ } ( ) [ ] ; , : . @ ! | " /* */ // \n \0 % $ _ 0 1e 0f 0x .b32 .reg .global .entry .func ret; = + - ? é # \r <'
    " > generic( WARP_SZ 0f3F800000 .loc {ret;} L: .pragma call 1?2:3".split(" ")
)
HEADER = ".version 8.5\n.target sm_90a\n.address_size 64\n"
LONGEST = 3000


def pieces(paths: list[Path], draw: random.Random) -> Iterator[str]:
    """Yield pieces of corpus files, most of them wrapped in a module."""
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    while True:
        text = draw.choice(texts)
        start = draw.randrange(max(1, len(text) - LONGEST))
        piece = text[start : start + draw.randrange(LONGEST)]
        yield HEADER + ".entry k() {\n" + piece + "\n}\n" if draw.random() < 0.7 else piece


def mutate(text: str, draw: random.Random) -> str:
    """Return the text after a few edits."""
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        offset = draw.randrange(len(text) + 1)
        end = offset + draw.choice([1, 1, 2, 5, 20, 100])
        kind = draw.randrange(5)
        if kind == 0:
            text = text[:offset] + text[end:]
        elif kind == 1:
            text = text[:offset] + draw.choice(BITS) + text[offset:]
        elif kind == 2:
            text = text[:offset] + text[offset:end] + text[offset:]
        elif kind == 3:
            text = text[:offset] + chr(draw.randrange(0x250)) + text[offset + 1 :]
        else:
            text = text[:offset]
    return text


def fuzz(count: int, check_count: int, seed: int) -> None:
    """Parse the mutated pieces and print the counts; any exception but PtxSyntaxError ends the run."""
    draw = random.Random(seed)
    source = pieces(sorted(CORPUS.rglob("*.ptx")), draw)
    size, rejections, slowest = 0, 0, (0.0, "")
    start = time.process_time()
    for number in range(count):
        text = mutate(next(source), draw)
        size += len(text)
        before = time.process_time()
        try:
            parse(text)
        except PtxSyntaxError:
            rejections += 1
        elapsed = time.process_time() - before
        slowest = max(slowest, (elapsed / (len(text) + 200), text))
        if number < check_count:
            module, _ = parse(text, recover=True)
            assert emit(module) == text, text
            check(module)
    elapsed = time.process_time() - start
    print(f"{count} mutated inputs, {size} bytes, {rejections} rejected, {elapsed:.0f} s")
    print(f"slowest: {slowest[0] * 1e6:.1f} µs per byte (of length + 200), {len(slowest[1])} bytes")
    print(f"{check_count} of them also parsed with recovery, emitted byte for byte and checked")


def shapes() -> Iterator[tuple[str, str, int]]:
    """Yield each shape at two sizes: its name, its text and its scale."""
    for scale in (1, 4):
        size = 50_000 * scale
        yield "nested blocks", HEADER + ".entry k() {" + "{" * size + "}" * size + "}", scale
        nesting = "(" * size + "1" + ")" * size
        yield "nested parentheses", f"{HEADER}.entry k() {{ .reg .b32 a; mov.b32 a, {nesting}; }}", scale
        yield "one long line", HEADER + ".entry k() {" + " add.s32 a, b, c;" * size + "}", scale
        yield "unclosed comment", HEADER + "/*" * size, scale
        yield "stars and slashes", HEADER + "/ *" * size, scale
        yield "quotes", HEADER + '"' * size, scale
        yield "commas", f"{HEADER}.entry k() {{ add.s32 {',' * size}; }}", scale
        yield "dots", f"{HEADER}.entry k() {{ add{'.a' * size} b; }}", scale
        yield "a long name", f"{HEADER}.entry {'k' * size}() {{ }}", scale
        yield "spaces", HEADER + " " * size + "x" + " " * size, scale


def time_shapes() -> bool:
    """Print the time of each shape at one size and at four times that size; return whether all are linear."""
    times: dict[str, list[float]] = {}
    for name, text, _ in shapes():
        best = min(_time(text) for _ in range(3))
        times.setdefault(name, []).append(best)
    good = True
    for name, (small, large) in times.items():
        growth = large / max(small, 1e-3)
        linear = growth < 8
        good &= linear
        verdict = "" if linear else "  SUPERLINEAR"
        print(f"{name:20} {small * 1e3:8.1f} ms, at four times the size {large * 1e3:8.1f} ms{verdict}")
    text = HEADER + ".entry k() {" + " add.s32 a, b, c;" * 6_200_000 + "}"
    print(f"one line of {len(text) / 1e6:.0f} MB: {_time(text):.1f} s")
    return good


def _time(text: str) -> float:
    before = time.process_time()
    parse(text, recover=True)
    return time.process_time() - before


def main() -> int:
    """Run the audit."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=200_000)
    options.add_argument("--checked", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args()
    fuzz(arguments.count, arguments.checked, arguments.seed)
    return 0 if time_shapes() else 1


if __name__ == "__main__":
    sys.exit(main())
