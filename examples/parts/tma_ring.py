"""A ring of shared memory stages that one thread fills by TMA, for consumer warps that read them by `ldmatrix`.

The protocol of a stage, whose uses are numbered from n = 0, with two mbarriers:

- `full`: one arrival, the producer's, and the bytes of all copies of the stage. Consumers wait for phase n, of parity
  n mod 2. That completes the copies for them; no fence is needed.
- `empty`: one arrival per consumer warp, after a `bar.warp.sync` has shown that its lanes have read the stage. The
  producer waits for phase n - 1, which for n = 0 counts as complete on a new mbarrier. The consumers read through the
  generic proxy and TMA writes through the async proxy, so the producer executes `fence.proxy.async` between the wait
  and the copies.

All threads execute one `bar.sync 0`, after the mbarriers are initialized.

The producer fills one stage more than there are tiles along K. It lies outside of the matrices and holds zeros:
consumers load fragments one step ahead, at the end from that stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from examples.parts.warp_tile import STEP, Fragments, WarpTile
from pyptx import intrinsic, ptx, reg, smem

AHEAD = {
    "PTX0978": "the stage after the last one along K, which consumers load fragments from and do not use, has zeros"
}
"""Findings of a kernel with this ring."""


@dataclass(frozen=True)
class Copy:
    """One copy of each stage: from a tensor to `ring[stage]`."""

    ring: smem.SharedAlloc
    tensor: Any
    coordinates: Callable[[reg.Reg], tuple[Any, ...]]
    """Returns where the box begins, given the number of the tile along K."""


@dataclass(frozen=True)
class TmaRing:
    """The copies of a stage, and its mbarriers."""

    copies: tuple[Copy, ...]
    full: smem.MbarrierArray
    empty: smem.MbarrierArray

    @property
    def stages(self) -> int:
        """The number of stages."""
        return self.full.count

    def initialize(self, thread: reg.Reg, consumers: int) -> None:
        """Initialize the mbarriers for this many consumer warps, and synchronize the CTA."""
        with ptx.if_(thread == 0):
            for stage in range(self.stages):
                ptx.mbarrier.init(self.full[stage], 1)
                ptx.mbarrier.init(self.empty[stage], consumers)
        ptx.bar.sync(0)

    def produce(self, tiles: int) -> None:
        """Fill the stages: in one thread."""
        slot = ptx.pipeline(self.stages)
        for tile in ptx.range_(0, tiles + 1):
            ptx.mbarrier.wait(self.empty[slot.stage], slot.phase ^ 1)
            ptx.fence.proxy_async_shared_cta()
            full = self.full[slot.stage]
            ptx.mbarrier.arrive_expect_tx(full, sum(copy.ring.size for copy in self.copies) // self.stages)
            for copy in self.copies:
                ptx.cp.async_.bulk.tensor_2d(
                    dst=copy.ring[slot.stage], src=copy.tensor, coord=copy.coordinates(tile), mbar=full
                )
            slot.advance()

    def consume(
        self, tiles: int, steps: int, load: Callable[[reg.Reg, int], None], multiply: Callable[[int], None]
    ) -> None:
        """Load and multiply each step of each tile along K: in consumer warps.

        `load(stage, step)` loads what `multiply(step)` uses. Loads are one step ahead, so consecutive steps need
        different registers; the number of steps is even.
        """
        slot, lane = ptx.pipeline(self.stages), ptx.special.laneid()
        ptx.mbarrier.wait(self.full[slot.stage], slot.phase)
        load(slot.stage, 0)
        for _ in ptx.range_(0, tiles):
            for step in range(steps - 1):
                load(slot.stage, step + 1)
                multiply(step)
            # All of this stage is in registers.
            ptx.warp.sync()
            ptx.mbarrier.arrive(self.empty[slot.stage], pred=lane == 0)
            slot.advance()
            ptx.mbarrier.wait(self.full[slot.stage], slot.phase)
            load(slot.stage, 0)
            multiply(steps - 1)


@dataclass(frozen=True)
class Loader:
    """How a consumer warp loads the fragments of its tile from the stages of both operands."""

    tile: WarpTile
    a: smem.SharedAlloc
    b: smem.SharedAlloc
    offsets: tuple[reg.Reg, reg.Reg]
    """Of `WarpTile.locate_rows`."""
    fragments: tuple[Fragments, Fragments]
    """Two sets, for even and odd steps."""

    @intrinsic
    def load(self, stage: reg.Reg, step: int) -> None:
        """Load the fragments of a step."""
        a, b = (ring[stage].address() + offset for ring, offset in zip((self.a, self.b), self.offsets, strict=True))
        self.tile.load((a, b), step, self.fragments[step % 2])


def make_loader(
    tile: WarpTile, a: smem.SharedAlloc, b: smem.SharedAlloc, lane: reg.Reg, down: reg.Reg, right: reg.Reg
) -> Loader:
    """Return how the warp whose tile begins at `down` and `right` in the CTA's loads its fragments."""
    return Loader(tile, a, b, tile.locate_rows(lane, down, right), (tile.make_fragments(), tile.make_fragments()))


def count_stages(k: int, bits: int, pitch: int) -> tuple[int, int]:
    """Return how many tiles of `pitch` bytes cover K elements of `bits` each, and the steps of a tile."""
    return -(-k * bits // (8 * pitch)), pitch // STEP
