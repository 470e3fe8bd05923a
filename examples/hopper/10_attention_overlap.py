"""Attention forward on Hopper that keeps the tensor cores busy: o = softmax(q @ k.T / sqrt(d)) @ v and its log-sum-exp.

`h` counts the heads of all batches, `s` is any sequence length, `d` is 64, 128 or 256. With `causal=True` a query
attends to the keys up to its own position.

The idea: compute exponentials while the tensor cores multiply. For 64 queries, 128 keys and d = 128, the two products
are 16 wgmma of 65 clocks each: 1040 clocks of the SM's tensor cores. Its 8192 exponentials take 512 clocks, at 16 per
clock, and each wait for all products another 45. In 09_attention.py, a warpgroup does one after the other, about 1640
clocks a block, and two warpgroups fill each other's gaps only if they happen to drift apart: in step, they keep the
tensor cores busy for 2080 of some 3200 clocks. Here two overlaps are by construction:

- Between warpgroups: each issues its products in its turn and then computes exponentials during the other's products.
- Within a warpgroup: the product with the values of one block is issued behind the scores of the next block, and runs
  while that block's weights are computed. The sums are rescaled, and the new weights packed, after it. The wait for the
  next values, a loop, ends the exponentials: ptxas would move `wgmma.wait_group` up before straight-line code.

With d = 64 the exponentials take as long as the products, so a fourth of them are polynomials on the FMA units.

Blocks go from the last to the first, so that only the first ones, which may cross the diagonal or the end of the
sequence, are masked. The tiles of the longest causal rows start first. The result leaves through the shared memory of
the queries by TMA, which clips the end of the sequence.

The protocol:

- `ready`: one arrival, from the producer, and the 256 d bytes of all queries. The consumers wait, for phase 0 only.
- `full_k` and `full_v`, one for each of the two stages: one arrival, from the producer, and 2 d bytes for each of the
  block's 192 keys (128 if causal, 64 for d = 256). Use n of a stage is phase n, so consumers wait for the parity of the
  ring's phase, which starts at 0. The producer loads the keys, then the values of each block; consumers use the values
  one block later.
- `empty_k` and `empty_v`, one per stage: 8 arrivals, one from each consumer warp after the `wgmma.wait_group` that
  covers its reads. The producer waits for the opposite parity: the phase before the first counts as complete on a new
  mbarrier. No one waits for the last values, so they are not released.
- Named barrier 1 + c, 256 threads: the turn of consumer c, one for each block: its scores, then, from the second on,
  the product with the values of the block before. Its 128 threads wait, the other consumer's 128 arrive when they have
  issued their products. Consumer 1 arrives once at the start, so consumer 0 begins, and consumer 0 waits once more at
  the end: every round is complete. Both visit the same blocks, so the numbers of turns agree. The product with the last
  values needs no turn.
- Named barrier 3 + c, 128 threads of consumer c: first all have finished reading the queries, then all have written the
  result, each with `fence.proxy.async` after its writes. One thread then stores by TMA and waits until TMA has read.
- `bar.sync 0`, all threads, once: after the mbarriers are initialized.

TMA writes and wgmma reads in the async proxy, and phases and waits order them: loads need no proxy fence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from examples.parts.attention import attend, count_flops, draw
from examples.parts.example import HALF, Example, Run
from examples.parts.head_tiles import (
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
from examples.parts.softmax import (
    finish_rows,
    make_rows,
    mask_scores,
    pack,
    raise_peaks,
    rescale,
    rescale_if_needed,
    weigh,
)
from examples.parts.tile_order import HeadOrder
from examples.parts.warps import elect, elect_in_group
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32, s32

STAGES, CONSUMERS, WARPS = 2, 2, 4
QUERIES = ROWS * CONSUMERS
KEYS = {(64, False): 192, (64, True): 128, (128, False): 192, (128, True): 128, (256, False): 64, (256, True): 64}
"""Keys of a block by head dimension and `causal`. A block costs its waits and turns once, so it is as large as shared
memory and registers allow: sums, scores and packed weights take d / 2 + 3 keys / 4, at most 208. A causal block is no
larger than the tile of queries, because the diagonal wastes the rest."""
SHARES = {64: 4, 128: 0, 256: 0}
"""By head dimension, every how many exponentials one is a polynomial, or 0 for none. With d = 64, the products of 128
keys take 520 clocks and their exponentials 512; without a fourth of these, 384."""
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 24 + 256 * 240 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 24, 240


def grid(h: int, s: int, d: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    check_dim(d, SHARES)
    return (-(-s // QUERIES), h, 1)


@dataclass(frozen=True)
class Config:
    """How blocks are computed; None is what the head dimension suggests."""

    keys: int | None = None
    """Of a block."""
    share: int | None = None
    """Every how many exponentials one is a polynomial, or 0."""
    stages: int = STAGES
    takes_turns: bool = True
    """Whether the consumers issue their products in turns."""
    headroom: float = 0.0
    """By how many powers of two scores may exceed the peak of their row, so that sums are seldom rescaled."""


def make(arch: str = "sm_90a", config: Config = Config()) -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    heads = make_heads("h", "s")

    @kernel(
        arch=arch, in_specs=(heads, heads, heads), out_specs=(heads, Tile("h", "s", f32)), grid=grid,
        block=(THREADS, 1, 1),
    )  # fmt: skip
    def attention_overlap(
        q: TensorSpec, k: TensorSpec, v: TensorSpec, o: TensorSpec, lse: TensorSpec, *, causal: bool = False
    ) -> None:
        # Long: the phases share registers and barriers.
        _, length, dim = q.shape
        check_dim(dim, SHARES)
        block, share = config.keys or KEYS[dim, causal], SHARES[dim] if config.share is None else config.share
        stages, scale = config.stages, math.log2(math.e) / math.sqrt(dim)  # exp(x / sqrt(d)) = 2 ** (x scale)
        (plse,) = ptx.global_ptrs(lse)
        sq = smem.wgmma_tile(bf16, (CONSUMERS, ROWS, dim), "K", name="sq")
        sk = smem.wgmma_tile(bf16, (stages, block, dim), "K", name="sk")
        sv = smem.wgmma_tile(bf16, (stages, block, dim), "MN", name="sv")
        ready = smem.mbarrier(1, name="ready")
        full_k, empty_k = smem.mbarrier(stages, name="full_k"), smem.mbarrier(stages, name="empty_k")
        full_v, empty_v = smem.mbarrier(stages, name="full_v"), smem.mbarrier(stages, name="empty_v")
        thread = reg.from_(ptx.special.tid.x(), s32)
        group, lane, head = thread >> 7, thread & 31, ptx.special.ctaid.y()
        top = (-(-length // QUERIES) - 1 - reg.from_(ptx.special.ctaid.x(), s32)) * QUERIES
        end = (top + QUERIES).min(length) if causal else reg.scalar(s32, length)
        last = (end - 1) // block * block

        with ptx.if_(thread == 0):
            ptx.mbarrier.init(ready[0], 1)
            for stage in range(stages):
                for full, empty in ((full_k, empty_k), (full_v, empty_v)):
                    ptx.mbarrier.init(full[stage], 1)
                    ptx.mbarrier.init(empty[stage], CONSUMERS * WARPS)
        ptx.bar.sync(0)

        with ptx.if_(group == 0):
            ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
            with ptx.if_(thread < 32), ptx.if_(elect()):
                ptx.mbarrier.arrive_expect_tx(ready[0], sq.size)
                for consumer in range(CONSUMERS):
                    load_tile(sq[consumer], q, top + consumer * ROWS, head, ready[0])
                ring = ptx.pipeline(stages)
                for row in ptx.range_(last, -1, -block):
                    for source, tile, full, empty in ((k, sk, full_k, empty_k), (v, sv, full_v, empty_v)):
                        ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                        ptx.mbarrier.arrive_expect_tx(full[ring.stage], block * dim * 2)
                        load_tile(tile[ring.stage], source, row, head, full[ring.stage])
                    ring.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer, leader = group - 1, lane == 0
            turn, other = (ptx.named_barrier(barrier, count=QUERIES * 2) for barrier in (group, 3 - group))
            scores = reg.wgmma_frag(m=ROWS, n=block, dtype=f32, name="score")
            sums = reg.wgmma_frag(m=ROWS, n=dim, dtype=f32, name="sum")
            weights = reg.array(bf16x2, block // 4, name="weight")
            peaks, totals = make_rows()
            for register in sums:
                ptx.mov(f32, register, 0)
            start = top + consumer * ROWS
            rows = [start + ((thread >> 5) & 3) * 16 + (lane >> 2) + 8 * half for half in range(2)]
            keys, values = ptx.pipeline(stages), ptx.pipeline(stages)

            def take_turn() -> None:
                if config.takes_turns:
                    turn.sync()

            def end_turn() -> None:
                if config.takes_turns:
                    other.arrive()

            def mask(key: reg.Reg) -> None:
                """Exclude keys after the query or the sequence, if the block has such keys."""
                with ptx.if_(key + block > ((start + 1).min(length) if causal else length)):
                    first = key + (lane & 3) * 2
                    mask_scores(scores, [((row + 1).min(length) if causal else length) - first for row in rows])

            # Phase 1: compute the weights of the last block, in the consumer's first turn.
            if config.takes_turns:
                with ptx.if_(consumer == 1):
                    other.arrive()
            ptx.mbarrier.wait(ready[0], 0)
            ptx.mbarrier.wait(full_k[keys.stage], keys.phase)
            take_turn()
            ptx.wgmma.fence()
            multiply_transposed(scores, sq[consumer], sk[keys.stage])
            ptx.wgmma.commit_group()
            end_turn()
            ptx.wgmma.wait_group(0)
            ptx.mbarrier.arrive(empty_k[keys.stage], pred=leader)
            keys.advance()
            if causal or length % block:
                mask(last)
            raise_peaks(scores, peaks, totals, scale)
            weigh(scores, peaks, totals, scale, share)
            pack(scores, weights)
            ptx.mbarrier.wait(full_v[values.stage], values.phase)

            for key in ptx.range_(last - block, -1, -block):
                # Phase 2: issue the scores of this block, then the product of the weights and values of the one before.
                # No other instruction may access their registers from the fence to their waits.
                ptx.mbarrier.wait(full_k[keys.stage], keys.phase)
                take_turn()
                ptx.wgmma.fence()
                multiply_transposed(scores, sq[consumer], sk[keys.stage])
                ptx.wgmma.commit_group()
                multiply_add(sums, weights, sv[values.stage])
                ptx.wgmma.commit_group()
                end_turn()

                # Phase 3: the scores are complete. Compute the weights while the other product runs.
                ptx.wgmma.wait_group(1)
                ptx.mbarrier.arrive(empty_k[keys.stage], pred=leader)
                keys.advance()
                if causal and block < QUERIES:
                    mask(key)
                factors = raise_peaks(scores, peaks, totals, scale, config.headroom)
                weigh(scores, peaks, totals, scale, share)
                stage, _ = values.advance()
                ptx.mbarrier.wait(full_v[values.stage], values.phase)
                ptx.wgmma.wait_group(0)
                ptx.mbarrier.arrive(empty_v[stage], pred=leader)
                (rescale_if_needed if config.headroom else rescale)(sums, factors)
                pack(scores, weights)

            # Phase 4: add the values of the first block, and complete the last round of consumer 0's turns.
            ptx.wgmma.fence()
            multiply_add(sums, weights, sv[values.stage])
            ptx.wgmma.commit_group()
            if config.takes_turns:
                with ptx.if_(consumer == 0):
                    turn.sync()
            ptx.wgmma.wait_group(0)

            # Phase 5: divide by the totals, and write the result over the queries.
            inverses, logarithms = finish_rows(peaks, totals)
            rescale(sums, inverses)
            barrier = ptx.named_barrier(group + CONSUMERS, count=128)
            barrier.sync()
            write_rows(sums.regs(), sq[consumer], thread)
            ptx.fence.proxy_async_shared_cta()
            barrier.sync()
            store_tile(o, sq[consumer], start, head, elect_in_group(thread))
            for row, logarithm in zip(rows, logarithms, strict=True):
                place = ptx.mad(head * length + row, 4, plse, mode="wide")
                ptx.st(f32, ptx.addr(place), logarithm, pred=(lane & 3 == 0) & (row < length))

    return attention_overlap


EXAMPLE = Example(
    make=make,
    reference=attend,
    targets=("sm_90a",),
    runs=(
        Run({"h": 1, "s": 128, "d": 64}, 2 * HALF, 8e-3, 2, findings=OUTSIDE),
        Run({"h": 1, "s": 456, "d": 128}, 2 * HALF, 8e-3, 2, special=True, findings=OUTSIDE),
        Run({"h": 2, "s": 200, "d": 128, "causal": True}, 2 * HALF, 8e-3, 2),
        Run({"h": 1, "s": 192, "d": 256, "causal": True}, 2 * HALF, 8e-3, 2, findings=OUTSIDE),
    ),
    large={"h": 16, "s": 16384, "d": 128},
    sass=("UTMALDG.3D", "HGMMA.64x128x16.F32.BF16", "MUFU.EX2", "USETMAXREG.TRY_ALLOC", "STSM.16.M88.4", "UTMASTG.3D"),
    fixed=("d",),
    draw=draw,
    flops=count_flops,
    order=HeadOrder(QUERIES),
    peer="attention cudnn_attention triton_attention",
)

if __name__ == "__main__":
    EXAMPLE.show()
