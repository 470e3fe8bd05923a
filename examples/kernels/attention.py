"""Attention forward on Hopper: o = softmax(q @ k.T / sqrt(128)) @ v for every head, bf16 with f32 sums.

The idea: the scores never leave the registers. A warpgroup multiplies 64 queries with 128 keys, and the accumulator
layout of that product is, packed to bf16, the register-A layout of the next one. A row of scores lies in four lanes, so
its largest value costs two shuffles. The running form of softmax scales the sums down when a larger score comes. One
warpgroup is the producer of keys and values; two consumers, each with its own queries, are in different phases by
themselves, so that one's exponentials overlap the other's products.

The protocol of a stage, for keys and values alike: `full` completes with the producer's arrival and the bytes, `empty`
with one arrival of each consumer warp, after its `wgmma.wait_group`. Sequences are multiples of 128 long.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32

HEAD, QUERIES, KEYS, STEP = 128, 64, 128, 16
"""Width of a head, queries of a warpgroup, keys of a stage, K of one wgmma."""
SPAN = 64
"""Columns of a TMA box: 128 bytes, the widest swizzle."""
STAGES, CONSUMERS, WARPS = 2, 2, 4
THREADS = 128 * (1 + CONSUMERS)
# 168 registers at entry: 128 * 24 + 256 * 240 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 24, 240
SCALE = math.log2(math.e) / math.sqrt(HEAD)
"""exp(x / sqrt(128)) = 2 ** (x SCALE)."""
LEAST = -1.0e30
Array = np.ndarray[Any, Any]


def grid(h: int, s: int) -> tuple[int, int, int]:
    """Return how many CTAs a shape takes."""
    if s % (QUERIES * CONSUMERS) or s % KEYS:
        raise ValueError(f"sequences are multiples of {KEYS} long, found {s}")
    return (s // (QUERIES * CONSUMERS), h, 1)


def power_of_two(exponent: reg.Reg) -> reg.Reg:
    """Return 2 ** exponent."""
    made = reg.scalar(f32)
    ptx.inst.ex2.approx.ftz.f32(made, exponent)
    return made


@intrinsic
def softmax_step(scores: reg.RegArray, peaks: reg.RegArray, totals: reg.RegArray, sums: reg.RegArray) -> None:
    """Turn scores into weights, and bring what was summed so far to the new largest score.

    Registers 4 j + 2 h + e of an accumulator are row h of the lane's two rows: `peaks` (times SCALE) and `totals` have
    one register for each; a total is the lane's own share until the end.
    """
    for half in range(2):
        mine = [scores[i] for i in range(scores.count) if i // 2 % 2 == half]
        largest = reg.from_(mine[0], f32)
        for score in mine[1:]:
            ptx.inst.max.f32(largest, largest, score)
        ptx.warp.reduce_max(largest, width=4)
        now = peaks[half].max(largest * SCALE)
        shrink = power_of_two(peaks[half] - now)
        ptx.mov(f32, peaks[half], now)
        ptx.mul(f32, totals[half], totals[half], shrink)
        below = -now
        for score in mine:
            ptx.mov(f32, score, power_of_two(ptx.mad(score, SCALE, below)))
            ptx.add(f32, totals[half], totals[half], score)
        for i in range(sums.count):
            if i // 2 % 2 == half:
                ptx.mul(f32, sums[i], sums[i], shrink)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for a target: sm_90a, the only one with wgmma.

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
                # The queries, once. A tile wider than the swizzle lies in stripes of 64 columns, one box for each.
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
                        arrived, to = full[ring.stage], tile[ring.stage].address()
                        ptx.mbarrier.arrive_expect_tx(arrived, KEYS * HEAD * 2)
                        for left in range(0, HEAD, SPAN):
                            ptx.cp.async_.bulk.tensor_3d(
                                dst=to + left * KEYS * 2 if left else to, src=source, coord=(left, row, head),
                                mbar=arrived,
                            )  # fmt: skip
                    ring.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer, speaks = group - 1, lane == 0
            scores = reg.wgmma_frag(m=QUERIES, n=KEYS, dtype=f32, name="score")
            sums = reg.wgmma_frag(m=QUERIES, n=HEAD, dtype=f32, name="sum")
            peaks, totals = reg.array(f32, 2, name="peak"), reg.array(f32, 2, name="total")
            weights = reg.array(bf16x2, KEYS // 4, name="weight")
            for register in (*sums, *totals):
                ptx.mov(f32, register, 0)
            for register in peaks:
                ptx.mov(f32, register, LEAST)

            ptx.mbarrier.wait(ready[0], 0)
            ring = ptx.pipeline(STAGES)
            for _ in ptx.range_(0, length, KEYS):
                # Phase 1: scores. Nobody else may touch the registers from the fence to the wait.
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
                ptx.mbarrier.arrive(empty_k[ring.stage], pred=speaks)

                # Phase 2: weights, packed as the next product reads them.
                softmax_step(scores, peaks, totals, sums)
                for i, pair in enumerate(weights):
                    ptx.cvt(bf16x2, f32, pair, [scores[2 * i + 1], scores[2 * i]], rounding="rn")

                # Phase 3: add the weighted values. The fence hands over the sums and weights just written.
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
                ptx.mbarrier.arrive(empty_v[ring.stage], pred=speaks)
                ring.advance()

            # Phase 4: divide and write. Four lanes share a row.
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
    """Return what the kernel computes, in f64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(HEAD)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True) @ v
