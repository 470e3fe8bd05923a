"""Writes f32 sums of wgmma to a bf16 matrix: `stmatrix` into a swizzled buffer, which a TMA store copies.

A warpgroup writes 64 rows in slices of 64 columns and alternates between two buffers: while TMA reads one, the
warpgroup fills the other. TMA stores clip the edges of the matrix.

The protocol: a named barrier for the 128 threads of the warpgroup completes twice per slice. They arrive first when the
leader, which issues the stores, has waited until at most one store is still reading: all may then write the buffer of
two slices ago. They arrive again after writing, each after `fence.proxy.async`: the store reads through the async proxy
and may otherwise not see the writes. The leader then stores. With `is_first`, no store has read the buffers yet, so the
first two slices complete the barrier only once, after writing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from examples.parts.warps import elect_in_group
from pyptx import intrinsic, ptx, reg, smem
from pyptx.ptx import NamedBarrier
from pyptx.types import bf16x2, f32

OUTSIDE = {"PTX0978": "TMA stores nothing of a slice that is past an edge: to issue it costs less than a test of each"}
"""Findings of results with edges."""
ROWS, SLICE = 64, 64
"""Rows of a warpgroup, and columns of a slice: 128 bytes, the widest swizzle."""
BUFFERS = 2


@dataclass(frozen=True)
class Writer:
    """A warpgroup's part in writing: its named barrier, which thread issues the stores, and the thread's offset."""

    barrier: NamedBarrier
    leader: reg.Reg
    offset: reg.Reg
    """Where in a buffer the lane's `stmatrix` address of the first 16 columns is."""


def make_writer(thread: reg.Reg, group: reg.Reg | int, lane: reg.Reg) -> Writer:
    """Return the part of warpgroup `group` of the CTA, which uses the named barrier of that number."""
    barrier = ptx.named_barrier(group, count=128)
    row = ((thread >> 5) & 3) * 16 + (lane & 15)
    return Writer(barrier, elect_in_group(thread), smem.apply_swizzle(row * 128 + (lane >> 4) * 16, "128B"))


@intrinsic
def store_slice(sums: list[reg.Reg], origin: reg.Reg) -> None:
    """Store a warp's 16 rows of a slice as bf16: `origin` is the lane's swizzled address of the first 16 columns."""
    for j in range(SLICE // 16):
        packed = [reg.alloc(bf16x2) for _ in range(4)]
        for i, pair in enumerate(packed):
            low, high = sums[8 * j + 2 * i : 8 * j + 2 * i + 2]
            ptx.cvt(bf16x2, f32, pair, [high, low], rounding="rn")
        # 16 columns are 32 bytes. The swizzle XORs these address bits, so XOR also steps along the row.
        ptx.stmatrix(smem=origin ^ (32 * j) if j else origin, regs=packed)


def store_tile(
    writer: Writer, sums: reg.RegArray, buffers: smem.SharedAlloc, consumer: reg.Reg | int, out: Any, left: reg.Reg,
    top: reg.Reg, *, is_first: bool,
) -> None:  # fmt: skip
    """Write a warpgroup's sums to `out`, whose tensor map has boxes of 64 x 64, at row `top` and column `left`.

    `buffers` is (consumer, buffer, row, column). The stores may still be reading the last two buffers on return; before
    it ends, the leader waits for its groups. `is_first`: no earlier tile has used the buffers.
    """
    count, slices = buffers.shape[1], 2 * sums.count // SLICE
    if slices % count:
        raise ValueError(f"the {slices} slices of a tile must take {count} buffers in turns, the same in each tile")
    for part in range(slices):
        buffer = buffers[consumer, part % count]
        if part >= count or not is_first:
            # Wait until the last store from this buffer has read it. Only the committing thread can wait.
            ptx.cp.async_.bulk.wait_group(count - 1, read=True, pred=writer.leader)
            writer.barrier.sync()
        store_slice(sums[part * SLICE // 2 : (part + 1) * SLICE // 2], buffer.address() + writer.offset)
        # The fence in each writing thread and then the barrier make all writes visible to the leader's store.
        ptx.fence.proxy_async_shared_cta()
        writer.barrier.sync()
        ptx.cp.async_.bulk.tensor_2d.store(dst=out, src=buffer, coord=(left + part * SLICE, top), pred=writer.leader)
        ptx.cp.async_.bulk.commit_group(pred=writer.leader)
