"""Tiles by cluster launch control: a running cluster takes over the tiles of clusters that have not started.

The grid has one cluster per tile, along x. A cluster that the hardware starts computes its own tile; then
`clusterlaunchcontrol.try_cancel` cancels the next cluster that has not started and returns its coordinates, until none
is left. So the clusters that run share the work evenly without a counter in global memory, and the kernel remains
correct if another kernel takes some of the SMs.

The protocol of a slot for one response, of which there are two (`SLOTS`) in each CTA:

- `full`, in each CTA: one arrival with 16 expected bytes, from the scheduler, one thread of the leader CTA, which
  arrives in every CTA; the response itself completes them. The multicast writes the response and signals the mbarrier
  in every CTA. In use n of the slot, from 0, readers wait for phase n.
- `empty`, used in the leader CTA only: one arrival per reader of every CTA, the scheduler included. The scheduler waits
  for phase n - 1; the first wait passes on a new mbarrier.
- Readers read the response through the generic proxy, and the next response is written through the async proxy. So
  each reader executes `fence.proxy.async` between its read and its arrival.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyptx import ptx, reg, smem
from pyptx.types import b128, u32

SLOTS = 2
"""Tile i + 1 has the slot of tile i - 1, so it is requested when the epilogue has begun tile i - 1, while tile i is
multiplied. A third slot would claim tiles earlier and leave SMs idle at the end."""
BYTES = 16


class TileQueue:
    """The tiles of a cluster of `ctas` CTAs in which `readers` threads or warps call `each`, the scheduler included."""

    def __init__(self, ctas: int, readers: int) -> None:
        self.ctas, self.readers = ctas, readers
        self.responses = smem.alloc(b128, SLOTS, name="responses")
        self.full, self.empty = smem.mbarrier(SLOTS, name="queue_full"), smem.mbarrier(SLOTS, name="queue_empty")

    def initialize(self) -> None:
        """Initialize the mbarriers: one thread of each CTA calls this before the cluster synchronizes."""
        for slot in range(SLOTS):
            ptx.mbarrier.init(self.full[slot], 1)
            ptx.mbarrier.init(self.empty[slot], self.readers)

    def schedule(self) -> None:
        """Request tiles until none is left: the scheduler, one thread of the leader CTA."""
        ring = ptx.pipeline(SLOTS)
        for _ in self.each():
            ptx.mbarrier.wait(self.empty[ring.stage], ring.phase ^ 1)
            full = self.full[ring.stage]
            for cta in range(self.ctas):
                ptx.mbarrier.arrive_expect_tx_mapped(ptx.cluster.map_shared_u32(full.address(), cta), BYTES)
            ptx.clusterlaunchcontrol.try_cancel(self.responses[ring.stage], full, multicast=self.ctas > 1)
            ring.advance()

    def each(self, elected: reg.Reg | None = None) -> Iterator[reg.Reg]:
        """Loop over the indices of this cluster's tiles: in one thread, or in a warp whose `elected` lane arrives."""
        tile = reg.from_(ptx.special.clusterid.x(), u32)
        ring = ptx.pipeline(SLOTS)
        with ptx.loop("tile"):
            yield tile
            ptx.mbarrier.wait(self.full[ring.stage], ring.phase)
            response = smem.load(b128, self.responses[ring.stage])
            ptx.fence.proxy_async_shared_cta()
            if elected is not None:
                ptx.warp.sync()
            ptx.cluster.arrive_remote(self.empty[ring.stage], 0, pred=elected)
            ring.advance()
            # The coordinates of a failed request are undefined.
            ptx.break_(pred=~ptx.clusterlaunchcontrol.is_canceled(response))
            ptx.mov(u32, tile, ptx.clusterlaunchcontrol.get_first_ctaid(response)[0] // self.ctas)
