"""Hopper GEMM: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows a multiple of 16 bytes.

The idea: warp specialization. The producer warpgroup only moves data: one of its threads fills a ring of shared memory
stages by TMA, and it gives up registers to the two consumer warpgroups, which multiply 64 x 256 each. Two CTAs form a
cluster. They need different rows of `a` but the same rows of `b`, so each loads half of the `b` tile and multicasts it
to both. The result is written in slices of 64 columns through a swizzled buffer by TMA stores, which clip the edges.

The protocol of a stage, with two mbarriers:

- `full`: one arrival, from the CTA's own producer, and the bytes of the stage. Both CTAs load halves of `b`. The peer's
  bytes may arrive before this CTA's producer expects them: the pending arrival keeps the phase from completing.
- `empty`: one arrival from every consumer warp of BOTH CTAs, because a multicast writes to both. Producers first wait
  for the parity of the preceding phase, which counts as complete on a new mbarrier.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops
from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32, u32

BM, BN, BK, STEP = 128, 256, 64, 16
STAGES, CTAS, CONSUMERS, WARPS = 4, 2, 2, 4
STAGE_BYTES = (BM + BN) * BK * 2
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 40 + 256 * 232 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
SLICE = 64


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape; its size along M is a multiple of the cluster size."""
    del k
    return (-(-m // (BM * CTAS)) * CTAS, -(-n // BN), 1)


@intrinsic
def release(empty: smem.MbarrierArray, stage: reg.Reg, lane: reg.Reg, valid: reg.Reg) -> None:
    """Signal the producers of both CTAs that this warp has read a stage: lane 0 signals CTA 0, lane 1 CTA 1."""
    signals = valid & (lane < CTAS)
    remote = ptx.cluster.map_shared_u32(empty[stage].address(), lane, pred=signals)
    ptx.mbarrier.arrive_mapped(remote, pred=signals)


@intrinsic
def store_slice(sums: list[reg.Reg], origin: reg.Reg) -> None:
    """Store a warp's 16 rows of a slice as bf16: `origin` is the lane's swizzled address of the first 16 columns."""
    for j in range(SLICE // 16):
        packed = [reg.alloc(bf16x2) for _ in range(4)]
        for i, pair in enumerate(packed):
            low, high = sums[8 * j + 2 * i : 8 * j + 2 * i + 2]
            ptx.cvt(bf16x2, f32, pair, [high, low], rounding="rn")
        # 16 columns are 32 bytes. The swizzle XORs these address bits, so XOR also steps along the row.
        ptx.stmatrix(smem=origin ^ (32 * j) if j else origin, regs=packed)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    operands = (
        Tile.wgmma_a("m", "k", bf16, tile_m=BM, tile_k=BK),
        Tile.wgmma_a("n", "k", bf16, tile_m=BN // CTAS, tile_k=BK),
    )
    result = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(BM // CONSUMERS, SLICE))

    @kernel(
        arch=arch, in_specs=operands, out_specs=(result,), grid=grid, block=(THREADS, 1, 1), cluster=(CTAS, 1, 1)
    )  # fmt: skip
    def hopper_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        # Long: the phases share registers and barriers.
        depth = a.shape[1]
        sa = smem.wgmma_tile(bf16, (STAGES, CONSUMERS, BM // CONSUMERS, BK), name="sa")
        sb = smem.wgmma_tile(bf16, (STAGES, CTAS, BN // CTAS, BK), name="sb")
        sc = smem.alloc(bf16, (CONSUMERS, 2, BM // CONSUMERS, SLICE), swizzle="128B", align=1024, name="sc")
        full, empty = smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty")
        thread, rank = ptx.special.tid.x(), ptx.special.cluster_ctarank()
        group, lane = thread >> 7, thread & 31
        top, left = ptx.special.ctaid.x() * BM, ptx.special.ctaid.y() * BN

        # One thread initializes the mbarriers, which the other CTA signals; `cluster.sync` makes them visible to both.
        with ptx.if_(thread == 0):
            for stage in range(STAGES):
                ptx.mbarrier.init(full[stage], 1)
                ptx.mbarrier.init(empty[stage], CTAS * CONSUMERS * WARPS)
        ptx.cluster.sync()

        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
            with ptx.if_(thread == 0):
                ring = ptx.pipeline(STAGES)
                for k in ptx.range_(0, depth, BK):
                    # Wait until the consumers of both CTAs have read the stage.
                    ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                    mbar = full[ring.stage]
                    ptx.mbarrier.arrive_expect_tx(mbar, STAGE_BYTES)
                    ptx.cp.async_.bulk.tensor_2d(dst=sa[ring.stage], src=a, coord=(k, top), mbar=mbar)
                    ptx.cp.async_.bulk.tensor_2d(
                        dst=sb[ring.stage, rank], src=b, coord=(k, left + rank * (BN // CTAS)), mbar=mbar,
                        multicast_mask=(1 << CTAS) - 1,
                    )  # fmt: skip
                    ring.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer = group - 1
            sums = reg.wgmma_frag(m=BM // CONSUMERS, n=BN, dtype=f32, name="sum")
            for register in sums:
                ptx.mov(f32, register, 0)

            # Phase 1: multiply. One group of products stays in flight during the wait for the next stage.
            ring, previous = ptx.pipeline(STAGES), reg.scalar(u32, 0, name="previous")
            for k in ptx.range_(0, depth, BK):
                ptx.mbarrier.wait(full[ring.stage], ring.phase)
                da = ptx.wgmma.auto_descriptor(
                    sa[ring.stage, consumer], dtype=bf16, shape=(BM // CONSUMERS, BK), major="K"
                )
                # Groups of eight rows have the same stride within and across the halves, so both are one tile.
                db = ptx.wgmma.auto_descriptor(sb[ring.stage], dtype=bf16, shape=(BN, BK), major="K")
                # Order earlier accesses to the sums before the products.
                ptx.wgmma.fence()
                for step in range(0, BK, STEP):
                    ptx.wgmma.mma_async(
                        shape=(BM // CONSUMERS, BN, STEP), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums, a=da, b=db,
                        scale_d=True, a_k_offset=2 * step, b_k_offset=2 * step,
                    )  # fmt: skip
                ptx.wgmma.commit_group()
                # All groups but this one are complete, so the previous stage has been read.
                ptx.wgmma.wait_group(1)
                release(empty, previous, lane, k != 0)
                ptx.mov(u32, previous, ring.stage)
                ring.advance()
            ptx.wgmma.wait_group(0)

            # Phase 2: write the result in slices; each consumer alternates between two buffers.
            barrier = ptx.named_barrier(group, count=128)
            leader = thread & 127 == 0
            row = ((thread >> 5) & 3) * 16 + (lane & 15)
            offset = smem.apply_swizzle(row * 128 + (lane >> 4) * 16, "128B")
            for part in range(BN // SLICE):
                buffer = sc[consumer, part % 2]
                if part >= 2:
                    # Wait until the store of two slices ago has read this buffer. Only the committing thread can wait.
                    ptx.cp.async_.bulk.wait_group(1, read=True, pred=leader)
                    barrier.sync()
                store_slice(sums[part * SLICE // 2 : (part + 1) * SLICE // 2], buffer.address() + offset)
                # The fence in each writing thread and then the barrier make all writes visible to the leader's store.
                ptx.fence.proxy_async_shared_cta()
                barrier.sync()
                corner = (left + part * SLICE, top + consumer * (BM // CONSUMERS))
                ptx.cp.async_.bulk.tensor_2d.store(dst=c, src=buffer, coord=corner, pred=leader)
                ptx.cp.async_.bulk.commit_group(pred=leader)
            ptx.cp.async_.bulk.wait_group(0, pred=leader)

        # A CTA must not exit while its peer still multicasts to it or arrives at its mbarriers.
        ptx.cluster.sync()

    return hopper_gemm


def reference(a: Array, b: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a",),
    runs=(
        Run({"m": 256, "n": 256, "k": 64}, HALF, 1e-3),
        Run({"m": 256, "n": 256, "k": 512}, HALF, 1e-3),
        Run({"m": 300, "n": 520, "k": 200}, HALF, 1e-3),
    ),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=(
        "UTMALDG.2D.MULTICAST",
        "HGMMA.64x256x16.F32.BF16",
        "STSM.16.M88.4",
        "UTMASTG.2D",
        "USETMAXREG.TRY_ALLOC",
    ),
    flops=count_gemm_flops,
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
