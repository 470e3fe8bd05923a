"""Load and store tensor memory: out = a, (128, 8), stored to tensor memory in one shape and loaded in another.

The idea: a shape says which registers of which lanes hold a cell, and two shapes move the same cells.

- `32x32b.x8`: thread l of a warp has lane l, register c has column c. One row per thread: used for results.
- `16x256b.x1`: 16 lanes of 256 bits in the layout of an `mma.sync` accumulator. Thread l has lanes l / 4 and l / 4 + 8,
  columns 2 (l mod 4) and the next: four registers. Two loads read 32 lanes.

A warp reaches the 32 lanes of its own number modulo 4, whatever the shape: lanes 32 w to 32 w + 31. The address that it
passes names the first lane in its upper half.

The protocol: stores and loads are asynchronous. `wait::st` completes the warp's stores, so that its loads see them;
`wait::ld` comes before the registers are used elsewhere and the columns are freed. Each warp reads only what it wrote,
so the only barriers are the two `bar.sync 0` of `allocate` and `free` (`examples/parts/tensor_memory.py`).
"""

from __future__ import annotations

from examples.parts.example import Array, Example, Run
from examples.parts.tensor_memory import allocate, free
from examples.parts.tensor_steps import find_own_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import u32

LANES, WIDTH, ALLOCATED = 128, 8, 32
"""Lanes, columns that are used, and the fewest columns that can be allocated."""
HALF = 16
"""Lanes that a `16x256b` load reads."""


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""
    tile = Tile(LANES, WIDTH, u32)

    @kernel(arch=arch, in_specs=(tile,), out_specs=(tile,), grid=(1, 1, 1), block=(LANES, 1, 1))
    def load_store(a: TensorSpec, out: TensorSpec) -> None:
        pa, po = ptx.global_ptrs(a, out)
        thread = ptx.special.tid.x()
        lane, first_warp = thread & 31, thread < 32
        address = allocate(ALLOCATED, first_warp)
        own = find_own_lanes(address, thread)

        # Phase 1: thread l of warp w stores row 32 w + l.
        row = ptx.mad(thread, 4 * WIDTH, pa, mode="wide")
        values = reg.array(u32, WIDTH)
        for i in range(0, WIDTH, 4):
            ptx.ld(u32, values[i : i + 4], ptx.addr(row, 4 * i))
        ptx.tcgen05.st(own, values, shape="32x32b", count=WIDTH)
        ptx.tcgen05.wait_st()

        # Phase 2: load 16 lanes at a time. Registers 0 and 1 are neighbors in lane l / 4, registers 2 and 3 eight lanes
        # below.
        first_row = (thread - lane) + (lane >> 2)
        cell = ptx.mad(first_row * WIDTH + (lane & 3) * 2, 4, po, mode="wide")
        for half in range(2):
            corner = own + ((HALF * half) << 16) if half else own
            parts = ptx.tcgen05.ld([u32] * 4, corner, shape="16x256b")
            ptx.tcgen05.wait_ld()
            for i in range(2):
                ptx.st(u32, ptx.addr(cell, 4 * WIDTH * (HALF * half + 8 * i)), parts[2 * i : 2 * i + 2])
        free(address, ALLOCATED, first_warp)

    return load_store


def reference(a: Array) -> Array:
    """Return the expected result."""
    return a.copy()


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}),),
    large={},
    sass=("STTM.x8", "LDTM.16dp256bit"),
)

if __name__ == "__main__":
    EXAMPLE.show()
