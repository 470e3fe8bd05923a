"""Sparsity metadata: the bits that give the positions of the stored elements of a row of A ("Sparse matrix storage").

Each chunk of a row has four bits: of 4 elements with 2 stored (two indices), of 2 with 1 stored (tf32: `0b0100` the
first, `0b1110` the second), or of 8 with 2 pairs stored (4-bit types). The manual only draws the layouts; this module
follows CUTLASS's fragments for `wgmma` and tensor memory, and `mma.sync` is the same for one warp.
"""

from __future__ import annotations

from typing import NamedTuple

CHUNK_BITS = 4
_CHUNK = {32: 2, 16: 4, 8: 4, 4: 8}
"""Elements of a chunk, by element size in bits."""
_WGMMA_CHUNKS = {32: 8, 16: 8, 8: 16}
"""Chunks in a row of A for the only K of sparse wgmma."""


class Metadata(NamedTuple):
    """The place of a chunk's four bits: lane (of the warp or warpgroup, or of tensor memory), 32-bit column of tensor
    memory (0 in registers), lowest bit."""

    lane: int
    column: int
    bit: int


def mma_metadata(row: int, chunk: int, *, k: int, bits: int, selector: int = 0) -> Metadata:
    """Return where `mma.sp` with 16 x K (K includes zeros) finds the bits of this chunk. The selector names the lane in
    each group of four (short K) or the pair of lanes; the longest K uses all four."""
    return _find_in_registers(row, chunk, k // _CHUNK[bits], bits, selector)


def wgmma_metadata(row: int, chunk: int, *, bits: int, selector: int = 0) -> Metadata:
    """Return where `wgmma.mma_async.sp` finds them, in its only K for elements of `bits`: 16, 32 or 64."""
    warp, row = divmod(row, 16)
    place = _find_in_registers(row, chunk, _WGMMA_CHUNKS[bits], bits, selector)
    return Metadata(warp * 32 + place.lane, 0, place.bit)


def tmem_metadata(row: int, chunk: int, *, bits: int) -> Metadata:
    """Return where `tcgen05.mma.sp` of M = 128 (256 in a pair of CTAs) finds them, for sparsity selector 0: lane and
    column of tensor memory from the metadata's address."""
    row %= 128
    if bits < 16:
        column, place = divmod(chunk, 8)
        return Metadata(row, column, place * CHUNK_BITS)
    half, place = divmod(chunk, 4)
    return Metadata(row // 16 * 16 + half * 8 + row % 8, 0, row % 16 // 8 * 16 + place * CHUNK_BITS)


def nonzero_columns(chunk: int, bits_of_chunk: int, bits: int) -> tuple[int, ...]:
    """Return the columns of the stored elements of this chunk; ValueError for undefined indices."""
    low, high = bits_of_chunk & 3, bits_of_chunk >> 2 & 3
    first = chunk * _CHUNK[bits]
    if bits == 32:
        if bits_of_chunk not in (0b0100, 0b1110):
            raise ValueError(f"the index of a stored tf32 must be 0b0100 or 0b1110, not {bits_of_chunk:#06b}")
        return (first + low // 2,)
    if low == high:
        raise ValueError(f"the two indices of a chunk must differ, not {bits_of_chunk:#06b}")
    if bits == 4:
        return tuple(first + 2 * pair + i for pair in (low, high) for i in (0, 1))
    return first + low, first + high


def _find_in_registers(row: int, chunk: int, chunks: int, bits: int, selector: int) -> Metadata:
    """Return the place in registers. For 16-bit and wider elements, a lane holds the first (or next) 4 chunks of both
    its rows, low half first. For narrower ones, a lane holds 8 chunks of one row, and the next lane those of the row 8
    below."""
    group, lower = row % 8, row // 8
    if bits >= 16:
        first = selector * (chunks // 4)
        return Metadata(group * 4 + first + chunk // 4, 0, lower * 16 + chunk % 4 * CHUNK_BITS)
    first = selector * 2
    return Metadata(group * 4 + first + chunk // 8 * 2 + lower, 0, chunk % 8 * CHUNK_BITS)
