"""A copy as arrays: shared and global addresses of equal units of bytes, and which are outside the tensor.

Every copy is a number of consecutive rows in shared memory, each with the elements of the fastest dimension from one
first coordinate. Parts that do not depend on coordinates are computed once per map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from pyptx.isa.swizzle import period, xor_terms
from pyptx.tensormap import ElementType, Fill, Interleave, Swizzle, TensorMap

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]

CHUNK = 16
"""Bytes that swizzles keep together, except the one that swaps halves."""
_NAN = b"\xf7\x7f"
"""Two bytes of the fill with NaN, for elements of every width (measured on an H200)."""
GROUP = 16
"""Elements of a padded type that fill 16 bytes of shared memory."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Units of `unit` bytes, in the order of the box. `inside` is None if all of them are inside the tensor."""

    shared: I64
    address: I64
    inside: Mask | None
    unit: int
    element: ElementType
    fill: bytes
    """One unit that loads write for units outside the tensor; empty if there is none."""
    padding: I64
    """Addresses of the 4-byte words of shared memory that loads of padded types leave undefined."""


@dataclass(frozen=True, slots=True)
class Inner:
    """The units of one row: offsets in shared and global memory, and the first and last element in each."""

    shared: I64
    address: I64
    first: I64
    last: I64
    padding: I64
    pitch: int
    """Bytes from row to row in shared memory."""
    reach: int
    """The last element."""


def has_misaligned_start(tensor: TensorMap, start: int) -> bool:
    """Tell whether rows that begin at element `start` are not at a multiple of 16 bytes, which an interleave alone
    allows (measured on an H200: the copy faults)."""
    return tensor.interleave is Interleave.NONE and bool(start * tensor.dtype.bits % (8 * CHUNK))


def ends_in_chunk(tensor: TensorMap) -> bool:
    """Tell whether rows of the tensor end inside 16 bytes, which stores write as a whole (measured on an H200)."""
    return tensor.interleave is Interleave.NONE and not tensor.dtype.is_padded and bool(
        tensor.dims[0] * tensor.dtype.bits % (8 * CHUNK)
    )  # fmt: skip


@lru_cache(maxsize=256)
def widen(tensor: TensorMap) -> TensorMap:
    """Return the tensor that a store writes: its rows end with whole chunks."""
    elements = 8 * CHUNK // tensor.dtype.bits
    return replace(tensor, dims=(-(-tensor.dims[0] // elements) * elements, *tensor.dims[1:]))


def clip_to_memory(copy: Copy, end: int) -> Copy:
    """Return the copy without bytes beyond the end of an allocation."""
    if int(copy.address.max()) + copy.unit <= end:
        return copy
    offsets = np.arange(0, copy.unit, copy.element.bits // 8, dtype=np.int64)
    shared, address = ((places[:, None] + offsets).ravel() for places in (copy.shared, copy.address))
    inside = address < end
    if copy.inside is not None:
        inside &= np.repeat(copy.inside, len(offsets))
    return replace(copy, shared=shared, address=address, inside=inside, unit=copy.element.bits // 8)


def measure_unit(tensor: TensorMap, start: int) -> int:
    """Return the largest unit that is never partly inside the tensor, for rows that begin at element `start`."""
    if tensor.interleave is not Interleave.NONE:
        return CHUNK
    return gcd(_choose_unit(tensor), start * tensor.dtype.bits // 8) if not tensor.dtype.is_padded else 4


@lru_cache(maxsize=256)
def _choose_unit(tensor: TensorMap) -> int:
    limit = 8 if tensor.swizzle.flips_8_bytes else CHUNK
    row = tensor.inner_bytes if tensor.im2col is not None else tensor.steps[0] * tensor.dtype.shared_bits // 8
    return gcd(limit, tensor.dims[0] * tensor.dtype.bits // 8, row, tensor.address)


@lru_cache(maxsize=256)
def make_row(dtype: ElementType, count: int, step: int, unit: int, interleave: Interleave) -> Inner:
    """Return the units of a row of `count` elements, or of interleaved slices at steps of `step`."""
    if dtype.is_padded:
        return _pad_layout(dtype, count)
    if interleave is not Interleave.NONE:
        width = interleave.slice_bytes
        number, half = np.divmod(np.arange(count * (width // CHUNK), dtype=np.int64), width // CHUNK)
        places = number * step
        shared, address = (x * width + half * CHUNK for x in (number, places))
        return Inner(shared, address, places, places, _make_empty(), count * width, (count - 1) * step)
    size = count * dtype.bits // 8
    offset = np.arange(0, size, unit, dtype=np.int64)
    last = ((offset + unit) * 8 - 1) // dtype.bits
    return Inner(offset, offset, offset * 8 // dtype.bits, last, _make_empty(), size, count - 1)


def _make_empty() -> I64:
    return np.empty(0, np.int64)


def _pad_layout(dtype: ElementType, count: int) -> Inner:
    """Spread every 16 elements, 8 or 12 bytes, over 16 bytes."""
    group = np.arange(count // GROUP, dtype=np.int64)[:, None]
    words = GROUP * dtype.bits // 32
    word = np.arange(words, dtype=np.int64)
    first = np.broadcast_to(group * GROUP, (len(group), words))
    return Inner(
        (group * CHUNK + word * 4).ravel(),
        (group * words * 4 + word * 4).ravel(),
        first.ravel(),
        first.ravel() + GROUP - 1,
        (group * CHUNK + np.arange(words, CHUNK // 4) * 4).ravel(),
        count,
        count - 1,
    )


@lru_cache(maxsize=256)
def place_row(
    row: int, dtype: ElementType, count: int, step: int, unit: int, interleave: Interleave, mode: Swizzle, phase: int
) -> tuple[I64, I64]:
    """Return the places of the units and the padding of row `row`, counted from the destination.

    `phase` is the destination's offset in the swizzle pattern, which depends on address bits.
    """
    part = make_row(dtype, count, step, unit, interleave)
    # A row that is shorter than the span of the swizzle is followed by a gap (measured on an H200).
    pitch = max(part.pitch, mode.span) if interleave is Interleave.NONE else part.pitch
    rows = np.arange(row, dtype=np.int64)[:, None] * pitch + phase
    units = swizzle_addresses((rows + part.shared).ravel(), mode) - phase
    padding = swizzle_addresses((rows + part.padding).ravel(), mode) - phase
    return units, padding


def swizzle_addresses(address: I64, mode: Swizzle) -> I64:
    """Return the swizzled places of plain shared addresses."""
    for mask, shift in xor_terms(mode):
        address = address ^ ((address & mask) >> shift)
    return address


def find_phase(destination: int, mode: Swizzle) -> int:
    """Return the destination's offset in the swizzle pattern."""
    return destination % period(mode)


def make_fill(tensor: TensorMap, unit: int) -> bytes:
    """Return one unit of fill."""
    if tensor.fill is Fill.ZERO:
        return bytes(unit)
    return _NAN * (unit // len(_NAN))


def assemble_rows(
    tensor: TensorMap, destination: int, start: int, row_address: I64, row_inside: Mask | None, count: int
) -> Copy:
    """Build the copy of rows that begin at these addresses, each with `count` elements from coordinate `start`."""
    unit = measure_unit(tensor, start)
    address = (
        row_address[:, None] + make_row(tensor.dtype, count, find_step(tensor), unit, tensor.interleave).address
    ).ravel()
    return complete_copy(tensor, destination, start, unit, address, row_inside, (len(row_address), count))


def find_step(tensor: TensorMap) -> int:
    """Return the traversal step along the fastest dimension, which only interleaved maps have."""
    return tensor.element_strides[0] if tensor.interleave is not Interleave.NONE else 1


def complete_copy(
    tensor: TensorMap,
    destination: int,
    start: int,
    unit: int,
    address: I64,
    row_inside: Mask | None,
    shape: tuple[int, int],
) -> Copy:
    """Build the copy of units at these addresses; `shape` is the number of rows and the elements of each."""
    rows, count = shape
    part = make_row(tensor.dtype, count, find_step(tensor), unit, tensor.interleave)
    phase = find_phase(destination, tensor.swizzle)
    shared, padding = place_row(
        rows, tensor.dtype, count, find_step(tensor), unit, tensor.interleave, tensor.swizzle, phase
    )
    if start >= 0 and start + part.reach < tensor.dims[0]:
        inside = None if row_inside is None else np.repeat(row_inside, len(part.first))
    else:
        within = (start + part.first >= 0) & (start + part.last < tensor.dims[0])
        row_mask = np.ones(rows, np.bool_) if row_inside is None else row_inside
        inside = (row_mask[:, None] & within).ravel()
    return Copy(
        shared + destination, address, inside, unit, tensor.dtype, make_fill(tensor, unit), padding + destination
    )
