"""Attention forward on Hopper: o = softmax(q @ k.T / sqrt(128)) @ v for every head, bf16 with f32 sums.

The idea: keep the scores in registers. A warpgroup multiplies 64 queries by 128 keys; packed to bf16, the accumulator
layout of that product is the register layout of A in the next one. A row of scores is in four lanes, so its maximum
takes two shuffles. Online softmax rescales the sums when a larger score appears. One warpgroup is the producer of keys
and values. The two consumers, each with its own queries, drift into different phases, so the exponentials of one
overlap the products of the other.

The protocol of a stage is the same for keys and values: `full` completes with the producer's arrival and the bytes,
`empty` with one arrival per consumer warp after its `wgmma.wait_group`. The sequence length is a multiple of 128.
"""

from __future__ import annotations

import math

import numpy as np

from examples.parts.arithmetic import power_of_two
from examples.parts.example import HALF, Array, Example, Run
from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32

HEAD, QUERIES, KEYS, STEP = 128, 64, 128, 16
"""Head dimension, queries per warpgroup, keys per stage, K of one wgmma."""
SPAN = 64
"""Columns of a TMA box: 128 bytes, the widest swizzle."""
STAGES, CONSUMERS, WARPS = 2, 2, 4
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 24 + 256 * 240 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 24, 240
SCALE = math.log2(math.e) / math.sqrt(HEAD)
"""exp(x / sqrt(128)) = 2 ** (x SCALE)."""
LOWEST = -1.0e30


def grid(h: int, s: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    if s % (QUERIES * CONSUMERS) or s % KEYS:
        raise ValueError(f"the sequence length must be a multiple of {KEYS}, found {s}")
    return (s // (QUERIES * CONSUMERS), h, 1)


@intrinsic
def softmax_step(scores: reg.RegArray, peaks: reg.RegArray, totals: reg.RegArray, sums: reg.RegArray) -> None:
    """Replace scores by weights, and rescale the previous sums to the new maximum score.

    Registers 4 j + 2 h + e of an accumulator are row h of the lane's two rows. `peaks` (maxima times SCALE) and
    `totals` have one register per row; a total is only the lane's share until the final reduction.
    """
    for half in range(2):
        row_scores = [scores[i] for i in range(scores.count) if i // 2 % 2 == half]
        largest = reg.from_(row_scores[0], f32)
        for score in row_scores[1:]:
            ptx.inst.max.f32(largest, largest, score)
        ptx.warp.reduce_max(largest, width=4)
        new_peak = peaks[half].max(largest * SCALE)
        factor = power_of_two(peaks[half] - new_peak)
        ptx.mov(f32, peaks[half], new_peak)
        ptx.mul(f32, totals[half], totals[half], factor)
        bias = -new_peak
        for score in row_scores:
            ptx.mov(f32, score, power_of_two(ptx.mad(score, SCALE, bias)))
            ptx.add(f32, totals[half], totals[half], score)
        for i in range(sums.count):
            if i // 2 % 2 == half:
                ptx.mul(f32, sums[i], sums[i], factor)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    queries = Tile("h", "s", HEAD, bf16, Layout.TMA_128B, tma_box=(1, QUERIES, SPAN))
    keys = Tile("h", "s", HEAD, bf16, Layout.TMA_128B, tma_box=(1, KEYS, SPAN))

    @kernel(
        arch=arch, in_specs=(queries, keys, keys), out_specs=(Tile("h", "s", HEAD, bf16),), grid=grid,
        block=(THREADS, 1, 1),
    )  # fmt: skip
    def attention(q: TensorSpec, k: TensorSpec, v: TensorSpec, o: TensorSpec) -> None:
        # Long: the phases share registers and barriers.
        length = q.shape[1]
        (po,) = ptx.global_ptrs(o)
        sq = smem.wgmma_tile(bf16, (CONSUMERS, QUERIES, HEAD), "K", name="sq")
        sk = smem.wgmma_tile(bf16, (STAGES, KEYS, HEAD), "K", name="sk")
        sv = smem.wgmma_tile(bf16, (STAGES, KEYS, HEAD), "MN", name="sv")
        ready = smem.mbarrier(1, name="ready")
        full_k, empty_k = smem.mbarrier(STAGES, name="full_k"), smem.mbarrier(STAGES, name="empty_k")
        full_v, empty_v = smem.mbarrier(STAGES, name="full_v"), smem.mbarrier(STAGES, name="empty_v")
        thread = ptx.special.tid.x()
        group, lane = thread >> 7, thread & 31
        top, head = ptx.special.ctaid.x() * (QUERIES * CONSUMERS), ptx.special.ctaid.y()

        with ptx.if_(thread == 0):
            ptx.mbarrier.init(ready[0], 1)
            for stage in range(STAGES):
                for full, empty in ((full_k, empty_k), (full_v, empty_v)):
                    ptx.mbarrier.init(full[stage], 1)
                    ptx.mbarrier.init(empty[stage], CONSUMERS * WARPS)
        ptx.bar.sync(0)

        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
            with ptx.if_(thread == 0):
                # Load the queries once. A tile wider than the swizzle is split into 64-column stripes, one box each.
                ptx.mbarrier.arrive_expect_tx(ready[0], sq.size)
                for consumer in range(CONSUMERS):
                    for left in range(0, HEAD, SPAN):
                        ptx.cp.async_.bulk.tensor_3d(
                            dst=sq[consumer] + left * QUERIES * 2, src=q, coord=(left, top + consumer * QUERIES, head),
                            mbar=ready[0],
                        )  # fmt: skip
                ring = ptx.pipeline(STAGES)
                for row in ptx.range_(0, length, KEYS):
                    for source, tile, full, empty in ((k, sk, full_k, empty_k), (v, sv, full_v, empty_v)):
                        ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                        mbar, target = full[ring.stage], tile[ring.stage].address()
                        ptx.mbarrier.arrive_expect_tx(mbar, KEYS * HEAD * 2)
                        for left in range(0, HEAD, SPAN):
                            ptx.cp.async_.bulk.tensor_3d(
                                dst=target + left * KEYS * 2 if left else target, src=source, coord=(left, row, head),
                                mbar=mbar,
                            )  # fmt: skip
                    ring.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer, leader = group - 1, lane == 0
            scores = reg.wgmma_frag(m=QUERIES, n=KEYS, dtype=f32, name="score")
            sums = reg.wgmma_frag(m=QUERIES, n=HEAD, dtype=f32, name="sum")
            peaks, totals = reg.array(f32, 2, name="peak"), reg.array(f32, 2, name="total")
            weights = reg.array(bf16x2, KEYS // 4, name="weight")
            for register in (*sums, *totals):
                ptx.mov(f32, register, 0)
            for register in peaks:
                ptx.mov(f32, register, LOWEST)

            ptx.mbarrier.wait(ready[0], 0)
            ring = ptx.pipeline(STAGES)
            for _ in ptx.range_(0, length, KEYS):
                # Phase 1: compute the scores. No other instruction may access the registers from the fence to the wait.
                ptx.mbarrier.wait(full_k[ring.stage], ring.phase)
                ptx.wgmma.fence()
                for step in range(0, HEAD, STEP):
                    ptx.wgmma.mma_async(
                        shape=(QUERIES, KEYS, STEP), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=scores,
                        a=sq[consumer], b=sk[ring.stage], scale_d=step > 0,
                        a_k_offset=sq.k_offset(step), b_k_offset=sk.k_offset(step),
                    )  # fmt: skip
                ptx.wgmma.commit_group()
                ptx.wgmma.wait_group(0)
                ptx.mbarrier.arrive(empty_k[ring.stage], pred=leader)

                # Phase 2: compute the weights, and pack them for the next product.
                softmax_step(scores, peaks, totals, sums)
                for i, pair in enumerate(weights):
                    ptx.cvt(bf16x2, f32, pair, [scores[2 * i + 1], scores[2 * i]], rounding="rn")

                # Phase 3: accumulate the weighted values. The fence orders the writes of sums and weights before wgmma.
                ptx.mbarrier.wait(full_v[ring.stage], ring.phase)
                ptx.wgmma.fence()
                for step in range(0, KEYS, STEP):
                    ptx.wgmma.mma_async(
                        shape=(QUERIES, HEAD, STEP), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums,
                        a=weights[step // 4 : step // 4 + 4], b=sv[ring.stage], scale_d=True,
                        b_k_offset=sv.k_offset(step),
                    )  # fmt: skip
                ptx.wgmma.commit_group()
                ptx.wgmma.wait_group(0)
                ptx.mbarrier.arrive(empty_v[ring.stage], pred=leader)
                ring.advance()

            # Phase 4: divide by the totals and write the result. Four lanes share a row.
            first = top + consumer * QUERIES + ((thread >> 5) & 3) * 16 + (lane >> 2)
            corner = ptx.mad(head * length + first, HEAD * 2, po, mode="wide") + (lane & 3) * 4
            for half in range(2):
                ptx.warp.reduce_sum(totals[half], width=4)
                inverse = reg.scalar(f32)
                ptx.inst.rcp.rn.f32(inverse, totals[half])
                for j in range(HEAD // 8):
                    low, high = (value * inverse for value in sums[4 * j + 2 * half : 4 * j + 2 * half + 2])
                    packed = reg.alloc(bf16x2)
                    ptx.cvt(bf16x2, f32, packed, [high, low], rounding="rn")
                    ptx.st(bf16x2, ptx.addr(corner, 8 * half * HEAD * 2 + 16 * j), packed)

    return attention


def reference(q: Array, k: Array, v: Array) -> Array:
    """Return the expected result, in f64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(HEAD)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True) @ v


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a",),
    runs=(Run({"h": 1, "s": 128}, 2 * HALF, 4e-3, 2), Run({"h": 2, "s": 384}, 2 * HALF, 4e-3, 2)),
    large={"h": 16, "s": 4096},
    sass=("UTMALDG.3D", "HGMMA.64x128x16.F32.BF16", "MUFU.EX2", "USETMAXREG.TRY_ALLOC"),
    flops=lambda shape: 4 * shape["h"] * shape["s"] ** 2 * HEAD,
    peer="attention",
)

if __name__ == "__main__":
    EXAMPLE.show()
