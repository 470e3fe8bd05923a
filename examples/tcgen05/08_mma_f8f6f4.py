"""8-bit floating-point products: c = a @ b.T in f32, `a` (128, 128) e4m3 and `b` (64, 128) e5m2.

The idea: `kind::f8f6f4` multiplies any pair of e4m3, e5m2, e2m3, e3m2 and e2m1; the descriptor says which. So gradients
in e5m2, which has the range, meet weights in e4m3, which has the precision. An instruction multiplies K = 32, with 8
bits of shared memory for every element: 6-bit and 4-bit ones save memory bandwidth, not time here.

The protocol is that of `run_in_one_thread` in `examples/parts/tensor_steps.py`.
"""

from __future__ import annotations

from examples.parts.example import Example, Run
from examples.parts.references import compute_product
from examples.parts.tensor_memory import free
from examples.parts.tensor_steps import run_in_one_thread, store_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import e4m3, e5m2, f32

M, N, K, STEP = 128, 64, 128, 32


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""

    @kernel(
        arch=arch, in_specs=(Tile.wgmma_a(M, K, e4m3), Tile.wgmma_a(N, K, e5m2)), out_specs=(Tile(M, N, f32),),
        grid=(1, 1, 1), block=(128, 1, 1),
    )  # fmt: skip
    def mma_f8f6f4(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        (pc,) = ptx.global_ptrs(c)
        sa, sb = smem.wgmma_tile(e4m3, (M, K), name="sa"), smem.wgmma_tile(e5m2, (N, K), name="sb")
        thread = ptx.special.tid.x()

        def multiply(sums: reg.Reg) -> None:
            shape = ptx.tcgen05.make_instr_desc_f8f6f4(m=M, n=N, a_dtype=e4m3, b_dtype=e5m2)
            for k in range(0, K, STEP):
                ptx.tcgen05.mma(
                    sums, sa, sb, shape, kind="f8f6f4", enable_input_d=k > 0, a_k_offset=sa.k_offset(k),
                    b_k_offset=sb.k_offset(k),
                )  # fmt: skip

        sums = run_in_one_thread(thread, N, ((sa, a), (sb, b)), multiply)
        store_lanes(sums, thread, N, pc)
        free(sums, N, thread < 32)

    return mma_f8f6f4


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}, atol=1e-4),),
    large={},
    sass=("UTCQMMA", "UTCBAR", "LDTM.x32"),
    flops=lambda _: 2 * M * N * K,
)

if __name__ == "__main__":
    EXAMPLE.show()
