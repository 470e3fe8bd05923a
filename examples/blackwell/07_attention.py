"""Attention forward on Blackwell: o = softmax(q @ k.T / sqrt(128)) @ v for every head, bf16 with f32 sums.

The idea: two tiles of 128 queries take turns. For 128 keys a tile needs 1,024 cycles of products (two of 512) and
16,384 exponentials, 1,024 cycles at 16 per cycle. Neither unit may wait for the other, so while the exponentials of one
tile are computed, the tensor core works for the other tile. Every task has its own warps: a producer, an MMA issuer, a
warpgroup of softmax for each tile, and one that corrects the sums.

With the latency of the hand-overs in between, 2,048 cycles of exponentials for both tiles would still be the longest
chain. So a quarter of them are polynomials on the FMA pipe, two in ten instructions, and 1,536 cycles remain.

Scores, weights and sums never leave the SM. A score tile is 128 of the 512 columns of tensor memory, and a thread of
softmax reads its row, so a row needs no shuffles; it writes the weights as bf16 over the first 64 columns, where they
are the A operand of the second product. The sums of both tiles take the other 256 columns. Online softmax rescales them
when a larger score appears. That passes 64 KB through registers, so it is done off the critical path by the correction
warps, and only if the new peak exceeds the old one by more than 2 ** 8; smaller growth leaves the old peak in use, and
the sums in f32 have room for it.

The protocol; each task toggles its own parity, from 0, and a warp arrives once, by its elected lane, after
`bar.warp.sync`. `full_k`, `full_v`, `empty_k` and `empty_v` are one for each of two stages, which both tiles share; the
others are one for each tile i, with one phase per block of keys. On a new mbarrier, the previous phase is complete:

- `full_q`, `full_k`, `full_v`: one arrival, the producer's, and 32 KiB. The issuer waits, for `full_q` once.
- `empty_k`, `empty_v`: one arrival by the commit after both tiles' products. The producer waits for the previous phase.
- `scores`: one arrival by the commit after q @ k.T. The softmax warps wait.
- `weights`: 4 warps, after `wait::st` and the fence before the hand-over. The issuer waits before the second product.
- `factor_full`: 4 softmax warps, which have written their rows' factors to shared memory: one phase for each block but
  the first, and a last one with the inverse totals. The correction warps wait. `factor_empty`: 4 correction warps,
  which have read the factors; the totals are not acknowledged. Softmax waits for the previous phase.
- `summed`: one arrival by the commit after the second product. The correction warps wait for the product of block
  j - 1 before they rescale the sums for block j, and for that of the last block at the end.
- `corrected`: 4 correction warps, phase j - 1 for block j > 0. The issuer waits for it before block j's second product.
- The result: an elected lane of each correction warp commits a group of stores per tile, and at the end waits for all.
- `bar.sync 0`, all threads, twice: `allocate` and `free` in `examples/parts/tensor_memory.py`.

The products of a block of scores overwrite the weights of the previous block. The issuer is one thread, whose products
execute in the order of issue, so they follow the product that reads those weights. Sequences are multiples of 256.
"""

from __future__ import annotations

import math

from examples.parts import tensor_memory
from examples.parts.attention import attend, count_flops, draw
from examples.parts.example import HALF, Array, Example, Run
from examples.parts.row_softmax import LOWEST, raise_peak, weigh
from examples.parts.tensor_memory import LANES, ROW_BYTES, SLICE
from examples.parts.tile_order import HeadOrder
from examples.parts.warps import elect
from pyptx import Kernel, Layout, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32

HEAD, QUERIES, KEYS, STEP = 128, 128, 128, 16
"""Head dimension, queries per tile, keys per block, K of one product."""
TILES, STAGES = 2, 2
"""Tiles of queries in a CTA; stages of keys, and of values. Two are enough: the 64 KiB of a block arrive in 809 cycles
at 81 bytes per cycle, and serve both tiles for 2,048 cycles of products."""
STRIPE = QUERIES * ROW_BYTES
"""Bytes of 64 columns of a tile: a wider tile than the swizzle is stored in stripes."""
SOFTMAX_WARPS, CORRECTOR, ISSUER, PRODUCER, WARPS = 8, 8, 12, 13, 16
"""Warps 4 i to 4 i + 3 compute the softmax of tile i; then the numbers of the other tasks. Two warps complete the last
warpgroup, which gives up registers together."""
# The kernel starts with 128 registers per thread: 256 * 192 + 128 * 96 + 128 * 32 = 512 * 128.
SOFTMAX_REGISTERS, CORRECTOR_REGISTERS, OTHER_REGISTERS = 192, 96, 32
SCALE = math.log2(math.e) / math.sqrt(HEAD)  # exp(x / sqrt(128)) = 2 ** (x SCALE)
SCORES, SUMS = 0, TILES * KEYS
"""First columns of the scores and of the sums."""


def grid(h: int, s: int, d: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    if s % (QUERIES * TILES) or d != HEAD:
        raise ValueError(f"expected a sequence of a multiple of {QUERIES * TILES} and heads of {HEAD}, found {s}, {d}")
    return (s // (QUERIES * TILES), h, 1)


@intrinsic
def scale_sums(columns: reg.Reg, factor: reg.Reg) -> None:
    """Multiply the sums of a lane by its factor."""
    for left in range(0, HEAD, LANES):
        part = reg.array(f32, LANES)
        ptx.tcgen05.ld(part, columns + left, shape="32x32b", count=LANES)
        ptx.tcgen05.wait_ld()
        for value in part:
            value *= factor
        ptx.tcgen05.st(columns + left, part, shape="32x32b", count=LANES)
    ptx.tcgen05.wait_st()


@intrinsic
def arrive(mbar: smem.MbarrierRef, elected: reg.Reg) -> None:
    """Arrive once for a warp that has used tensor memory or shared memory."""
    ptx.tcgen05.fence_before_thread_sync()
    ptx.warp.sync()
    ptx.mbarrier.arrive(mbar, pred=elected)


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory.

    Long: the phases of a kernel share its registers and barriers.
    """
    heads = Tile("h", "s", "d", bf16, Layout.TMA_128B, tma_box=(1, QUERIES, SLICE))
    result = Tile("h", "s", "d", bf16, Layout.TMA_128B, tma_box=(1, LANES, SLICE))

    @kernel(arch=arch, in_specs=(heads, heads, heads), out_specs=(result,), grid=grid, block=(32 * WARPS, 1, 1))
    def attention(q: TensorSpec, k: TensorSpec, v: TensorSpec, o: TensorSpec) -> None:
        # Long: the phases share registers and barriers.
        length = q.shape[1]
        sq = smem.wgmma_tile(bf16, (TILES, QUERIES, HEAD), "K", name="sq")
        sk = smem.wgmma_tile(bf16, (STAGES, KEYS, HEAD), "K", name="sk")
        sv = smem.wgmma_tile(bf16, (STAGES, KEYS, HEAD), "MN", name="sv")
        factors = smem.alloc(f32, (TILES, QUERIES), name="factors")
        full_q = smem.mbarrier(TILES, name="full_q")
        full_k, empty_k = smem.mbarrier(STAGES, name="full_k"), smem.mbarrier(STAGES, name="empty_k")
        full_v, empty_v = smem.mbarrier(STAGES, name="full_v"), smem.mbarrier(STAGES, name="empty_v")
        scores_full, weights_full = smem.mbarrier(TILES, name="scores"), smem.mbarrier(TILES, name="weights")
        factor_full = smem.mbarrier(TILES, name="factor_full")
        factor_empty = smem.mbarrier(TILES, name="factor_empty")
        summed, corrected = smem.mbarrier(TILES, name="summed"), smem.mbarrier(TILES, name="corrected")
        thread = ptx.special.tid.x()
        warp, first_warp = thread >> 5, thread < LANES
        top, head = ptx.special.ctaid.x() * (QUERIES * TILES), ptx.special.ctaid.y()
        # The lanes of tensor memory that a warp reaches.
        lanes = (warp & 3) << 21

        # Phase 1: initialize the mbarriers and allocate all of tensor memory.
        with ptx.if_(first_warp), ptx.if_(elect()):
            for i in range(2):
                for single in (full_q, full_k, empty_k, full_v, empty_v, scores_full, summed):
                    ptx.mbarrier.init(single[i], 1)
                for warpgroup in (weights_full, factor_full, factor_empty, corrected):
                    ptx.mbarrier.init(warpgroup[i], 4)
        columns = tensor_memory.allocate(512, first_warp)

        with ptx.if_(warp < SOFTMAX_WARPS):
            # Phase 2, a softmax warpgroup: thread t has row t of its tile.
            ptx.setmaxnreg_inc(SOFTMAX_REGISTERS)
            elected, tile, ring = elect(), warp >> 2, ptx.pipeline(1)
            lane_scores = columns + tile * KEYS + lanes
            peak, total = reg.scalar(f32, LOWEST), reg.scalar(f32, 0.0)
            for row in ptx.range_(0, length, KEYS):
                scores, weights = reg.array(f32, KEYS), reg.array(bf16x2, KEYS // 2)
                ptx.mbarrier.wait(scores_full[tile], ring.phase)
                ptx.tcgen05.fence_after_thread_sync()
                for left in range(0, KEYS, 32):
                    ptx.tcgen05.ld(scores[left : left + 32], lane_scores + left, shape="32x32b", count=32)
                ptx.tcgen05.wait_ld()
                factor = raise_peak(scores, peak, SCALE)
                with ptx.if_(row != 0):
                    # Handoff number j - 1 of the factors; the first one waits for a phase that counts as complete.
                    ptx.mbarrier.wait(factor_empty[tile], ring.phase)
                    factors[tile, thread & (QUERIES - 1)] = factor
                    arrive(factor_full[tile], elected)
                total *= factor
                total += weigh(scores, peak, weights, SCALE)
                for left in range(0, weights.count, LANES):
                    ptx.tcgen05.st(lane_scores + left, weights[left : left + LANES], shape="32x32b", count=LANES)
                ptx.tcgen05.wait_st()
                arrive(weights_full[tile], elected)
                ring.advance()
            ptx.mbarrier.wait(factor_empty[tile], ring.phase)
            factors[tile, thread & (QUERIES - 1)] = ptx.rcp(f32, total)
            arrive(factor_full[tile], elected)

        with ptx.elif_(warp < ISSUER):
            # Phase 2, the correction warpgroup: rescale the sums of both tiles in turns.
            ptx.setmaxnreg_dec(CORRECTOR_REGISTERS)
            elected, ring, row = elect(), ptx.pipeline(1), thread & (QUERIES - 1)
            for _ in ptx.range_(KEYS, length, KEYS):
                for tile in range(TILES):
                    ptx.mbarrier.wait(factor_full[tile], ring.phase)
                    factor = smem.load(f32, factors.address() + (tile * QUERIES * 4 + row * 4))
                    arrive(factor_empty[tile], elected)
                    ptx.mbarrier.wait(summed[tile], ring.phase)
                    ptx.tcgen05.fence_after_thread_sync()
                    with ptx.if_(ptx.warp.vote_any(factor != 1.0)):
                        scale_sums(columns + (SUMS + tile * HEAD) + lanes, factor)
                    arrive(corrected[tile], elected)
                ring.advance()
            # Phase 3: divide by the totals and write the result, in place of the queries: all products have read them.
            for tile in range(TILES):
                ptx.mbarrier.wait(factor_full[tile], ring.phase)
                factor = smem.load(f32, factors.address() + (tile * QUERIES * 4 + row * 4))
                ptx.mbarrier.wait(summed[tile], ring.phase)
                ptx.tcgen05.fence_after_thread_sync()
                offset = smem.apply_swizzle((row & (LANES - 1)) * ROW_BYTES, "128B")
                rows = sq[tile].address() + (warp & 3) * (LANES * ROW_BYTES)
                for part in range(HEAD // SLICE):
                    tensor_memory.copy_slice(
                        columns + (SUMS + tile * HEAD + part * SLICE) + lanes, rows + part * STRIPE + offset, factor
                    )
                ptx.fence.proxy_async_shared_cta()
                ptx.warp.sync()
                for part in range(HEAD // SLICE):
                    ptx.cp.async_.bulk.tensor_3d.store(
                        dst=o, src=rows + part * STRIPE, pred=elected,
                        coord=(part * SLICE, top + tile * QUERIES + (warp & 3) * LANES, head),
                    )  # fmt: skip
                ptx.cp.async_.bulk.commit_group(pred=elected)
            ptx.cp.async_.bulk.wait_group(0, pred=elected)

        with ptx.else_():
            ptx.setmaxnreg_dec(OTHER_REGISTERS)
            # Phase 2, the producer: load the queries once, then keys and values.
            with ptx.if_(warp == PRODUCER), ptx.if_(elect()):
                ring = ptx.pipeline(STAGES)
                for tile in range(TILES):
                    ptx.mbarrier.arrive_expect_tx(full_q[tile], QUERIES * HEAD * 2)
                    for part in range(HEAD // SLICE):
                        ptx.cp.async_.bulk.tensor_3d(
                            dst=sq[tile].address() + part * STRIPE, src=q, mbar=full_q[tile],
                            coord=(part * SLICE, top + tile * QUERIES, head),
                        )  # fmt: skip
                for row in ptx.range_(0, length, KEYS):
                    for source, target, full, empty in ((k, sk, full_k, empty_k), (v, sv, full_v, empty_v)):
                        ptx.mbarrier.wait(empty[ring.stage], ring.phase ^ 1)
                        ptx.mbarrier.arrive_expect_tx(full[ring.stage], KEYS * HEAD * 2)
                        for part in range(HEAD // SLICE):
                            ptx.cp.async_.bulk.tensor_3d(
                                dst=target[ring.stage].address() + part * STRIPE, src=source, mbar=full[ring.stage],
                                coord=(part * SLICE, row, head),
                            )  # fmt: skip
                    ring.advance()

            # Phase 2, the MMA issuer: alternate between the tiles, one block of scores ahead of the values.
            with ptx.if_(warp == ISSUER), ptx.if_(elect()):
                keys, values, block = ptx.pipeline(STAGES), ptx.pipeline(STAGES), ptx.pipeline(1)

                def score(tile: int) -> None:
                    shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=QUERIES, n=KEYS)
                    for step in range(0, HEAD, STEP):
                        ptx.tcgen05.mma(
                            columns + (SCORES + tile * KEYS), sq[tile], sk[keys.stage], shape, enable_input_d=step > 0,
                            a_k_offset=sq.k_offset(step), b_k_offset=sk.k_offset(step),
                        )  # fmt: skip
                    ptx.tcgen05.commit(scores_full[tile])

                def add(tile: int, accumulates: reg.Reg) -> None:
                    shape = ptx.tcgen05.make_instr_desc_f16bf16_f32(m=QUERIES, n=HEAD, b_major="MN")
                    for step in range(0, KEYS, STEP):
                        ptx.tcgen05.mma(
                            columns + (SUMS + tile * HEAD), columns + (SCORES + tile * KEYS + step // 2),
                            sv[values.stage], shape, a_is_tmem=True, b_k_offset=sv.k_offset(step),
                            enable_input_d=True if step else accumulates,
                        )  # fmt: skip
                    ptx.tcgen05.commit(summed[tile])

                ptx.mbarrier.wait(full_k[keys.stage], keys.phase)
                for tile in range(TILES):
                    ptx.mbarrier.wait(full_q[tile], 0)
                    score(tile)
                ptx.tcgen05.commit(empty_k[keys.stage])
                keys.advance()
                for row in ptx.range_(0, length, KEYS):
                    is_last = row == length - KEYS
                    ptx.mbarrier.wait(full_v[values.stage], values.phase)
                    ptx.mbarrier.wait(full_k[keys.stage], keys.phase, pred=~is_last)
                    for tile in range(TILES):
                        ptx.mbarrier.wait(weights_full[tile], block.phase)
                        ptx.mbarrier.wait(corrected[tile], block.phase ^ 1)
                        ptx.tcgen05.fence_after_thread_sync()
                        add(tile, row != 0)
                        with ptx.if_(~is_last):
                            score(tile)
                    ptx.tcgen05.commit(empty_v[values.stage])
                    ptx.tcgen05.commit(empty_k[keys.stage], pred=~is_last)
                    keys.advance()
                    values.advance()
                    block.advance()

        # Phase 4: free tensor memory after all warps have read it.
        tensor_memory.free(columns, 512, first_warp)

    return attention


def reference(q: Array, k: Array, v: Array) -> Array:
    """Return the expected result, in f64."""
    return attend(q, k, v)[0]


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(
        Run({"h": 1, "s": 256, "d": HEAD}, 2 * HALF, 2 * HALF, 2, special=True),
        Run({"h": 2, "s": 512, "d": HEAD}, 2 * HALF, 4 * HALF, 4),  # Peaks grow beyond the headroom.
    ),
    large={"h": 16, "s": 16384, "d": HEAD},
    sass=("UTMALDG.3D", "UTCHMMA", "LDTM.x32", "STTM.x32", "MUFU.EX2", "FMNMX3", "USETMAXREG.TRY_ALLOC"),
    draw=draw,
    flops=count_flops,
    order=HeadOrder(QUERIES * TILES),
    peer="attention cudnn_attention triton_attention",
)

if __name__ == "__main__":
    EXAMPLE.show()
