"""Tensor-core GEMM since Ampere: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K).

The idea: three levels of waiting ahead. `cp.async` fills a ring of shared memory stages while earlier ones are used;
inside a stage, `ldmatrix` reads the fragments of the next K step while the current ones multiply. Rows of a stage are
128 bytes, and chunk c of row r (16 bytes each) stands in place c ^ (r mod 8): then the eight rows that one `ldmatrix`
reads lie in different banks, and so do the chunks that eight threads write.

M and N are multiples of 128, K of 64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32, u32

BM, BN, BK, STAGES = 128, 128, 64, 3
THREADS = 128
WARP = 64
"""A warp computes 64 x 64: 4 x 8 products of 16 x 8."""
ROW = BK * 2
STEPS = BK // 16
LOADED = THREADS // (ROW // 16)
"""Rows that all threads load at once."""
Array = np.ndarray[Any, Any]


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return how many CTAs a shape takes."""
    if m % BM or n % BN or k % BK:
        raise ValueError(f"M and N are multiples of {BM}, K of {BK}; found {m}, {n}, {k}")
    return (n // BN, m // BM, 1)


@dataclass(frozen=True)
class Operand:
    """One operand of the CTA: where its tile begins in global memory, its ring, and the thread's part of both."""

    source: reg.Reg
    """Address of the thread's first chunk."""
    pitch: int
    """Bytes from row to row in global memory."""
    ring: smem.SharedAlloc
    written: reg.Reg
    """Where in a stage the thread's first chunk goes."""
    read: reg.Reg
    """Where in a stage the lane's row of its warp's first fragment begins, for K step 0."""


@intrinsic
def fill(operand: Operand, stage: reg.Reg, k: reg.Reg, inside: reg.Reg) -> None:
    """Ask for the thread's chunks of one stage, from column `k` on. Not at all where K has ended."""
    to = operand.ring[stage].address() + operand.written
    start = ptx.mad(k, 2, operand.source, mode="wide")
    rows = operand.ring.shape[1]
    for row in range(0, rows, LOADED):
        # A step of 16 rows keeps r mod 8, so that the place in the row stays.
        ptx.cp.async_.cg(ptx.addr(to, row * ROW), start, 16, pred=inside)
        if row + LOADED < rows:
            start = start + LOADED * operand.pitch


@intrinsic
def fragments(operand: Operand, start: reg.Reg, step: int, into: reg.RegArray) -> None:
    """Read a warp's 64 rows of one K step, 16 rows with each `ldmatrix`."""
    at = start ^ (32 * step) if step else start
    for part in range(WARP // 16):
        ptx.ldmatrix(dst=into[4 * part : 4 * part + 4], src=ptx.addr(at, part * 16 * ROW))


@intrinsic
def multiply(sums: reg.RegArray, a: reg.RegArray, b: reg.RegArray) -> None:
    """Add the product of one K step: 4 x 8 times 16 x 8."""
    for i in range(WARP // 16):
        for j in range(WARP // 8):
            cell = 4 * (i * (WARP // 8) + j)
            d = sums[cell : cell + 4]
            ptx.mma.sync(
                shape=(16, 8, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, dtype_c=f32,
                d=d, a=a[4 * i : 4 * i + 4], b=b[2 * j : 2 * j + 2], c=d,
            )  # fmt: skip


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target.

    Long: the phases of a kernel share its registers and barriers.
    """

    @kernel(
        arch=arch, in_specs=(Tile("m", "k", bf16), Tile("n", "k", bf16)), out_specs=(Tile("m", "n", bf16),),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def mma_gemm(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        # Long: the phases share registers and barriers.
        depth, width = a.shape[1], c.shape[1]
        pa, pb, pc = ptx.global_ptrs(a, b, c)
        thread = ptx.special.tid.x()
        lane, warp = thread & 31, thread >> 5
        down, right = (warp & 1) * WARP, (warp >> 1) * WARP
        top, left = ptx.special.ctaid.y() * BM, ptx.special.ctaid.x() * BN

        # Who reads and writes what. A thread loads chunk t mod 8 of row t / 8, and of every 16th row after it.
        row, chunk = thread >> 3, thread & 7
        written = smem.apply_swizzle(row * ROW + chunk * 16, "128B")
        # `ldmatrix` takes the addresses of rows 0–7 of four 8 x 8 matrices from lanes 0–7, 8–15, … For `a` these are
        # the upper and lower rows, then the same 8 columns further; for `b` the two halves of K, then 8 rows further.
        a_read = smem.apply_swizzle((down + (lane & 15)) * ROW + (lane >> 4) * 16, "128B")
        b_row = right + (lane & 7) + (lane >> 4) * 8
        b_read = smem.apply_swizzle(b_row * ROW + ((lane >> 3) & 1) * 16, "128B")
        operands = [
            Operand(
                ptx.mad((start + row), depth * 2, pointer, mode="wide") + chunk * 16, depth * 2,
                smem.alloc(bf16, (STAGES, rows, BK), swizzle="128B", align=1024, name=name), written, read,
            )
            for name, start, pointer, rows, read in (("sa", top, pa, BM, a_read), ("sb", left, pb, BN, b_read))
        ]  # fmt: skip
        sums = reg.array(f32, WARP * WARP // 32, name="sum")
        for register in sums:
            ptx.mov(f32, register, 0)

        # Phase 1: all stages but one are on their way. One group for each stage, empty where K has ended.
        ahead, slot = reg.scalar(u32, 0, name="ahead"), ptx.pipeline(STAGES)
        for _ in range(STAGES - 1):
            for operand in operands:
                fill(operand, slot.stage, ahead, ahead < depth)
            ptx.cp.async_.commit_group()
            ptx.add(u32, ahead, ahead, BK)
            slot.advance()

        # Phase 2: multiply. Two sets of fragments: one is read while the other multiplies.
        parts = [[reg.array(bf16x2, WARP // 4, name=f"{name}{i}_") for name in "ab"] for i in range(2)]
        ring = ptx.pipeline(STAGES)
        for _ in ptx.range_(0, depth, BK):
            # The thread's own copies of this stage have arrived; after the barrier, everybody's. The barrier also says
            # that all have read the stage before this one, which is the one to be filled next.
            ptx.cp.async_.wait_group(STAGES - 2)
            ptx.bar.sync(0)
            for operand in operands:
                fill(operand, slot.stage, ahead, ahead < depth)
            ptx.cp.async_.commit_group()
            ptx.add(u32, ahead, ahead, BK)
            slot.advance()

            starts = [operand.ring[ring.stage].address() + operand.read for operand in operands]
            for step in range(STEPS + 1):
                if step < STEPS:
                    for operand, start, into in zip(operands, starts, parts[step % 2], strict=True):
                        fragments(operand, start, step, into)
                if step:
                    multiply(sums, *parts[(step - 1) % 2])
            ring.advance()

        # Phase 3: write. Registers 2 h and 2 h + 1 of a 16 x 8 cell are row lane / 4 + 8 h, columns 2 (lane mod 4) on.
        corner = ptx.mad(top + down + (lane >> 2), width * 2, pc, mode="wide") + (left + right + (lane & 3) * 2) * 2
        for i in range(WARP // 16):
            for half in range(2):
                line = corner + (16 * i + 8 * half) * width * 2
                for j in range(WARP // 8):
                    low, high = sums[4 * (i * (WARP // 8) + j) + 2 * half :][:2]
                    packed = reg.alloc(bf16x2)
                    ptx.cvt(bf16x2, f32, packed, [high, low], rounding="rn")
                    ptx.st(bf16x2, ptx.addr(line, 16 * j), packed)

    return mma_gemm


def reference(a: Array, b: Array) -> Array:
    """Return what the kernel computes, before the rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T
