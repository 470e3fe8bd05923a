"""Attention backward on Hopper, part 1: the gradient of the queries, and delta = rowsum(do * o) for part 2.

`h` counts the heads of all batches, `s` is any sequence length, `d` is 64 or 128. `o` and `lse` are results of
10_attention_overlap.py, `do` is the gradient of `o`.

The idea: a gradient of a sum needs no atomics if one CTA computes the whole sum. This kernel visits all keys of a block
of queries, and 13_attention_backward_dkv.py all queries of a block of keys. Together they recompute two products more
than a kernel that adds to dq by atomics, and their results are the same in every run. With the weights
p = exp(scores - lse), recomputed from the scores, and dp = do @ v.T, dq = (p * (dp - delta)) @ k / sqrt(d). A row is in
four lanes, as in the forward kernel, and each lane sums a quarter of its delta. The products of a block are issued
together: weights are computed while dp is, and the product with the keys runs behind those of the next block.

The protocol:

- `ready`: one arrival, from the producer, and the 512 d bytes of all rows of q and do. The consumers wait, for phase 0
  only.
- `full`, one for each of the three stages: one arrival, from the producer, and the 256 d bytes of a block of 64 rows of
  k and v. Use n of a stage is phase n, so consumers wait for the parity of the ring's phase, which starts at 0.
- `empty`, one per stage: 8 arrivals, one from each warp of both consumers, one block later, when its `wgmma.wait_group`
  covers the product with the keys. The producer waits for the opposite parity: the phase before the first counts as
  complete on a new mbarrier. No one waits for the release of the last block, so it is left out.
- Named barrier 1 + c, 128 threads of consumer c: first all have finished reading q, then all have written dq over it.
  Each executes `fence.proxy.async` after its writes. One thread then stores by TMA and waits until TMA has read dq.
- `bar.sync 0`, all threads, once: after the mbarriers are initialized.

TMA writes and wgmma reads in the async proxy, and phases and waits order them: loads need no proxy fence.
"""

from __future__ import annotations

import math

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
from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import b32, bf16, bf16x2, f32, s32, u32

KEYS, STAGES, CONSUMERS, WARPS = BOX, 3, 2, 4
"""With blocks of 64 keys, sums, scores, slopes and packed gradients take d / 2 + 80 registers: 144 at most.
Three stages, since the product with the keys runs a block later: a block keeps its stage for two."""
QUERIES = ROWS * CONSUMERS
DIMS = (64, 128)
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 24 + 256 * 240 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 24, 240


def grid(h: int, s: int, d: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    check_dim(d, DIMS)
    return (-(-s // QUERIES), h, 1)


@intrinsic
def multiply_share(left: reg.Reg, right: reg.Reg, columns: int, valid: reg.Reg) -> reg.Reg:
    """Return the sum of products of this many bf16 at two addresses, zero if not valid."""
    total = reg.scalar(f32, 0.0)
    for i in range(columns // 8):
        pairs = [[reg.scalar(b32, 0) for _ in range(4)] for _ in range(2)]
        for registers, address in zip(pairs, (left, right), strict=True):
            ptx.ld(b32, registers, ptx.addr(address, 16 * i), pred=valid)
        for a, b in zip(*pairs, strict=True):
            # A bf16 is the upper half of an f32.
            for x, y in ((a << 16, b << 16), (a & 0xFFFF0000, b & 0xFFFF0000)):
                ptx.mov(f32, total, ptx.mad(ptx.bitcast(f32, x), ptx.bitcast(f32, y), total))
    return total


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    heads, rows_of_sums = make_heads("h", "s"), Tile("h", "s", f32)

    @kernel(
        arch=arch, in_specs=(heads, heads, heads, heads, rows_of_sums, heads), out_specs=(heads, rows_of_sums),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def attention_backward_dq(
        q: TensorSpec, k: TensorSpec, v: TensorSpec, o: TensorSpec, lse: TensorSpec, do: TensorSpec, dq: TensorSpec,
        delta: TensorSpec, *, causal: bool = False,
    ) -> None:  # fmt: skip
        # Long: the phases share registers and barriers.
        _, length, dim = q.shape
        check_dim(dim, DIMS)
        scale = math.log2(math.e) / math.sqrt(dim)  # exp(x / sqrt(d)) = 2 ** (x scale)
        po, plse, pdo, pdelta = ptx.global_ptrs(o, lse, do, delta)
        sq = smem.wgmma_tile(bf16, (CONSUMERS, ROWS, dim), "K", name="sq")
        sdo = smem.wgmma_tile(bf16, (CONSUMERS, ROWS, dim), "K", name="sdo")
        sk = smem.wgmma_tile(bf16, (STAGES, KEYS, dim), "K", name="sk")
        sv = smem.wgmma_tile(bf16, (STAGES, KEYS, dim), "K", name="sv")
        ready = smem.mbarrier(1, name="ready")
        full, empty = smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty")
        thread = reg.from_(ptx.special.tid.x(), s32)
        group, lane, head = thread >> 7, thread & 31, reg.from_(ptx.special.ctaid.y(), s32)
        # The longest causal rows start first.
        top = (-(-length // QUERIES) - 1 - reg.from_(ptx.special.ctaid.x(), s32)) * QUERIES
        end = (top + QUERIES).min(length) if causal else reg.scalar(s32, length)

        with ptx.if_(thread == 0):
            ptx.mbarrier.init(ready[0], 1)
            for stage in range(STAGES):
                ptx.mbarrier.init(full[stage], 1)
                ptx.mbarrier.init(empty[stage], CONSUMERS * WARPS)
        ptx.bar.sync(0)

        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
            with ptx.if_(thread < 32), ptx.if_(elect()):
                ptx.mbarrier.arrive_expect_tx(ready[0], sq.size + sdo.size)
                for consumer in range(CONSUMERS):
                    for source, tile in ((q, sq), (do, sdo)):
                        load_tile(tile[consumer], source, top + consumer * ROWS, head, ready[0])
                ring = ptx.pipeline(STAGES)
                for row in ptx.range_(0, end, KEYS):
                    ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                    ptx.mbarrier.arrive_expect_tx(full[ring.stage], 2 * KEYS * dim * 2)
                    for source, tile in ((k, sk), (v, sv)):
                        load_tile(tile[ring.stage], source, row, head, full[ring.stage])
                    ring.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer, leader = group - 1, lane == 0
            scores = reg.wgmma_frag(m=ROWS, n=KEYS, dtype=f32, name="score")
            slopes = reg.wgmma_frag(m=ROWS, n=KEYS, dtype=f32, name="slope")
            sums = reg.wgmma_frag(m=ROWS, n=dim, dtype=f32, name="sum")
            gradients = reg.array(bf16x2, KEYS // 4, name="gradient")
            for register in sums:
                ptx.mov(f32, register, 0)
            start = top + consumer * ROWS
            rows = [start + ((thread >> 5) & 3) * 16 + (lane >> 2) + 8 * half for half in range(2)]

            # Phase 1: compute delta, and load the log-sum-exp. Rows beyond the sequence have zeros.
            deltas, offsets = list[reg.Reg](), list[reg.Reg]()
            for row in rows:
                position, valid = head * length + row, row < length
                left, right = (
                    ptx.mad(position, dim * 2, base, mode="wide") + (lane & 3) * (dim // 2) for base in (po, pdo)
                )
                total = multiply_share(left, right, dim // 4, valid)
                ptx.warp.reduce_sum(total, width=4)
                ptx.st(f32, ptx.addr(ptx.mad(position, 4, pdelta, mode="wide")), total, pred=valid & (lane & 3 == 0))
                logarithm = reg.scalar(f32, 0.0)
                ptx.ld(f32, logarithm, ptx.addr(ptx.mad(position, 4, plse, mode="wide")), pred=valid)
                deltas.append(total)
                offsets.append(logarithm * -math.log2(math.e))

            ptx.mbarrier.wait(ready[0], 0)
            ring, previous = ptx.pipeline(STAGES), reg.scalar(u32, 0, name="previous")
            ptx.mbarrier.wait(full[0], 0)
            for key in ptx.range_(0, end, KEYS):
                # Phase 2: issue the scores and dp. No other instruction may access their registers until their waits.
                stage, _ = ring.advance()
                ptx.wgmma.fence()
                multiply_transposed(scores, sq[consumer], sk[stage])
                ptx.wgmma.commit_group()
                multiply_transposed(slopes, sdo[consumer], sv[stage])
                ptx.wgmma.commit_group()

                # Phase 3: the scores are complete, and so is the previous block. Compute weights while dp is computed.
                ptx.wgmma.wait_group(1)
                ptx.mbarrier.arrive(empty[previous], pred=leader & (key != 0))
                ptx.mov(u32, previous, stage)
                if causal or length % KEYS:
                    first = key + (lane & 3) * 2
                    with ptx.if_(key + KEYS > ((start + 1).min(length) if causal else length)):
                        limits = [((row + 1).min(length) if causal else length) - first for row in rows]
                        mask_scores(scores, limits)
                for i, score in enumerate(scores):
                    ptx.mov(f32, score, power_of_two(ptx.mad(score, scale, offsets[i // 2 % 2])))
                # This branch ends the weights: ptxas would move `wgmma.wait_group` up before straight-line code.
                with ptx.if_(key + KEYS < end):
                    ptx.mbarrier.wait(full[ring.stage], ring.phase)

                # Phase 4: multiply by dp - delta, and issue the product with the keys.
                ptx.wgmma.wait_group(0)
                for i, (score, slope) in enumerate(zip(scores, slopes, strict=True)):
                    ptx.mov(f32, slope, (slope - deltas[i // 2 % 2]) * score)
                pack(slopes, gradients)
                ptx.wgmma.fence()
                multiply_add(sums, gradients, sk[stage])
                ptx.wgmma.commit_group()

            # Phase 5: write the result over the queries.
            ptx.wgmma.wait_group(0)
            factor = reg.scalar(f32, 1 / math.sqrt(dim))
            rescale(sums, [factor, factor])
            barrier = ptx.named_barrier(group, count=128)
            barrier.sync()
            write_rows(sums.regs(), sq[consumer], thread)
            ptx.fence.proxy_async_shared_cta()
            barrier.sync()
            store_tile(dq, sq[consumer], start, head, elect_in_group(thread))

    return attention_backward_dq


def reference(
    q: Array, k: Array, v: Array, o: Array, lse: Array, do: Array, *, causal: bool = False
) -> tuple[Array, Array]:
    """Return the gradient of the queries and delta, in f64."""
    del lse
    return differentiate(q, k, v, do, causal=causal)[0], (widen(do) * widen(o)).sum(axis=2)


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
    draw=draw_backward,
    flops=lambda shape: 6 * shape["h"] * shape["s"] ** 2 * shape["d"] // (2 if shape.get("causal") else 1),
    order=HeadOrder(QUERIES, own=3),
    peer="attention_backward",
)

if __name__ == "__main__":
    EXAMPLE.show()
