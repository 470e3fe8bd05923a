"""Which bytes a tensor copy moves: from a tensor map and coordinates to shared and global addresses, as arrays.

Knows tensor maps and swizzles; of memory only arrays of bytes. When a copy lands, and who waits for it, is elsewhere.
"""

from __future__ import annotations

from pyptx.sim.engines.copies.boxes import gather, tile
from pyptx.sim.engines.copies.images import im2col
from pyptx.sim.engines.copies.movement import load, reduce, store
from pyptx.sim.engines.copies.plans import Copy

__all__ = ["Copy", "gather", "im2col", "load", "reduce", "store", "tile"]
