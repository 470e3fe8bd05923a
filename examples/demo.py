"""Show pyptx on a real kernel: parse, print, run on the CPU against NumPy, check, assemble, disassemble, and find
planted mistakes.

`make demo` runs this file. The kernel is a warp-specialized GEMM for Hopper: TMA, mbarriers and wgmma. No GPU needed.
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
"""M, N and K of each product to run."""

MISTAKES = [
    (
        "a tensor map without a generic address: ptxas accepts it, but the copy reads the wrong address",
        "    cvta.param.u64  %b_desc_ptr, %b_desc_ptr;\n",
        "",
    ),
    ("a wgmma shape that does not exist for bf16", ".m64n128k16.f32.bf16.bf16", ".m64n128k32.f32.bf16.bf16"),
    ("a wait on an undeclared barrier", "[%bar_full], %phase;", "[%bar_ful], %phase;"),
]


def main() -> int:
    text = KERNEL.read_text("utf-8")
    print(f"== {KERNEL.name}")
    module = show_parsing(text)
    is_correct = show_simulation(module)
    show_assembly(text)
    findings = check(module)
    print(f"   checked: {render(findings, text) if findings else 'no findings'}")
    missed = show_mistakes(text)
    return 0 if is_correct and not findings and not missed else 1


def show_parsing(text: str) -> Module:
    """Parse the kernel, count its instructions, and print it back byte for byte."""
    start = time.perf_counter()
    module = parse(text)
    elapsed = time.perf_counter() - start
    opcodes = Counter(node.opcode for node in visit(module) if isinstance(node, Instruction))
    print(f"   parsed in {elapsed * 1e3:.1f} ms: {opcodes.total()} instructions, {len(opcodes)} different opcodes")
    print(f"   printed back: {'the same bytes' if emit(module) == text else 'DIFFERENT BYTES'}")
    return module


def show_simulation(module: Module) -> bool:
    """Run the kernel on the simulator, with copies that land at once and as late as possible. Return whether all
    results equal NumPy's."""
    random = np.random.default_rng(0)
    is_correct = True
    for m, n, k in SIZES:
        a, b = (random.standard_normal((rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        for schedule in ("eager", "lazy"):
            d = np.full((m, n), np.nan, np.float32)
            start = time.perf_counter()
            arguments = [sim.Tensor(a, make_map(a)), sim.Tensor(b, make_map(b)), d, n, k // 64]
            grid = (n // 128, m // 128)
            result = sim.run(module, grid=grid, block=THREADS, shared=DYNAMIC_SHARED, args=arguments, schedule=schedule)
            elapsed = time.perf_counter() - start
            error = float(np.abs(d - exact).max())
            is_equal = error < 1e-3
            print(
                f"   simulated {m} x {n} x {k}, {schedule}: {result.stats.lanes} threads in {elapsed:.2f} s, "
                f"{'equals NumPy' if is_equal else 'DIFFERS FROM NUMPY'}, largest error {error:.1e}"
            )
            is_correct = is_correct and is_equal
    return is_correct


def make_map(matrix: NDArray[Any]) -> TensorMap:
    """Return the tensor map that the kernel expects: boxes of 64 x 128 elements with 128-byte swizzle."""
    rows, columns = matrix.shape
    return TensorMap(ElementType.BF16, 0, (columns, rows), (2 * columns,), (64, 128), swizzle=Swizzle.B128)


def show_assembly(text: str) -> None:
    """Assemble the kernel and show its resource usage and its main machine instructions."""
    cubin = assemble(text)
    (usage,) = resources(cubin).values()
    residency = occupancy(cubin.target, THREADS, registers=usage.registers, shared=usage.shared + DYNAMIC_SHARED)
    print(f"   assembled for {cubin.target} by {cubin.producer}: {usage.registers} registers, {usage.shared} bytes of")
    print(
        f"   static shared memory, {usage.spill_stores} bytes spilled; {residency.ctas} CTA of {THREADS} threads per SM"
    )
    opcodes = Counter(line.opcode for line in disassemble(cubin))
    counts = {name: count for name, count in opcodes.items() if name.startswith(("HGMMA", "UTMALDG", "SYNCS.PHASE"))}
    print(
        f"   machine code: {opcodes.total()} instructions, including "
        + ", ".join(f"{count} {name}" for name, count in counts.items())
    )


def show_mistakes(text: str) -> list[str]:
    """Plant each mistake, show what ptxas and pyptx report, and return the mistakes that pyptx missed."""
    missed: list[str] = []
    for number, (description, correct, mistake) in enumerate(MISTAKES, 1):
        assert text.count(correct) >= 1, correct
        broken = text.replace(correct, mistake, 1)
        findings = check(parse(broken))
        errors = [d for d in validate(broken) if d.severity == "error"]
        print(f"\n== mistake {number}: {description}")
        print(f"   ptxas: {errors[0].message if errors else 'accepts it'}")
        print(render(findings, broken, colour=sys.stdout.isatty()) or "   NOT FOUND")
        if not findings:
            missed.append(description)
    return missed


if __name__ == "__main__":
    sys.exit(main())
