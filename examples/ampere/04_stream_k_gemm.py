"""Stream-K GEMM: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K), shared evenly by a fixed number of CTAs.

The idea: with one CTA per tile, 109 tiles take twice as long as 108 on 108 SMs. Here the steps along K of all tiles
form one sequence, which is cut into equal parts, one per CTA. A part begins and ends anywhere in a tile. The CTA that
computes a tile's first step owns it: it adds the sums of the CTAs after it, in their order, so results have the same
bits each time. A CTA begins with the end of a tile that it does not own, so its sums are there before the owner asks.

The protocol of a CTA's flag, 0 or 1:

- The CTA stores sums that belong to another's tile to its part of `workspace`. After `bar.sync`, thread 0 sets the flag
  by `st.release.gpu`, which publishes the sums of all threads.
- Thread 0 of the owner waits by `ld.acquire.gpu` until the flag is 1, and zeroes it for the next launch; then
  `bar.sync` hands the sums to its CTA. The caller zeroes the flags once.

All CTAs must run at once: no more CTAs than SMs. Otherwise as `03_pipelined_gemm.py`, whose loop over K this is; one
more `bar.sync` follows the loop, because the next tile uses the ring again.
"""

from __future__ import annotations

import numpy as np

from examples.parts.cp_async_ring import count_row_bytes, make_ring, multiply_tiles
from examples.parts.example import HALF, Array, Example, Run, Shape, count_gemm_flops
from examples.parts.tile_order import TileOrder, find_grouped_tile
from examples.parts.warp_tile import WarpTile, clear, count_tiles, refuse_shape
from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg
from pyptx.types import bf16, f32, pred, u32

BM, BN = 128, 192
"""Eight warps with 64 x 48 sums each: wider tiles leave no registers for the bookkeeping of parts."""
THREADS = 256
PITCH, STAGES = 64, 4
TILE = WarpTile(bf16, 64, 48, PITCH)
BAND = 8


def count_steps(k: int) -> int:
    """Return the steps along K of a tile."""
    return -(-k * 2 // PITCH)


def grid(m: int, n: int, k: int, ctas: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    refuse_shape(n, k, bf16)
    rows, columns = count_tiles(m, n, BM, BN)
    steps = rows * columns * count_steps(k)
    if ctas > steps:
        raise ValueError(f"{ctas} CTAs for {steps} steps; pass at most {steps} `ctas`")
    return (ctas, 1, 1)


@intrinsic
def publish(sums: reg.RegArray, part: reg.Reg, flag: reg.Reg, thread: reg.Reg) -> None:
    """Store the sums to the CTA's part of the workspace, and set its flag."""
    for i in range(0, sums.count, 4):
        ptx.st(f32, ptx.addr(part, i * THREADS * 4), sums[i : i + 4])
    ptx.bar.sync(0)
    ptx.inst.st.release.gpu.global_.u32(ptx.addr(flag), 1, pred=thread == 0)


@intrinsic
def collect(sums: reg.RegArray, part: reg.Reg, flag: reg.Reg, thread: reg.Reg) -> None:
    """Wait for the flag of another CTA, and add its sums."""
    with ptx.if_(thread == 0):
        value, is_unset = reg.scalar(u32), reg.scalar(pred)
        with ptx.loop("wait", pred=is_unset):
            ptx.inst.ld.acquire.gpu.global_.u32(value, ptx.addr(flag))
            ptx.setp("eq", u32, is_unset, value, 0)
        ptx.st(u32, ptx.addr(flag), 0)
    ptx.bar.sync(0)
    for i in range(0, sums.count, 4):
        for register, other in zip(sums[i : i + 4], ptx.ld(f32, ptx.addr(part, i * THREADS * 4), vec=4), strict=True):
            ptx.add(f32, register, register, other)


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target.

    Long: the phases of a kernel share its registers and barriers.
    """

    @kernel(
        arch=arch, in_specs=(Tile("m", "k", bf16), Tile("n", "k", bf16)),
        out_specs=(Tile("m", "n", bf16), Tile("ctas", BM * BN, f32), Tile("ctas", u32)),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def stream_k_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec, workspace: TensorSpec, flags: TensorSpec) -> None:
        (m, n), ctas = c.shape, flags.shape[0]
        tiles, steps = count_tiles(m, n, BM, BN), count_steps(a.shape[1])
        pa, pb = ptx.global_ptrs(a, b)
        thread, cta = ptx.special.tid.x(), ptx.special.ctaid.x()
        warp, lane = thread >> 5, thread & 31
        down, right = (warp & 1) * TILE.rows, (warp >> 1) * TILE.columns
        a_bytes, b_bytes = count_row_bytes(a.shape[:], bf16), count_row_bytes(b.shape[:], bf16)
        ring = make_ring(TILE, STAGES, THREADS, (pa, a_bytes, BM), (pb, b_bytes, BN), (thread, down, right))
        sums = TILE.make_sums()

        def find_begin(owner: reg.Reg) -> reg.Reg:
            """Return the first step of a CTA; the next CTA's is its end."""
            return owner * (tiles[0] * tiles[1] * steps) // ctas

        def find_part(owner: reg.Reg) -> tuple[reg.Reg, reg.Reg]:
            """Return the addresses of this thread's sums, and of the flag, of a CTA."""
            parts, pflags = ptx.global_ptrs(workspace, flags)
            part = ptx.mad(owner, BM * BN * 4, parts, mode="wide")
            return ptx.mad(thread, 16, part, mode="wide"), ptx.mad(owner, 4, pflags, mode="wide")

        step, end = reg.from_(find_begin(cta), u32), find_begin(cta + 1)
        with ptx.while_(lambda: step < end):
            # Phase 1: multiply as much of the tile as belongs to this CTA.
            index = step // steps
            row, column = find_grouped_tile(index, *tiles, BAND)
            top, left = row * BM, column * BN
            first = step - index * steps
            last = (first + (end - step)).min(steps)
            clear(sums)
            multiply_tiles(ring, sums, (top, left), first * PITCH, (last * PITCH).min(a_bytes[1]))
            # All threads have left the ring before the next tile fills it.
            ptx.bar.sync(0)

            # Phase 2: leave the sums to the tile's owner, or collect those of others and write the result.
            with ptx.if_(first > 0):
                publish(sums, *find_part(cta), thread)
            with ptx.else_():
                reached, other = index * steps + last, reg.from_(cta, u32)
                with ptx.while_(lambda: reached < (index + 1) * steps):
                    other += 1
                    collect(sums, *find_part(other), thread)
                    ptx.mov(u32, reached, find_begin(other + 1))
                is_inside = m % BM == 0 and n % BN == 0
                (pc,) = ptx.global_ptrs(c)
                TILE.store(sums, pc, (m, n), lane, top + down, left + right, is_inside=is_inside)
            ptx.add(u32, step, index * steps, last)

    return stream_k_gemm


def reference(a: Array, b: Array) -> tuple[Array | None, ...]:
    """Return the expected result before rounding to bf16; workspace and flags may hold anything."""
    return a.astype(np.float32) @ b.astype(np.float32).T, None, None


def make_outputs(shape: Shape) -> list[Array]:
    """Return arrays for the result, the workspace, and the flags, which are zero."""
    import ml_dtypes

    result = np.zeros((shape["m"], shape["n"]), ml_dtypes.bfloat16)
    return [result, np.zeros((shape["ctas"], BM * BN), np.float32), np.zeros(shape["ctas"], np.uint32)]


OWNED = {
    "PTX0998": "a CTA that begins with a tile's first step has no sums for another: it leaves its workspace as it was"
}
"""Findings of the first CTA, and of any other that begins a tile."""

EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_89", "sm_120a"),
    runs=(
        Run({"m": 128, "n": 192, "k": 96, "ctas": 2}, HALF, 1e-3, findings=OWNED),
        Run({"m": 128, "n": 192, "k": 96, "ctas": 3}, HALF, 1e-3, findings=OWNED),
        Run({"m": 300, "n": 186, "k": 104, "ctas": 2}, HALF, 1e-3, special=True, findings=OWNED),
    ),
    large={"m": 4096, "n": 4096, "k": 4096, "ctas": 108},
    sass=("LDGSTS.E.BYPASS", "LDSM.16.M88.4", "HMMA.16816.F32.BF16", "LDG.E.STRONG.GPU"),
    outputs=make_outputs,
    flops=count_gemm_flops,
    order=TileOrder(BM, BN, BAND, is_cut=True),
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
