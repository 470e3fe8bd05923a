"""Tensor-core GEMM for Ampere and later: c = a @ b.T in bf16 with f32 sums, `a` (M, K), `b` (N, K).

The idea: overlap loads with math on two levels. `cp.async` fills a ring of shared memory stages while earlier stages
are used; within a stage, `ldmatrix` reads the fragments of the next K step while the current ones multiply. Rows of a
stage are 128 bytes, and 16-byte chunk c of row r is stored at position c ^ (r mod 8): the eight rows that an `ldmatrix`
reads are then in different banks, as are the chunks that eight threads write.

M and N are multiples of 128, K of 64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops
from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32, u32

BM, BN, BK, STAGES = 128, 128, 64, 3
THREADS = 128
WARP = 64
"""A warp computes 64 x 64: 4 x 8 products of 16 x 8."""
ROW = BK * 2
STEPS = BK // 16
LOAD_ROWS = THREADS // (ROW // 16)
"""Rows that all threads together load at once."""


def grid(m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    if m % BM or n % BN or k % BK:
        raise ValueError(f"M and N must be multiples of {BM}, K of {BK}; found {m}, {n}, {k}")
    return (n // BN, m // BM, 1)


@dataclass(frozen=True)
class Operand:
    """An operand of the CTA: its tile in global memory, its ring of stages, and the thread's offsets in a stage."""

    source: reg.Reg
    """The global address of the thread's first chunk."""
    pitch: int
    """The bytes between rows in global memory."""
    ring: smem.SharedAlloc
    write_offset: reg.Reg
    """The offset in a stage to which the thread copies its first chunk."""
    read_offset: reg.Reg
    """The offset in a stage of the lane's row in its warp's first fragment, for K step 0."""


@intrinsic
def fill(operand: Operand, stage: reg.Reg, k: reg.Reg, in_bounds: reg.Reg) -> None:
    """Copy the thread's chunks of one stage, starting at column `k`. Copy nothing past the end of K."""
    target = operand.ring[stage].address() + operand.write_offset
    source = ptx.mad(k, 2, operand.source, mode="wide")
    rows = operand.ring.shape[1]
    for row in range(0, rows, LOAD_ROWS):
        # A step of 16 rows does not change r mod 8, so the position in the row stays the same.
        ptx.cp.async_.cg(ptx.addr(target, row * ROW), source, 16, pred=in_bounds)
        if row + LOAD_ROWS < rows:
            source = source + LOAD_ROWS * operand.pitch


@intrinsic
def load_fragments(start: reg.Reg, step: int, fragments: reg.RegArray) -> None:
    """Load a warp's 64 rows of one K step, 16 rows with each `ldmatrix`."""
    address = start ^ (32 * step) if step else start
    for part in range(WARP // 16):
        ptx.ldmatrix(dst=fragments[4 * part : 4 * part + 4], src=ptx.addr(address, part * 16 * ROW))


@intrinsic
def multiply(sums: reg.RegArray, a: reg.RegArray, b: reg.RegArray) -> None:
    """Accumulate one K step: 4 x 8 products of 16 x 8."""
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

        # Offsets of the thread in global and shared memory. Thread t copies chunk t mod 8 of row t / 8, and of every
        # 16th row after it.
        row, chunk = thread >> 3, thread & 7
        write_offset = smem.apply_swizzle(row * ROW + chunk * 16, "128B")
        # `ldmatrix` takes the row addresses of four 8 x 8 matrices from lanes 0–7, 8–15, … For `a`, these are the upper
        # and lower 8 rows, then the same rows 8 columns further; for `b`, the two halves of K, then 8 rows further.
        a_offset = smem.apply_swizzle((down + (lane & 15)) * ROW + (lane >> 4) * 16, "128B")
        b_row = right + (lane & 7) + (lane >> 4) * 8
        b_offset = smem.apply_swizzle(b_row * ROW + ((lane >> 3) & 1) * 16, "128B")
        operands = [
            Operand(
                ptx.mad((start + row), depth * 2, pointer, mode="wide") + chunk * 16, depth * 2,
                smem.alloc(bf16, (STAGES, rows, BK), swizzle="128B", align=1024, name=name), write_offset, read_offset,
            )
            for name, start, pointer, rows, read_offset in (
                ("sa", top, pa, BM, a_offset), ("sb", left, pb, BN, b_offset),
            )
        ]  # fmt: skip
        sums = reg.array(f32, WARP * WARP // 32, name="sum")
        for register in sums:
            ptx.mov(f32, register, 0)

        # Phase 1: start the copies of all stages but one. Each stage is one group, which is empty past the end of K.
        next_k, slot = reg.scalar(u32, 0, name="next_k"), ptx.pipeline(STAGES)
        for _ in range(STAGES - 1):
            for operand in operands:
                fill(operand, slot.stage, next_k, next_k < depth)
            ptx.cp.async_.commit_group()
            ptx.add(u32, next_k, next_k, BK)
            slot.advance()

        # Phase 2: multiply. There are two sets of fragments: one is loaded while the other multiplies.
        parts = [[reg.array(bf16x2, WARP // 4, name=f"{name}{i}_") for name in "ab"] for i in range(2)]
        ring = ptx.pipeline(STAGES)
        for _ in ptx.range_(0, depth, BK):
            # The wait completes the thread's own copies of this stage, the barrier those of all threads. After the
            # barrier, all threads have also read the previous stage, which is filled next.
            ptx.cp.async_.wait_group(STAGES - 2)
            ptx.bar.sync(0)
            for operand in operands:
                fill(operand, slot.stage, next_k, next_k < depth)
            ptx.cp.async_.commit_group()
            ptx.add(u32, next_k, next_k, BK)
            slot.advance()

            starts = [operand.ring[ring.stage].address() + operand.read_offset for operand in operands]
            for step in range(STEPS + 1):
                if step < STEPS:
                    for start, fragments in zip(starts, parts[step % 2], strict=True):
                        load_fragments(start, step, fragments)
                if step:
                    multiply(sums, *parts[(step - 1) % 2])
            ring.advance()

        # Phase 3: write the result. Registers 2 h and 2 h + 1 of a 16 x 8 cell are row lane / 4 + 8 h, columns
        # 2 (lane mod 4) and 2 (lane mod 4) + 1.
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
    """Return the expected result before rounding to bf16."""
    return a.astype(np.float32) @ b.astype(np.float32).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_89", "sm_120a"),
    runs=(Run({"m": 128, "n": 128, "k": 64}, HALF, 1e-3), Run({"m": 128, "n": 256, "k": 320}, HALF, 1e-3)),
    large={"m": 4096, "n": 4096, "k": 4096},
    sass=("LDGSTS.E.BYPASS", "LDSM.16.M88.4", "HMMA.16816.F32.BF16"),
    flops=count_gemm_flops,
    peer="matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
