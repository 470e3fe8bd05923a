"""tf32 products: c = a @ b.T in f32, with factors cut to tf32: `a` (128, 32), `b` (64, 32).

The idea: `kind::tf32` takes f32 from shared memory as it is and ignores the lowest 13 bits of each element, so no
thread converts anything. An instruction multiplies K = 8, 32 bytes of each row, as every dense kind does: a row of a
swizzled tile is 128 bytes, four instructions.

The protocol is that of `run_in_one_thread` in `examples/parts/tensor_steps.py`.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from examples.parts.tensor_memory import free
from examples.parts.tensor_steps import run_in_one_thread, store_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import f32, tf32

M, N, K, STEP = 128, 64, 32, 8
CUT = 13
"""Bits of an f32 that tf32 does not have."""


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""

    @kernel(
        arch=arch, in_specs=(Tile.wgmma_a(M, K, f32), Tile.wgmma_a(N, K, f32)), out_specs=(Tile(M, N, f32),),
        grid=(1, 1, 1), block=(128, 1, 1),
    )  # fmt: skip
    def mma_tf32(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        (pc,) = ptx.global_ptrs(c)
        sa, sb = smem.wgmma_tile(f32, (M, K), name="sa"), smem.wgmma_tile(f32, (N, K), name="sb")
        thread = ptx.special.tid.x()

        def multiply(sums: reg.Reg) -> None:
            shape = ptx.tcgen05.make_instr_desc("tf32", m=M, n=N, a_dtype=tf32)
            for k in range(0, K, STEP):
                ptx.tcgen05.mma(
                    sums, sa, sb, shape, kind="tf32", enable_input_d=k > 0, a_k_offset=sa.k_offset(k),
                    b_k_offset=sb.k_offset(k),
                )  # fmt: skip

        sums = run_in_one_thread(thread, N, ((sa, a), (sb, b)), multiply)
        store_lanes(sums, thread, N, pc)
        free(sums, N, thread < 32)

    return mma_tf32


def cut(values: Array) -> Array:
    """Return f32 values cut to tf32, in f64."""
    return (values.view(np.uint32) >> CUT << CUT).view(np.float32).astype(np.float64)


def reference(a: Array, b: Array) -> Array:
    """Return the expected result."""
    return cut(a) @ cut(b).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}, atol=1e-4),),
    large={},
    sass=("UTCHMMA", "UTCBAR", "LDTM.x32"),
    flops=lambda _: 2 * M * N * K,
)

if __name__ == "__main__":
    EXAMPLE.show()
