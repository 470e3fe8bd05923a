"""A CTA exits while its peer in the cluster still reads its shared memory.

The memory of a CTA that has exited belongs to the next one. A barrier of the cluster must keep it alive.
"""

from __future__ import annotations

from examples.parts.bug import Bug
from pyptx import TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import u32


@kernel(arch="sm_90a", out_specs=[Tile(2, u32)], grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))
def exchange(out: TensorSpec, *, fixed: bool = False) -> None:
    """Each CTA writes the rank that its peer has stored."""
    (target,) = ptx.global_ptrs(out)
    cell = smem.alloc(u32, 1, name="cell")
    rank = ptx.special.cluster_ctarank()
    with ptx.if_(ptx.special.tid.x() == 0):
        cell[0] = rank
    ptx.cluster.sync()
    with ptx.if_(ptx.special.tid.x() == 0):
        remote = ptx.cluster.map_shared_u32(cell.address(), rank ^ 1)
        ptx.st(u32, ptx.addr(target, rank * 4), ptx.ld(u32, ptx.addr(remote), space="shared::cluster"))
    if fixed:
        ptx.cluster.sync()


BUG = Bug(exchange, "PTX0981")

if __name__ == "__main__":
    BUG.show()
