"""The smallest tensor-core GEMM: c = a @ b.T in bf16 with f32 sums, one warp per 16 x 8 tile, `a` (M, K), `b` (N, K).

The idea: `mma.sync` multiplies 16 x 16 by 16 x 8 elements, which the 32 lanes of a warp hold together. Lane l loads
what it holds of the fragments directly from global memory, two adjacent elements per register:

- register i of `a`: row l / 4 + 8 (i mod 2), elements 2 (l mod 4) + 8 (i / 2) and the next along K;
- register i of `b`: row l / 4, elements 2 (l mod 4) + 8 i and the next;
- registers 2 h and 2 h + 1 of the sums: row l / 4 + 8 h, columns 2 (l mod 4) and the next.

Every fragment is read from global memory by every warp that needs it; the next step of the ladder shares them.

The protocol: none, because no thread reads what another writes.

M is a multiple of 16, N of 8, K of 16.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops
from examples.parts.tile_order import ROW_BY_ROW, TileOrder
from examples.parts.vectors import pack
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import b32, bf16, bf16x2, f32

BM, BN, BK = 16, 8, 16


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    if m % BM or n % BN or k % BK:
        raise ValueError(f"M must be a multiple of {BM}, N of {BN}, K of {BK}; found {m}, {n}, {k}")
    return (n // BN, m // BM, 1)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "k", bf16), Tile("n", "k", bf16)), out_specs=(Tile("m", "n", bf16),),
        grid=grid, block=(32, 1, 1),
    )  # fmt: skip
    def one_warp_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        depth, width = a.shape[1], c.shape[1]
        pa, pb, pc = ptx.global_ptrs(a, b, c)
        lane = ptx.special.laneid()
        row, pair = lane >> 2, (lane & 3) * 2
        top, left = ptx.special.ctaid.y() * BM + row, ptx.special.ctaid.x() * BN
        starts = [ptx.mad(first, depth * 2, p, mode="wide") for first, p in ((top, pa), (left + row, pb))]

        sums = reg.array(f32, 4, name="sum")
        for register in sums:
            ptx.mov(f32, register, 0)
        for k in ptx.range_(0, depth, BK):
            a_line, b_line = (ptx.mad(pair + k, 2, start, mode="wide") for start in starts)
            a_parts = [ptx.ld(b32, ptx.addr(a_line, 8 * (i % 2) * depth * 2 + 16 * (i // 2))) for i in range(4)]
            b_parts = [ptx.ld(b32, ptx.addr(b_line, 16 * i)) for i in range(2)]
            ptx.mma.sync(
                shape=(BM, BN, BK), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, dtype_c=f32,
                d=sums, a=a_parts, b=b_parts, c=sums,
            )  # fmt: skip

        corner = ptx.mad(left + pair, 2, ptx.mad(top, width * 2, pc, mode="wide"), mode="wide")
        for half in range(2):
            ptx.st(bf16x2, ptx.addr(corner, 8 * half * width * 2), pack(sums[2 * half], sums[2 * half + 1]))

    return one_warp_gemm


def reference(a: Array, b: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(Run({"m": 16, "n": 8, "k": 16}, HALF, 1e-3), Run({"m": 32, "n": 24, "k": 80}, HALF, 1e-3, special=True)),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("HMMA.16816.F32.BF16",),
    flops=count_gemm_flops,
    order=TileOrder(BM, BN, ROW_BY_ROW),
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
