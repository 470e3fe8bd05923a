"""mxfp8 products: c = a @ b.T in f32, `a` and `b` (128, 128) e4m3 with a power of two for every 32 elements along K.

The idea: the tensor core scales while it multiplies. `kind::mxf8f6f4.block_scale` takes scale factors of `a` and `b`
from tensor memory, next to the sums. An instruction multiplies K = 32, so each row needs one factor: a byte, ue8m0,
which means 2 ** (byte - 127).

The factors: a word of tensor memory holds four factors of a row, for K = 128. The descriptor's scale ids select the
byte, so the four instructions share their words. Row r has lane r mod 32 of column r / 32, repeated in each quarter of
the lanes: `tcgen05.cp.32x128b.warpx4` copies 128 rows at once from 32 rows of 16 bytes. The factors come in this
order, as libraries store them, so TMA and the copy move them as they are.

The protocol is that of `run_in_one_thread` in `examples/parts/tensor_steps.py`. Products follow earlier copies of their
thread, so nothing waits between the two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from examples.parts.example import Array, Example, Run, draw_array, widen
from examples.parts.scales import BLOCK_BYTES, BLOCK_COLUMNS, BLOCK_ROWS, decode_scales, draw_scales
from examples.parts.tensor_memory import free
from examples.parts.tensor_steps import run_in_one_thread, store_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import e4m3, f32, u8

M, N, K, STEP = 128, 128, 128, 32
ALLOCATED = 256
"""Columns: 128 of sums and 4 + 4 of scale factors, to the next power of two."""


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""
    factors, scales = Tile.wgmma_a(M, K, e4m3), Tile.wgmma_a(BLOCK_ROWS, BLOCK_BYTES, u8)

    @kernel(
        arch=arch, in_specs=(factors, factors, scales, scales), out_specs=(Tile(M, N, f32),), grid=(1, 1, 1),
        block=(128, 1, 1),
    )  # fmt: skip
    def mma_mxf8(a: TensorSpec, b: TensorSpec, scale_a: TensorSpec, scale_b: TensorSpec, c: TensorSpec) -> None:
        (pc,) = ptx.global_ptrs(c)
        sa, sb = smem.wgmma_tile(e4m3, (M, K), name="sa"), smem.wgmma_tile(e4m3, (N, K), name="sb")
        fa, fb = (smem.wgmma_tile(u8, (BLOCK_ROWS, BLOCK_BYTES), name=name) for name in ("fa", "fb"))
        thread = ptx.special.tid.x()

        def multiply(sums: reg.Reg) -> None:
            ta, tb = sums + N, sums + (N + BLOCK_COLUMNS)
            ptx.tcgen05.cp(ta, fa, size="32x128b.warpx4")
            ptx.tcgen05.cp(tb, fb, size="32x128b.warpx4")
            for k in range(0, K, STEP):
                byte = k // STEP
                shape = ptx.tcgen05.make_instr_desc_mxf8f6f4(m=M, n=N, a_scale_id=byte, b_scale_id=byte)
                ptx.tcgen05.mma(
                    sums, sa, sb, shape, kind="mxf8f6f4", scale_a=ta, scale_b=tb, enable_input_d=k > 0,
                    a_k_offset=sa.k_offset(k), b_k_offset=sb.k_offset(k),
                )  # fmt: skip

        copies = ((sa, a), (sb, b), (fa, scale_a), (fb, scale_b))
        sums = run_in_one_thread(thread, ALLOCATED, copies, multiply)
        store_lanes(sums, thread, N, pc)
        free(sums, ALLOCATED, thread < 32)

    return mma_mxf8


def draw(run: Run, random: np.random.Generator) -> Sequence[Array]:
    """Return random factors and scale factors."""
    factors = [draw_array(Tile(M, K, e4m3), run, random) for _ in range(2)]
    return *factors, *(draw_scales("ue8m0", K // STEP, random) for _ in range(2))


def reference(a: Array, b: Array, scale_a: Array, scale_b: Array) -> Array:
    """Return the expected result."""
    x, y = (
        widen(factors) * decode_scales("ue8m0", scales[None]).repeat(STEP, axis=1)
        for factors, scales in ((a, scale_a), (b, scale_b))
    )
    return x @ y.T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}, atol=1e-3),),
    large={},
    sass=("UTCQMMA", "UTCCP", "UTCBAR", "LDTM.x32"),
    draw=draw,
    flops=lambda _: 2 * M * N * K,
)

if __name__ == "__main__":
    EXAMPLE.show()
