"""RMSNorm: y[r, :] = x[r, :] / sqrt(mean(x[r, :] ** 2) + eps) * w, one CTA per row.

The idea: read each row once. A thread keeps its values in registers while the CTA adds up the squares, and then scales
them. The loads of all values are issued before the first is used, 16 bytes each.

The protocol: no mbarriers; the reduction over the CTA has one `bar.sync` (`examples/parts/reduction.py`).
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from examples.parts.reduction import cta_reduce
from examples.parts.rows import Row
from examples.parts.vectors import ONCE, load_vector, store_vector
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import PtxType, f32

THREADS = 256
"""A row of 4096 is 16 values per thread, 64 bytes in flight, and all of it stays in registers: `KEPT` in
examples/parts/rows.py is the limit."""
EPSILON = 1e-5


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    del n
    return (m, 1, 1)


def make(
    arch: str = "sm_80", dtype: PtxType = f32, *, threads: int = THREADS, cache: str | None = ONCE,
    store_cache: str | None = None,
) -> Kernel:  # fmt: skip
    """Return the kernel for a target, of f32 or bf16."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", dtype), Tile("n", dtype)), out_specs=(Tile("m", "n", dtype),),
        grid=grid, block=(threads, 1, 1),
    )  # fmt: skip
    def rmsnorm(x: TensorSpec, w: TensorSpec, y: TensorSpec) -> None:
        n, size = x.shape[1], dtype.bits // 8
        px, pw, py = ptx.global_ptrs(x, w, y)
        thread = ptx.special.tid.x()
        source, target = (ptx.mad(ptx.special.ctaid.x(), n * size, p, mode="wide") for p in (px, py))
        row = Row(dtype, source, n, thread, threads, cache)
        squares = reg.scalar(f32, 0, name="squares")

        # Phase 1: sum the squares, first within the thread, then over the CTA.
        def add_squares(values: list[reg.Reg], first: reg.Reg) -> None:
            del first
            for value in values:
                ptx.fma(f32, squares, value, value, squares)

        row.load()
        row.visit(add_squares)
        total = cta_reduce("sum", squares, thread, threads)

        # Phase 2: scale. `rsqrt.approx` has a maximum relative error of 2 ** -22.9.
        scale = ptx.rsqrt(f32, ptx.fma(f32, total, 1 / n, EPSILON), approx=True)

        def store_scaled(values: list[reg.Reg], first: reg.Reg) -> None:
            weights = load_vector(dtype, ptx.addr(pw, first * size), row.width)
            results = [value * scale * weight for value, weight in zip(values, weights, strict=True)]
            store_vector(dtype, ptx.addr(target, first * size), results, cache=store_cache)

        row.visit(store_scaled)

    return rmsnorm


def reference(x: Array, w: Array) -> Array:
    """Return the expected result, in f64."""
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + EPSILON) * w.astype(np.float64)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 3, "n": 4}, 2e-6),
        Run({"m": 3, "n": 1302}, 2e-6),
        Run({"m": 2, "n": 18500}, 2e-6),
        Run({"m": 4, "n": 1024}, 2e-6, special=True),
    ),
    large={"m": 16384, "n": 4096},
    sass=("LDG.E.NA.128", "SHFL.BFLY", "MUFU.RSQ"),
    kept=("n",),
    traffic=lambda shape: 8 * shape["m"] * shape["n"],
    peer="rms_norm triton_rms_norm",
)

if __name__ == "__main__":
    EXAMPLE.show()
