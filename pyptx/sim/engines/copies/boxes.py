"""Tiled copies: boxes of one to five dimensions, and four rows gathered or scattered.

Manual: Tensors, Tiled mode. Coordinates start with the fastest dimension, as the instruction has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pyptx.isa.swizzle import period
from pyptx.sim.base.formats import Array
from pyptx.sim.engines.copies.plans import (
    I64,
    Copy,
    Mask,
    assemble_rows,
    complete_copy,
    find_step,
    has_misaligned_start,
    make_row,
    measure_unit,
    place_row,
)
from pyptx.tensormap import Interleave, TensorMap

ROWS = 4


def plan_tile(tensor: TensorMap, coordinates: tuple[int, ...], destination: int) -> Copy:
    """Return the copy of the box at these coordinates from or to shared memory at `destination`."""
    unit = measure_unit(tensor, coordinates[0])
    width = tensor.unit_bits if tensor.interleave is not Interleave.NONE else tensor.dtype.bits
    start = coordinates[0] * width // 8 + tensor.address
    for coordinate, stride in zip(coordinates[1:], tensor.strides, strict=True):
        start += coordinate * stride
    box = _lay_out_box(tensor, unit)
    inside = _find_rows_inside(box.axes, coordinates)
    return complete_copy(tensor, destination, coordinates[0], unit, box.address + start, inside, box.shape)


@dataclass(frozen=True, slots=True)
class _Box:
    """The common parts of all boxes of one map."""

    address: I64
    """Addresses of units, counted from the first."""
    shape: tuple[int, int]
    axes: tuple[tuple[int, int, int], ...]
    """Size, element count and step of every dimension but the fastest."""


@lru_cache(maxsize=256)
def _lay_out_box(tensor: TensorMap, unit: int) -> _Box:
    steps = tensor.steps
    rows = _compute_row_offsets(steps[1:], tensor.strides, tensor.element_strides[1:])
    address = (
        rows[:, None] + make_row(tensor.dtype, steps[0], find_step(tensor), unit, tensor.interleave).address
    ).ravel()
    axes = tuple(zip(tensor.dims[1:], steps[1:], tensor.element_strides[1:], strict=True))
    return _Box(address, (len(rows), steps[0]), axes)


@dataclass(frozen=True, slots=True)
class Together:
    """Boxes of one map at several places, all inside the tensor. `inside` and `outside` are units counted from the
    destination and from a box's first byte at `start`; `low` and `high` are the bytes that a box spans."""

    start: I64
    inside: I64
    outside: I64
    unit: int
    low: int
    high: int
    reach: int
    """Bytes of shared memory from the destination."""
    runs: I64
    """The starts of the runs of `run` bytes of a box, counted from its first byte, in ascending order."""
    run: int


def plan_together(tensor: TensorMap, coordinates: tuple[Array, ...], destination: int) -> Together | None:
    """Return the copies of boxes, with an array of coordinates per dimension; None if they are not plain."""
    odd = tensor.dtype.is_padded or tensor.dtype.bits % 8 or tensor.dtype.is_rounded or tensor.has_gaps
    if odd or tensor.interleave is not Interleave.NONE or tensor.im2col is not None:
        return None
    start = np.full(coordinates[0].shape, tensor.address, np.int64)
    sizes = (tensor.dtype.bits // 8, *tensor.strides)
    steps = (1, *tensor.element_strides[1:])
    for starts, size, step, count, stride in zip(coordinates, tensor.dims, steps, tensor.steps, sizes, strict=True):
        place = starts.view(np.int32).astype(np.int64) if starts.dtype.itemsize == 4 else starts.astype(np.int64)
        if int(place.min()) < 0 or int(place.max()) + (count - 1) * step >= size:
            return None
        start += place * stride
    first = int(np.gcd.reduce(coordinates[0]))
    if has_misaligned_start(tensor, first):
        return None
    unit = measure_unit(tensor, first)
    inside, outside, low, high, reach = _collect_units(tensor, unit, destination % period(tensor.swizzle))
    return Together(start, inside, outside, unit, low, high, reach, *_merge_runs(tensor, unit))


@lru_cache(maxsize=256)
def _collect_units(tensor: TensorMap, unit: int, phase: int) -> tuple[I64, I64, int, int, int]:
    """Return units in shared and global memory, and the bytes that they span in both."""
    box = _lay_out_box(tensor, unit)
    units, _ = place_row(box.shape[0], tensor.dtype, box.shape[1], 1, unit, Interleave.NONE, tensor.swizzle, phase)
    outside = box.address // unit
    inside = units // unit
    # In the order of shared memory, which is written unit by unit.
    order = np.argsort(inside)
    return inside[order], outside[order], int(box.address.min()), int(box.address.max()) + unit, int(units.max()) + unit


@lru_cache(maxsize=256)
def _merge_runs(tensor: TensorMap, unit: int) -> tuple[I64, int]:
    """Return the starts and the length of the runs of bytes of a box."""
    places = np.sort(_lay_out_box(tensor, unit).address)
    begins = np.flatnonzero(np.append(True, places[1:] != places[:-1] + unit))
    sizes = np.diff(np.append(begins, len(places)))
    return (places[begins], int(sizes[0]) * unit) if (sizes == sizes[0]).all() else (places, unit)


def plan_gather(tensor: TensorMap, coordinates: tuple[int, ...], destination: int) -> Copy:
    """Return the copy of four rows (`.tile::gather4`, `.tile::scatter4`): the column, then the rows."""
    rows = np.array(coordinates[1:], np.int64)
    if tensor.rank != 2 or len(rows) != ROWS:
        raise ValueError(f"gather4 and scatter4 need a map of rank 2, one column and {ROWS} rows; got {coordinates}")
    inside = (rows >= 0) & (rows < tensor.dims[1])
    address = tensor.address + coordinates[0] * tensor.dtype.bits // 8 + rows * tensor.strides[0]
    return assemble_rows(
        tensor, destination, coordinates[0], address, None if inside.all() else inside, tensor.steps[0]
    )


def _compute_row_offsets(counts: tuple[int, ...], strides: tuple[int, ...], steps: tuple[int, ...]) -> I64:
    """Return the offsets of a box's rows in global memory, the fastest dimension first."""
    offsets = np.zeros(1, np.int64)
    for count, stride, step in zip(counts, strides, steps, strict=True):
        offsets = (np.arange(count, dtype=np.int64)[:, None] * (stride * step) + offsets).ravel()
    return offsets


def _find_rows_inside(axes: tuple[tuple[int, int, int], ...], coordinates: tuple[int, ...]) -> Mask | None:
    """Tell which rows are inside the tensor; None if all are."""
    places = tuple(zip(coordinates[1:], axes, strict=True))
    if all(coordinate >= 0 and coordinate + (count - 1) * step < size for coordinate, (size, count, step) in places):
        return None
    inside = np.ones(1, np.bool_)
    for coordinate, (size, count, step) in places:
        axis = coordinate + np.arange(count) * step
        inside = (((axis >= 0) & (axis < size))[:, None] & inside).ravel()
    return inside
