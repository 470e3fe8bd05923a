"""GEMM with double buffering in shared memory: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K).

The idea: four warps share a tile of 64 x 64, so each element from global memory is used 64 times. `cp.async` copies the
next tiles along K into one of two stages, without registers, while the warps multiply from the other. Rows in shared
memory are padded by 16 bytes: the eight rows that a warp reads at once then begin in different banks.

The protocol: per K tile, each thread commits one group of copies. `wait_group(0)` completes the thread's own copies of
the current stage, and the `bar.sync` after it everyone's. The same barrier shows that all threads have read the other
stage, which is filled next.

M and N are multiples of 64, K too.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops
from examples.parts.tile_order import ROW_BY_ROW, TileOrder
from examples.parts.warp_tile import WarpTile
from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import b8, b32, bf16, u32

THREADS, BLOCK = 128, 64
"""Two stages of both operands are 36 KiB, so four CTAs fit on an SM of sm_80: one loads while others multiply."""
ROW, PAD = BLOCK * 2, 16
PITCH = ROW + PAD
STEP = 32
"""Bytes along K of one product: 16 elements."""
TILE = WarpTile(bf16, 32, 32)
CHUNKS, ROWS_PER_COPY = ROW // 16, THREADS // (ROW // 16)


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    if m % BLOCK or n % BLOCK or k % BLOCK:
        raise ValueError(f"M, N and K must be multiples of {BLOCK}; found {m}, {n}, {k}")
    return (n // BLOCK, m // BLOCK, 1)


@intrinsic
def fill(stage: smem.SharedSlice, source: reg.Reg, pitch: int, thread: reg.Reg) -> None:
    """Copy a tile of 64 rows, `pitch` bytes apart from `source` on: eight threads copy a row of 128 bytes."""
    row, column = thread // CHUNKS, thread % CHUNKS * 16
    first = ptx.mad(row, pitch, source, mode="wide") + ptx.cvt("u64", u32, column)
    target = stage.address() + (row * PITCH + column)
    for down in range(0, BLOCK, ROWS_PER_COPY):
        ptx.cp.async_.cg(ptx.addr(target, down * PITCH), first, 16)
        if down + ROWS_PER_COPY < BLOCK:
            first = first + ROWS_PER_COPY * pitch


@intrinsic
def load_pairs(start: reg.Reg, rows: int, columns: int, step: int) -> list[reg.Reg]:
    """Load the registers of a fragment for each `rows` rows of 32: 8 x 8 elements each, `start` being the lane's."""
    return [
        ptx.ld(b32, ptx.addr(start, (first + down) * PITCH + step * STEP + right * 16), space="shared")
        for first in range(0, 32, rows)
        for right in range(columns)
        for down in range(0, rows, 8)
    ]


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "k", bf16), Tile("n", "k", bf16)), out_specs=(Tile("m", "n", bf16),),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def two_stage_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        (m, n), pitch = c.shape, a.shape[1] * 2
        pa, pb, pc = ptx.global_ptrs(a, b, c)
        thread = ptx.special.tid.x()
        lane, warp = thread & 31, thread >> 5
        top, left = ptx.special.ctaid.y() * BLOCK, ptx.special.ctaid.x() * BLOCK
        down, right = (warp & 1) * 32, (warp >> 1) * 32
        stages = smem.alloc(b8, (2, 2, BLOCK, PITCH), name="stages")
        sources = [ptx.mad(first, pitch, p, mode="wide") for first, p in ((top, pa), (left, pb))]
        # The lane's row and pair of elements in its first fragments.
        places = [(first + (lane >> 2)) * PITCH + (lane & 3) * 4 for first in (down, right)]
        sums = TILE.make_sums()

        def fill_both(stage: reg.Reg, k: reg.Reg | int) -> None:
            for operand, source in enumerate(sources):
                fill(stages[stage, operand], source + k, pitch, thread)

        ring = ptx.pipeline(2)
        fill_both(ring.stage, 0)
        ptx.cp.async_.commit_group()
        for k in ptx.range_(ROW, pitch + ROW, ROW):
            ptx.cp.async_.wait_group(0)
            ptx.bar.sync(0)
            with ptx.if_(k < pitch):
                fill_both(ring.stage ^ 1, ptx.cvt("u64", u32, k))
                ptx.cp.async_.commit_group()
            starts = [stages[ring.stage, operand].address() + place for operand, place in enumerate(places)]
            for step in range(ROW // STEP):
                TILE.multiply(sums, load_pairs(starts[0], 16, 2, step), load_pairs(starts[1], 8, 2, step))
            ring.advance()

        TILE.store(sums, pc, (m, n), lane, top + down, left + right, is_inside=True)

    return two_stage_gemm


def reference(a: Array, b: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_89", "sm_90a", "sm_120a"),
    runs=(Run({"m": 64, "n": 64, "k": 64}, HALF, 1e-3), Run({"m": 64, "n": 128, "k": 192}, HALF, 1e-3, special=True)),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("LDGSTS.E.BYPASS", "HMMA.16816.F32.BF16"),
    flops=count_gemm_flops,
    order=TileOrder(BLOCK, BLOCK, ROW_BY_ROW),
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
