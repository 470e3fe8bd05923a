"""How long it takes per instruction to turn PTX into Python, and to run that Python, and that both grow linearly.

    python benchmarks/transpile.py [--most 100000] [FILE.ptx]

Times are process times, the best of three.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

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


def text(instructions: int) -> str:
    """Return a module as nvcc spaces it, with about so many instructions."""
    rounds = instructions // 8
    return HEAD.format(max(rounds, 8)) + "".join([ROUND.format(i) for i in range(rounds)]) + "\tret;\n\n}\n"


def best(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the shortest of three process times, and what the last run returned."""
    found: list[float] = []
    result: Any = None
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        result = work()
        found.append(time.process_time() - start)
    return min(found), result


def measure(name: str, source: str) -> None:
    """Print the microseconds per instruction of every step."""
    count = sum(isinstance(node, Instruction) for node in visit(parse(source)))
    ptx_to_python(source)  # the first time makes tables that stay
    transpiled, python = best(lambda: ptx_to_python(source))
    compiled, code = best(lambda: compile(python, "generated.py", "exec"))

    def traced() -> str:
        scope: dict[str, Any] = {"__name__": "generated"}
        exec(code, scope)
        return scope["module"].ptx()

    run, printed = best(traced)
    assert printed == source
    each = [f"{1e6 * seconds / count:7.1f}" for seconds in (transpiled, compiled, run)]
    print(f"{name:28} {count:8} {' '.join(each)}", flush=True)


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
            measure(f"{size} instructions", text(size))


if __name__ == "__main__":
    main()
