"""RMSNorm: y[r, :] = x[r, :] / sqrt(mean(x[r, :] ** 2) + eps) * w, one CTA per row.

The idea: read each row twice, first to sum its squares, then to scale it; the second read hits the cache. All accesses
are 16 bytes wide. The CTA reduces the sum once: butterfly shuffles within each warp, then eight values through shared
memory. The code size does not depend on the row length.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from examples.parts.reduction import cta_reduce
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import f32

THREADS, WIDTH = 256, 4
EPSILON = 1e-5


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    return (m, 1, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target. The row length is a multiple of 4."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", f32), Tile("n", f32)), out_specs=(Tile("m", "n", f32),),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def rmsnorm(x: TensorSpec, w: TensorSpec, y: TensorSpec) -> None:
        n = x.shape[1]
        px, pw, py = ptx.global_ptrs(x, w, y)
        thread, row = ptx.special.tid.x(), ptx.special.ctaid.x()
        source, target = (ptx.mad(row, n * 4, p, mode="wide") for p in (px, py))
        value = reg.array(f32, WIDTH)

        # Phase 1: sum the squares, first within the thread, then over the CTA.
        squares = reg.scalar(f32, 0)
        for i in ptx.range_(thread * WIDTH, n, THREADS * WIDTH):
            ptx.ld(f32, value, ptx.addr(source, i * 4))
            for lane in value:
                ptx.mad(f32, squares, lane, lane, squares)
        total = cta_reduce("sum", squares, thread, THREADS)

        # Phase 2: scale. `rsqrt.approx` has a maximum relative error of 2 ** -22.9.
        scale = reg.scalar(f32)
        ptx.inst.rsqrt.approx.f32(scale, ptx.mad(total, 1 / n, EPSILON))
        weight = reg.array(f32, WIDTH)
        for i in ptx.range_(thread * WIDTH, n, THREADS * WIDTH):
            ptx.ld(f32, value, ptx.addr(source, i * 4))
            ptx.ld(f32, weight, ptx.addr(pw, i * 4))
            for lane, factor in zip(value, weight, strict=True):
                ptx.mul(f32, lane, lane, scale)
                ptx.mul(f32, lane, lane, factor)
            ptx.st(f32, ptx.addr(target, i * 4), value)

    return rmsnorm


def reference(x: Array, w: Array) -> Array:
    """Return the expected result, in f64."""
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + EPSILON) * w


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(Run({"m": 3, "n": 4}, 2e-6), Run({"m": 3, "n": 1024}, 2e-6), Run({"m": 3, "n": 1300}, 2e-6)),
    large={"m": 16384, "n": 4096},
    sass=("LDG.E.128", "SHFL.BFLY", "MUFU.RSQ"),
    traffic=lambda shape: 8 * shape["m"] * shape["n"],
    peer="rms_norm",
)

if __name__ == "__main__":
    EXAMPLE.show()
