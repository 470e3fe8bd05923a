"""Scale factors of block-scaled products: the bytes of lanes or of tensor memory that hold them.

Rows are rows of A or columns of B; `block` counts the blocks along K. The manual ("Block Scaling for mma.sync", "Block
Scaling for tcgen05.mma") only draws which rows a lane holds; this module follows CUTLASS's fragments. K = 96 is
omitted.
"""

from __future__ import annotations

from typing import NamedTuple

PARTITION = 32
"""Lanes of one warp's quarter of tensor memory."""


class ScaleByte(NamedTuple):
    """A byte of a lane's 32-bit operand."""

    lane: int
    byte: int


class TmemByte(NamedTuple):
    """A byte of a tensor-memory word, relative to the scale factors' address."""

    lane: int
    column: int
    byte: int


def mma_scale_a(row: int, block: int, *, vector: int, byte_id: int = 0, thread_id: int = 0) -> ScaleByte:
    """Return the place of the scale of a row of A: in each group of four lanes, the pair that `thread_id` (0, 1)
    selects, the lower lane for row `group`, the upper for row `group + 8`. `vector` is 1, 2 or 4 (`.scale_vec::NX`)."""
    return ScaleByte(row % 8 * 4 + thread_id * 2 + row // 8, _find_byte(block, vector, byte_id))


def mma_scale_b(col: int, block: int, *, vector: int, byte_id: int = 0, thread_id: int = 0) -> ScaleByte:
    """Return the place of the scale of a column of B: the lane `thread_id` (0 to 3) of group `col`."""
    return ScaleByte(col * 4 + thread_id, _find_byte(block, vector, byte_id))


def tmem_scale(row: int, block: int, *, vector: int, scale_id: int = 0) -> tuple[TmemByte, ...]:
    """Return the four copies of a scale, one in each quarter of the lanes: rows of A, or columns of B, fill 32 lanes
    and then continue in the next column. `scale_id` is the instruction descriptor's."""
    byte = _find_byte(block, vector, scale_id)
    return tuple(TmemByte(copy * PARTITION + row % PARTITION, row // PARTITION, byte) for copy in range(4))


def _find_byte(block: int, vector: int, first: int) -> int:
    if not 0 <= block < vector or first % vector or first + vector > 4:
        raise ValueError(f"no block of {vector} scale factors has index {block} from byte {first} of a word")
    return first + block
