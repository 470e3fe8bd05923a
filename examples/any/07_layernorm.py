"""LayerNorm: y[r, :] = (x[r, :] - mean) / sqrt(variance + eps) * w + b, in bf16 with f32 arithmetic, one CTA per row.

The idea: the variance is the mean of (x - mean) ** 2. The usual shortcut, mean(x ** 2) - mean ** 2, cancels when the
mean is large. Values in registers make the exact way cheap: three passes over a row that is read once.

The protocol: no mbarriers; the two reductions over the CTA have a `bar.sync` each (`examples/parts/reduction.py`).
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import HALF, Array, Example, Run
from examples.parts.reduction import cta_reduce
from examples.parts.rows import Row
from examples.parts.vectors import ONCE, load_vector, store_vector
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import PtxType, bf16, f32

THREADS = 256
"""A row of 8192 is 32 values per thread, 64 bytes in flight, and all of it stays in registers: `KEPT` in
examples/parts/rows.py is the limit."""
EPSILON = 1e-5


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    del n
    return (m, 1, 1)


def make(
    arch: str = "sm_80", dtype: PtxType = bf16, *, threads: int = THREADS, cache: str | None = ONCE,
    store_cache: str | None = None,
) -> Kernel:  # fmt: skip
    """Return the kernel for a target, of f32 or bf16."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", dtype), Tile("n", dtype), Tile("n", dtype)),
        out_specs=(Tile("m", "n", dtype),), grid=grid, block=(threads, 1, 1),
    )  # fmt: skip
    def layernorm(x: TensorSpec, w: TensorSpec, b: TensorSpec, y: TensorSpec) -> None:
        n, size = x.shape[1], dtype.bits // 8
        px, pw, pb, py = ptx.global_ptrs(x, w, b, y)
        thread = ptx.special.tid.x()
        source, target = (ptx.mad(ptx.special.ctaid.x(), n * size, p, mode="wide") for p in (px, py))
        row = Row(dtype, source, n, thread, threads, cache)
        total, squares = reg.scalar(f32, 0, name="total"), reg.scalar(f32, 0, name="squares")

        # Phase 1: the mean.
        def add_values(values: list[reg.Reg], first: reg.Reg) -> None:
            del first
            for value in values:
                ptx.add(f32, total, total, value)

        row.load()
        row.visit(add_values)
        mean = cta_reduce("sum", total, thread, threads) * (1 / n)

        # Phase 2: the variance.
        def add_squares(values: list[reg.Reg], first: reg.Reg) -> None:
            del first
            for value in values:
                deviation = value - mean
                ptx.fma(f32, squares, deviation, deviation, squares)

        row.visit(add_squares)
        variance = cta_reduce("sum", squares, thread, threads) * (1 / n)
        scale = ptx.rsqrt(f32, variance + EPSILON, approx=True)

        # Phase 3: write the result.
        def store_normalized(values: list[reg.Reg], first: reg.Reg) -> None:
            weights, biases = (load_vector(dtype, ptx.addr(p, first * size), row.width) for p in (pw, pb))
            results = [
                ptx.fma(f32, (value - mean) * scale, weight, bias)
                for value, weight, bias in zip(values, weights, biases, strict=True)
            ]
            store_vector(dtype, ptx.addr(target, first * size), results, cache=store_cache)

        row.visit(store_normalized)

    return layernorm


def reference(x: Array, w: Array, b: Array) -> Array:
    """Return the expected result before rounding to bf16, in f64."""
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        deviations = wide - wide.mean(axis=1, keepdims=True)
        scale = 1 / np.sqrt((deviations**2).mean(axis=1, keepdims=True) + EPSILON)
        return deviations * scale * w.astype(np.float64) + b.astype(np.float64)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 3, "n": 8}, HALF, 1e-5),
        Run({"m": 3, "n": 1302}, HALF, 1e-5),
        Run({"m": 2, "n": 18504}, HALF, 1e-5),
        Run({"m": 4, "n": 1023}, HALF, 1e-5, special=True),
    ),
    large={"m": 16384, "n": 8192},
    sass=("LDG.E.NA.128", "SHFL.BFLY", "MUFU.RSQ"),
    kept=("n",),
    traffic=lambda shape: 4 * shape["m"] * shape["n"],
    peer="layer_norm triton_layer_norm",
)

if __name__ == "__main__":
    EXAMPLE.show()
