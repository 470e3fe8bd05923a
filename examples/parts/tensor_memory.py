"""Tensor memory: allocation, synchronization of its users, products of a stage, and the output of results by TMA.

The protocol: `allocate` and `free` synchronize all threads, of a CTA by `bar.sync 0`, of a pair by `cluster.sync`. In
`allocate` that publishes the address and what threads wrote before, such as initialized mbarriers. In `free` it waits
for all reads of the columns, and keeps a CTA of a pair from exiting while its peer signals its mbarriers.
"""

from __future__ import annotations

from typing import Any

from pyptx import intrinsic, ptx, reg, smem
from pyptx.types import bf16, bf16x2, f32, u32

OUTSIDE = {
    "PTX0978": "TMA stores nothing of a slice that is past an edge, and a CTA whose whole tile is past it loads zeros, "
    "because its pair needs it"
}
"""Findings of results with edges."""
SLICE = 64
"""Columns of a slice: 128 bytes of bf16, the widest swizzle."""
LANES = 32
"""Lanes that a warp reaches: those of its number modulo 4. Lane l of warp w has row 32 w + l."""
BUFFERS = 2
ROW_BYTES, STEP_BYTES = 128, 32
"""Bytes of K in a row of a stage, and in one product: 16 elements of bf16, 32 of an 8-bit type."""


@intrinsic
def allocate(columns: int, first_warp: reg.Reg, cta_group: int = 1) -> reg.Reg:
    """Return the address of new columns, in all threads. One warp, `first_warp`, allocates them in each CTA.

    Synchronizes the threads of the CTA or of the pair. `relinquish_alloc_permit` tells other CTAs that this one will
    not allocate again.
    """
    slot = smem.alloc(u32, 1, name="slot")
    with ptx.if_(first_warp):
        ptx.tcgen05.alloc(slot, columns, cta_group=cta_group)
        ptx.tcgen05.relinquish_alloc_permit(cta_group=cta_group)
    synchronize(cta_group)
    return smem.load(u32, slot)


@intrinsic
def free(address: reg.Reg, columns: int, first_warp: reg.Reg, cta_group: int = 1) -> None:
    """Free columns in the warp that allocated them, after all threads of the CTA or of the pair get here."""
    synchronize(cta_group)
    with ptx.if_(first_warp):
        ptx.tcgen05.dealloc(address, columns, cta_group=cta_group)


@intrinsic
def synchronize(cta_group: int = 1) -> None:
    """Synchronize all threads of the CTA or of the pair, including their accesses to tensor memory."""
    ptx.tcgen05.fence_before_thread_sync()
    if cta_group == 2:
        ptx.cluster.sync()
    else:
        ptx.bar.sync(0)
    ptx.tcgen05.fence_after_thread_sync()


@intrinsic
def multiply_stage(
    sums: reg.Reg, a: smem.SharedSlice, b: smem.SharedSlice, shape: int, accumulates: reg.Reg, cta_group: int = 1
) -> None:
    """Issue the products of a stage, whose rows are 128 swizzled bytes; the first overwrites the sums unless
    `accumulates`.

    Eight rows are 1024 bytes; a step along K is 32 bytes within the rows. For a pair, the descriptors name the same
    offsets in the peer's shared memory.
    """
    starts = a.address(), b.address()
    for offset in range(0, ROW_BYTES, STEP_BYTES):
        da, db = (ptx.tcgen05.descriptor(start, byte_offset=offset, stride_bytes=8 * ROW_BYTES) for start in starts)
        enable = True if offset else accumulates
        ptx.tcgen05.mma(sums, da, db, shape, cta_group=cta_group, enable_input_d=enable)


class OutputWarp:
    """A warp that writes its 32 rows of f32 sums to a bf16 matrix, in slices of 64 columns.

    Each warp has two buffers of its own, so warps need no barrier among them. The elected lane waits until TMA has read
    a buffer (only the thread that committed the store can wait), and `bar.warp.sync` tells the others. All lanes write
    and execute `fence.proxy.async`; after a second `bar.warp.sync` the elected lane issues the store.
    """

    def __init__(self, buffers: smem.SharedAlloc, warp: reg.Reg, elected: reg.Reg) -> None:
        self.warp, self.elected = warp, elected
        self.rows = [buffers[i].address() + warp * (LANES * ROW_BYTES) for i in range(BUFFERS)]
        row = smem.apply_swizzle((ptx.special.tid.x() & (LANES - 1)) * ROW_BYTES, "128B")
        self.origins = [rows + row for rows in self.rows]

    def write(
        self, sums: reg.Reg, columns: int, out: Any, top: reg.Reg, left: reg.Reg, factor: reg.Reg | None = None
    ) -> None:
        """Write the warp's rows of a tile, times `factor`; its first row is `top`. When this returns, the warp has read
        its sums; TMA may still be reading the buffers."""
        warp_sums, warp_top = sums + (self.warp << 21), top + self.warp * LANES
        slices = columns // SLICE
        for part in range(slices):
            # With an odd number of slices, the last one of the previous tile used this tile's first buffer.
            pending = BUFFERS - 1 if part or slices % BUFFERS == 0 else 0
            ptx.cp.async_.bulk.wait_group(pending, read=True, pred=self.elected)
            ptx.warp.sync()
            copy_slice(warp_sums + part * SLICE, self.origins[part % BUFFERS], factor)
            ptx.fence.proxy_async_shared_cta()
            ptx.tcgen05.fence_before_thread_sync()
            ptx.warp.sync()
            ptx.cp.async_.bulk.tensor_2d.store(
                dst=out, src=self.rows[part % BUFFERS], coord=(left + part * SLICE, warp_top), pred=self.elected
            )
            ptx.cp.async_.bulk.commit_group(pred=self.elected)

    def finish(self) -> None:
        """Wait until all stores are complete."""
        ptx.cp.async_.bulk.wait_group(0, pred=self.elected)


def allocate_buffers(warps: int) -> smem.SharedAlloc:
    """Return the output buffers of a CTA."""
    return smem.alloc(bf16, (BUFFERS, warps * LANES, SLICE), swizzle="128B", align=1024, name="sc")


@intrinsic
def load_slice(columns: reg.Reg, factor: reg.Reg | None = None) -> list[list[reg.Reg]]:
    """Return `SLICE` f32 columns of the thread's lane, times `factor`, as bf16: four registers for 16 bytes each.

    `columns` is the address for the thread's warp.
    """
    sums, chunks = reg.array(f32, SLICE), list[list[reg.Reg]]()
    ptx.tcgen05.ld(sums, columns, shape="32x32b", count=SLICE)
    ptx.tcgen05.wait_ld()
    for first in range(0, SLICE, 8):
        packed = [reg.alloc(bf16x2) for _ in range(4)]
        for i, pair in enumerate(packed):
            low, high = sums[first + 2 * i : first + 2 * i + 2]
            if factor is not None:
                low, high = low * factor, high * factor
            ptx.cvt(bf16x2, f32, pair, [high, low], rounding="rn")
        chunks.append(packed)
    return chunks


@intrinsic
def copy_slice(columns: reg.Reg, origin: reg.Reg, factor: reg.Reg | None = None) -> None:
    """Copy what `load_slice` returns to a row in shared memory.

    `origin` is the swizzled address of the row's first 16 bytes; XOR gives the addresses of the others, so a quarter of
    a warp writes to all banks.
    """
    for chunk, packed in enumerate(load_slice(columns, factor)):
        ptx.st(bf16x2, origin ^ (16 * chunk) if chunk else origin, packed, space="shared")
