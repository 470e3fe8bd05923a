"""Measure the CPU time per statement of parser, checker, emitter and transpiler: it must not grow with the file size.

python benchmarks/shapes.py [--sizes 1000 10000 100000] [--shape labels] [--stage sugar]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from time import process_time

from benchmarks.ratios import Pairs, Round, interleave
from pyptx.check import check
from pyptx.codegen import ptx_to_python
from pyptx.emitter import emit
from pyptx.parser import parse

_HEAD = """\
.version 8.6
.target sm_90a
.address_size 64
.func f(.param .b32 x) { ret; }
.visible .entry k(.param .u64 p)
{
"""
_REGISTERS = ".reg .pred %p<4>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\nmov.u32 %r0, %tid.x;\nsetp.eq.u32 %p0, %r0, 0;\n"


def _repeat(line: str, count: int) -> str:
    return "".join([line.format(i) for i in range(count)])


DEEPEST = 15_000
"""The nesting depth of generated blocks; the parser rejects more than 20,000."""


def _nest(line: str, count: int, innermost: str = "") -> str:
    """Return `count` nested blocks; start over whenever they are `DEEPEST` deep."""
    depth = min(count, DEEPEST)
    return (_repeat(line, depth) + innermost + "}\n" * depth) * (count // depth)


SHAPES: dict[str, Callable[[int], str]] = {
    "instructions": lambda n: _repeat("add.u32 %r1, %r1, {};\n", n),
    "nested blocks": lambda n: _nest("{{\n", n // 2),
    "redeclared": lambda n: _nest("{{ .reg .b32 %x; mov.b32 %x, {};\n", n // 4),
    "declarations in depth": lambda n: _nest("{{ .reg .b32 %x;\n", n // 3),
    "uses in depth": lambda n: _nest("{{\n", n // 2, "add.u32 %r1, %r1, 1;\n@%p0 bra E;\n") + "E:\n",
    "specials in depth": lambda n: _nest("{{\nmov.u32 %r1, %tid.x;\n", n // 3),
    "branches out": lambda n: _nest("{{\n@%p0 bra E;\n", n // 3) + "E:\n",
    "blocks in a row": lambda n: _repeat("{{ .reg .b32 %x; mov.b32 %x, {}; }}\n", n // 4),
    "declarations": lambda n: _repeat(".reg .b32 %x{};\n", n // 2) + _repeat("mov.b32 %x{}, 1;\n", n // 2),
    "ranges": lambda n: _repeat(".reg .b32 %x{}_<4>;\n", n // 2) + _repeat("mov.b32 %x{}_1, 1;\n", n // 2),
    "late declarations": lambda n: _repeat(".reg .b32 %x{0};\nmov.b32 %x{0}, 1;\n", n // 2),
    "variables": lambda n: _repeat(".shared .b32 s{};\n", n // 2) + _repeat("mov.u32 %r1, s{};\n", n // 2),
    "labels": lambda n: _repeat("L{}:\n", n),
    "loops": lambda n: _repeat("L{0}:\nsetp.lt.u32 %p1, %r1, {0};\n@%p1 bra L{0};\n", n // 3),
    "forward branches": lambda n: _repeat("@%p0 bra L{};\n", n // 2) + _repeat("L{}:\n", n // 2),
    "branches in a row": lambda n: _repeat("@%p0 bra L{0};\nadd.u32 %r1, %r1, 1;\nL{0}:\n", n // 3),
    "nested branches": lambda n: (
        _repeat("@%p0 bra L{};\n", n // 2) + "".join([f"L{i}:\n" for i in reversed(range(n // 2))])
    ),
    "branches to one label": lambda n: _repeat("@%p0 bra L;\nadd.u32 %r1, %r1, {};\n", n // 2) + "L:\n",
    "predicates tested twice": lambda n: _repeat(
        "{{ .reg .pred %q; .reg .b32 %y; setp.eq.u32 %q, %r1, {0};\n@%q bra A{0};\nmov.b32 %y, 1;\nA{0}:\n"
        "@%q bra B{0};\nadd.u32 %r1, %r1, %y;\nB{0}:\n}}\n", n // 10
    ),
    "branches back": lambda n: "L:\n" + _repeat("add.u32 %r1, %r1, {};\n@%p0 bra L;\n", n // 2),
    "targets": lambda n: (
        "T: .branchtargets " + ", ".join([f"L{i}" for i in range(n // 2)]) + ";\nbrx.idx %r1, T;\n"
        + _repeat("L{}:\n", n // 2)
    ),
    "lists of targets": lambda n: _repeat("T{0}: .branchtargets L{0};\nbrx.idx %r1, T{0};\nL{0}:\n", n // 3),
    "guards": lambda n: _repeat("@%p0 add.u32 %r1, %r1, {};\n", n),
    "aligned": lambda n: _repeat("@%p0 bra L{0};\nbar.sync 0;\nL{0}:\n", n // 3),
    "constants": lambda n: _repeat(
        "mov.b32 %r5, {0};\n{{ .reg .b32 %y; .reg .pred %q; shfl.sync.idx.b32 %y, %r0, %r5, 31, -1;\n"
        "setp.eq.u32 %q, %y, 0;\n@%q bra L{0};\nbar.sync 0;\nL{0}:\n}}\n", n // 9
    ),
    "constants across branches": lambda n: _repeat(
        "{{ .reg .b32 %x, %y; .reg .pred %q; mov.b32 %x, 0;\n@%p0 bra K{0};\nK{0}:\n"
        "shfl.sync.idx.b32 %y, %r0, %x, 31, -1;\nsetp.eq.u32 %q, %y, 0;\n@%q bra L{0};\nbar.sync 0;\nL{0}:\n}}\n",
        n // 11
    ),
    "calls": lambda n: _repeat("call f, ({});\n", n),
}  # fmt: skip
NAMING = ("late declarations", "variables", "labels", "forward branches", "nested branches", "targets")
"""The shapes with the most names, whose time grew fastest; `make bench` measures only these."""
STAGES: dict[str, Callable[[str], object]] = {
    "parse": parse,
    "check": lambda text: check(parse(text), unused=True),
    "emit": lambda text: emit(parse(text)),
    "plain": ptx_to_python,
    "sugar": lambda text: ptx_to_python(text, sugar=True),
}


def make_text(shape: str, size: int) -> str:
    """Return a module of about `size` statements of a shape."""
    return _HEAD + _REGISTERS + SHAPES[shape](size) + "ret;\n}\n"


def list_pairs() -> Pairs:
    """Compare all stages on a file of 2,000 statements with four files of 500, by shape."""
    return {f"{shape}, 2,000 statements / four times 500": partial(compare, shape) for shape in NAMING}


def compare(shape: str) -> Round:
    """Compare all stages on one large file with four small ones."""
    large, small = make_text(shape, 2_000), make_text(shape, 500)
    return interleave(
        lambda: [stage(large) for stage in STAGES.values()],
        lambda: [stage(small) for stage in STAGES.values() for _ in range(4)],
    )


def main() -> None:
    """Print microseconds per statement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--shape", choices=SHAPES, action="append")
    parser.add_argument("--stage", choices=STAGES, action="append")
    options = parser.parse_args()
    for shape in options.shape or SHAPES:
        for stage in options.stage or STAGES:
            times: list[str] = []
            for size in options.sizes:
                text = make_text(shape, size)
                start = process_time()
                STAGES[stage](text)
                times.append(f"{(process_time() - start) / size * 1e6:9.1f}")
            print(f"{shape:25} {stage:6} {' '.join(times)} us", flush=True)


if __name__ == "__main__":
    main()
