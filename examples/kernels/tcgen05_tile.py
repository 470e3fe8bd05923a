"""One tile with tcgen05: c = a @ b.T, `a` (128, 64) and `b` (128, 64) bf16, `c` f32: the smallest Blackwell product.

The idea: one thread orders the whole product. The operands come by TMA into swizzled shared memory, the sum stays in
tensor memory, 128 lanes of 32-bit columns, and only the result passes through registers. Tensor memory is allocated,
and given back by the warp that allocated it. Every hand-over between threads has a `tcgen05.fence` on both sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, f32, u32

M = N = 128
K, STEP = 64, 16
PIECE = 32
"""Columns that a warp reads from tensor memory at once."""
Array = np.ndarray[Any, Any]


def grid() -> tuple[int, int, int]:
    """Return how many CTAs there are."""
    return (1, 1, 1)


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory.

    Long: the phases of a kernel share its registers and barriers.
    """

    @kernel(
        arch=arch, in_specs=(Tile.wgmma_a(M, K, bf16), Tile.wgmma_a(N, K, bf16)), out_specs=(Tile(M, N, f32),),
        grid=grid(), block=(128, 1, 1),
    )  # fmt: skip
    def tcgen05_tile(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        (pc,) = ptx.global_ptrs(c)
        sa, sb = smem.wgmma_tile(bf16, (M, K), name="sa"), smem.wgmma_tile(bf16, (N, K), name="sb")
        slot = smem.alloc(u32, 1, name="slot")
        full, done = smem.mbarrier(1, name="full"), smem.mbarrier(1, name="done")
        thread = ptx.special.tid.x()
        first_warp = thread < 32

        # Phase 1: a whole warp allocates; the address of the columns goes to shared memory. Who needs no more says so,
        # that other CTAs need not wait for it.
        with ptx.if_(first_warp):
            ptx.tcgen05.alloc(slot, N)
            ptx.tcgen05.relinquish_alloc_permit()
        with ptx.if_(thread == 0):
            ptx.mbarrier.init(full[0], 1)
            ptx.mbarrier.init(done[0], 1)
        # The address and the barriers are ordinary writes: a barrier shows them to all.
        ptx.tcgen05.fence_before_thread_sync()
        ptx.bar.sync(0)
        ptx.tcgen05.fence_after_thread_sync()
        columns = smem.load(u32, slot)

        # Phase 2: one thread loads, waits and multiplies.
        with ptx.if_(thread == 0):
            ptx.mbarrier.arrive_expect_tx(full[0], sa.size + sb.size)
            ptx.cp.async_.bulk.tensor_2d(dst=sa, src=a, coord=(0, 0), mbar=full[0])
            ptx.cp.async_.bulk.tensor_2d(dst=sb, src=b, coord=(0, 0), mbar=full[0])
            # Observing the phase is enough: TMA writes and tcgen05 reads by the same proxy.
            ptx.mbarrier.wait(full[0], 0)
            shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=M, n=N)
            for k in range(0, K, STEP):
                # Eight rows of 128 bytes are 1024; a step of 16 along K begins 32 bytes further inside the rows.
                da, db = (
                    ptx.tcgen05.descriptor(tile, byte_offset=2 * k, stride_bytes=1024, swizzle="128B")
                    for tile in (sa, sb)
                )
                ptx.tcgen05.mma(columns, da, db, shape, enable_input_d=k > 0)
            # Arrives when the products issued by this thread are complete; a plain arrive would say nothing of them.
            # It implies the fence before the hand-over.
            ptx.tcgen05.commit(done[0])

        # Phase 3: all wait for the product, then each warp reads its own 32 lanes: lane l of warp w has row 32 w + l.
        ptx.mbarrier.wait(done[0], 0)
        ptx.tcgen05.fence_after_thread_sync()
        mine = columns + ((thread >> 5) << 21)
        row = ptx.mad(thread, N * 4, pc, mode="wide")
        for left in range(0, N, PIECE):
            part = reg.array(f32, PIECE)
            ptx.tcgen05.ld(part, mine + left if left else mine, shape="32x32b", count=PIECE)
            ptx.tcgen05.wait_ld()
            for i in range(0, PIECE, 4):
                ptx.st(f32, ptx.addr(row, (left + i) * 4), part[i : i + 4])

        # Phase 4: all have read, so the warp that allocated may give the columns back.
        ptx.tcgen05.fence_before_thread_sync()
        ptx.bar.sync(0)
        ptx.tcgen05.fence_after_thread_sync()
        with ptx.if_(first_warp):
            ptx.tcgen05.dealloc(columns, N)

    return tcgen05_tile


def reference(a: Array, b: Array) -> Array:
    """Return what the kernel computes."""
    return a.astype(np.float32) @ b.astype(np.float32).T
