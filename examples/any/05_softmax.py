"""Softmax: y[r, :] = exp(x[r, :] - max) / sum(exp(x[r, :] - max)), one CTA per row.

The idea: read each row once. A thread keeps its values in registers: it finds their maximum, replaces each by
exp(x - maximum), and adds these up. Once the maximum of the row is known, one factor per thread corrects both. Rows
longer than the registers hold go through online softmax: a new maximum rescales the sum so far. The hardware computes
powers of two, so exp(x) = 2 ** (x log2 e).

The protocol: no mbarriers; the two reductions over the CTA have a `bar.sync` each (`examples/parts/reduction.py`).
"""

from __future__ import annotations

import math

import numpy as np

from examples.parts.arithmetic import power_of_two
from examples.parts.example import Array, Example, Run
from examples.parts.reduction import cta_reduce
from examples.parts.rows import Row
from examples.parts.vectors import ONCE, store_vector
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import PtxType, f32

THREADS = 256
"""A row of 4096 is 16 values per thread, 64 bytes in flight, and all of it stays in registers: `KEPT` in
examples/parts/rows.py is the limit."""
LOG2E = math.log2(math.e)
LOWEST = -3.0e38
"""Less than most inputs, but finite: the difference of two such values is 0, that of two infinities is NaN."""


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    del n
    return (m, 1, 1)


def exponential(difference: reg.Reg) -> reg.Reg:
    """Return exp(difference)."""
    return power_of_two(difference * LOG2E)


def make(
    arch: str = "sm_80", dtype: PtxType = f32, *, threads: int = THREADS, cache: str | None = ONCE,
    store_cache: str | None = None,
) -> Kernel:  # fmt: skip
    """Return the kernel for a target, of f32 or bf16. A row needs one value above -3e38."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", dtype),), out_specs=(Tile("m", "n", dtype),),
        grid=grid, block=(threads, 1, 1),
    )  # fmt: skip
    def softmax(x: TensorSpec, y: TensorSpec) -> None:
        n, size = x.shape[1], dtype.bits // 8
        px, py = ptx.global_ptrs(x, y)
        thread = ptx.special.tid.x()
        source, target = (ptx.mad(ptx.special.ctaid.x(), n * size, p, mode="wide") for p in (px, py))
        row = Row(dtype, source, n, thread, threads, cache)
        largest, total = reg.scalar(f32, LOWEST, name="largest"), reg.scalar(f32, 0, name="total")

        def find_largest(values: list[reg.Reg], first: reg.Reg) -> None:
            del first
            for value in values:
                ptx.max(f32, largest, largest, value)

        def exponentiate(values: list[reg.Reg], first: reg.Reg) -> None:
            del first
            for value in values:
                ptx.mov(f32, value, exponential(value - largest))
                ptx.add(f32, total, total, value)

        # Phase 1: the thread's maximum and its sum of exponentials. The kept values become exponentials.
        row.load()
        row.visit_kept(find_largest)
        kept_largest = reg.from_(largest, f32)
        row.visit_kept(exponentiate)

        def rescale(values: list[reg.Reg], first: reg.Reg) -> None:
            previous = reg.from_(largest, f32)
            find_largest(values, first)
            ptx.mul(f32, total, total, exponential(previous - largest))
            exponentiate(values, first)

        row.visit_rest(rescale)

        # Phase 2: find the row's maximum, rescale each thread's sum to it, and add the sums.
        thread_largest = reg.from_(largest, f32)
        row_largest = cta_reduce("max", largest, thread, threads)
        row_total = cta_reduce("sum", total * exponential(thread_largest - row_largest), thread, threads)
        inverse = ptx.rcp(f32, row_total)
        factor = exponential(kept_largest - row_largest) * inverse

        # Phase 3: write the result.
        def store_kept(values: list[reg.Reg], first: reg.Reg) -> None:
            store_vector(dtype, ptx.addr(target, first * size), [value * factor for value in values], cache=store_cache)

        def store_rest(values: list[reg.Reg], first: reg.Reg) -> None:
            results = [exponential(value - row_largest) * inverse for value in values]
            store_vector(dtype, ptx.addr(target, first * size), results, cache=store_cache)

        row.visit_kept(store_kept)
        row.visit_rest(store_rest)

    return softmax


def reference(x: Array) -> Array:
    """Return the expected result, in f64."""
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


EMPTY = {"PTX0993": "threads without elements keep LOWEST, whose weight is exp(-inf), 0"}
"""Findings of rows that are shorter than a CTA has threads."""

EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 3, "n": 4}, 1e-5, 1e-30, 20, findings=EMPTY),
        Run({"m": 3, "n": 1023}, 1e-5, 1e-30, 20),
        Run({"m": 2, "n": 18500}, 1e-5, 1e-30, 20),
        Run({"m": 4, "n": 2500}, 1e-5, 1e-30, 20, special=True),
    ),
    large={"m": 16384, "n": 4096},
    sass=("LDG.E.NA.128", "MUFU.EX2"),
    kept=("n",),
    traffic=lambda shape: 8 * shape["m"] * shape["n"],
    peer="softmax triton_softmax",
)

if __name__ == "__main__":
    EXAMPLE.show()
