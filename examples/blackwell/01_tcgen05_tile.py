"""One tcgen05 tile: c = a @ b.T with bf16 `a` (128, 64) and `b` (128, 64) and f32 `c`, a minimal Blackwell product.

The idea: one thread issues the whole product. TMA loads the operands to swizzled shared memory, the sum stays in tensor
memory (128 lanes of 32-bit columns), and only the result passes through registers. The warp that allocates tensor
memory frees it.

The protocol; a synchronization that passes tensor memory to other threads has a `tcgen05.fence` on both sides, of which
a commit implies the first:

- `full`: one arrival and 32 KiB, from the thread that multiplies, which then waits for phase 0.
- `done`: one arrival, by `tcgen05.commit` when the products are complete. All 128 threads wait for phase 0.
- `bar.sync 0`, all 128 threads, twice: before they read the address of the columns, with the mbarriers initialized, and
  after they have read the result, before the columns are freed.
"""

from __future__ import annotations

from examples.parts.example import Example, Run
from examples.parts.references import compute_product
from examples.parts.warps import elect
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, f32, u32

M = N = 128
K, STEP = 64, 16
PIECE = 32
"""Columns that one `tcgen05.ld` reads."""


def grid() -> tuple[int, int, int]:
    """Return the grid: one CTA."""
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

        # Phase 1: one warp allocates tensor memory; the address is written to shared memory. `relinquish_alloc_permit`
        # tells other CTAs that this one will not allocate again.
        with ptx.if_(first_warp):
            ptx.tcgen05.alloc(slot, N)
            ptx.tcgen05.relinquish_alloc_permit()
        with ptx.if_(thread == 0):
            ptx.mbarrier.init(full[0], 1)
            ptx.mbarrier.init(done[0], 1)
        # `bar.sync` makes the address and the mbarriers visible to all threads.
        ptx.tcgen05.fence_before_thread_sync()
        ptx.bar.sync(0)
        ptx.tcgen05.fence_after_thread_sync()
        columns = smem.load(u32, slot)

        # Phase 2: one thread loads, waits and multiplies. `elect` tells ptxas that it is only one.
        with ptx.if_(first_warp), ptx.if_(elect()):
            ptx.mbarrier.arrive_expect_tx(full[0], sa.size + sb.size)
            ptx.cp.async_.bulk.tensor_2d(dst=sa, src=a, coord=(0, 0), mbar=full[0])
            ptx.cp.async_.bulk.tensor_2d(dst=sb, src=b, coord=(0, 0), mbar=full[0])
            # Waiting for the phase is enough: TMA writes and tcgen05 reads through the same proxy.
            ptx.mbarrier.wait(full[0], 0)
            shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=M, n=N)
            for k in range(0, K, STEP):
                # Eight rows of 128 bytes are 1024 bytes; a step of 16 along K is 32 bytes within the rows.
                da, db = (
                    ptx.tcgen05.descriptor(tile, byte_offset=2 * k, stride_bytes=1024, swizzle="128B")
                    for tile in (sa, sb)
                )
                ptx.tcgen05.mma(columns, da, db, shape, enable_input_d=k > 0)
            # The commit arrives when the products of this thread are complete; a plain arrive would not wait for them.
            # It implies `tcgen05.fence::before_thread_sync`.
            ptx.tcgen05.commit(done[0])

        ptx.warp.sync()

        # Phase 3: wait for the product, then read it. Each warp reads its own 32 lanes: lane l of warp w has row
        # 32 w + l.
        ptx.mbarrier.wait(done[0], 0)
        ptx.tcgen05.fence_after_thread_sync()
        warp_columns = columns + ((thread >> 5) << 21)
        row = ptx.mad(thread, N * 4, pc, mode="wide")
        for left in range(0, N, PIECE):
            part = reg.array(f32, PIECE)
            ptx.tcgen05.ld(part, warp_columns + left if left else warp_columns, shape="32x32b", count=PIECE)
            ptx.tcgen05.wait_ld()
            for i in range(0, PIECE, 4):
                ptx.st(f32, ptx.addr(row, (left + i) * 4), part[i : i + 4])

        # Phase 4: after all warps have read the result, free the columns in the warp that allocated them.
        ptx.tcgen05.fence_before_thread_sync()
        ptx.bar.sync(0)
        ptx.tcgen05.fence_after_thread_sync()
        with ptx.if_(first_warp):
            ptx.tcgen05.dealloc(columns, N)

    return tcgen05_tile


EXAMPLE = Example(
    make=make,
    reference=compute_product,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}, atol=1e-4),),
    large={},
    sass=("UTMALDG.2D", "UTCHMMA", "UTCBAR", "LDTM.x32"),
    flops=lambda _: 2 * M * N * K,
)

if __name__ == "__main__":
    EXAMPLE.show()
