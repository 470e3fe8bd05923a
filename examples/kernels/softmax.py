"""Softmax: y[r, :] = exp(x[r, :] - max) / sum(exp(x[r, :] - max)), one CTA for each row.

The idea: the running form. Each thread keeps the largest value m so far and the sum s of exp(x - m); a larger value
scales the sum down. One reading of the row gives both, a second one writes the result. Exponentials are powers of two:
exp(x) = 2 ** (x log2 e), because that is what the hardware has.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from examples.parts.reduction import cta_reduce
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import f32

THREADS, WIDTH = 256, 4
LOG2E = math.log2(math.e)
LEAST = -3.0e38
"""Below every input, and finite: the difference of two of these is 0, that of two infinities no number."""
Array = np.ndarray[Any, Any]


def power_of_two(exponent: reg.Reg) -> reg.Reg:
    """Return 2 ** exponent."""
    made = reg.scalar(f32)
    ptx.inst.ex2.approx.ftz.f32(made, exponent)
    return made


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return how many CTAs a shape takes."""
    return (m, 1, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target. Rows are a multiple of 4 long; inputs lie above -2e38."""

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

        # Phase 1: the thread's own largest value (times log2 e) and sum, in one reading.
        largest, total = reg.scalar(f32, LEAST, name="largest"), reg.scalar(f32, 0, name="total")
        for i in ptx.range_(thread * WIDTH, n, THREADS * WIDTH):
            ptx.ld(f32, value, ptx.addr(source, i * 4))
            for lane in value:
                ptx.mul(f32, lane, lane, LOG2E)
            now = largest.max(value[0].max(value[1])).max(value[2].max(value[3]))
            ptx.mul(f32, total, total, power_of_two(largest - now))
            ptx.mov(f32, largest, now)
            for lane in value:
                ptx.add(f32, total, total, power_of_two(lane - largest))

        # Phase 2: the CTA agrees on the largest; each sum is scaled to it, then all are added.
        mine = reg.from_(largest, f32)
        peak = cta_reduce("max", largest, thread, THREADS)
        whole = cta_reduce("sum", total * power_of_two(mine - peak), thread, THREADS)

        # Phase 3: write.
        inverse = reg.scalar(f32)
        ptx.inst.rcp.rn.f32(inverse, whole)
        for i in ptx.range_(thread * WIDTH, n, THREADS * WIDTH):
            ptx.ld(f32, value, ptx.addr(source, i * 4))
            for lane in value:
                ptx.mul(f32, lane, power_of_two(ptx.mad(lane, LOG2E, -peak)), inverse)
            ptx.st(f32, ptx.addr(target, i * 4), value)

    return softmax


def reference(x: Array) -> Array:
    """Return what the kernel computes, in f64."""
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
