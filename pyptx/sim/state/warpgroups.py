"""Matrices of whole warpgroups: accumulators and A operands in registers, operands in shared memory by descriptor.

Manual: Register Fragments and Shared Memory Matrix Layout of wgmma. Matrices come as `[group, row, column]`, one group
for each warpgroup of each CTA.
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
"""Bytes of places of operands that are kept for warpgroups."""
_LINE = 128
"""Bytes of a row of a core matrix."""


class Groups:
    """The warpgroups among some lanes, in the order of their first lane."""

    def __init__(self, lanes: Lanes) -> None:
        shape = lanes.shape
        self.plain = (
            lanes.positions is None and not lanes.lo % (THREADS * shape.ctas) and not lanes.n % (THREADS * shape.ctas)
        )
        self.count = lanes.n // THREADS
        ctas = shape.ctas if self.plain else 1
        self.grid = (self.count // ctas, 4, 8, 4, ctas)
        """Warpgroups, warps of each, rows of eight, quads, CTAs: how lanes lie."""
        if self.plain:
            first = np.arange(self.count // ctas)[:, None] * THREADS * ctas + np.arange(ctas)
            self.first = first.reshape(-1)
            self.order = np.empty(0, np.int64)
        else:
            key = (shape.thread[lanes.sel] // THREADS * shape.ctas + shape.cta[lanes.sel]) * THREADS
            self.order = np.argsort(key + shape.thread[lanes.sel] % THREADS, kind="stable")
            self.first = self.order[::THREADS]
        self.cta: Array = lanes.cta[self.first]
        self.places: dict[Any, tuple[Array, str]] = {}
        """Where operands lie, by descriptors and sizes; a ring of stages has the same ones again and again."""

    def gathered(self, registers: tuple[Array, ...], dtype: str) -> Array:
        """Return registers as `[register, warpgroup, warp, row, quad, cta, element of the register]`."""
        made = np.stack([r if r.ndim else np.full(self.count * THREADS, r) for r in registers])
        if not self.plain:
            made = made.take(self.order, axis=1)
        return made.view(dtype).reshape(len(registers), *self.grid, 4 // np.dtype(dtype).itemsize)

    def scattered(self, made: Array) -> Array:
        """Return the rows of registers that `gathered` would give this for."""
        flat = np.ascontiguousarray(made).view(np.uint32).reshape(made.shape[0], -1)
        if self.plain:
            return flat
        rows = np.empty_like(flat)
        rows[:, self.order] = flat
        return rows


def groups_of(lanes: Lanes) -> Groups:
    """Return the warpgroups of some lanes."""
    return lanes.compute_once("warpgroups", lambda: Groups(lanes))


def accumulator(groups: Groups, registers: tuple[Array, ...], dtype: str) -> Array:
    """Return the 64 x N accumulators, a copy of the registers."""
    size = np.dtype(dtype).itemsize
    raw = groups.gathered(registers, dtype)
    held = raw.reshape(-1, 2, size // 2, *raw.shape[1:])
    return held.transpose(3, 7, 4, 1, 5, 0, 6, 2, 8).reshape(groups.count, 64, -1)


def registers_of(groups: Groups, made: Array, dtype: str) -> Array:
    """Return the rows of registers that hold 64 x N accumulators."""
    size = np.dtype(dtype).itemsize
    wide, _, _, _, ctas = groups.grid
    pair = (2, 1) if size == 4 else (1, 2)
    parts = made.astype(dtype, copy=False).reshape(wide, ctas, 4, 2, 8, -1, 4, *pair)
    back = parts.transpose(5, 3, 7, 0, 2, 4, 6, 1, 8)
    return groups.scattered(np.ascontiguousarray(back).reshape(-1, *groups.grid, pair[1]))


def register_operand(groups: Groups, registers: tuple[Array, ...], dtype: str) -> Array:
    """Return A, 64 rows of it, from four registers per lane; single bits come as bytes."""
    raw = groups.gathered(registers, dtype)
    held = raw.reshape(2, 2, *raw.shape[1:])
    return held.transpose(2, 6, 3, 1, 4, 0, 5, 7).reshape(groups.count, 64, -1)


@lru_cache(maxsize=512)
def places(found: Descriptor, rows: int, columns: int, size: int, transposed: bool) -> Array:
    """Return the shared addresses of the elements, `size` bytes each, that a descriptor names: rows of M or N, columns
    of K."""
    chunks = max(1, found.swizzle.span // _CORE)
    row, column = np.arange(rows)[:, None], np.arange(columns)
    if transposed:
        row, column = column, row
        return _swizzled(found, _across(found, column, row, size, chunks)).reshape(rows, columns)
    byte = column * size
    if found.swizzle is Swizzle.NONE:
        inner = byte // _CORE * found.leading_byte_offset + byte % _CORE
    else:
        inner = byte
    if isinstance(found, Tcgen05Descriptor) and found.lbo_mode:
        # What reaches over the end of the line of 128 bytes lies where the leading address says.
        room = _LINE - found.address % _LINE
        inner = np.where(byte < room, byte, found.leading_byte_offset - found.address + byte - room)
    return _swizzled(found, row // 8 * found.stride_byte_offset + row % 8 * chunks * _CORE + inner)


def _across(found: Descriptor, row: Array, k: Array, size: int, chunks: int) -> Array:
    """Return the offsets of a matrix that is contiguous along M or N."""
    chunk, byte = row * size // _CORE, row * size % _CORE
    if found.swizzle is Swizzle.NONE:
        return chunk * found.stride_byte_offset + k // 8 * found.leading_byte_offset + k % 8 * _CORE + byte
    outer = chunk // chunks * found.leading_byte_offset + chunk % chunks * _CORE
    atom = 4 if found.swizzle is Swizzle.B128_ATOM_32B else 8
    return outer + k // atom * found.stride_byte_offset + k % atom * chunks * _CORE + byte


def _swizzled(found: Descriptor, offset: Array) -> Array:
    """Return addresses with the pattern applied, which goes by address bits from the base offset on."""
    address = offset + found.address
    for mask, shift in xor_terms(found.swizzle):
        address = address ^ (((address - (found.base_offset << 7)) & mask) >> shift)
    return address


def shared_operand(memory: Any, found: tuple[Array, str], dtype: str) -> Array:
    """Return the operands at places of `operand_places`."""
    made: Array = memory.shared.data.view(found[1]).take(found[0])
    return made.view(dtype)


def operand_places(
    memory: Any, groups: Groups, descriptors: Array, rows: int, columns: int, dtype: str, transposed: bool, once: bool
) -> tuple[Array, str]:
    """Return where operands lie that descriptors name, `[group, row, column]`, or, with `once`, `[cta, row, column]`
    if all warpgroups of a CTA name the same, and in units of which dtype; IndexError with an address outside."""
    named = descriptors[groups.first]
    ctas = groups.grid[-1]
    if once and groups.plain and groups.count > ctas and (named.reshape(-1, ctas) == named[:ctas]).all():
        named = named[:ctas]
    key = named.tobytes(), rows, columns, dtype, transposed
    found = groups.places.get(key)
    if found is None:
        found = _places_of(memory, groups, named, rows, columns, dtype, transposed)
        if sum(item.nbytes for item, _ in groups.places.values()) + found[0].nbytes > _KEPT:
            groups.places.clear()
        groups.places[key] = found
    return found


def _places_of(
    memory: Any, groups: Groups, named: Array, rows: int, columns: int, dtype: str, transposed: bool
) -> tuple[Array, str]:
    """Return where the elements lie in the shared memory of all CTAs, in units of a dtype, and that dtype."""
    made: Array | None = None
    unit = dtype
    for value in np.unique(named):
        which = np.flatnonzero(named == value)
        decoded = WgmmaDescriptor.decode(int(value))
        inside, unit = _units(memory, decoded, rows, columns, dtype, transposed)
        if made is None:
            made = np.empty((len(named), *inside.shape), np.int64)
        stride = memory.shape.shared_stride // np.dtype(unit).itemsize
        made[which] = (groups.cta[which] * stride)[:, None, None] + inside
    assert made is not None
    return made, unit


def _units(memory: Any, found: Descriptor, rows: int, columns: int, dtype: str, transposed: bool) -> tuple[Array, str]:
    """Return where the elements of a matrix lie in a CTA's shared memory, in units of a dtype, and that dtype. Rows
    along K are taken in pieces of 16 bytes, which every swizzle of descriptors keeps together."""
    size, unit = np.dtype(dtype).itemsize, dtype
    if not transposed and columns * size % _CORE == 0:
        columns, size, unit = columns * size // _CORE, _CORE, "c16"
    shared = memory.shared
    address = places(found, rows, columns, size, transposed)
    low, high = int(address.min()), int(address.max())
    if low < shared.low or high + size > shared.low + shared.size:
        raise IndexError(f"reads shared addresses {low:#x} … {high + size - 1:#x}")
    return (address - shared.low) // size, unit


def shared_matrix(
    memory: Any, cta: Any, found: Descriptor, rows: int, columns: int, dtype: str, transposed: bool, used: int = _CORE,
    operand: tuple[str, str] = ("the source", ""),
) -> Array:  # fmt: skip
    """Return the matrix that a descriptor names in the shared memory of some CTAs. The hardware reads `used` of every
    16 bytes, the rest is padding. `operand` is its name and the type of its elements, for checks."""
    inside, unit = _units(memory, found, rows, columns, dtype, transposed)
    shared = memory.shared
    if memory.trace is not None:
        addresses = inside * np.dtype(unit).itemsize + shared.low
        size = np.dtype(dtype).itemsize
        memory.trace.reads_shared(cta, addresses, used, Matrix(*operand, found, rows, columns, size, transposed))
    data = shared.data.view(unit).reshape(memory.shape.ctas, -1)
    made: Array = data[cta, inside]
    return made.view(dtype)
