"""Tensor memory: allocation, synchronization of its users, and copies of results to shared memory."""

from __future__ import annotations

from pyptx import intrinsic, ptx, reg, smem
from pyptx.types import bf16x2, f32, u32

SLICE = 64
"""Columns of a slice: 128 bytes of bf16, the widest swizzle."""
COLUMNS = 512
"""Columns of an SM's tensor memory."""


@intrinsic
def allocate(columns: int, first_warp: reg.Reg, cta_group: int = 1) -> reg.Reg:
    """Return the address of new columns, in all threads. One warp, `first_warp`, allocates them in each CTA.

    Synchronizes the threads of the CTA or of the pair, so what they wrote before is visible to all of them; that
    includes initialized mbarriers. `relinquish_alloc_permit` tells other CTAs that this one will not allocate again.
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
def copy_slice(columns: reg.Reg, origin: reg.Reg) -> None:
    """Copy `SLICE` f32 columns of a thread's lane from tensor memory to a row in shared memory, as bf16.

    `columns` is the address for the thread's warp. `origin` is the swizzled address of the row's first 16 bytes; XOR
    gives the addresses of the others, so a quarter of a warp writes to all banks.
    """
    sums = reg.array(f32, SLICE)
    ptx.tcgen05.ld(sums, columns, shape="32x32b", count=SLICE)
    ptx.tcgen05.wait_ld()
    for chunk in range(SLICE // 8):
        packed = [reg.alloc(bf16x2) for _ in range(4)]
        for i, pair in enumerate(packed):
            low, high = sums[8 * chunk + 2 * i : 8 * chunk + 2 * i + 2]
            ptx.cvt(bf16x2, f32, pair, [high, low], rounding="rn")
        ptx.st(bf16x2, origin ^ (16 * chunk) if chunk else origin, packed, space="shared")
