"""The steps around a tcgen05 instruction in a small kernel: operands to shared memory, completion, results to global
memory. Knows no particular instruction.

The protocol of `run_in_one_thread`:

- `full`: one arrival, from the issuing thread, a lane of warp 0, and the bytes of all tiles. That thread waits for
  phase 0.
- `done`: one arrival, by `tcgen05.commit`, when everything that the thread issued is complete. All threads wait for
  phase 0.
- `bar.sync 0`, all threads: once in `allocate`, after the mbarriers are initialized, and again in `free`, which the
  kernel calls at the end (`examples/parts/tensor_memory.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from examples.parts.tensor_memory import allocate
from examples.parts.warps import elect
from pyptx import TensorSpec, intrinsic, ptx, reg, smem
from pyptx.types import PtxType, f32

PIECE = 32
"""Columns that one `tcgen05.ld` reads, at most."""

Copies = tuple[tuple[smem.SharedAlloc, TensorSpec], ...]


@intrinsic
def load_tiles(full: smem.MbarrierRef, copies: Copies) -> None:
    """Load whole tensors to tiles of shared memory by TMA and wait for them, in one thread.

    `full` expects one arrival, from this thread, and the bytes of all tiles; this is its first phase.
    """
    ptx.mbarrier.arrive_expect_tx(full, sum(tile.size for tile, _ in copies))
    for tile, tensor in copies:
        ptx.cp.async_.bulk.tensor_2d(dst=tile, src=tensor, coord=(0, 0), mbar=full)
    ptx.mbarrier.wait(full, 0)


@intrinsic
def run_in_one_thread(thread: reg.Reg, columns: int, copies: Copies, issue: Callable[[reg.Reg], None]) -> reg.Reg:
    """Allocate tensor memory, load tiles, let a thread of warp 0 issue tcgen05 instructions, and wait for completion.

    Returns the address of the columns, which `issue` gets, too. TMA writes and tcgen05 reads shared memory through the
    same proxy, so the thread needs no fence between.
    """
    full, done = smem.mbarrier(1, name="full"), smem.mbarrier(1, name="done")
    first_warp = thread < 32
    with ptx.if_(first_warp), ptx.if_(elect()):
        ptx.mbarrier.init(full[0], 1)
        ptx.mbarrier.init(done[0], 1)
    address = allocate(columns, first_warp)
    with ptx.if_(first_warp), ptx.if_(elect()):
        load_tiles(full[0], copies)
        issue(address)
        ptx.tcgen05.commit(done[0])
    ptx.mbarrier.wait(done[0], 0)
    ptx.tcgen05.fence_after_thread_sync()
    return address


@intrinsic
def find_own_lanes(address: reg.Reg, thread: reg.Reg) -> reg.Reg:
    """Return the address at which a warp accesses its own lanes: 32 w to 32 w + 31 in warp w of a warpgroup.

    The lane is in the upper half of an address.
    """
    return address + ((thread >> 5) << 21)


@intrinsic
def store_lanes(address: reg.Reg, thread: reg.Reg, columns: int, target: reg.Reg, dtype: PtxType = f32) -> None:
    """Store columns of tensor memory to global memory: lane l becomes row l of a matrix with so many columns."""
    lanes = find_own_lanes(address, thread)
    row = ptx.mad(thread, 4 * columns, target, mode="wide")
    piece = min(columns, PIECE)
    for left in range(0, columns, piece):
        part = reg.array(dtype, piece)
        ptx.tcgen05.ld(part, lanes + left if left else lanes, shape="32x32b", count=piece)
        ptx.tcgen05.wait_ld()
        for i in range(0, piece, 4):
            ptx.st(dtype, ptx.addr(row, 4 * (left + i)), part[i : i + 4])
