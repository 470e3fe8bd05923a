"""Hopper GEMM: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), any M and N; rows a multiple of 16 bytes.

The idea: whoever moves data does nothing else. One warpgroup is the producer: one thread of it fills a ring of shared
memory stages by TMA and hands its registers to the two consumer warpgroups, which multiply 64 x 256 each. Two CTAs form
a cluster: they have different rows of `a` and the same rows of `b`, so each loads half of the `b` tile and multicasts
it to both. The result leaves in slices of 64 columns through a swizzled buffer and TMA stores, which clip the edges.

The protocol of a stage, both barriers being used in turn for ever:

- `full`: one arrival, of the CTA's own producer, and the bytes of the stage. The halves of `b` come from both CTAs; the
  peer's may come before this CTA's producer has named the bytes, which is no harm: the arrival is still pending.
- `empty`: an arrival of every consumer warp of BOTH CTAs, because a multicast writes into both. Producers begin with
  the parity of "the phase before", which a fresh barrier counts as complete.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32, u32

BM, BN, BK, STEP = 128, 256, 64, 16
STAGES, CTAS, CONSUMERS, WARPS = 4, 2, 2, 4
STAGE_BYTES = (BM + BN) * BK * 2
THREADS = 128 * (1 + CONSUMERS)
# 168 registers at entry: 128 * 40 + 256 * 232 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
SLICE = 64
Array = np.ndarray[Any, Any]


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return how many CTAs a shape takes: along M a multiple of the cluster."""
    del k
    return (-(-m // (BM * CTAS)) * CTAS, -(-n // BN), 1)


@intrinsic
def release(empty: smem.MbarrierArray, stage: reg.Reg, lane: reg.Reg, useful: reg.Reg) -> None:
    """Tell both CTAs' producers that this warp has read a stage: lane 0 the first CTA's, lane 1 the second's."""
    mine = useful & (lane < CTAS)
    remote = ptx.cluster.map_shared_u32(empty[stage].address(), lane, pred=mine)
    ptx.mbarrier.arrive_mapped(remote, pred=mine)


@intrinsic
def store_slice(sums: list[reg.Reg], origin: reg.Reg) -> None:
    """Store a warp's 16 rows of a slice as bf16: `origin` is the lane's swizzled address of the first 16 columns."""
    for j in range(SLICE // 16):
        packed = [reg.alloc(bf16x2) for _ in range(4)]
        for i, pair in enumerate(packed):
            low, high = sums[8 * j + 2 * i : 8 * j + 2 * i + 2]
            ptx.cvt(bf16x2, f32, pair, [high, low], rounding="rn")
        # 16 columns are 32 bytes; the swizzle is an XOR of these bits, so a step along the row is one too.
        ptx.stmatrix(smem=origin ^ (32 * j) if j else origin, regs=packed)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for a target: sm_90a, the only one with wgmma.

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

        # Barriers are made by one thread and signaled by the other CTA: the cluster's barrier shows them to both.
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
                    # Until the consumers of both CTAs have read what is there.
                    ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                    arrived = full[ring.stage]
                    ptx.mbarrier.arrive_expect_tx(arrived, STAGE_BYTES)
                    ptx.cp.async_.bulk.tensor_2d(dst=sa[ring.stage], src=a, coord=(k, top), mbar=arrived)
                    ptx.cp.async_.bulk.tensor_2d(
                        dst=sb[ring.stage, rank], src=b, coord=(k, left + rank * (BN // CTAS)), mbar=arrived,
                        multicast_mask=(1 << CTAS) - 1,
                    )  # fmt: skip
                    ring.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer = group - 1
            sums = reg.wgmma_frag(m=BM // CONSUMERS, n=BN, dtype=f32, name="sum")
            for register in sums:
                ptx.mov(f32, register, 0)

            # Phase 1: multiply. One group of products stays in flight while the next stage is waited for.
            ring, before = ptx.pipeline(STAGES), reg.scalar(u32, 0, name="before")
            for k in ptx.range_(0, depth, BK):
                ptx.mbarrier.wait(full[ring.stage], ring.phase)
                da = ptx.wgmma.auto_descriptor(
                    sa[ring.stage, consumer], dtype=bf16, shape=(BM // CONSUMERS, BK), major="K"
                )
                # Eight rows and the next eight are as far apart inside the halves as from one to the other: one tile.
                db = ptx.wgmma.auto_descriptor(sb[ring.stage], dtype=bf16, shape=(BN, BK), major="K")
                # Whatever touched the sums before is done when the tensor cores take them.
                ptx.wgmma.fence()
                for step in range(0, BK, STEP):
                    ptx.wgmma.mma_async(
                        shape=(BM // CONSUMERS, BN, STEP), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums, a=da, b=db,
                        scale_d=True, a_k_offset=2 * step, b_k_offset=2 * step,
                    )  # fmt: skip
                ptx.wgmma.commit_group()
                # All but this group are done, so the stage before has been read.
                ptx.wgmma.wait_group(1)
                release(empty, before, lane, k != 0)
                ptx.mov(u32, before, ring.stage)
                ring.advance()
            ptx.wgmma.wait_group(0)

            # Phase 2: the result in slices, two buffers for each consumer in turn.
            together = ptx.named_barrier(group, count=128)
            leader = thread & 127 == 0
            row = ((thread >> 5) & 3) * 16 + (lane & 15)
            inside = smem.apply_swizzle(row * 128 + (lane >> 4) * 16, "128B")
            for part in range(BN // SLICE):
                buffer = sc[consumer, part % 2]
                if part >= 2:
                    # The store two slices ago must have read this buffer; only the thread that committed can wait.
                    ptx.cp.async_.bulk.wait_group(1, read=True, pred=leader)
                    together.sync()
                store_slice(sums[part * SLICE // 2 : (part + 1) * SLICE // 2], buffer.address() + inside)
                # Each writer's fence, then the barrier: now the leader's asynchronous store sees all that was written.
                ptx.fence.proxy_async_shared_cta()
                together.sync()
                corner = (left + part * SLICE, top + consumer * (BM // CONSUMERS))
                ptx.cp.async_.bulk.tensor_2d.store(dst=c, src=buffer, coord=corner, pred=leader)
                ptx.cp.async_.bulk.commit_group(pred=leader)
            ptx.cp.async_.bulk.wait_group(0, pred=leader)

        # Neither CTA may end while the other still multicasts to it or arrives at its barriers.
        ptx.cluster.sync()

    return hopper_gemm


def reference(a: Array, b: Array) -> Array:
    """Return what the kernel computes, before the rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T
