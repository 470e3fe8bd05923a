"""Sparse products: c = a @ b.T in f32 with e4m3 `a` (128, 128), two of every four elements zero, and `b` (64, 128).

The idea: `tcgen05.mma.sp` stores only the nonzero half of A, and skips the products with zeros: twice the K in the same
time, 64 instead of 32 for 8-bit types. Metadata says which two of every four elements are stored: two bits each, lower
element first, so four bits for every chunk of four.

The metadata is in tensor memory. For 8-bit types lane r has that of row r: the 16 chunks of an instruction are two
words. One copy, `128x128b`, brings the four words of K = 128 for all rows.

The protocol is that of `run_in_one_thread` in `examples/parts/tensor_steps.py`. Products follow earlier copies of their
thread, so nothing waits between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from examples.parts.example import Array, Example, Run, draw_array, widen
from examples.parts.tensor_memory import free
from examples.parts.tensor_steps import run_in_one_thread, store_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import e4m3, f32, u32

M, N, K, STEP = 128, 64, 128, 64
CHUNK, STORED = 4, 2
"""Elements of a chunk, and how many are stored."""
WORDS = K // CHUNK // 8
"""Words of metadata in a row: each has eight chunks."""
ALLOCATED = 128
"""Columns: 64 of sums and 4 of metadata, to the next power of two."""
PAIRS = tuple(combinations(range(CHUNK), STORED))
"""The elements of a chunk that can be stored, in ascending order."""


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""
    stored, metadata = Tile.wgmma_a(M, K // 2, e4m3), Tile.wgmma_a(M, WORDS, u32)

    @kernel(
        arch=arch, in_specs=(stored, metadata, Tile.wgmma_a(N, K, e4m3)), out_specs=(Tile(M, N, f32),), grid=(1, 1, 1),
        block=(128, 1, 1),
    )  # fmt: skip
    def mma_sparse(a: TensorSpec, positions: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        (pc,) = ptx.global_ptrs(c)
        sa, sb = smem.wgmma_tile(e4m3, (M, K // 2), name="sa"), smem.wgmma_tile(e4m3, (N, K), name="sb")
        sp = smem.wgmma_tile(u32, (M, WORDS), name="sp")
        thread = ptx.special.tid.x()

        def multiply(sums: reg.Reg) -> None:
            metadata = sums + N
            ptx.tcgen05.cp(metadata, sp, size="128x128b")
            shape = ptx.tcgen05.make_instr_desc_f8f6f4(m=M, n=N, sparse=True)
            for k in range(0, K, STEP):
                ptx.tcgen05.mma(
                    sums, sa, sb, shape, kind="f8f6f4", sparse_metadata=metadata + k // 32 if k else metadata,
                    enable_input_d=k > 0, a_k_offset=sa.k_offset(k // 2), b_k_offset=sb.k_offset(k),
                )  # fmt: skip

        sums = run_in_one_thread(thread, ALLOCATED, ((sa, a), (sp, positions), (sb, b)), multiply)
        store_lanes(sums, thread, N, pc)
        free(sums, ALLOCATED, thread < 32)

    return mma_sparse


def draw(run: Run, random: np.random.Generator) -> Sequence[Array]:
    """Return the stored elements of `a`, their random positions as metadata, and `b`."""
    codes = np.array([low | high << 2 for low, high in PAIRS], np.uint32)
    chunks = codes[random.integers(0, len(PAIRS), (M, WORDS, 8))]
    words = (chunks << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1).astype(np.uint32)
    return draw_array(Tile(M, K // 2, e4m3), run, random), words, draw_array(Tile(N, K, e4m3), run, random)


def expand(stored: Array, metadata: Array) -> Array:
    """Return the matrix with its zeros, in f64."""
    indices = (metadata[..., None] >> np.arange(0, 32, 2, dtype=np.uint32) & 3).reshape(M, -1, STORED)
    dense = np.zeros((M, K // CHUNK, CHUNK))
    np.put_along_axis(dense, indices.astype(np.int64), widen(stored).reshape(M, -1, STORED), axis=-1)
    return dense.reshape(M, K)


def reference(a: Array, positions: Array, b: Array) -> Array:
    """Return the expected result."""
    return expand(a, positions) @ widen(b).T


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}, atol=1e-4),),
    large={},
    sass=("UTCQMMA", "UTCCP", "UTCBAR", "LDTM.x32"),
    draw=draw,
    flops=lambda _: 2 * M * N * K,
)

if __name__ == "__main__":
    EXAMPLE.show()
