"""Blackwell GEMM on two SMs: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows a multiple of
16 bytes.

The idea: a CTA pair computes a 256 x 256 tile. Each CTA holds its own 128 rows of `a` and half of the rows of `b`; the
tensor cores of both read both halves, so each byte of `b` is loaded once for two SMs. One thread of the leader CTA
issues the products of the pair. The sums are in tensor memory, 128 rows in each CTA, and are written in slices of 64
columns through a swizzled buffer by TMA stores.

The protocol of a stage:

- `full`, in the leader CTA only: one arrival, from the leader's producer, and the bytes of BOTH CTAs. The peer's copies
  signal the leader's mbarrier, which `cta_group::2` permits.
- `empty`, one in each CTA: `tcgen05.commit` arrives at both when the products that read the stage are complete. Only
  then does the peer load new bytes, so they cannot arrive in an earlier phase of `full`.
- `done`, one in each CTA: the same commit after the last product.
"""

from __future__ import annotations

import numpy as np

from examples.parts import tensor_memory
from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops
from examples.parts.tensor_memory import SLICE
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import bf16

ROWS, COLUMNS, BK, STEP = 128, 256, 64, 16
"""Rows per CTA, columns per pair, K per stage, K of one tcgen05.mma."""
CTAS, STAGES, THREADS = 2, 6, 128
STAGE_BYTES = (ROWS + COLUMNS // CTAS) * BK * 2
BOTH = (1 << CTAS) - 1


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape; its size along M is a multiple of 2."""
    del k
    return (-(-m // (ROWS * CTAS)) * CTAS, -(-n // COLUMNS), 1)


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("m", "k", bf16, tile_m=ROWS, tile_k=BK),
        Tile.wgmma_a("n", "k", bf16, tile_m=COLUMNS // CTAS, tile_k=BK),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(ROWS, SLICE))

    @kernel(arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(THREADS, 1, 1), cluster=(CTAS, 1, 1))
    def tcgen05_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        # Long: the phases share registers and barriers.
        depth = a.shape[1]
        sa = smem.wgmma_tile(bf16, (STAGES, ROWS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, COLUMNS // CTAS, BK), name="sb")
        sc = smem.alloc(bf16, (2, ROWS, SLICE), swizzle="128B", align=1024, name="sc")
        full, empty = smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty")
        done = smem.mbarrier(1, name="done")
        thread, rank = ptx.special.tid.x(), ptx.special.cluster_ctarank()
        warp, is_leader = thread >> 5, rank == 0
        first_warp, first_thread = warp == 0, thread == 0
        top, left = ptx.special.ctaid.x() * ROWS, ptx.special.ctaid.y() * COLUMNS

        # Phase 1: thread 0 of each CTA initializes the mbarriers, one warp allocates tensor memory, and then the CTAs
        # synchronize.
        with ptx.if_(first_thread):
            for stage in range(STAGES):
                ptx.mbarrier.init(full[stage], 1)
                ptx.mbarrier.init(empty[stage], 1)
            ptx.mbarrier.init(done[0], 1)
        sums = tensor_memory.allocate(COLUMNS, first_warp, cta_group=2)

        # Phase 2, a lane of warp 0 of each CTA: fill the ring with the CTA's rows of `a` and its half of `b`.
        with ptx.if_(first_warp), ptx.if_(elect()):
            ring = ptx.pipeline(STAGES)
            for k in ptx.range_(0, depth, BK):
                # On a new mbarrier, the phase that precedes the first one counts as complete.
                ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                ptx.mbarrier.arrive_expect_tx(full[ring.stage], CTAS * STAGE_BYTES, pred=is_leader)
                mbar = ptx.cluster.map_shared_u32(full[ring.stage].address(), 0)
                half = left + rank * (COLUMNS // CTAS)
                for tile, source, row in ((sa, a, top), (sb, b, half)):
                    ptx.cp.async_.bulk.tensor_2d(
                        dst=tile[ring.stage], src=source, coord=(k, row), mbar=mbar, cta_group=2
                    )
                ring.advance()

        # Phase 2, a lane of warp 1 of the leader CTA: issue the products of both CTAs.
        with ptx.if_((warp == 1) & is_leader), ptx.if_(elect()):
            ring = ptx.pipeline(STAGES)
            shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=ROWS * CTAS, n=COLUMNS)
            for k in ptx.range_(0, depth, BK):
                ptx.mbarrier.wait(full[ring.stage], ring.phase)
                ptx.tcgen05.fence_after_thread_sync()
                starts = [tile[ring.stage].address() for tile in (sa, sb)]
                accumulates = k != 0
                for step in range(0, BK, STEP):
                    # Eight rows of 128 bytes are 1024 bytes; a step of 16 along K is 32 bytes within the rows. The
                    # descriptor names the same offsets in the peer's shared memory.
                    da, db = (
                        ptx.tcgen05.descriptor(start, byte_offset=2 * step, stride_bytes=1024, swizzle="128B")
                        for start in starts
                    )
                    ptx.tcgen05.mma.async_2sm(sums, da, db, shape, enable_input_d=True if step else accumulates)
                # When these products are complete, both CTAs may overwrite the stage.
                ptx.tcgen05.commit(empty[ring.stage], cta_group=2, multicast_mask=BOTH)
                ring.advance()
            ptx.tcgen05.commit(done[0], cta_group=2, multicast_mask=BOTH)

        # Phase 3: write the result in slices through two buffers. Lane l of warp w has row 32 w + l, so thread t has
        # row t.
        ptx.warp.sync()
        ptx.mbarrier.wait(done[0], 0)
        ptx.tcgen05.fence_after_thread_sync()
        warp_sums = sums + (warp << 21)
        offset = smem.apply_swizzle(thread * 128, "128B")
        for part in range(COLUMNS // SLICE):
            buffer = sc[part % 2]
            if part >= 2:
                # Wait until the store of two slices ago has read this buffer. Only the committing thread can wait.
                ptx.cp.async_.bulk.wait_group(1, read=True, pred=first_thread)
                ptx.bar.sync(0)
            tensor_memory.copy_slice(warp_sums + part * SLICE, buffer.address() + offset)
            # The fence in each writing thread and then the barrier make all writes visible to the TMA store.
            ptx.fence.proxy_async_shared_cta()
            ptx.bar.sync(0)
            corner = (left + part * SLICE, top)
            ptx.cp.async_.bulk.tensor_2d.store(dst=c, src=buffer, coord=corner, pred=first_thread)
            ptx.cp.async_.bulk.commit_group(pred=first_thread)
        ptx.cp.async_.bulk.wait_group(0, pred=first_thread)

        # Phase 4: free tensor memory after both CTAs have read their sums. Until both get here, neither exits while its
        # peer still signals its mbarriers.
        tensor_memory.free(sums, COLUMNS, first_warp, cta_group=2)

    return tcgen05_gemm


def reference(a: Array, b: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({"m": 256, "n": 256, "k": 128}, HALF, 1e-3), Run({"m": 300, "n": 520, "k": 200}, HALF, 1e-3)),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("UTMALDG.2D.2CTA", "UTCHMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x64", "UTMASTG.2D"),
    flops=count_gemm_flops,
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
