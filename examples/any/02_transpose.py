"""Transpose: out = a.T, through swizzled shared memory.

The idea: each warp reads 32 adjacent floats of an input row and writes 32 adjacent floats of an output row, so both
global accesses are coalesced; a 32 x 32 tile of shared memory transposes them. Reading a column of a plain tile would
access one bank from all 32 lanes. Here element (y, x) is stored in column x ^ y of its row: for a fixed x all banks
x ^ y differ, and for a fixed y, too. There are no bank conflicts and no padding.

The protocol: one `bar.sync 0` of all threads, between writing and reading the tile.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import f32

SIDE, ROWS = 32, 8
"""Of a tile, and rows of it that the threads copy at a time. A warp reads and writes whole lines of 128 bytes, and each
thread has four loads in flight: 32 KiB per SM with 2,048 threads."""


def make(arch: str = "sm_80", *, side: int = SIDE, step: int = ROWS) -> Kernel:
    """Return the kernel for a target. The side is a power of two from 32."""

    def grid(m: int, n: int) -> tuple[int, int, int]:
        return (-(-n // side), -(-m // side), 1)

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", f32),), out_specs=(Tile("n", "m", f32),),
        grid=grid, block=(side, step, 1),
    )  # fmt: skip
    def transpose(a: TensorSpec, out: TensorSpec) -> None:
        rows, columns = a.shape
        pa, po = ptx.global_ptrs(a, out)
        tile = smem.alloc(f32, (side, side), name="tile")
        x, y = ptx.special.tid.x(), ptx.special.tid.y()
        left, top = ptx.special.ctaid.x() * side, ptx.special.ctaid.y() * side

        # Phase 1: copy input rows to tile rows. A warp has one y: its banks are x ^ y.
        for first in range(0, side, step):
            row, column = top + y + first, left + x
            with ptx.if_((row < rows) & (column < columns)):
                value = reg.scalar(f32)
                ptx.ld(f32, value, ptx.mad(row * columns + column, 4, pa, mode="wide"))
                tile[y + first, x ^ (y + first)] = value

        # Write all rows of the tile before reading any column.
        ptx.bar.sync(0)

        # Phase 2: copy tile columns to output rows. Now x is the row in the tile.
        for first in range(0, side, step):
            row, column = left + y + first, top + x
            with ptx.if_((row < columns) & (column < rows)):
                value = tile[x, (y + first) ^ x]
                ptx.st(f32, ptx.mad(row * rows + column, 4, po, mode="wide"), value)

    return transpose


def reference(a: Array) -> Array:
    """Return the expected result."""
    return np.ascontiguousarray(a.T)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 1, "n": 5}),
        Run({"m": 32, "n": 32}),
        Run({"m": 64, "n": 96}),
        Run({"m": 33, "n": 70}, special=True),
    ),
    large={"m": 8192, "n": 8192},
    sass=("STS", "LDS"),
    traffic=lambda shape: 8 * shape["m"] * shape["n"],
    peer="transpose triton_transpose",
)

if __name__ == "__main__":
    EXAMPLE.show()
