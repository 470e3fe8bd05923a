"""Weight-stationary products: c = a @ b.T in f32 with bf16 `a` (64, 64), two tiles of 32 rows, and `b` (64, 64).

The idea: `tcgen05.mma` streams B through the tensor core for 128 rows of A. With few rows, as in inference with small
batches, loading B costs more than multiplying. `tcgen05.mma.ws` keeps B, the weights, in one of four collector buffers:
the first tile fills buffer 0, and the second uses it for the last time. These are hints that do not change a result.

The layout: with M = 32, N is in four parts side by side in the lanes. Lane 32 p + r has row r, and its 16 columns are
columns 16 p to 16 p + 15 of the tile. So all 128 lanes work, and each warp reads a quarter of every row.

The protocol is that of `run_in_one_thread` in `examples/parts/tensor_steps.py`.
"""

from __future__ import annotations

from examples.parts.example import Example, Run
from examples.parts.references import compute_product
from examples.parts.tensor_memory import free
from examples.parts.tensor_steps import find_own_lanes, run_in_one_thread
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, f32

TILES, M, N, K, STEP = 2, 32, 64, 64, 16
WIDTH = N // 4
"""Columns of tensor memory for the sums of a tile."""
ALLOCATED = TILES * WIDTH
USES = ("b0::fill", "b0::lastuse")
"""What each tile does with B's buffer."""


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""

    @kernel(
        arch=arch, in_specs=(Tile.wgmma_a(TILES * M, K, bf16), Tile.wgmma_a(N, K, bf16)),
        out_specs=(Tile(TILES * M, N, f32),), grid=(1, 1, 1), block=(128, 1, 1),
    )  # fmt: skip
    def mma_ws(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        (pc,) = ptx.global_ptrs(c)
        sa, sb = smem.wgmma_tile(bf16, (TILES, M, K), name="sa"), smem.wgmma_tile(bf16, (N, K), name="sb")
        thread = ptx.special.tid.x()

        def multiply(sums: reg.Reg) -> None:
            shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=M, n=N)
            for k in range(0, K, STEP):
                for tile, use in enumerate(USES):
                    ptx.tcgen05.mma.ws(
                        sums + WIDTH * tile if tile else sums, sa[tile], sb, shape, collector_b=use,
                        enable_input_d=k > 0, a_k_offset=sa[tile].k_offset(k), b_k_offset=sb.k_offset(k),
                    )  # fmt: skip

        sums = run_in_one_thread(thread, ALLOCATED, ((sa, a), (sb, b)), multiply)

        # Warp p has columns 16 p to 16 p + 15 of every row, and its lane r has row r.
        own, lane, part = find_own_lanes(sums, thread), thread & 31, thread >> 5
        start = ptx.mad(lane * N + part * WIDTH, 4, pc, mode="wide")
        for tile in range(TILES):
            values = ptx.tcgen05.ld([f32] * WIDTH, own + WIDTH * tile if tile else own, shape="32x32b", count=WIDTH)
            ptx.tcgen05.wait_ld()
            for i in range(0, WIDTH, 4):
                ptx.st(f32, ptx.addr(start, 4 * (M * N * tile + i)), values[i : i + 4])
        free(sums, ALLOCATED, thread < 32)

    return mma_ws


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}, atol=1e-4),),
    large={},
    sass=("UTCHMMA.WS", "UTCBAR", "LDTM.x16"),
    flops=lambda _: 2 * TILES * M * N * K,
)

if __name__ == "__main__":
    EXAMPLE.show()
