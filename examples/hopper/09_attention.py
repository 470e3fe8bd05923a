"""Attention forward on Hopper: o = softmax(q @ k.T / sqrt(d)) @ v and its log-sum-exp, bf16 with f32 sums.

`h` counts the heads of all batches, `s` is any sequence length, `d` is 64, 128 or 256. With `causal=True` a query
attends to the keys up to its own position. The log-sum-exp of the scaled scores is what a backward pass needs.

The idea: keep the scores in registers. A warpgroup multiplies 64 queries by a block of keys; packed to bf16, the
accumulator layout of that product is the register layout of A in the next one. A row of scores is in four lanes, so its
maximum takes two shuffles. Online softmax rescales the sums when a larger score appears. One warpgroup is the producer
of keys and values. The two consumers, each with its own queries, drift into different phases, so the exponentials of
one overlap the products of the other.

Only blocks that cross a limit are masked: the diagonal of a causal head, or the end of the sequence. Blocks beyond the
diagonal are not visited. TMA fills rows beyond the sequence with zeros, and stores of their results are guarded.

The protocol:

- `ready`: one arrival, from the producer, and the 256 d bytes of all queries. The consumers wait, for phase 0 only.
- `full_k` and `full_v`, one for each of the two stages: one arrival, from the producer, and 2 d bytes for each of the
  block's 128 keys (64 for d = 256). Use n of a stage is phase n, so consumers wait for the parity of the ring's phase,
  which starts at 0.
- `empty_k` and `empty_v`, one per stage: 8 arrivals, one from each consumer warp after its `wgmma.wait_group`, which
  ends its reads. The producer waits for the opposite parity: the phase before the first counts as complete on a new
  mbarrier.
- `bar.sync 0`, all threads, once: after the mbarriers are initialized.

TMA writes and wgmma reads in the async proxy, and phases and waits order them: no proxy fence is needed. A causal
consumer whose diagonal ends earlier skips the last block and its arrivals: no one waits for that phase.
"""

from __future__ import annotations

import math

from examples.parts.attention import attend, count_flops, draw
from examples.parts.example import HALF, Example, Run
from examples.parts.head_tiles import OUTSIDE, ROWS, check_dim, load_tile, make_heads, multiply_add, multiply_transposed
from examples.parts.softmax import finish_rows, make_rows, mask_scores, pack, raise_peaks, rescale, weigh
from examples.parts.tile_order import HeadOrder
from examples.parts.warps import elect
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32, s32

KEYS = {64: 128, 128: 128, 256: 64}
"""Keys of a block by head dimension. Sums, scores and packed weights take d / 2 + 3 keys / 4 registers: 176 at most."""
STAGES, CONSUMERS, WARPS = 2, 2, 4
"""Two stages are enough: with d = 128, the 64 KiB of a block arrive in 950 clk at 69 B/clk, and serve both consumers
for 2,080 clk of products."""
THREADS = 128 * (1 + CONSUMERS)
# The kernel starts with 168 registers per thread: 128 * 24 + 256 * 240 = 384 * 168.
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 24, 240


def grid(h: int, s: int, d: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    check_dim(d, KEYS)
    return (-(-s // (ROWS * CONSUMERS)), h, 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    heads = make_heads("h", "s")

    @kernel(
        arch=arch, in_specs=(heads, heads, heads), out_specs=(Tile("h", "s", "d", bf16), Tile("h", "s", f32)),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def attention(
        q: TensorSpec, k: TensorSpec, v: TensorSpec, o: TensorSpec, lse: TensorSpec, *, causal: bool = False
    ) -> None:
        # Long: the phases share registers and barriers.
        _, length, dim = q.shape
        check_dim(dim, KEYS)
        block, scale = KEYS[dim], math.log2(math.e) / math.sqrt(dim)  # exp(x / sqrt(d)) = 2 ** (x scale)
        po, plse = ptx.global_ptrs(o, lse)
        sq = smem.wgmma_tile(bf16, (CONSUMERS, ROWS, dim), "K", name="sq")
        sk = smem.wgmma_tile(bf16, (STAGES, block, dim), "K", name="sk")
        sv = smem.wgmma_tile(bf16, (STAGES, block, dim), "MN", name="sv")
        ready = smem.mbarrier(1, name="ready")
        full_k, empty_k = smem.mbarrier(STAGES, name="full_k"), smem.mbarrier(STAGES, name="empty_k")
        full_v, empty_v = smem.mbarrier(STAGES, name="full_v"), smem.mbarrier(STAGES, name="empty_v")
        thread = reg.from_(ptx.special.tid.x(), s32)
        group, lane = thread >> 7, thread & 31
        top, head = reg.from_(ptx.special.ctaid.x(), s32) * (ROWS * CONSUMERS), ptx.special.ctaid.y()

        with ptx.if_(thread == 0):
            ptx.mbarrier.init(ready[0], 1)
            for stage in range(STAGES):
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
                ring = ptx.pipeline(STAGES)
                end = (top + ROWS * CONSUMERS).min(length) if causal else length
                for row in ptx.range_(0, end, block):
                    for source, tile, full, empty in ((k, sk, full_k, empty_k), (v, sv, full_v, empty_v)):
                        ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                        ptx.mbarrier.arrive_expect_tx(full[ring.stage], block * dim * 2)
                        load_tile(tile[ring.stage], source, row, head, full[ring.stage])
                    ring.advance()

        with ptx.else_():
            ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
            consumer, leader = group - 1, lane == 0
            scores = reg.wgmma_frag(m=ROWS, n=block, dtype=f32, name="score")
            sums = reg.wgmma_frag(m=ROWS, n=dim, dtype=f32, name="sum")
            weights = reg.array(bf16x2, block // 4, name="weight")
            peaks, totals = make_rows()
            for register in sums:
                ptx.mov(f32, register, 0)
            start = top + consumer * ROWS
            rows = [start + ((thread >> 5) & 3) * 16 + (lane >> 2) + 8 * half for half in range(2)]
            end = (start + ROWS).min(length) if causal else reg.scalar(s32, length)

            ptx.mbarrier.wait(ready[0], 0)
            ring = ptx.pipeline(STAGES)
            for key in ptx.range_(0, end, block):
                # Phase 1: compute the scores. No other instruction may access the registers from the fence to the wait.
                ptx.mbarrier.wait(full_k[ring.stage], ring.phase)
                ptx.wgmma.fence()
                multiply_transposed(scores, sq[consumer], sk[ring.stage])
                ptx.wgmma.commit_group()
                ptx.wgmma.wait_group(0)
                ptx.mbarrier.arrive(empty_k[ring.stage], pred=leader)

                # Phase 2: mask the block if it crosses a limit, compute the weights, and pack them.
                if causal or length % block:
                    first = key + (lane & 3) * 2
                    with ptx.if_(key + block > ((start + 1).min(length) if causal else length)):
                        limits = [((row + 1).min(length) if causal else length) - first for row in rows]
                        mask_scores(scores, limits)
                factors = raise_peaks(scores, peaks, totals, scale)
                weigh(scores, peaks, totals, scale)
                rescale(sums, factors)
                pack(scores, weights)

                # Phase 3: accumulate the weighted values. The fence orders the writes of sums and weights before wgmma.
                ptx.mbarrier.wait(full_v[ring.stage], ring.phase)
                ptx.wgmma.fence()
                multiply_add(sums, weights, sv[ring.stage])
                ptx.wgmma.commit_group()
                ptx.wgmma.wait_group(0)
                ptx.mbarrier.arrive(empty_v[ring.stage], pred=leader)
                ring.advance()

            # Phase 4: divide by the totals and write the result. Four lanes share a row.
            inverses, logarithms = finish_rows(peaks, totals)
            for half, row in enumerate(rows):
                with ptx.if_(row < length):
                    position = head * length + row
                    corner = ptx.mad(position, dim * 2, po, mode="wide") + (lane & 3) * 4
                    for j in range(dim // 8):
                        pair = [value * inverses[half] for value in sums[4 * j + 2 * half : 4 * j + 2 * half + 2]]
                        packed = reg.alloc(bf16x2)
                        pack(pair, [packed])
                        ptx.st(bf16x2, ptx.addr(corner, 16 * j), packed)
                    place = ptx.mad(position, 4, plse, mode="wide")
                    ptx.st(f32, ptx.addr(place), logarithms[half], pred=lane & 3 == 0)

    return attention


EXAMPLE = Example(
    make=make,
    reference=attend,
    targets=("sm_90a",),
    runs=(
        Run({"h": 1, "s": 128, "d": 64}, 2 * HALF, 8e-3, 2),
        Run({"h": 2, "s": 200, "d": 128, "causal": True}, 2 * HALF, 8e-3, 2),
        Run({"h": 1, "s": 328, "d": 128}, 2 * HALF, 8e-3, 2, special=True),
        Run({"h": 1, "s": 192, "d": 256, "causal": True}, 2 * HALF, 8e-3, 2, findings=OUTSIDE),
    ),
    large={"h": 16, "s": 4096, "d": 128},
    sass=("UTMALDG.3D", "HGMMA.64x128x16.F32.BF16", "MUFU.EX2", "USETMAXREG.TRY_ALLOC"),
    fixed=("d",),
    draw=draw,
    flops=count_flops,
    order=HeadOrder(ROWS * CONSUMERS),
    peer="attention cudnn_attention",
)

if __name__ == "__main__":
    EXAMPLE.show()
