"""Transpose: out = a.T, through swizzled shared memory.

The idea: rows of the input are read and rows of the output written, 32 neighboring floats for a warp, so that both
sides of global memory are coalesced; the turn happens in a 32 x 32 tile of shared memory. Read by columns, a plain tile
would put all 32 lanes on one bank. Here element (y, x) stands in column x ^ y of its row: for a fixed x the banks x ^ y
are all different, and for a fixed y too. No padding, no conflict.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import f32

SIDE, ROWS = 32, 8
Array = np.ndarray[Any, Any]


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return how many CTAs a shape takes."""
    return (-(-n // SIDE), -(-m // SIDE), 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", f32),), out_specs=(Tile("n", "m", f32),),
        grid=grid, block=(SIDE, ROWS, 1),
    )  # fmt: skip
    def transpose(a: TensorSpec, out: TensorSpec) -> None:
        rows, columns = a.shape
        pa, po = ptx.global_ptrs(a, out)
        tile = smem.alloc(f32, (SIDE, SIDE), name="tile")
        x, y = ptx.special.tid.x(), ptx.special.tid.y()
        left, top = ptx.special.ctaid.x() * SIDE, ptx.special.ctaid.y() * SIDE

        # Phase 1: rows of the input to rows of the tile. A warp holds one y: its banks are x ^ y.
        for step in range(0, SIDE, ROWS):
            row, column = top + y + step, left + x
            with ptx.if_((row < rows) & (column < columns)):
                value = reg.scalar(f32)
                ptx.ld(f32, value, ptx.mad(row * columns + column, 4, pa, mode="wide"))
                tile[y + step, x ^ (y + step)] = value

        # Every row of the tile is there before any column is read.
        ptx.bar.sync(0)

        # Phase 2: columns of the tile to rows of the output. Now the lanes' x walks down the tile.
        for step in range(0, SIDE, ROWS):
            row, column = left + y + step, top + x
            with ptx.if_((row < columns) & (column < rows)):
                value = tile[x, (y + step) ^ x]
                ptx.st(f32, ptx.mad(row * rows + column, 4, po, mode="wide"), value)

    return transpose


def reference(a: Array) -> Array:
    """Return what the kernel computes."""
    return np.ascontiguousarray(a.T)
