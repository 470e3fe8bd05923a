"""Measure the time per instruction to turn PTX into Python and to run that Python; both must not grow with the file.

    python benchmarks/transpile.py [--most 100000] [FILE.ptx]

Times are process times, the best of three.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.ratios import Pairs, Round, interleave, measure_best
from pyptx.codegen import ptx_to_python
from pyptx.ir import Instruction, visit
from pyptx.parser import parse

SIZES = (1_000, 10_000, 100_000)
ROUND = """\
\tld.global.u32 \t%r1, [%rd1+4];
\tadd.s32 \t%r2, %r1, %r{0};
\tmad.lo.s32 \t%r3, %r2, 12, %r1;
\tsetp.lt.s32 \t%p1, %r3, 0x40;
\t@%p1 bra \t$L__BB0_{0};
\tfma.rn.f32 \t%f{0}, %f1, %f2, 0f3F800000;
\tst.global.f32 \t[%rd2], %f{0};
\tldmatrix.sync.aligned.m8n8.x4.shared.b16 \t{{%r1, %r2, %r3, %r4}}, [%rd2];

$L__BB0_{0}:
"""
HEAD = """\
.version 8.7
.target sm_90a
.address_size 64

.visible .entry k(
\t.param .u64 k_param_0
)
{{
\t.reg .pred \t%p<2>;
\t.reg .f32 \t%f<{0}>;
\t.reg .b32 \t%r<{0}>;
\t.reg .b64 \t%rd<4>;

"""


def make_text(instructions: int) -> str:
    """Return a module of about `instructions` instructions, formatted like nvcc's output."""
    rounds = instructions // 8
    return HEAD.format(max(rounds, 8)) + "".join([ROUND.format(i) for i in range(rounds)]) + "\tret;\n\n}\n"


def measure(name: str, source: str) -> None:
    """Print the microseconds per instruction of every step."""
    count = sum(isinstance(node, Instruction) for node in visit(parse(source)))
    ptx_to_python(source)  # the first call fills caches
    transpiled, python = measure_best(lambda: ptx_to_python(source)), ptx_to_python(source)
    compiled = measure_best(lambda: compile(python, "generated.py", "exec"))
    code = compile(python, "generated.py", "exec")
    run = measure_best(lambda: trace(code))
    assert trace(code) == source
    times = [f"{1e6 * seconds / count:7.1f}" for seconds in (transpiled, compiled, run)]
    print(f"{name:28} {count:8} {' '.join(times)}", flush=True)


def trace(code: CodeType) -> str:
    """Return the PTX that a compiled Python file generates."""
    scope: dict[str, Any] = {"__name__": "generated"}
    exec(code, scope)
    return scope["module"].ptx()


def list_pairs() -> Pairs:
    """Compare the steps to Python and back with parsing, and a file with ten files of a tenth of its size."""
    return {
        "to plain Python / parsing": partial(compare, ptx_to_python),
        "to idiomatic Python / parsing": partial(compare, idiomatic),
        "running the plain Python / parsing": run_python,
        "to idiomatic Python, 5,000 instructions / ten times 500": grow,
    }


def compare(step: Callable[[str], object]) -> Round:
    """Compare a step of the transpiler with parsing."""
    source = make_text(500)
    return interleave(lambda: step(source), lambda: parse(source))


def idiomatic(source: str) -> str:
    """Return idiomatic Python."""
    return ptx_to_python(source, sugar=True)


def run_python() -> Round:
    """Compare running a Python file with parsing the PTX that it generates."""
    source = make_text(500)
    code = compile(ptx_to_python(source), "generated.py", "exec")
    return interleave(lambda: trace(code), lambda: parse(source))


def grow() -> Round:
    """Compare one large file with ten small ones."""
    small, large = make_text(500), make_text(5_000)
    return interleave(lambda: idiomatic(large), lambda: [idiomatic(small) for _ in range(10)])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--most", type=int, default=SIZES[-1])
    options.add_argument("file", nargs="?", type=Path)
    arguments = options.parse_args()
    print("microseconds per instruction    count  to transpile, to compile the Python, to trace and print")
    if arguments.file is not None:
        measure(arguments.file.name, arguments.file.read_bytes().decode())
        return
    for size in SIZES:
        if size <= arguments.most:
            measure(f"{size} instructions", make_text(size))


if __name__ == "__main__":
    main()
