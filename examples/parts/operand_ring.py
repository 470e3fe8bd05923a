"""A ring of shared memory stages with tiles of both operands of a Hopper product c = a @ b.T.

The protocol of a stage: the producer, one thread, waits for `empty`, announces the bytes at `full` and copies by TMA.
Consumer warpgroups wait for `full`, multiply, and each warp arrives at `empty` when its products have read the stage.
In a cluster, each CTA loads a part of the `b` tile for all CTAs, so `empty` counts the consumer warps of all CTAs.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyptx import TensorSpec, intrinsic, ptx, reg, smem
from pyptx.ptx import PipelineState
from pyptx.types import f32, u32

OUTSIDE = {
    "PTX0978": "a cluster at an edge may have tiles past it, whose CTAs take part in its multicasts; TMA loads zeros "
    "for them and stores nothing"
}
"""Findings of shapes with edges."""
WARPS = 4
"""Warps of a warpgroup."""
STEP_BYTES = 32
"""Bytes along K that one wgmma multiplies: 16 elements of bf16, 32 of an 8-bit type."""


@dataclass(frozen=True)
class OperandRing:
    """The stages: `sa` has a tile for each consumer, (stage, consumer, rows, K); `sb` a part for each CTA of the
    cluster, (stage, CTA, rows, K)."""

    sa: smem.SharedAlloc
    sb: smem.SharedAlloc
    full: smem.MbarrierArray
    empty: smem.MbarrierArray

    @property
    def stages(self) -> int:
        """The number of stages."""
        return self.sa.shape[0]

    @property
    def consumers(self) -> int:
        """The number of consumer warpgroups in a CTA."""
        return self.sa.shape[1]

    @property
    def ctas(self) -> int:
        """The size of the cluster."""
        return self.sb.shape[1]


def count_bytes(ring: OperandRing) -> int:
    """Return the bytes of a stage, which `full` waits for."""
    return (ring.sa.size + ring.sb.size) // ring.stages


def initialize(ring: OperandRing) -> None:
    """Initialize the mbarriers; to be called by one thread, and followed by a barrier of all threads that use them."""
    for stage in range(ring.stages):
        ptx.mbarrier.init(ring.full[stage], 1)
        ptx.mbarrier.init(ring.empty[stage], ring.ctas * ring.consumers * WARPS)


def claim_stage(ring: OperandRing, slot: PipelineState) -> smem.MbarrierRef:
    """Wait until the consumers have read the stage, announce the bytes of the next tiles, and return `full`.

    On a new mbarrier the phase before the first counts as complete, so the first round does not wait.
    """
    ptx.mbarrier.wait(ring.empty[slot.stage], slot.phase ^ 1)
    mbar = ring.full[slot.stage]
    ptx.mbarrier.arrive_expect_tx(mbar, count_bytes(ring))
    return mbar


def load_stage(
    ring: OperandRing, slot: PipelineState, a: TensorSpec, b: TensorSpec, k: reg.Reg, top: reg.Reg, left: reg.Reg,
    rank: reg.Reg | None = None,
) -> None:  # fmt: skip
    """Load the tiles at column `k`, from row `top` of `a` and `left` of `b`, when the stage is empty. In a cluster, the
    CTA of this `rank` loads its part of `b` for all."""
    mbar = claim_stage(ring, slot)
    ptx.cp.async_.bulk.tensor_2d(dst=ring.sa[slot.stage], src=a, coord=(k, top), mbar=mbar)
    if rank is None:
        ptx.cp.async_.bulk.tensor_2d(dst=ring.sb[slot.stage], src=b, coord=(k, left), mbar=mbar)
    else:
        ptx.cp.async_.bulk.tensor_2d(
            dst=ring.sb[slot.stage, rank], src=b, coord=(k, left + rank * ring.sb.shape[2]), mbar=mbar,
            multicast_mask=(1 << ring.ctas) - 1,
        )  # fmt: skip


def multiply_stages(
    ring: OperandRing, slots: tuple[PipelineState, reg.Reg], depth: int, consumer: reg.Reg, sums: reg.RegArray,
    lane: reg.Reg,
) -> None:  # fmt: skip
    """Compute a consumer's sums of all stages along K. One group of products stays in flight during the wait for the
    next stage, so a stage is released one step later: `slots` are the next one, and a register for the previous one,
    which at the end names the last stage. That one is not released."""
    slot, previous = slots
    for k in ptx.range_(0, depth, ring.sa.shape[-1]):
        ptx.mbarrier.wait(ring.full[slot.stage], slot.phase)
        is_later = k != 0
        multiply_stage(ring, slot.stage, consumer, sums, is_later)
        # All groups but this one are complete, so the previous stage has been read.
        ptx.wgmma.wait_group(1)
        release(ring, previous, lane, is_later)
        ptx.mov(u32, previous, slot.stage)
        slot.advance()
    ptx.wgmma.wait_group(0)


def multiply_stage(
    ring: OperandRing, stage: reg.Reg, consumer: reg.Reg, sums: reg.RegArray, accumulate: reg.Reg
) -> None:
    """Issue a consumer's products of a stage as one group, the first of which overwrites the sums unless `accumulate`.

    One product covers all rows of `sb`: groups of eight rows have the same stride within and across its parts.
    """
    dtype, (rows, depth), columns = ring.sa.dtype, ring.sa.shape[2:], ring.sb.shape[1] * ring.sb.shape[2]
    da = ptx.wgmma.auto_descriptor(ring.sa[stage, consumer], dtype=dtype, shape=(rows, depth), major="K")
    db = ptx.wgmma.auto_descriptor(ring.sb[stage], dtype=dtype, shape=(columns, depth), major="K")
    # Order earlier accesses to the sums before the products.
    ptx.wgmma.fence()
    row_bytes = depth * dtype.bits // 8
    for offset in range(0, row_bytes, STEP_BYTES):
        ptx.wgmma.mma_async(
            shape=(rows, columns, STEP_BYTES * 8 // dtype.bits), dtype_d=f32, dtype_a=dtype, dtype_b=dtype, d=sums,
            a=da, b=db, scale_d=True if offset else accumulate, a_k_offset=offset, b_k_offset=offset,
        )  # fmt: skip
    ptx.wgmma.commit_group()


@intrinsic
def release(ring: OperandRing, stage: reg.Reg, lane: reg.Reg, valid: reg.Reg | None = None) -> None:
    """Signal the producers of all CTAs, if `valid`, that this warp has read a stage: lane i signals CTA i."""
    if ring.ctas == 1:
        ptx.mbarrier.arrive(ring.empty[stage], pred=lane == 0 if valid is None else valid & (lane == 0))
        return
    signals = lane < ring.ctas if valid is None else valid & (lane < ring.ctas)
    remote = ptx.cluster.map_shared_u32(ring.empty[stage].address(), lane, pred=signals)
    ptx.mbarrier.arrive_mapped(remote, pred=signals)
