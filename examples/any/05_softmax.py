"""Softmax: y[r, :] = exp(x[r, :] - max) / sum(exp(x[r, :] - max)), one CTA per row.

The idea: online softmax. Each thread keeps its maximum m so far and the sum s of exp(x - m); a new maximum rescales the
sum. One pass over the row computes both, and a second pass writes the result. The hardware computes powers of two, so
exp(x) = 2 ** (x log2 e).
"""

from __future__ import annotations

import math

import numpy as np

from examples.parts.arithmetic import power_of_two
from examples.parts.example import Array, Example, Run
from examples.parts.reduction import cta_reduce
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import f32

THREADS, WIDTH = 256, 4
LOG2E = math.log2(math.e)
LOWEST = -3.0e38
"""Less than every input, but finite: the difference of two such values is 0, that of two infinities is NaN."""


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    return (m, 1, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target. The row length is a multiple of 4; inputs are greater than -2e38."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", f32),), out_specs=(Tile("m", "n", f32),),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def softmax(x: TensorSpec, y: TensorSpec) -> None:
        n = x.shape[1]
        px, py = ptx.global_ptrs(x, y)
        thread, row = ptx.special.tid.x(), ptx.special.ctaid.x()
        source, target = (ptx.mad(row, n * 4, p, mode="wide") for p in (px, py))
        value = reg.array(f32, WIDTH)

        # Phase 1: the thread's maximum (times log2 e) and sum, in one pass.
        largest, total = reg.scalar(f32, LOWEST, name="largest"), reg.scalar(f32, 0, name="total")
        for i in ptx.range_(thread * WIDTH, n, THREADS * WIDTH):
            ptx.ld(f32, value, ptx.addr(source, i * 4))
            for lane in value:
                ptx.mul(f32, lane, lane, LOG2E)
            new_largest = largest.max(value[0].max(value[1])).max(value[2].max(value[3]))
            ptx.mul(f32, total, total, power_of_two(largest - new_largest))
            ptx.mov(f32, largest, new_largest)
            for lane in value:
                ptx.add(f32, total, total, power_of_two(lane - largest))

        # Phase 2: find the row's maximum, rescale each thread's sum to it, and add the sums.
        thread_max = reg.from_(largest, f32)
        row_max = cta_reduce("max", largest, thread, THREADS)
        row_sum = cta_reduce("sum", total * power_of_two(thread_max - row_max), thread, THREADS)

        # Phase 3: write the result.
        inverse = reg.scalar(f32)
        ptx.inst.rcp.rn.f32(inverse, row_sum)
        for i in ptx.range_(thread * WIDTH, n, THREADS * WIDTH):
            ptx.ld(f32, value, ptx.addr(source, i * 4))
            for lane in value:
                ptx.mul(f32, lane, power_of_two(ptx.mad(lane, LOG2E, -row_max)), inverse)
            ptx.st(f32, ptx.addr(target, i * 4), value)

    return softmax


def reference(x: Array) -> Array:
    """Return the expected result, in f64."""
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 3, "n": 4}, 2e-5, 1e-30, 20),
        Run({"m": 3, "n": 1024}, 2e-5, 1e-30, 20),
        Run({"m": 3, "n": 2500}, 2e-5, 1e-30, 20),
    ),
    large={"m": 16384, "n": 4096},
    sass=("LDG.E.128", "MUFU.EX2"),
    traffic=lambda shape: 8 * shape["m"] * shape["n"],
    peer="softmax",
)

if __name__ == "__main__":
    EXAMPLE.show()
