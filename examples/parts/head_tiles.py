"""Tiles of attention heads: rows of a tensor (heads, sequence, head dimension) in shared memory, as operands of wgmma.

A tile wider than the 128 bytes of the swizzle is stored in stripes of 64 columns. A box of TMA has 64 rows of a stripe,
so tiles have a multiple of 64 rows. Rows beyond the sequence load as zeros, and stores clip them: heads are a dimension
of the map, so no box reaches the next head. Knows no particular kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from examples.parts.softmax import pack
from pyptx import Layout, TensorSpec, Tile, intrinsic, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32

OUTSIDE = {
    "PTX0978": "boxes of a tile past the end of a head load zeros and store nothing: mbarriers count whole tiles"
}
"""Findings of lengths that are no multiple of the tiles."""
BOX = 64
"""Rows and columns of a box: 64 columns of bf16 are 128 bytes, the widest swizzle."""
Place = smem.SharedAlloc | smem.SharedSlice
ROWS, STEP = 64, 16
"""Rows of A and the depth of one wgmma."""


def check_dim(dim: int, dims: Iterable[int]) -> None:
    """Refuse a head dimension for which a kernel has no tiles."""
    if dim not in dims:
        *first, last = sorted(dims)
        raise ValueError(f"the head dimension must be {', '.join(map(str, first))} or {last}, found {dim}")


def make_heads(heads: str, length: str, dim: str = "d") -> Tile:
    """Return the tensor of a kernel whose tiles these are."""
    return Tile(heads, length, dim, bf16, Layout.TMA_128B, tma_box=(1, BOX, BOX))


@intrinsic
def load_tile(tile: Place, source: TensorSpec, row: Any, head: reg.Reg, mbar: Any) -> None:
    """Load a tile from its first row. One thread does; the mbarrier expects all bytes of the tile."""
    rows, columns = tile.shape
    address = tile.address()
    for left in range(0, columns, BOX):
        for first in range(0, rows, BOX):
            offset = (left * rows + first * BOX) * 2
            ptx.cp.async_.bulk.tensor_3d(
                dst=address + offset if offset else address, src=source,
                coord=(left, row + first if first else row, head), mbar=mbar,
            )  # fmt: skip


@intrinsic
def multiply_transposed(sums: reg.RegArray, a: Place, b: Place) -> None:
    """Issue sums = a @ b.T: the depth is the columns of both tiles. `a` has 64 rows."""
    rows, depth = b.shape
    first = ptx.wgmma.auto_descriptor(a, dtype=bf16, shape=(ROWS, depth), major="K")
    second = ptx.wgmma.auto_descriptor(b, dtype=bf16, shape=(rows, depth), major="K")
    for step in range(0, depth, STEP):
        ptx.wgmma.mma_async(
            shape=(ROWS, rows, STEP), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums, a=first, b=second,
            scale_d=step > 0, a_k_offset=find_column(step, ROWS), b_k_offset=find_column(step, rows),
        )  # fmt: skip


@intrinsic
def multiply_add(sums: reg.RegArray, a: reg.RegArray, b: Place) -> None:
    """Issue sums += a @ b: `a` is packed in registers, and the depth is the rows of `b`."""
    depth, columns = b.shape
    second = ptx.wgmma.auto_descriptor(b, dtype=bf16, shape=(depth, columns), major="MN")
    for step in range(0, depth, STEP):
        # Rows along the depth are 128 bytes apart in every stripe.
        ptx.wgmma.mma_async(
            shape=(ROWS, columns, STEP), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums,
            a=a[step // 4 : step // 4 + 4], b=second, scale_d=True, trans_b=1, b_k_offset=step * 128,
        )  # fmt: skip


def find_column(column: int, rows: int) -> int:
    """Return the byte offset of a column in a tile of this many rows."""
    return column // BOX * rows * 128 + column % BOX * 2


@intrinsic
def write_rows(values: list[reg.Reg], tile: Place, thread: reg.Reg) -> None:
    """Write a warpgroup's 64 rows of an accumulator to a tile as bf16. The layout is the one that TMA stores."""
    lane = thread & 31
    row = ((thread >> 5) & 3) * 16 + (lane & 15)
    origin = tile.address() + smem.apply_swizzle(row * 128 + (lane >> 4) * 16, "128B")
    for j in range(len(values) // 8):
        packed = [reg.alloc(bf16x2) for _ in range(4)]
        pack(values[8 * j : 8 * j + 8], packed)
        # 16 columns are 32 bytes. The swizzle XORs these address bits, so XOR also steps along the row of a stripe.
        stripe, step = divmod(j, BOX // 16)
        base = origin + stripe * ROWS * 128 if stripe else origin
        ptx.stmatrix(smem=base ^ (32 * step) if step else base, regs=packed)


@intrinsic
def store_tile(target: TensorSpec, tile: Place, row: Any, head: reg.Reg, pred: reg.Reg) -> None:
    """Store a tile of 64 rows, and wait until TMA has read it. One thread does."""
    for left in range(0, tile.shape[1], BOX):
        source = tile.address() + left * ROWS * 2 if left else tile.address()
        ptx.cp.async_.bulk.tensor_3d.store(dst=target, src=source, coord=(left, row, head), pred=pred)
    ptx.cp.async_.bulk.commit_group(pred=pred)
    ptx.cp.async_.bulk.wait_group(0, read=True, pred=pred)
