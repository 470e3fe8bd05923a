"""The bytes that a copy reads and writes, as reported in events."""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.events import Bytes, Space
from pyptx.sim.base.formats import Array
from pyptx.sim.engines.copies import Copy
from pyptx.sim.state.regions import Region


def make_bytes(region: Region, begin: int, size: int) -> Bytes:
    """Return a run of bytes of shared or global memory."""
    if region.space == "shared":
        return Bytes.run(Space.SHARED, begin, size)
    return Bytes.run(Space.GLOBAL, region.low + begin, size)


def list_box(copy: Copy, shared: Region, begin: int, size: int, stride: int, *, has_gaps: bool) -> Bytes:
    """Return the bytes of a box at `begin` in the shared memory of all CTAs, each of `stride` bytes."""
    if not has_gaps:
        return make_bytes(shared, begin, size)
    return Bytes(Space.SHARED, copy.shared - shared.low + begin - begin % stride, copy.unit)


def select_written(region: Region, begin: int, mask: Array) -> Bytes:
    """Return the bytes of a run that a mask keeps."""
    if mask.all():
        return make_bytes(region, begin, len(mask))
    return Bytes(Space.GLOBAL, region.low + begin + np.flatnonzero(mask), 1)


def list_units(copy: Copy) -> Bytes:
    """Return the bytes of a tensor that a copy accesses."""
    return Bytes(Space.GLOBAL, copy.address if copy.inside is None else copy.address[copy.inside], copy.unit)


def select_source(copy: Copy, shared: Region, begin: int, size: int, stride: int, *, has_gaps: bool) -> Bytes:
    """Return the shared bytes that a copy to a tensor reads: those of elements inside the tensor."""
    if copy.inside is None:
        return list_box(copy, shared, begin, size, stride, has_gaps=has_gaps)
    return Bytes(Space.SHARED, copy.shared[copy.inside] - shared.low + begin - begin % stride, copy.unit)
