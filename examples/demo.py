"""What pyptx does today, on a real kernel: run it on the CPU against NumPy, parse, print, check, assemble, disassemble,
and find planted mistakes.

Run by `make demo`. The kernel is a warp-specialized GEMM for Hopper: TMA, mbarriers and wgmma. No GPU takes part.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from pyptx import sim
from pyptx.check import check
from pyptx.diagnostics import render
from pyptx.emitter import emit
from pyptx.ir import Instruction, Module, visit
from pyptx.parser import parse
from pyptx.tensormap import ElementType, Swizzle, TensorMap
from pyptx.toolchain import assemble, disassemble, occupancy, resources, validate

KERNEL = Path(__file__).with_name("hopper_gemm.ptx")
THREADS, DYNAMIC_SHARED = 384, 131_072
SIZES = [(256, 256, 256), (512, 768, 320), (1024, 1024, 1024)]
"""M, N and K of the products that are run."""

MISTAKES = [
    (
        "a tensor map used without making its address generic: ptxas accepts it, and the copy reads a wrong address",
        "    cvta.param.u64  %b_desc_ptr, %b_desc_ptr;\n",
        "",
    ),
    ("a wgmma shape that bf16 does not have", ".m64n128k16.f32.bf16.bf16", ".m64n128k32.f32.bf16.bf16"),
    ("a wait on a barrier that nobody declared", "[%bar_full], %phase;", "[%bar_ful], %phase;"),
]


def main() -> int:
    text = KERNEL.read_text("utf-8")
    print(f"== {KERNEL.name}")
    module = show_reading(text)
    wrong = show_running(module)
    show_assembling(text)
    clean = not check(module)
    print(f"   checked: {'no findings' if clean else render(check(module), text)}")
    missed = show_mistakes(text)
    return 0 if clean and not missed and not wrong else 1


def show_reading(text: str) -> Module:
    """Parse the kernel, show what is in it, and print it again byte for byte."""
    start = time.perf_counter()
    module = parse(text)
    elapsed = time.perf_counter() - start
    opcodes = Counter(node.opcode for node in visit(module) if isinstance(node, Instruction))
    print(f"   parsed in {elapsed * 1e3:.1f} ms: {opcodes.total()} instructions, {len(opcodes)} different opcodes")
    print(f"   printed again: {'the same bytes' if emit(module) == text else 'DIFFERENT BYTES'}")
    return module


def show_running(module: Module) -> bool:
    """Run the kernel on the simulator, copies landing at once and as late as they may; say whether NumPy disagrees."""
    random = np.random.default_rng(0)
    wrong = False
    for m, n, k in SIZES:
        a, b = (random.standard_normal((rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        for schedule in ("eager", "lazy"):
            d = np.full((m, n), np.nan, np.float32)
            start = time.perf_counter()
            arguments = [sim.Tensor(a, tiles_of(a)), sim.Tensor(b, tiles_of(b)), d, n, k // 64]
            grid = (n // 128, m // 128)
            run = sim.run(module, grid=grid, block=THREADS, shared=DYNAMIC_SHARED, args=arguments, schedule=schedule)
            elapsed = time.perf_counter() - start
            error = float(np.abs(d - exact).max())
            equal = error < 1e-3
            print(
                f"   simulated {m} x {n} x {k}, {schedule}: {run.stats.lanes} threads in {elapsed:.2f} s, "
                f"{'equals NumPy' if equal else 'DIFFERS FROM NUMPY'}, largest error {error:.1e}"
            )
            wrong = wrong or not equal
    return wrong


def tiles_of(matrix: NDArray[Any]) -> TensorMap:
    """Return the tensor map that the kernel expects: boxes of 64 x 128 elements in 128-byte swizzle."""
    rows, columns = matrix.shape
    return TensorMap(ElementType.BF16, 0, (columns, rows), (2 * columns,), (64, 128), swizzle=Swizzle.B128)


def show_assembling(text: str) -> None:
    """Assemble the kernel and show what it costs and which machine instructions do the work."""
    cubin = assemble(text)
    (needs,) = resources(cubin).values()
    resident = occupancy(cubin.target, THREADS, registers=needs.registers, shared=needs.shared + DYNAMIC_SHARED)
    print(f"   assembled for {cubin.target} by {cubin.producer}: {needs.registers} registers, {needs.shared} bytes of")
    print(
        f"   static shared memory, {needs.spill_stores} bytes spilled; {resident.ctas} CTA of {THREADS} threads per SM"
    )
    opcodes = Counter(line.opcode for line in disassemble(cubin))
    work = {name: count for name, count in opcodes.items() if name.startswith(("HGMMA", "UTMALDG", "SYNCS.PHASE"))}
    print(
        f"   machine code: {opcodes.total()} instructions, among them " + ", ".join(f"{n} {o}" for o, n in work.items())
    )


def show_mistakes(text: str) -> list[str]:
    """Plant each mistake, show what pyptx and ptxas find, and return the mistakes that pyptx did not find."""
    missed: list[str] = []
    for number, (what, right, wrong) in enumerate(MISTAKES, 1):
        assert text.count(right) >= 1, right
        broken = text.replace(right, wrong, 1)
        found = check(parse(broken))
        rejected = [d for d in validate(broken) if d.severity == "error"]
        print(f"\n== mistake {number}: {what}")
        print(f"   ptxas: {rejected[0].message if rejected else 'accepts it'}")
        print(render(found, broken, colour=sys.stdout.isatty()) or "   NOT FOUND")
        if not found:
            missed.append(what)
    return missed


if __name__ == "__main__":
    sys.exit(main())
