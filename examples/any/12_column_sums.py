"""Column sums: y[c] = sum(x[:, c]), as of the partial sums that 11_rmsnorm_backward.py leaves in f32, rounded to bf16.

The idea: a warp reads 32 adjacent columns, and a CTA's eight warps take turns with the rows. A thread adds four chains,
so that four loads are in flight; then the warps add their sums through shared memory. Everything is added in a fixed
order, so the result has the same bits each time.

The protocol: all threads write their sums before the one `bar.sync`, and the first warp reads them after it.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import HALF, Array, Example, Run
from examples.parts.vectors import ONCE, load_vector, store_vector
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import PtxType, bf16, f32

COLUMNS, WARPS, CHAINS = 32, 8, 4
"""A warp reads lines of 128 bytes. The input is small, so what counts is that all SMs take part: 4096 columns are 128
CTAs."""


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    del m
    return (-(-n // COLUMNS), 1, 1)


def make(
    arch: str = "sm_80", dtype: PtxType = bf16, *, warps: int = WARPS, chains: int = CHAINS
) -> Kernel:  # fmt: skip
    """Return the kernel for a target, with a result of f32 or bf16."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", f32),), out_specs=(Tile("n", dtype),), grid=grid,
        block=(COLUMNS, warps, 1),
    )  # fmt: skip
    def column_sums(x: TensorSpec, y: TensorSpec) -> None:
        m, n = x.shape
        px, py = ptx.global_ptrs(x, y)
        lane, warp = ptx.special.tid.x(), ptx.special.tid.y()
        column = ptx.special.ctaid.x() * COLUMNS + lane
        sums = [reg.scalar(f32, 0) for _ in range(chains)]
        tile = smem.alloc(f32, (warps, COLUMNS), name="tile")

        def load(row: reg.Reg) -> reg.Reg:
            address = ptx.mad(row, n * 4, ptx.mad(column, 4, px, mode="wide"), mode="wide")
            return load_vector(f32, ptx.addr(address), 1, cache=ONCE)[0]

        # Phase 1: the warp's sums. The loop has four rows in flight; what is left takes one at a time.
        with ptx.if_(column < n):
            whole = m // (warps * chains) * (warps * chains)
            for row in ptx.range_(warp, whole, warps * chains):
                for total, value in zip(sums, [load(row + i * warps) for i in range(chains)], strict=True):
                    ptx.add(f32, total, total, value)
            for row in ptx.range_(warp + whole, m, warps):
                ptx.add(f32, sums[0], sums[0], load(row))
        for total in sums[1:]:
            ptx.add(f32, sums[0], sums[0], total)
        tile[warp, lane] = sums[0]
        ptx.bar.sync(0)

        # Phase 2: the sums of all warps.
        with ptx.if_((warp == 0) & (column < n)):
            result = reg.scalar(f32, 0, name="result")
            for i in range(warps):
                ptx.add(f32, result, result, tile[i, lane])
            store_vector(dtype, ptx.mad(column, dtype.bits // 8, py, mode="wide"), [result])

    return column_sums


def reference(x: Array) -> Array:
    """Return the expected sums before rounding to bf16, in f64."""
    with np.errstate(invalid="ignore"):
        return x.sum(axis=0, dtype=np.float64)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 1, "n": 1}, HALF),
        Run({"m": 33, "n": 100}, HALF, 1e-5),
        Run({"m": 396, "n": 96}, HALF, 1e-5),
        Run({"m": 70, "n": 75}, HALF, 1e-5, special=True),
    ),
    large={"m": 396, "n": 4096},
    sass=("LDG.E.NA", "STS", "LDS"),
    traffic=lambda shape: (4 * shape["m"] + 2) * shape["n"],
    peer="column_sums triton_column_sums",
)

if __name__ == "__main__":
    EXAMPLE.show()
