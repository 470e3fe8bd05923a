"""Matrices of whole warpgroups: accumulators and A operands in registers, operands in shared memory by descriptor.

Manual: Register Fragments and Shared Memory Matrix Layout of wgmma. Matrices are `[group, row, column]`, one group per
warpgroup of each CTA.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pyptx.isa.descriptors import Tcgen05Descriptor, WgmmaDescriptor
from pyptx.isa.swizzle import xor_terms
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.state.tracing import Descriptor, Matrix
from pyptx.tensormap import Swizzle

THREADS = 128
_CORE = 16
_KEPT = 1 << 25
"""The most bytes of cached operand places per set of warpgroups."""
_LINE = 128
"""Bytes of a row of a core matrix."""


class Groups:
    """The warpgroups of some lanes, in the order of their first lane. All of them are whole; `plain` ones are those of
    all CTAs, in sequence."""

    def __init__(self, lanes: Lanes) -> None:
        shape = lanes.shape
        self.plain = lanes.positions is None
        self.count = lanes.n // THREADS
        ctas = shape.ctas if self.plain else 1
        self.grid = (self.count // ctas, 4, 8, 4, ctas)
        """The dimensions of the lanes: warpgroups, warps, rows, quads, CTAs."""
        if self.plain:
            first = np.arange(self.count // ctas)[:, None] * THREADS * ctas + np.arange(ctas)
            self.first = first.reshape(-1)
            self.order = np.empty(0, np.int64)
        else:
            # Lanes of a CTA are in the order of their threads.
            group = shape.thread[lanes.sel] // THREADS * shape.ctas + shape.cta[lanes.sel]
            self.order = np.argsort(group, kind="stable")
            self.first = self.order[::THREADS]
        self.cta: Array = lanes.cta[self.first]
        self.places: dict[Any, tuple[Array, str]] = {}
        """The places of operands by descriptors and sizes; a ring of stages uses the same ones repeatedly."""

    def gather(self, registers: tuple[Array, ...], dtype: str) -> Array:
        """Return registers as `[register, warpgroup, warp, row, quad, cta, element of the register]`."""
        array = np.stack([r if r.ndim else np.full(self.count * THREADS, r) for r in registers])
        if not self.plain:
            array = array.take(self.order, axis=1)
        return array.view(dtype).reshape(len(registers), *self.grid, 4 // np.dtype(dtype).itemsize)

    def scatter(self, matrix: Array) -> Array:
        """Return the rows of registers of a matrix: the inverse of `gather`."""
        flat = np.ascontiguousarray(matrix).view(np.uint32).reshape(matrix.shape[0], -1)
        if self.plain:
            return flat
        rows = np.empty_like(flat)
        rows[:, self.order] = flat
        return rows


def get_groups(lanes: Lanes) -> Groups:
    """Return the warpgroups of some lanes."""
    return lanes.compute_once("warpgroups", lambda: Groups(lanes))


def load_accumulator(groups: Groups, registers: tuple[Array, ...], dtype: str) -> Array:
    """Return the 64 x N accumulators, a copy of the registers."""
    size = np.dtype(dtype).itemsize
    raw = groups.gather(registers, dtype)
    blocks = raw.reshape(-1, 2, size // 2, *raw.shape[1:])
    return blocks.transpose(3, 7, 4, 1, 5, 0, 6, 2, 8).reshape(groups.count, 64, -1)


def split_registers(groups: Groups, matrix: Array, dtype: str) -> Array:
    """Return the rows of registers that hold 64 x N accumulators."""
    size = np.dtype(dtype).itemsize
    wide, _, _, _, ctas = groups.grid
    pair = (2, 1) if size == 4 else (1, 2)
    parts = matrix.astype(dtype, copy=False).reshape(wide, ctas, 4, 2, 8, -1, 4, *pair)
    back = parts.transpose(5, 3, 7, 0, 2, 4, 6, 1, 8)
    return groups.scatter(np.ascontiguousarray(back).reshape(-1, *groups.grid, pair[1]))


def load_register_operand(groups: Groups, registers: tuple[Array, ...], dtype: str) -> Array:
    """Return 64 rows of A from four registers per lane; single bits are returned as bytes."""
    raw = groups.gather(registers, dtype)
    blocks = raw.reshape(2, 2, *raw.shape[1:])
    return blocks.transpose(2, 6, 3, 1, 4, 0, 5, 7).reshape(groups.count, 64, -1)


@lru_cache(maxsize=512)
def compute_addresses(descriptor: Descriptor, rows: int, columns: int, size: int, is_transposed: bool) -> Array:
    """Return the shared addresses of the elements, `size` bytes each, that a descriptor names: rows of M or N, columns
    of K."""
    chunks = max(1, descriptor.swizzle.span // _CORE)
    row, column = np.arange(rows)[:, None], np.arange(columns)
    if is_transposed:
        row, column = column, row
        return _swizzle(descriptor, _compute_across(descriptor, column, row, size, chunks)).reshape(rows, columns)
    byte = column * size
    # Rows longer than the span, as of B in a sparse product, go on at the leading offset (measured on an H200).
    line = chunks * _CORE
    inner = byte // line * descriptor.leading_byte_offset + byte % line
    if isinstance(descriptor, Tcgen05Descriptor) and descriptor.lbo_mode:
        # Bytes past the end of the 128-byte line start at the leading-dimension address.
        room = _LINE - descriptor.address % _LINE
        inner = np.where(byte < room, byte, descriptor.leading_byte_offset - descriptor.address + byte - room)
    return _swizzle(descriptor, row // 8 * descriptor.stride_byte_offset + row % 8 * chunks * _CORE + inner)


def _compute_across(descriptor: Descriptor, row: Array, k: Array, size: int, chunks: int) -> Array:
    """Return the offsets of a matrix that is contiguous along M or N."""
    chunk, byte = row * size // _CORE, row * size % _CORE
    if descriptor.swizzle is Swizzle.NONE:
        return chunk * descriptor.stride_byte_offset + k // 8 * descriptor.leading_byte_offset + k % 8 * _CORE + byte
    outer = chunk // chunks * descriptor.leading_byte_offset + chunk % chunks * _CORE
    atom = 4 if descriptor.swizzle is Swizzle.B128_ATOM_32B else 8
    return outer + k // atom * descriptor.stride_byte_offset + k % atom * chunks * _CORE + byte


def _swizzle(descriptor: Descriptor, offset: Array) -> Array:
    """Apply the swizzle to addresses. Its pattern depends on the address bits, relative to the base offset."""
    address = offset + descriptor.address
    for mask, shift in xor_terms(descriptor.swizzle):
        address = address ^ (((address - (descriptor.base_offset << 7)) & mask) >> shift)
    return address


def load_shared_operand(memory: Any, places: tuple[Array, str], dtype: str) -> Array:
    """Return the operands at places that `find_operand_places` returned."""
    array: Array = memory.shared.data.view(places[1]).take(places[0])
    return array.view(dtype)


class Outside(IndexError):
    """An operand that is not inside its memory, and what to do about it."""

    def __init__(self, text: str, help: str) -> None:
        super().__init__(text)
        self.help = help


def make_outside_error(shared: Any, low: int, high: int) -> Outside:
    """Return the error of a matrix that reaches beyond shared memory."""
    inside = f"{shared.low:#x} … {shared.low + shared.size - 1:#x}"
    return Outside(
        f"reads shared addresses {low:#x} … {high:#x}, outside {inside}",
        "correct the address or the offsets of the matrix descriptor, or M or N: a matrix has M or N rows of K each",
    )


def find_operand_places(
    memory: Any,
    groups: Groups,
    descriptors: Array,
    rows: int,
    columns: int,
    dtype: str,
    is_transposed: bool,
    per_cta: bool,
) -> tuple[Array, str]:
    """Return the places of the elements that descriptors name, `[group, row, column]`, in units of a dtype, and that
    dtype. With `per_cta`, return `[cta, row, column]` if all warpgroups of a CTA have the same descriptor. Raise
    IndexError for an address out of bounds."""
    group_descriptors = descriptors[groups.first]
    ctas = groups.grid[-1]
    if (
        per_cta
        and groups.plain
        and groups.count > ctas
        and (group_descriptors.reshape(-1, ctas) == group_descriptors[:ctas]).all()
    ):
        group_descriptors = group_descriptors[:ctas]
    key = group_descriptors.tobytes(), rows, columns, dtype, is_transposed
    places = groups.places.get(key)
    if places is None:
        places = _compute_places(memory, groups, group_descriptors, rows, columns, dtype, is_transposed)
        if sum(item.nbytes for item, _ in groups.places.values()) + places[0].nbytes > _KEPT:
            groups.places.clear()
        groups.places[key] = places
    return places


def _compute_places(
    memory: Any, groups: Groups, group_descriptors: Array, rows: int, columns: int, dtype: str, is_transposed: bool
) -> tuple[Array, str]:
    """Return the places of the elements in the shared memory of all CTAs, in units of a dtype, and that dtype."""
    offsets: Array | None = None
    unit = dtype
    for value in np.unique(group_descriptors):
        matches = np.flatnonzero(group_descriptors == value)
        descriptor = WgmmaDescriptor.decode(int(value))
        inside, unit = _compute_units(memory, descriptor, rows, columns, dtype, is_transposed)
        if offsets is None:
            offsets = np.empty((len(group_descriptors), *inside.shape), np.int64)
        stride = memory.shape.shared_stride // np.dtype(unit).itemsize
        offsets[matches] = (groups.cta[matches] * stride)[:, None, None] + inside
    assert offsets is not None
    return offsets, unit


def _compute_units(
    memory: Any, descriptor: Descriptor, rows: int, columns: int, dtype: str, is_transposed: bool
) -> tuple[Array, str]:
    """Return the places of a matrix's elements in a CTA's shared memory, in units of a dtype, and that dtype. Rows
    along K are read in 16-byte pieces, which no swizzle splits."""
    size, unit = np.dtype(dtype).itemsize, dtype
    if not is_transposed and columns * size % _CORE == 0:
        columns, size, unit = columns * size // _CORE, _CORE, "c16"
    shared = memory.shared
    address = compute_addresses(descriptor, rows, columns, size, is_transposed)
    low, high = int(address.min()), int(address.max())
    if low < shared.low or high + size > shared.low + shared.size:
        raise make_outside_error(shared, low, high + size - 1)
    return (address - shared.low) // size, unit


def load_shared_matrix(
    memory: Any, cta: Any, descriptor: Descriptor, rows: int, columns: int, dtype: str, is_transposed: bool,
    used_bytes: int = _CORE, operand: tuple[str, str] = ("the source", ""),
) -> Array:  # fmt: skip
    """Return the matrix that a descriptor names in the shared memory of some CTAs. The hardware reads `used_bytes` of
    every 16 bytes; the rest is padding. `operand` is its name and the type of its elements, for checks."""
    inside, unit = _compute_units(memory, descriptor, rows, columns, dtype, is_transposed)
    shared = memory.shared
    if memory.trace is not None:
        addresses = inside * np.dtype(unit).itemsize + shared.low
        size = np.dtype(dtype).itemsize
        memory.trace.record_shared(
            cta, addresses, used_bytes, Matrix(*operand, descriptor, rows, columns, size, is_transposed)
        )
    data = shared.data.view(unit).reshape(memory.shape.ctas, -1)
    matrix: Array = data[cta, inside]
    return matrix.view(dtype)
