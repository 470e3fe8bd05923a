"""TMA copy: out = a, a matrix copied box by box through shared memory, no thread touching an element.

The idea: a tensor map describes the matrix to the hardware, and one thread asks for a whole box. Arrival is counted in
bytes on a memory barrier. Boxes at the edges may stick out: a load fills what lies outside with zeros (and counts it
too), a store leaves it out, so that no bound is tested anywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import bf16

ROWS, COLUMNS = 64, 64
BOX_BYTES = ROWS * COLUMNS * 2
Array = np.ndarray[Any, Any]


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return how many CTAs a shape takes."""
    return (-(-n // COLUMNS), -(-m // ROWS), 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for a target. Rows are a multiple of 16 bytes long, as tensor maps want them."""
    tile = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(ROWS, COLUMNS))

    @kernel(arch=arch, in_specs=(tile,), out_specs=(tile,), grid=grid, block=(32, 1, 1))
    def tma_copy(a: TensorSpec, out: TensorSpec) -> None:
        # 1024 bytes: where the pattern of the 128-byte swizzle begins. Both maps swizzle alike, so it cancels out.
        box = smem.alloc(bf16, (ROWS, COLUMNS), swizzle="128B", align=1024, name="box")
        full = smem.mbarrier(1, name="full")
        column, row = ptx.special.ctaid.x() * COLUMNS, ptx.special.ctaid.y() * ROWS

        # One thread does all of it, in program order. What it initializes it also uses: no fence, no CTA barrier.
        with ptx.if_(ptx.special.tid.x() == 0):
            ptx.mbarrier.init(full[0], 1)

            # Phase 1: ask for the box. The barrier completes when this arrival and all bytes are there.
            ptx.mbarrier.arrive_expect_tx(full[0], BOX_BYTES)
            ptx.cp.async_.bulk.tensor_2d(dst=box, src=a, coord=(column, row), mbar=full[0])

            # Phase 2: wait for it. Parity 0 is the barrier's first phase.
            ptx.mbarrier.wait(full[0], 0)

            # Phase 3: send it on. Written and read by the same proxy: no proxy fence between.
            ptx.cp.async_.bulk.tensor_2d.store(dst=out, src=box, coord=(column, row))
            ptx.cp.async_.bulk.commit_group()
            # Shared memory must outlive the reading of it; the thread that committed is the one that can wait.
            ptx.cp.async_.bulk.wait_group(0)

    return tma_copy


def reference(a: Array) -> Array:
    """Return what the kernel computes."""
    return a.copy()
