"""Allocate tensor memory: out[0] = a and out[1] = b, each kept in an allocation of its own.

The idea: an SM has 512 columns of tensor memory, each with a 32-bit cell in 128 lanes. CTAs share the columns, so a
kernel must allocate them: a power of two from 32 to 512. `alloc` waits until they are free, and writes their address
to shared memory: the lane in the upper half, here 0, and the column in the lower.

The rules: a whole warp allocates and frees, the same for both. A CTA may allocate repeatedly, but never more than
before: first 64 columns, then 32. After `relinquish_alloc_permit` it may not allocate, and others need not expect it
to. A CTA frees all columns before it ends.

The protocol: the only barrier is `bar.sync 0`, for all 128 threads. The first makes both addresses visible to all
warps, the second lets the first warp free the columns after all warps have read theirs. `tcgen05.fence` goes before and
after both.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from examples.parts.tensor_memory import synchronize
from examples.parts.tensor_steps import find_own_lanes
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import u32

LANES = 128
SIZES = (64, 32)
"""Columns of the two allocations."""


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""
    row = Tile(LANES, u32)

    @kernel(
        arch=arch, in_specs=(row, row), out_specs=(Tile(len(SIZES), LANES, u32),), grid=(1, 1, 1), block=(LANES, 1, 1)
    )
    def alloc(a: TensorSpec, b: TensorSpec, out: TensorSpec) -> None:
        pa, pb, po = ptx.global_ptrs(a, b, out)
        slots = smem.alloc(u32, len(SIZES), name="slots")
        thread = ptx.special.tid.x()
        first_warp = thread < 32

        # Phase 1: the first warp allocates. Each `alloc` writes an address to a slot in shared memory.
        with ptx.if_(first_warp):
            for i, size in enumerate(SIZES):
                ptx.tcgen05.alloc(slots[i], size)
            ptx.tcgen05.relinquish_alloc_permit()
        synchronize()
        addresses = [smem.load(u32, slots[i]) for i in range(len(SIZES))]
        own = [find_own_lanes(address, thread) for address in addresses]

        # Phase 2: write both allocations before reading either, each thread the first column of its lane.
        for lanes, source in zip(own, (pa, pb), strict=True):
            value = reg.scalar(u32)
            ptx.ld(u32, value, ptx.mad(thread, 4, source, mode="wide"))
            ptx.tcgen05.st(lanes, [value], shape="32x32b")
        ptx.tcgen05.wait_st()

        # Phase 3: read both.
        target = ptx.mad(thread, 4, po, mode="wide")
        for i, lanes in enumerate(own):
            (value,) = ptx.tcgen05.ld([u32], lanes, shape="32x32b")
            ptx.tcgen05.wait_ld()
            ptx.st(u32, ptx.addr(target, 4 * LANES * i), value)

        # Phase 4: the warp that allocated frees, each allocation as a whole.
        synchronize()
        with ptx.if_(first_warp):
            for address, size in zip(addresses, SIZES, strict=True):
                ptx.tcgen05.dealloc(address, size)

    return alloc


def reference(a: Array, b: Array) -> Array:
    """Return the expected result."""
    return np.stack([a, b])


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(Run({}),),
    large={},
    sass=("UTCATOMSWS", "STTM", "LDTM"),
)

if __name__ == "__main__":
    EXAMPLE.show()
