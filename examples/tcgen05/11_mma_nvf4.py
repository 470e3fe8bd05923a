"""nvfp4 products: c = a @ b.T in f32, `a` and `b` (128, 256) e2m1 with an e4m3 scale factor for 16 elements along K.

The idea: `kind::mxf4nvf4` with `block16` reads the elements as `kind::mxf4` does, but scales half as many at a time, by
factors with a mantissa (ue4m3). An instruction multiplies K = 64, so it takes all four bytes of a row's word: four
blocks of factors, one for each instruction, and scale id 0. The mantissa costs range: libraries add one f32 factor for
the whole matrix, which belongs to the output. The order of the factors is that of `09_mma_mxf8`.

The protocol is that of `run_in_one_thread` in `examples/parts/tensor_steps.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from examples.parts.example import Array, Example, Run, draw_array
from examples.parts.scales import (
    BLOCK_BYTES,
    BLOCK_COLUMNS,
    BLOCK_ROWS,
    PER_WORD,
    decode_fp4,
    decode_scales,
    draw_scales,
)
from examples.parts.tensor_memory import free
from examples.parts.tensor_steps import run_in_one_thread, store_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import f32, u8

M, N, K, STEP = 128, 128, 256, 64
SHARE = 16
"""Elements along K that share a scale factor."""
BLOCKS = K // SHARE // PER_WORD
"""Blocks of scale factors of each matrix."""
ALLOCATED = 256
"""Columns: 128 of sums and 16 + 16 of scale factors, to the next power of two."""


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""
    factors, scales = Tile.wgmma_a(M, K // 2, u8), Tile.wgmma_a(BLOCKS * BLOCK_ROWS, BLOCK_BYTES, u8)

    @kernel(
        arch=arch, in_specs=(factors, factors, scales, scales), out_specs=(Tile(M, N, f32),), grid=(1, 1, 1),
        block=(128, 1, 1),
    )  # fmt: skip
    def mma_nvf4(a: TensorSpec, b: TensorSpec, scale_a: TensorSpec, scale_b: TensorSpec, c: TensorSpec) -> None:
        (pc,) = ptx.global_ptrs(c)
        sa, sb = smem.wgmma_tile(u8, (M, K // 2), name="sa"), smem.wgmma_tile(u8, (N, K // 2), name="sb")
        fa, fb = (smem.wgmma_tile(u8, (BLOCKS, BLOCK_ROWS, BLOCK_BYTES), name=name) for name in ("fa", "fb"))
        thread = ptx.special.tid.x()

        def multiply(sums: reg.Reg) -> None:
            ta = [sums + (N + BLOCK_COLUMNS * i) for i in range(BLOCKS)]
            tb = [sums + (N + BLOCK_COLUMNS * (BLOCKS + i)) for i in range(BLOCKS)]
            for i in range(BLOCKS):
                ptx.tcgen05.cp(ta[i], fa[i], size="32x128b.warpx4")
                ptx.tcgen05.cp(tb[i], fb[i], size="32x128b.warpx4")
            shape = ptx.tcgen05.make_instr_desc_mxf4nvf4(m=M, n=N)
            for k in range(0, K, STEP):
                word = k // STEP
                ptx.tcgen05.mma(
                    sums, sa, sb, shape, kind="mxf4nvf4", scale_vec="block16", scale_a=ta[word], scale_b=tb[word],
                    enable_input_d=k > 0, a_k_offset=sa.k_offset(k // 2), b_k_offset=sb.k_offset(k // 2),
                )  # fmt: skip

        copies = ((sa, a), (sb, b), (fa, scale_a), (fb, scale_b))
        sums = run_in_one_thread(thread, ALLOCATED, copies, multiply)
        store_lanes(sums, thread, N, pc)
        free(sums, ALLOCATED, thread < 32)

    return mma_nvf4


def draw(run: Run, random: np.random.Generator) -> Sequence[Array]:
    """Return random factors, two in a byte, and scale factors."""
    factors = [draw_array(Tile(M, K // 2, u8), run, random) for _ in range(2)]
    return *factors, *(draw_scales("ue4m3", K // SHARE, random) for _ in range(2))


def reference(a: Array, b: Array, scale_a: Array, scale_b: Array) -> Array:
    """Return the expected result."""
    x, y = (
        decode_fp4(factors) * decode_scales("ue4m3", scales[None]).repeat(SHARE, axis=1)
        for factors, scales in ((a, scale_a), (b, scale_b))
    )
    return x @ y.T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}, atol=1e-3),),
    large={},
    sass=("UTCOMMA", "UTCCP", "UTCBAR", "LDTM.x32"),
    draw=draw,
    flops=lambda _: 2 * M * N * K,
)

if __name__ == "__main__":
    EXAMPLE.show()
