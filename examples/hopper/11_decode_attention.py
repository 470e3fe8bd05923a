"""Decode attention on Hopper: one query per sequence and head against a cache of keys and values, bf16 with f32 sums.

`b` sequences have a length of their own, read on the device, up to the capacity `s` of the cache. `n` counts the key
heads of all sequences; each serves `r` query heads, up to 64 (GQA). `d` is 64, 128 or 256. What the cache holds beyond
a length does not matter, NaN included, and a sequence of length 0 gives zeros.

The idea: the cache is read once, so bandwidth decides. The query heads that share a key head fill the rows of one
wgmma, and a sequence is split over several CTAs, because n alone is rarely enough for the GPU. A split covers an equal
share of the actual length; splits without a block exit. Each writes its unscaled sums, peak and total, and the one that
finishes last combines them, in the order of the splits: the result does not depend on which one that is.

The protocol:

- `ready`: one arrival, from the producer, and the 128 d bytes of 64 rows of queries; rows beyond r load as zeros and
  count. The consumer waits, for phase 0 only.
- `full_k` and `full_v`, one for each of 4, 3 or 2 stages for d = 64, 128 or 256: one arrival, from the producer, and
  the 128 d bytes of a block of 64 keys. Use n of a stage is phase n, so the consumer waits for the parity of the ring's
  phase, which starts at 0.
- `empty_k` and `empty_v`, one per stage: 4 arrivals, one from each consumer warp after its `wgmma.wait_group`, which
  ends its reads. The producer waits for the opposite parity: the phase before the first counts as complete on a new
  mbarrier.
- Named barrier 1, the 128 threads of the consumer. Once if the split's last block crosses the length, after zeros
  replaced the values beyond it: `fence.proxy.async` in each writing thread, then the barrier, then wgmma reads them.
  Twice at the end: before the counter, so that thread 0 releases the writes of all, and after it, so that its acquire
  covers the reads of all.
- `counters`, one per key head, zero before the launch: one `atom.inc.acq_rel` by thread 0 of each split that stays. It
  wraps to zero at the last one, ready for the next launch. Split 0 stays even if the length is 0, and writes the zeros.
- `bar.sync 0`, all 160 threads, once: after the mbarriers are initialized. The producer is one warp.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from examples.parts.arithmetic import power_of_two
from examples.parts.attention import attend
from examples.parts.example import HALF, Array, Example, Run, Shape, draw_array, find_dtype
from examples.parts.head_tiles import BOX, ROWS, check_dim, load_tile, make_heads, multiply_add, multiply_transposed
from examples.parts.softmax import LOWEST, make_rows, mask_scores, pack, raise_peaks, rescale, weigh
from examples.parts.warps import elect
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32, s32, u32

KEYS, WARPS = BOX, 4
"""Keys of a block: small, so that splits are even and stages many."""
STAGES = {64: 4, 128: 3, 256: 2}
"""By head dimension: at least 64 KiB of loads in flight, and two CTAs per SM, or one with d = 256."""
CONSUMERS, THREADS = 128, 160


def grid(b: int, n: int, r: int, s: int, d: int, splits: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    del s
    check_dim(d, STAGES)
    if n % b or r > ROWS:
        raise ValueError(f"n must be a multiple of b, and r at most {ROWS}; found n={n}, b={b}, r={r}")
    return (splits, n, 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for sm_90a, the only target with wgmma.

    Long: the phases of a kernel share its registers and barriers.
    """
    caches = make_heads("n", "s")

    @kernel(
        arch=arch, in_specs=(make_heads("n", "r"), caches, caches, Tile("b", s32)),
        out_specs=(
            Tile("n", "r", "d", bf16), Tile("n", "splits", "r", "d", f32), Tile("n", "splits", "r", 2, f32),
            Tile("n", u32),
        ),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def decode_attention(
        q: TensorSpec, k: TensorSpec, v: TensorSpec, lengths: TensorSpec, o: TensorSpec, parts: TensorSpec,
        marks: TensorSpec, counters: TensorSpec,
    ) -> None:  # fmt: skip
        # Long: the phases share registers and barriers.
        (heads, group, dim), splits = q.shape, parts.shape[1]
        check_dim(dim, STAGES)
        stages, scale = STAGES[dim], math.log2(math.e) / math.sqrt(dim)  # exp(x / sqrt(d)) = 2 ** (x scale)
        plengths, po, pparts, pmarks, pcounters = ptx.global_ptrs(lengths, o, parts, marks, counters)
        sq = smem.wgmma_tile(bf16, (ROWS, dim), "K", name="sq")
        sk = smem.wgmma_tile(bf16, (stages, KEYS, dim), "K", name="sk")
        sv = smem.wgmma_tile(bf16, (stages, KEYS, dim), "MN", name="sv")
        ready = smem.mbarrier(1, name="ready")
        full_k, empty_k = smem.mbarrier(stages, name="full_k"), smem.mbarrier(stages, name="empty_k")
        full_v, empty_v = smem.mbarrier(stages, name="full_v"), smem.mbarrier(stages, name="empty_v")
        arrivals = smem.alloc(u32, 1, name="arrivals")
        thread, head = reg.from_(ptx.special.tid.x(), s32), reg.from_(ptx.special.ctaid.y(), s32)
        split, lane = reg.from_(ptx.special.ctaid.x(), s32), thread & 31

        # Share the blocks of this sequence among the splits.
        sequence = head // (heads // lengths.shape[0])
        length = ptx.ld(s32, ptx.addr(plengths, sequence * 4))
        end = (length + KEYS - 1) & -KEYS
        share = ((end + KEYS * splits - 1) // (KEYS * splits) * KEYS).max(KEYS)
        active = ((end + share - 1) // share).max(1)
        ptx.ret(pred=split >= active)
        start = split * share
        stop = end.min(start + share)

        with ptx.if_(thread == 0):
            ptx.mbarrier.init(ready[0], 1)
            for stage in range(stages):
                for full, empty in ((full_k, empty_k), (full_v, empty_v)):
                    ptx.mbarrier.init(full[stage], 1)
                    ptx.mbarrier.init(empty[stage], WARPS)
        ptx.bar.sync(0)

        with ptx.if_(thread >= CONSUMERS), ptx.if_(elect()):
            ptx.mbarrier.arrive_expect_tx(ready[0], sq.size)
            load_tile(sq, q, 0, head, ready[0])
            ring = ptx.pipeline(stages)
            for row in ptx.range_(start, stop, KEYS):
                for source, tile, full, empty in ((k, sk, full_k, empty_k), (v, sv, full_v, empty_v)):
                    ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                    ptx.mbarrier.arrive_expect_tx(full[ring.stage], KEYS * dim * 2)
                    load_tile(tile[ring.stage], source, row, head, full[ring.stage])
                ring.advance()

        with ptx.else_():
            leader, barrier = lane == 0, ptx.named_barrier(1, count=CONSUMERS)
            scores = reg.wgmma_frag(m=ROWS, n=KEYS, dtype=f32, name="score")
            sums = reg.wgmma_frag(m=ROWS, n=dim, dtype=f32, name="sum")
            weights = reg.array(bf16x2, KEYS // 4, name="weight")
            peaks, totals = make_rows()
            for register in sums:
                ptx.mov(f32, register, 0)
            ptx.mbarrier.wait(ready[0], 0)
            ring = ptx.pipeline(stages)
            for key in ptx.range_(start, stop, KEYS):
                # Phase 1: compute the scores. No other instruction may access the registers from the fence to the wait.
                ptx.mbarrier.wait(full_k[ring.stage], ring.phase)
                ptx.wgmma.fence()
                multiply_transposed(scores, sq, sk[ring.stage])
                ptx.wgmma.commit_group()
                ptx.wgmma.wait_group(0)
                ptx.mbarrier.arrive(empty_k[ring.stage], pred=leader)

                # Phase 2: compute the weights, zero beyond the length. Zero the values there: 0 * NaN is NaN.
                ptx.mbarrier.wait(full_v[ring.stage], ring.phase)
                with ptx.if_(key + KEYS > length):
                    mask_scores(scores, [length - key - (lane & 3) * 2] * 2)
                    for left in range(0, dim, BOX):
                        stripe = sv[ring.stage].address() + left * KEYS * 2
                        for offset in ptx.range_((length - key) * 128 + thread * 16, KEYS * 128, CONSUMERS * 16):
                            place = ptx.addr(stripe, reg.from_(offset, u32))
                            ptx.st(u32, place, [0, 0, 0, 0], space="shared")
                    ptx.fence.proxy_async_shared_cta()
                    barrier.sync()
                factors = raise_peaks(scores, peaks, totals, scale)
                weigh(scores, peaks, totals, scale)
                rescale(sums, factors)
                pack(scores, weights)

                # Phase 3: accumulate the weighted values.
                ptx.wgmma.fence()
                multiply_add(sums, weights, sv[ring.stage])
                ptx.wgmma.commit_group()
                ptx.wgmma.wait_group(0)
                ptx.mbarrier.arrive(empty_v[ring.stage], pred=leader)
                ring.advance()

            # Phase 4: write the sums, peaks and totals of this split. Four lanes share a row.
            for half in range(2):
                row = (thread >> 5) * 16 + (lane >> 2) + 8 * half
                ptx.warp.reduce_sum(totals[half], width=4)
                with ptx.if_(row < group):
                    place = (head * splits + split) * group + row
                    corner = ptx.mad(place, dim * 4, pparts, mode="wide") + (lane & 3) * 8
                    for j in range(dim // 8):
                        ptx.st(f32, ptx.addr(corner, 32 * j), sums[4 * j + 2 * half : 4 * j + 2 * half + 2])
                    mark = ptx.mad(place, 8, pmarks, mode="wide")
                    ptx.st(f32, ptx.addr(mark), [peaks[half], totals[half]], pred=lane & 3 == 0)

            # Phase 5: count this split. The last one sees the writes of all others.
            barrier.sync()
            with ptx.if_(thread == 0):
                counter = ptx.mad(head, 4, pcounters, mode="wide")
                arrivals[0] = ptx.atom.inc(u32, u32, ptx.addr(counter), active - 1, sem="acq_rel", scope="gpu")
            barrier.sync()

            # Phase 6: combine the splits; each thread takes four columns of a row at a time.
            with ptx.if_(smem.load(s32, arrivals[0]) == active - 1):
                for item in ptx.range_(thread, group * dim // 4, CONSUMERS):
                    row, column = item // (dim // 4), item % (dim // 4) * 4
                    first = head * splits * group + row
                    peak, total = reg.scalar(f32, LOWEST), reg.scalar(f32, 0.0)
                    values = [reg.scalar(f32, 0.0) for _ in range(4)]
                    for i in ptx.range_(0, active):
                        mark = ptx.mad(first + i * group, 8, pmarks, mode="wide")
                        part_peak, part_total = ptx.ld(f32, ptx.addr(mark), vec=2)
                        part = ptx.mad(first + i * group, dim * 4, pparts, mode="wide") + column * 4
                        # Both factors are at most 1, and one of them is 1.
                        largest = peak.max(part_peak)
                        old, new = power_of_two(peak - largest), power_of_two(part_peak - largest)
                        ptx.mov(f32, peak, largest)
                        ptx.mov(f32, total, ptx.mad(total, old, part_total * new))
                        for value, addend in zip(values, ptx.ld(f32, ptx.addr(part), vec=4), strict=True):
                            ptx.mov(f32, value, ptx.mad(value, old, addend * new))
                    inverse = reg.scalar(f32)
                    ptx.inst.rcp.rn.f32(inverse, total.max(2.0**-126))
                    packed = [reg.alloc(bf16x2) for _ in range(2)]
                    pack([value * inverse for value in values], packed)
                    target = ptx.mad(head * group + row, dim * 2, po, mode="wide") + column * 2
                    ptx.st(bf16x2, ptx.addr(target), packed)

    return decode_attention


def draw(run: Run, random: np.random.Generator) -> tuple[Array, ...]:
    """Return queries, full caches and their lengths; in a special run, shorter ones with NaN beyond."""
    queries, keys, values = (draw_array(tile, replace(run, special=False), random) for tile in make().in_specs[:3])
    b, n, s = (run.shape[name] for name in "bns")
    lengths = np.full(b, s, np.int32)
    if run.special:
        lengths[1:] = random.integers(1, s, b - 1)
        lengths[2:3] = 0
        for head in range(n):
            keys[head, lengths[head * b // n] :] = values[head, lengths[head * b // n] :] = np.nan
    return queries, keys, values, lengths


def reference(q: Array, k: Array, v: Array, lengths: Array) -> tuple[Array | None, ...]:
    """Return the expected result, in f64. The workspaces may hold anything, and the counters return to zero."""
    n, b = len(q), len(lengths)
    expected = np.zeros(q.shape)
    for head in range(n):
        if length := lengths[head * b // n]:
            (expected[head],), _ = attend(q[[head]], k[[head], :length], v[[head], :length])
    return expected, None, None, np.zeros(n, np.uint32)


def make_outputs(shape: Shape) -> tuple[Array, ...]:
    """Return the outputs and workspaces: the counters start at zero."""
    tiles = make().out_specs
    return tuple(np.zeros(tile.resolve_shape(dict(shape)), find_dtype(tile)) for tile in tiles)


UNUSED = {
    "PTX0976": "zeros replace the values past the length of a sequence",
    "PTX0998": "a split past the length of a sequence leaves its part of the workspaces as it was",
}
"""Findings where lengths are not whole blocks, or are much less than the room for keys."""

EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a",),
    runs=(
        Run({"b": 1, "n": 1, "r": 8, "s": 128, "d": 64, "splits": 2}, 2 * HALF, 8e-3, 2),
        Run(
            {"b": 3, "n": 3, "r": 5, "s": 200, "d": 128, "splits": 3}, 2 * HALF, 8e-3, 2, special=True, findings=UNUSED
        ),
        Run({"b": 1, "n": 2, "r": 64, "s": 64, "d": 256, "splits": 1}, 2 * HALF, 8e-3, 2),
    ),
    large={"b": 16, "n": 128, "r": 8, "s": 8192, "d": 128, "splits": 2},
    sass=("UTMALDG.3D", "HGMMA.64x64x16.F32.BF16", "HGMMA.64x128x16.F32.BF16", "MUFU.EX2", "ATOMG.E.INC.STRONG.GPU"),
    fixed=("d",),
    draw=draw,
    outputs=make_outputs,
    flops=lambda shape: 4 * shape["n"] * shape["r"] * shape["s"] * shape["d"],
    traffic=lambda shape: 4 * shape["n"] * (shape["s"] + shape["r"]) * shape["d"],
    peer="decode_attention",
)

if __name__ == "__main__":
    EXAMPLE.show()
