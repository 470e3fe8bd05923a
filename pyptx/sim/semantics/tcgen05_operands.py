"""The factors of `tcgen05.mma` as numbers: matrices of shared and tensor memory, metadata, scale factors.

Manual: Packing formats, Sparse Matrices, Block Scaling for tcgen05.mma. Every lane of tensor memory computes a part of
one row of D, and reads A, its metadata and the scale factors from its own lane or its own quarter of the lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pyptx.isa.descriptors import InstructionDescriptor, Tcgen05Descriptor
from pyptx.isa.fragments.tensor_memory import LANES, Datapath
from pyptx.sim.base.formats import Array
from pyptx.sim.numerics import sparse
from pyptx.sim.numerics.formats import decode, widen
from pyptx.sim.semantics.tcgen05_places import make_unallocated_error
from pyptx.sim.state import warpgroups as wg
from pyptx.sim.state.memory import Memory
from pyptx.sim.state.tracing import is_only_traced, record_touch
from pyptx.types import PtxType

_QUARTER = 32
_FP4_KINDS = ("mxf4", "mxf4nvf4")
_CHUNK = 16
"""Bytes of shared memory for 16 elements of 4, 6 or 8 bits, including padding."""
_SPARSITY = {"tf32": "1:2", "mxf4": "4:8", "mxf4nvf4": "4:8"}
_MORE_ORDERED = 0b0110


@dataclass(frozen=True, slots=True)
class Half:
    """One CTA's share of a product: its rows, and the lanes that compute them, `[part of N, row]`."""

    memory: Memory
    cta: int
    descriptor: InstructionDescriptor
    lanes: Array

    @property
    def rows(self) -> int:
        return int(self.lanes.shape[1])

    @property
    def stored_depth(self) -> int:
        """The number of elements of a row of A in memory."""
        return self.descriptor.k // 2 if self.descriptor.sparse else self.descriptor.k


@cache
def find_lanes(path: Datapath, first: int) -> Array:
    """Return the lanes that hold the rows of one CTA, for each part of N side by side in the lanes."""
    if first and not (path.half and first == 16):
        starts = "0 or 16" if path.half else "0"
        raise ValueError(f"a matrix in layout {path.name} must start at lane {starts}, not {first}")
    rows = range(path.m // path.ctas)
    lanes = [[path.locate(row, part, path.split)[1] + first for row in rows] for part in range(path.split)]
    return np.array(lanes)


def read_words(half: Half, matrix: str, lanes: Array, address: int, count: int) -> Array:
    """Return words of tensor memory, along a new last axis, in these lanes."""
    column = address & 0xFFFF
    tensor, cta = half.memory.tensor, np.array([half.cta])
    if not tensor.are_allocated(cta, np.array([column]), np.array([column + count - 1])).all():
        raise make_unallocated_error(column, column + count - 1, matrix)
    if matrix != "D":
        record_touch(half.memory.trace, half.cta, lanes, column, count, writes=False)
    cells: Array = tensor.cells[half.cta][lanes, column : column + count]
    return cells


def read_shared_rows(half: Half, bits: int, rows: int, operand_index: int) -> Array:
    """Return rows of A (`operand_index` 0) or columns of B (1), `[row, element of K]`, by descriptor."""
    descriptor = half.descriptor
    name, across = ((descriptor.a, descriptor.transpose_a), (descriptor.b, descriptor.transpose_b))[operand_index]
    depth, operand = half.stored_depth if operand_index == 0 else descriptor.k, ("AB"[operand_index], name.name)
    if descriptor.kind in _FP4_KINDS:
        raw = _gather(half, bits, (rows, depth // 2), "u1", False, _CHUNK, operand)
        return decode(_split_nibbles(raw), "e2m1")
    used = min(_CHUNK * name.bits // 8, _CHUNK)
    raw = _gather(half, bits, (rows, depth), _find_unit(name), across, used, operand)
    if name.bits == 4:
        return decode(_split_nibbles(raw.reshape(rows, -1, _CHUNK)[..., :used]).reshape(rows, depth), name.name)
    if name.bits == 6:
        return decode(_split_sixes(raw.reshape(rows, -1, _CHUNK)[..., :used]).reshape(rows, depth), name.name)
    return _view_numbers(raw, name.name)


def _gather(
    half: Half, bits: int, shape: tuple[int, int], dtype: str, across: bool, used: int, operand: tuple[str, str]
) -> Array:
    descriptor = Tcgen05Descriptor.decode(bits)
    return wg.load_shared_matrix(half.memory, half.cta, descriptor, *shape, dtype, across, used, operand)


def read_tensor_rows(half: Half, address: int, shifts: bool) -> Array:
    """Return the rows of A in tensor memory, `[part of N, row, element of K]`: every lane has its own."""
    descriptor, name = half.descriptor, half.descriptor.a.name
    bits = 4 if descriptor.kind in _FP4_KINDS else max(descriptor.a.bits, 8)
    lanes = half.lanes
    if shifts:
        # Each quarter of the lanes reads the next row; its last lane reads its own, which `tcgen05.cp.4x256b` has
        # replaced.
        lanes = np.where(lanes % _QUARTER == _QUARTER - 1, lanes, lanes + 1)
    raw = np.ascontiguousarray(read_words(half, "A", lanes, address, half.stored_depth * bits // 32))
    if bits == 4:
        return decode(_split_nibbles(raw.view("u1")), "e2m1")
    codes = raw.view(_find_unit(descriptor.a))
    return decode(codes >> np.uint8(2), name) if descriptor.a.bits == 4 else _view_numbers(codes, name)


def _find_unit(dtype: PtxType) -> str:
    """Return the dtype of memory that holds an element."""
    return f"u{max(dtype.bits, 8) // 8}"


def _view_numbers(raw: Array, name: str) -> Array:
    if name in ("s8", "u8"):
        return raw.view(np.int8) if name == "s8" else raw
    return decode(raw, name)


def _split_nibbles(raw: Array) -> Array:
    """Return elements of 4 bits, the lower first."""
    nibbles = np.stack([raw & np.uint8(15), raw >> np.uint8(4)], axis=-1)
    return nibbles.reshape(*raw.shape[:-1], -1)


def _split_sixes(raw: Array) -> Array:
    """Return elements of 6 bits, 4 in 3 bytes, the lowest first."""
    bits = np.unpackbits(np.ascontiguousarray(raw), axis=-1, bitorder="little")
    parts = bits.reshape(*raw.shape[:-1], -1, 6)
    return np.packbits(parts, axis=-1, bitorder="little")[..., 0]


def expand_rows(half: Half, stored_rows: Array, address: int) -> Array:
    """Return A with its zeros, `[part of N, row, element of K]`, by the metadata in its own lanes."""
    kind = _SPARSITY.get(half.descriptor.kind, "2:4")
    wide = half.descriptor.kind in ("tf32", "f16")
    if half.descriptor.sparsity_selector and not wide:
        raise ValueError(
            f"the sparsity selector of kind {half.descriptor.kind} must be 0, not {half.descriptor.sparsity_selector}"
        )
    chunks = half.descriptor.k // {"1:2": 2, "2:4": 4, "4:8": 8}[kind]
    if wide:
        # Sixteen lanes share their metadata: a lane has four chunks of two rows, and the lane 8 below has the others.
        lanes, chunk = half.lanes[..., None], np.arange(chunks)
        column = (address & 0xFFFF) + half.descriptor.sparsity_selector
        word = read_words(half, "the metadata", lanes // 16 * 16 + chunk // 4 * 8 + lanes % 8, column, 1)[..., 0]
        shift = lanes % 16 // 8 * 16 + chunk % 4 * 4
        codes = ((word >> shift.astype(np.uint32)) & np.uint32(15)).astype(np.uint8)
    else:
        codes = sparse.split_nibbles(read_words(half, "the metadata", half.lanes, address, chunks // 8))
        codes = codes.reshape(*half.lanes.shape, chunks)
    good = sparse.is_valid(codes, kind)
    if kind != "1:2":
        good |= codes == _MORE_ORDERED
    if is_only_traced(half.memory.trace):
        return np.zeros((*half.lanes.shape, half.descriptor.k), stored_rows.dtype)
    if not good.all():
        raise ValueError(f"metadata {int(codes[~good][0]):#06b} of a chunk of A is not legal")
    return sparse.expand(np.broadcast_to(stored_rows, (*half.lanes.shape, stored_rows.shape[-1])), codes, kind)


def read_scales(half: Half, operand_index: int, address: int, count: int, vector: int) -> Array:
    """Return the scale factors of rows of A, `[part of N, row, block]`, or of columns of B,
    `[part of N, column of the part, block]`."""
    if address >> 16:
        raise ValueError(f"scale factors must start at lane 0, not {address >> 16}")
    descriptor, matrix = half.descriptor, "the scale factors of " + "AB"[operand_index]
    first = (descriptor.a_scale_id, descriptor.b_scale_id)[operand_index]
    if not descriptor.k96 and (first % vector or first + vector > 4):
        raise ValueError(f"scale factor id {first} does not match {vector} factors")
    quarters = half.lanes // _QUARTER
    row = np.arange(count)
    groups = -(-count // 128) * 4
    if operand_index == 0:
        raw = _read_scale_bytes(
            half, matrix, address, (quarters * _QUARTER + row % _QUARTER, row // _QUARTER), first, vector, groups
        )
    else:
        used = [np.unique(part) for part in quarters]
        lanes = np.array([part[:, None] * _QUARTER + row % _QUARTER for part in used])
        copies = _read_scale_bytes(half, matrix, address, (lanes, row // _QUARTER), first, vector, groups)
        raw = copies[:, 0]
        if not (copies == raw[:, None]).all() and not is_only_traced(half.memory.trace):
            raise ValueError(
                f"{matrix} differ between the quarters of tensor memory: every quarter needs the same copy"
            )
    name = "ue8m0" if descriptor.scale is None else descriptor.scale.name
    return widen(raw, name)


def _read_scale_bytes(
    half: Half, matrix: str, address: int, locations: tuple[Array, Array], first: int, vector: int, groups: int
) -> Array:
    """Return the bytes of scale factors: with K = 96 they continue in the words after those of all rows."""
    lanes, column = np.broadcast_arrays(*locations)
    last = int(column.max()) + (first + vector - 1) // 4 * groups
    registers = read_words(half, matrix, np.arange(LANES), address, last + 1)
    columns: list[Any] = []
    for block in range(first, first + vector):
        word = registers[lanes, column + block // 4 * groups]
        columns.append((word >> np.uint32(block % 4 * 8)).astype(np.uint8))
    return np.stack(columns, axis=-1)
