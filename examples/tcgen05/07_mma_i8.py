"""Integer products: c = a @ b.T in s32, `a` (128, 128) u8 and `b` (64, 128) s8.

The idea: `kind::i8` multiplies bytes, each operand signed or unsigned, and adds in s32. Sums are exact unless they
overflow: then they wrap, or with `saturate` in the descriptor stay at the limit. An instruction multiplies K = 32. Not
every target of the family has it: sm_103a does not.

The protocol is that of `run_in_one_thread` in `examples/parts/tensor_steps.py`.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from examples.parts.tensor_memory import free
from examples.parts.tensor_steps import run_in_one_thread, store_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import s8, s32, u8

M, N, K, STEP = 128, 64, 128, 32


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory and integer products."""

    @kernel(
        arch=arch, in_specs=(Tile.wgmma_a(M, K, u8), Tile.wgmma_a(N, K, s8)), out_specs=(Tile(M, N, s32),),
        grid=(1, 1, 1), block=(128, 1, 1),
    )  # fmt: skip
    def mma_i8(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        (pc,) = ptx.global_ptrs(c)
        sa, sb = smem.wgmma_tile(u8, (M, K), name="sa"), smem.wgmma_tile(s8, (N, K), name="sb")
        thread = ptx.special.tid.x()

        def multiply(sums: reg.Reg) -> None:
            shape = ptx.tcgen05.make_instr_desc_i8(m=M, n=N, a_dtype=u8, b_dtype=s8)
            for k in range(0, K, STEP):
                ptx.tcgen05.mma(
                    sums, sa, sb, shape, kind="i8", enable_input_d=k > 0, a_k_offset=sa.k_offset(k),
                    b_k_offset=sb.k_offset(k),
                )  # fmt: skip

        sums = run_in_one_thread(thread, N, ((sa, a), (sb, b)), multiply)
        store_lanes(sums, thread, N, pc, s32)
        free(sums, N, thread < 32)

    return mma_i8


def reference(a: Array, b: Array) -> Array:
    """Return the expected result."""
    return a.astype(np.int64) @ b.astype(np.int64).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_110a"),
    runs=(Run({}),),
    large={},
    sass=("UTCIMMA", "UTCBAR", "LDTM.x32"),
    flops=lambda _: 2 * M * N * K,
)

if __name__ == "__main__":
    EXAMPLE.show()
