"""Tiled copies: boxes of one to five dimensions, and four rows gathered or scattered.

Manual: Tensors, Tiled mode. Coordinates start with the fastest dimension, as the instruction has them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pyptx.sim.copies.plans import I64, Copy, Mask, assemble
from pyptx.tensormap import TensorMap

ROWS = 4


def tile(tensor: TensorMap, coordinates: tuple[int, ...], destination: int) -> Copy:
    """Return the copy of the box at these coordinates from or to shared memory at `destination`."""
    outer = tensor.steps[1:]
    relative = _rows(outer, tensor.strides, tensor.element_strides[1:])
    start = coordinates[0] * tensor.dtype.bits // 8 + tensor.address
    start += sum(at * stride for at, stride in zip(coordinates[1:], tensor.strides, strict=True))
    return assemble(
        tensor, destination, coordinates[0], relative + start, _rows_inside(tensor, coordinates), tensor.steps[0]
    )


def gather(tensor: TensorMap, coordinates: tuple[int, ...], destination: int) -> Copy:
    """Return the copy of four rows (`.tile::gather4`, `.tile::scatter4`): the column, then the rows."""
    rows = np.array(coordinates[1:], np.int64)
    if tensor.rank != 2 or len(rows) != ROWS:
        raise ValueError(f"gather4 and scatter4 need a map of rank 2, a column and {ROWS} rows; got {coordinates}")
    inside = (rows >= 0) & (rows < tensor.dims[1])
    address = tensor.address + coordinates[0] * tensor.dtype.bits // 8 + rows * tensor.strides[0]
    return assemble(tensor, destination, coordinates[0], address, None if inside.all() else inside, tensor.steps[0])


@lru_cache(maxsize=256)
def _rows(counts: tuple[int, ...], strides: tuple[int, ...], steps: tuple[int, ...]) -> I64:
    """Return the offsets of a box's rows in global memory, the fastest dimension first."""
    offsets = np.zeros(1, np.int64)
    for count, stride, step in zip(counts, strides, steps, strict=True):
        offsets = (np.arange(count, dtype=np.int64)[:, None] * (stride * step) + offsets).ravel()
    offsets.flags.writeable = False
    return offsets


def _rows_inside(tensor: TensorMap, coordinates: tuple[int, ...]) -> Mask | None:
    """Tell which rows lie in the tensor; None if all do."""
    axes = list(zip(coordinates[1:], tensor.dims[1:], tensor.steps[1:], tensor.element_strides[1:], strict=True))
    if all(at >= 0 and at + (count - 1) * step < size for at, size, count, step in axes):
        return None
    inside = np.ones(1, np.bool_)
    for at, size, count, step in axes:
        places = at + np.arange(count) * step
        inside = (((places >= 0) & (places < size))[:, None] & inside).ravel()
    return inside
