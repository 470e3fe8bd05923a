"""Attention backward on Hopper, part 2: the gradients of the keys and values, from the delta of part 1.

`h` counts the heads of all batches, `s` is any sequence length, `d` is 64 or 128. `lse` is a result of
10_attention_overlap.py, `delta` of 12_attention_backward_dq.py, `do` is the gradient of the output.

The idea: compute transposed scores. A warpgroup keeps 64 keys and visits all queries, 64 at a time. The transposed
weights p.T = exp(k @ q.T / sqrt(d) - lse) are then, packed in registers, the A operand of dv = p.T @ do, and
(p * (dp - delta)).T that of dk, without a detour through shared memory. Rows are keys, so log-sum-exp and delta are
vectors along the columns, which the producer's warp copies to shared memory in base 2. Tiles of q and do serve both as
K-major and as MN-major operands: only the descriptors differ.

A query beyond the sequence has zeros in q and do, a log-sum-exp and delta of zero, and thus no effect. Keys beyond it
are rows of their own, which TMA does not store. Causal blocks start at the diagonal.

The protocol:

- `ready`: one arrival, from the producer, and the 512 d bytes of all rows of k and v. The consumers wait, for phase 0
  only.
- `full`, one for each of the three stages: 33 arrivals, from the producer's warp, and the 256 d bytes of a block of 64
  rows of q and do. Each lane arrives after its writes of log-sum-exp and delta, which it so releases, and the elected
  lane once more to expect the bytes. Use n of a stage is phase n, so consumers wait for the parity of the ring's phase,
  which starts at 0.
- `empty`, one per stage: 8 arrivals, one from each warp of both consumers, one block later, when its `wgmma.wait_group`
  covers all products of the block. The warp has read log-sum-exp and delta before, and `bar.warp.sync` orders those
  reads before the arrival of lane 0. All lanes of the producer's warp wait, since all of them write next, for the
  opposite parity: the phase before the first counts as complete on a new mbarrier. No one waits for the release of the
  last block, so it is left out.
- Named barrier 1 + c, 128 threads of consumer c: first all have finished reading k and v, then all have written dk and
  dv over them, each with `fence.proxy.async` after its writes. One thread then stores by TMA and waits for the reads.
- `bar.sync 0`, all threads, once: after the mbarriers are initialized.

TMA writes and wgmma reads in the async proxy, and phases and waits order them: loads need no proxy fence.
"""

from __future__ import annotations

import math

import numpy as np

from examples.parts.arithmetic import power_of_two
from examples.parts.attention import differentiate, draw_backward
from examples.parts.example import HALF, Array, Example, Run, widen
from examples.parts.head_tiles import (
    BOX,
    OUTSIDE,
    ROWS,
    check_dim,
    load_tile,
    make_heads,
    multiply_add,
    multiply_transposed,
    store_tile,
    write_rows,
)
from examples.parts.softmax import mask_scores, pack, rescale
from examples.parts.tile_order import HeadOrder
from examples.parts.warps import elect, elect_in_group
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32, s32, u32

QUERIES, STAGES, CONSUMERS, WARPS = BOX, 3, 2, 4
"""With blocks of 64 queries, two sums, weights, slopes and a packed copy take d + 80 registers: 208 at most. A second
packed copy would let both of the last products run at once, but then ptxas serializes all of them.
Three stages, since the products of a block end in the next one: a block keeps its stage for two."""
KEYS = ROWS * CONSUMERS
DIMS = (64, 128)
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 24 + 256 * 240 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 24, 240


def grid(h: int, s: int, d: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    check_dim(d, DIMS)
    return (-(-s // KEYS), h, 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    heads, rows_of_sums = make_heads("h", "s"), Tile("h", "s", f32)

    @kernel(
        arch=arch, in_specs=(heads, heads, heads, rows_of_sums, rows_of_sums, heads), out_specs=(heads, heads),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def attention_backward_dkv(
        q: TensorSpec, k: TensorSpec, v: TensorSpec, lse: TensorSpec, delta: TensorSpec, do: TensorSpec,
        dk: TensorSpec, dv: TensorSpec, *, causal: bool = False,
    ) -> None:  # fmt: skip
        # Long: the phases share registers and barriers.
        _, length, dim = q.shape
        check_dim(dim, DIMS)
        scale = math.log2(math.e) / math.sqrt(dim)  # exp(x / sqrt(d)) = 2 ** (x scale)
        plse, pdelta = ptx.global_ptrs(lse, delta)
        sk = smem.wgmma_tile(bf16, (CONSUMERS, ROWS, dim), "K", name="sk")
        sv = smem.wgmma_tile(bf16, (CONSUMERS, ROWS, dim), "K", name="sv")
        sq = smem.wgmma_tile(bf16, (STAGES, QUERIES, dim), "K", name="sq")
        sdo = smem.wgmma_tile(bf16, (STAGES, QUERIES, dim), "K", name="sdo")
        columns = smem.alloc(f32, (STAGES, 2, QUERIES), name="columns")
        ready = smem.mbarrier(1, name="ready")
        full, empty = smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty")
        thread = reg.from_(ptx.special.tid.x(), s32)
        group, lane, head = thread >> 7, thread & 31, reg.from_(ptx.special.ctaid.y(), s32)
        top = reg.from_(ptx.special.ctaid.x(), s32) * KEYS
        start = top if causal else reg.scalar(s32, 0)

        with ptx.if_(thread == 0):
            ptx.mbarrier.init(ready[0], 1)
            for stage in range(STAGES):
                ptx.mbarrier.init(full[stage], 1 + 32)
                ptx.mbarrier.init(empty[stage], CONSUMERS * WARPS)
        ptx.bar.sync(0)

        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
            with ptx.if_(thread < 32), ptx.if_(elect()):
                ptx.mbarrier.arrive_expect_tx(ready[0], sk.size + sv.size)
                for consumer in range(CONSUMERS):
                    for source, tile in ((k, sk), (v, sv)):
                        load_tile(tile[consumer], source, top + consumer * ROWS, head, ready[0])
            with ptx.if_(thread < 32):
                ring = ptx.pipeline(STAGES)
                for row in ptx.range_(start, length, QUERIES):
                    ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                    with ptx.if_(elect()):
                        ptx.mbarrier.arrive_expect_tx(full[ring.stage], 2 * QUERIES * dim * 2)
                        for source, tile in ((q, sq), (do, sdo)):
                            load_tile(tile[ring.stage], source, row, head, full[ring.stage])
                    for i, (base, factor) in enumerate(((plse, -math.log2(math.e)), (pdelta, 1.0))):
                        for column in (lane, lane + 32):
                            value, query = reg.scalar(f32, 0.0), row + column
                            place = ptx.mad(head * length + query, 4, base, mode="wide")
                            ptx.ld(f32, value, ptx.addr(place), pred=query < length)
                            columns[ring.stage, i, column] = value * factor
                    ptx.mbarrier.arrive(full[ring.stage])
                    ring.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer, leader = group - 1, lane == 0
            weights = reg.wgmma_frag(m=ROWS, n=QUERIES, dtype=f32, name="weight")
            slopes = reg.wgmma_frag(m=ROWS, n=QUERIES, dtype=f32, name="slope")
            sums_k = reg.wgmma_frag(m=ROWS, n=dim, dtype=f32, name="sum_k")
            sums_v = reg.wgmma_frag(m=ROWS, n=dim, dtype=f32, name="sum_v")
            packed = reg.array(bf16x2, QUERIES // 4, name="packed")
            for register in (*sums_k, *sums_v):
                ptx.mov(f32, register, 0)
            first = top + consumer * ROWS
            keys = [first + ((thread >> 5) & 3) * 16 + (lane >> 2) + 8 * half for half in range(2)]

            ptx.mbarrier.wait(ready[0], 0)
            ring, previous = ptx.pipeline(STAGES), reg.scalar(u32, 0, name="previous")
            ptx.mbarrier.wait(full[0], 0)
            for query in ptx.range_(start, length, QUERIES):
                # Phase 1: issue the scores and dp. No other instruction may access their registers until their waits.
                stage, _ = ring.advance()
                ptx.wgmma.fence()
                multiply_transposed(weights, sk[consumer], sq[stage])
                ptx.wgmma.commit_group()
                multiply_transposed(slopes, sv[consumer], sdo[stage])
                ptx.wgmma.commit_group()

                # Phase 2: the scores are complete, and so is the previous block. Compute weights while dp is computed.
                ptx.wgmma.wait_group(1)
                ptx.bar.warp_sync()
                ptx.mbarrier.arrive(empty[previous], pred=leader & (query != start))
                ptx.mov(u32, previous, stage)
                column = (lane & 3) * 2
                if causal:
                    with ptx.if_(query < first + ROWS - 1):
                        mask_scores(weights, [key - query - column for key in keys], before=True)
                # Queries past the end are zeros, whose product with an infinite key is NaN.
                with ptx.if_(query + QUERIES > length):
                    mask_scores(weights, [length - query - column] * 2)
                place = columns[stage].address() + column * 4
                for j in range(QUERIES // 8):
                    offsets = ptx.ld(f32, ptx.addr(place, 32 * j), vec=2, space="shared")
                    for i in range(4):
                        weight = weights[4 * j + i]
                        ptx.mov(f32, weight, power_of_two(ptx.mad(weight, scale, offsets[i % 2])))
                pack(weights, packed)
                # This branch ends the weights: ptxas would move `wgmma.wait_group` up before straight-line code.
                with ptx.if_(query + QUERIES < length):
                    ptx.mbarrier.wait(full[ring.stage], ring.phase)

                # Phase 3: issue the product for dv, and multiply the weights by dp - delta while it runs.
                ptx.wgmma.fence()
                multiply_add(sums_v, packed, sdo[stage])
                ptx.wgmma.commit_group()
                ptx.wgmma.wait_group(1)
                for j in range(QUERIES // 8):
                    deltas = ptx.ld(f32, ptx.addr(place, QUERIES * 4 + 32 * j), vec=2, space="shared")
                    for i in range(4):
                        slope = slopes[4 * j + i]
                        ptx.mov(f32, slope, (slope - deltas[i % 2]) * weights[4 * j + i])

                # Phase 4: pack them into the registers that the product for dv has read, and issue the product for dk.
                ptx.wgmma.wait_group(0)
                pack(slopes, packed)
                ptx.wgmma.fence()
                multiply_add(sums_k, packed, sq[stage])
                ptx.wgmma.commit_group()

            # Phase 5: write the results over the keys and values.
            ptx.wgmma.wait_group(0)
            factor = reg.scalar(f32, 1 / math.sqrt(dim))
            rescale(sums_k, [factor, factor])
            barrier = ptx.named_barrier(group, count=128)
            barrier.sync()
            for sums, tile in ((sums_k, sk), (sums_v, sv)):
                write_rows(sums.regs(), tile[consumer], thread)
            ptx.fence.proxy_async_shared_cta()
            barrier.sync()
            for target, tile in ((dk, sk), (dv, sv)):
                store_tile(target, tile[consumer], first, head, elect_in_group(thread))

    return attention_backward_dkv


def draw(run: Run, random: np.random.Generator) -> tuple[Array, ...]:
    """Return q, k, v, do, the log-sum-exp of the forward pass, and delta."""
    q, k, v, o, lse, do = draw_backward(run, random)
    delta = (widen(do) * widen(o)).sum(axis=2)
    return q, k, v, lse, delta.astype(np.float32), do


def reference(
    q: Array, k: Array, v: Array, lse: Array, delta: Array, do: Array, *, causal: bool = False
) -> tuple[Array, Array]:
    """Return the gradients of the keys and values, in f64."""
    del lse, delta
    _, dk, dv = differentiate(q, k, v, do, causal=causal)
    return dk, dv


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a",),
    runs=(
        Run({"h": 1, "s": 128, "d": 64}, 2 * HALF, 8e-3),
        Run({"h": 2, "s": 200, "d": 128, "causal": True}, 2 * HALF, 8e-3),
        Run({"h": 1, "s": 328, "d": 128}, 2 * HALF, 8e-3),
        Run({"h": 2, "s": 136, "d": 64}, 2 * HALF, 8e-3, special=True, findings=OUTSIDE),
    ),
    large={"h": 16, "s": 4096, "d": 128},
    sass=("UTMALDG.3D", "HGMMA.64x64x16.F32.BF16", "HGMMA.64x128x16.F32.BF16", "MUFU.EX2", "UTMASTG.3D"),
    fixed=("d",),
    draw=draw,
    flops=lambda shape: 8 * shape["h"] * shape["s"] ** 2 * shape["d"] // (2 if shape.get("causal") else 1),
    order=HeadOrder(KEYS, own=2),
    peer="attention_backward",
)

if __name__ == "__main__":
    EXAMPLE.show()
