"""Hand tiles from warp to warp: out = a, tiles of (32, 4) words that pass through the same columns of tensor memory.

The idea: the two directions differ. Warp 0 fills the columns by an asynchronous copy, so it cannot tell when they are
full: `tcgen05.commit` makes the hardware arrive at an mbarrier when all that the thread issued before is complete. Warp
1 empties them by `tcgen05.ld`, which it can wait for itself, so it arrives itself.

The protocol:

- `loaded`: one arrival, from warp 0's thread, and the 2.5 KiB of all five tiles. The same thread waits for phase 0.
- `full`: one arrival per tile, by commit. Warp 1 waits for phase t (parity t mod 2) before it reads tile t. Commit
  implies `fence::before_thread_sync`; after the wait, `fence::after_thread_sync` keeps the load behind it.
- `empty`: 32 arrivals per tile, from the lanes of warp 1, after `wait::ld` (the registers have the values) and
  `fence::before_thread_sync` (nothing of tcgen05 moves below the arrival). Warp 0's thread waits for phase t - 1 before
  it copies tile t, followed by `fence::after_thread_sync`. Its first wait passes, on a new mbarrier.
- `bar.sync 0`, all threads, twice: `allocate` and `free` in `examples/parts/tensor_memory.py`.
"""

from __future__ import annotations

from examples.parts.example import Array, Example, Run
from examples.parts.tensor_memory import allocate, free
from examples.parts.tensor_steps import find_own_lanes, load_tiles
from examples.parts.warps import elect
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import u32

TILES, ROWS, WIDTH, ALLOCATED = 5, 32, 4, 32
"""Tiles, their rows and words in a row, and the fewest columns that can be allocated."""


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""
    tiles = Tile.wgmma_a(TILES * ROWS, WIDTH, u32)

    @kernel(arch=arch, in_specs=(tiles,), out_specs=(Tile(TILES * ROWS, WIDTH, u32),), grid=(1, 1, 1), block=(64, 1, 1))
    def commit_and_fences(a: TensorSpec, out: TensorSpec) -> None:
        (po,) = ptx.global_ptrs(out)
        sa = smem.wgmma_tile(u32, (TILES, ROWS, WIDTH), name="sa")
        loaded, full, empty = (smem.mbarrier(1, name=name) for name in ("loaded", "full", "empty"))
        thread = ptx.special.tid.x()
        first_warp = thread < 32

        # Phase 1: initialize the mbarriers and allocate.
        with ptx.if_(first_warp), ptx.if_(elect()):
            ptx.mbarrier.init(loaded[0], 1)
            ptx.mbarrier.init(full[0], 1)
            ptx.mbarrier.init(empty[0], ROWS)
        address = allocate(ALLOCATED, first_warp)

        # Phase 2, a thread of warp 0: fill the columns. The copy repeats the tile in all quarters of the lanes, so any
        # warp could read it.
        with ptx.if_(first_warp), ptx.if_(elect()):
            load_tiles(loaded[0], ((sa, a),))
            for tile in ptx.range_(0, TILES):
                ptx.mbarrier.wait(empty[0], (tile & 1) ^ 1)
                ptx.tcgen05.fence_after_thread_sync()
                ptx.tcgen05.cp(address, sa[tile], size="32x128b.warpx4")
                ptx.tcgen05.commit(full[0])

        # Phase 2, warp 1: empty them, a row in each lane. The registers outlive the columns, so the store comes last.
        with ptx.if_(~first_warp):
            own, row = find_own_lanes(address, thread), ptx.mad(thread - 32, 4 * WIDTH, po, mode="wide")
            for tile in ptx.range_(0, TILES):
                ptx.mbarrier.wait(full[0], tile & 1)
                ptx.tcgen05.fence_after_thread_sync()
                values = ptx.tcgen05.ld([u32] * WIDTH, own, shape="32x32b", count=WIDTH)
                ptx.tcgen05.wait_ld()
                ptx.tcgen05.fence_before_thread_sync()
                ptx.mbarrier.arrive(empty[0])
                ptx.st(u32, ptx.mad(tile, 4 * WIDTH * ROWS, row, mode="wide"), values)
        free(address, ALLOCATED, first_warp)

    return commit_and_fences


def reference(a: Array) -> Array:
    """Return the expected result."""
    return a.copy()


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}),),
    large={},
    sass=("UTCCP", "UTCBAR", "LDTM.x4"),
)

if __name__ == "__main__":
    EXAMPLE.show()
