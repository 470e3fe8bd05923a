"""RMSNorm backward: the gradient of x / sqrt(mean(x ** 2) + eps) * w for every row of x, and parts of that for w.

With s = 1 / sqrt(mean(x ** 2) + eps), dx = s * (w * dy - x * s ** 2 * mean(x * w * dy)) for each row, and dw is the sum
of dy * x * s over all rows. The inputs are bf16 with f32 arithmetic.

The idea: each of `parts` CTAs visits every `parts`-th row and keeps its sum for dw in registers, so that both gradients
come from one read of x and dy. There are no atomics: a CTA writes its sum, in f32, and 12_column_sums.py adds the sums
of all CTAs, in the same order each time. Columns beyond the kept ones, 4096 with 256 threads, are read a second time
for dx, and their sums live in the CTA's row of the result: each element is read and written by one thread.

The protocol: no mbarriers. A row has two reductions over the CTA with a `bar.sync` each. Each has shared memory of its
own, which is written again only after the `bar.sync` of the other one, hence after all threads have read it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from examples.parts.example import HALF, Array, Example, Run, widen
from examples.parts.reduction import cta_reduce
from examples.parts.vectors import ONCE, choose_width, load_vector, store_vector
from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg
from pyptx.types import PtxType, bf16, f32

THREADS, KEPT, PARTS = 256, 16, 396
"""A thread keeps so many values of each of x, dy, w and dw: 80 registers, so three CTAs fit on each of 132 SMs."""
EPSILON = 1e-5
Values = list[reg.Reg]


@intrinsic
def load_sums(address: reg.Reg, width: int) -> Values:
    """Load adjacent f32, 16 bytes at a time."""
    step = min(width, 4)
    return [value for i in range(0, width, step) for value in load_vector(f32, ptx.addr(address, i * 4), step)]


@intrinsic
def store_sums(address: reg.Reg, sums: Values) -> None:
    """Store adjacent f32, 16 bytes at a time."""
    for i in range(0, len(sums), 4):
        store_vector(f32, ptx.addr(address, i * 4), sums[i : i + 4])


def make(
    arch: str = "sm_80", dtype: PtxType = bf16, *, threads: int = THREADS, kept: int = KEPT, parts: int = PARTS
) -> Kernel:  # fmt: skip
    """Return the kernel for a target, of f32 or bf16."""
    size = dtype.bits // 8

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", dtype), Tile("n", dtype), Tile("m", "n", dtype)),
        out_specs=(Tile("m", "n", dtype), Tile(parts, "n", f32)), grid=(parts, 1, 1), block=(threads, 1, 1),
    )  # fmt: skip
    def rmsnorm_backward(x: TensorSpec, w: TensorSpec, dy: TensorSpec, dx: TensorSpec, dw: TensorSpec) -> None:
        # Long: the phases share registers.
        m, n = x.shape
        width = choose_width(dtype, n)
        step = threads * width
        px, pw, pdy, pdx, pdw = ptx.global_ptrs(x, w, dy, dx, dw)
        thread, part = ptx.special.tid.x(), ptx.special.ctaid.x()
        partials = ptx.mad(part, n * 4, pdw, mode="wide")
        columns = [thread * width + i * step for i in range(min(-(-n // step), kept // width))]
        sums = [[reg.scalar(f32, 0) for _ in range(width)] for _ in columns]
        weights: list[Values] = []

        def load(base: reg.Reg, column: reg.Reg, cache: str | None = None) -> Values:
            return load_vector(dtype, ptx.addr(base, column * size), width, cache=cache)

        def visit_kept(visitor: Callable[[int], None]) -> None:
            """Call the visitor for each of the thread's kept vectors."""
            for i, column in enumerate(columns):
                if (i + 1) * step <= n:
                    visitor(i)
                    continue
                with ptx.if_(column < n):
                    visitor(i)

        def visit_rest(visitor: Callable[[reg.Reg], None]) -> None:
            """Call the visitor for each of the thread's other vectors, in a loop on the GPU."""
            if len(columns) * step < n:
                for column in ptx.range_(thread * width + len(columns) * step, n, step):
                    visitor(column)

        visit_kept(lambda i: weights.append(load(pw, columns[i])))
        visit_rest(lambda column: store_sums(ptx.mad(column, 4, partials, mode="wide"), [reg.scalar(f32, 0)] * width))

        def process(row: reg.Reg) -> None:
            source, source_dy, target = (ptx.mad(row, n * size, p, mode="wide") for p in (px, pdy, pdx))
            values: list[Values] = []
            gradients: list[Values] = []
            squares, products = reg.scalar(f32, 0, name="squares"), reg.scalar(f32, 0, name="products")

            # Phase 1: load the row, and sum x ** 2 and x * w * dy, first within the thread, then over the CTA.
            def load_kept(i: int) -> None:
                values.append(load(source, columns[i], ONCE))
                gradients.append(load(source_dy, columns[i], ONCE))

            def add_products(vector: Values, factors: Values, slopes: Values) -> None:
                for value, weight, gradient in zip(vector, factors, slopes, strict=True):
                    ptx.fma(f32, squares, value, value, squares)
                    ptx.fma(f32, products, value, weight * gradient, products)

            visit_kept(load_kept)
            visit_kept(lambda i: add_products(values[i], weights[i], gradients[i]))
            visit_rest(lambda column: add_products(*(load(base, column) for base in (source, pw, source_dy))))
            scale = ptx.rsqrt(
                f32, ptx.fma(f32, cta_reduce("sum", squares, thread, threads), 1 / n, EPSILON), approx=True
            )
            factor = cta_reduce("sum", products, thread, threads) * (scale * scale * (1 / n))

            # Phase 2: store dx, and add to the sums for dw.
            def finish(column: reg.Reg, totals: Values, vector: Values, factors: Values, slopes: Values) -> None:
                results: Values = []
                for total, value, weight, gradient in zip(totals, vector, factors, slopes, strict=True):
                    results.append((weight * gradient - value * factor) * scale)
                    ptx.fma(f32, total, value * scale, gradient, total)
                store_vector(dtype, ptx.addr(target, column * size), results)

            def finish_rest(column: reg.Reg) -> None:
                place = ptx.mad(column, 4, partials, mode="wide")
                totals = load_sums(place, width)
                finish(column, totals, *(load(base, column) for base in (source, pw, source_dy)))
                store_sums(place, totals)

            visit_kept(lambda i: finish(columns[i], sums[i], values[i], weights[i], gradients[i]))
            visit_rest(finish_rest)

        for row in ptx.range_(part, m, parts):
            process(row)

        # Phase 3: write the sums for dw.
        visit_kept(lambda i: store_sums(ptx.mad(columns[i], 4, partials, mode="wide"), sums[i]))

    return rmsnorm_backward


def reference(x: Array, w: Array, dy: Array) -> tuple[Array, Array]:
    """Return the expected gradient of x before rounding to bf16, and the parts of that of w, in f64."""
    x, w, dy = (widen(array) for array in (x, w, dy))
    with np.errstate(invalid="ignore"):
        scale = 1 / np.sqrt((x**2).mean(axis=1, keepdims=True) + EPSILON)
        products = (x * w * dy).mean(axis=1, keepdims=True)
        dx, slopes = scale * (w * dy - x * scale**2 * products), dy * x * scale
    return dx, np.stack([slopes[part::PARTS].sum(axis=0) for part in range(PARTS)])


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 3, "n": 1}, HALF, 1e-5),
        Run({"m": 3, "n": 1302}, HALF, 1e-5),
        Run({"m": 400, "n": 1000}, HALF, 1e-5),
        Run({"m": 2, "n": 4500}, HALF, 1e-5),
        Run({"m": 4, "n": 1024}, HALF, 1e-5, special=True),
    ),
    large={"m": 16384, "n": 4096},
    sass=("LDG.E.NA.128", "SHFL.BFLY", "MUFU.RSQ"),
    kept=("n",),
    traffic=lambda shape: (6 * shape["m"] + 4 * PARTS) * shape["n"],
    peer="rms_norm_backward triton_rms_norm_backward",
)

if __name__ == "__main__":
    EXAMPLE.show()
