"""Which bytes a tensor copy moves: from a tensor map and coordinates to shared and global addresses, as arrays.

Knows tensor maps, swizzles and arrays of bytes; not when a copy lands or who waits for it.
"""

from __future__ import annotations

from pyptx.sim.engines.copies.boxes import plan_gather, plan_tile
from pyptx.sim.engines.copies.images import plan_im2col
from pyptx.sim.engines.copies.movement import REDUCIBLE, load, reduce, store
from pyptx.sim.engines.copies.plans import Copy, clip_to_memory, ends_in_chunk, has_misaligned_start, widen

__all__ = [
    "REDUCIBLE",
    "Copy",
    "clip_to_memory",
    "ends_in_chunk",
    "widen",
    "has_misaligned_start",
    "plan_gather",
    "plan_im2col",
    "load",
    "reduce",
    "store",
    "plan_tile",
]
