"""Block-scaled operands: scale factors in the order in which tcgen05 reads them, and packed 4-bit elements.

Scale factors of 128 rows lie in blocks of 32 rows of 16 bytes, one below the other, each with four factors of every
matrix row: byte 4 i + j of row r in block n is factor 4 n + j of matrix row 32 i + r. A copy `32x128b.warpx4` moves a
block to four columns of tensor memory, a word for each row.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from examples.parts.example import Array, widen

BLOCK_ROWS, BLOCK_BYTES = 32, 16
"""The shape of a block of scale factors in memory."""
BLOCK_COLUMNS = 4
"""Columns of tensor memory that a block fills."""
PER_WORD = 4
"""Factors of a matrix row in a block: the bytes of a word."""
_ONE = {"ue8m0": 127, "ue4m3": 0x38}
"""The code of 1."""
_DTYPE = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}
NAN_CODE = {"ue8m0": 0xFF, "ue4m3": 0x7F}
"""The code of NaN, in which no bit is 0 that may be 1."""
_SPREAD = {"ue8m0": 2, "ue4m3": 8}
"""How far from it random codes are, at most."""


def draw_scales(dtype: str, factors: int, random: np.random.Generator) -> Array:
    """Return blocks of random scale factors near 1 for 128 rows with so many factors each."""
    one, spread = _ONE[dtype], _SPREAD[dtype]
    shape = (factors // PER_WORD * BLOCK_ROWS, BLOCK_BYTES)
    return random.integers(one - spread, one + spread, shape, endpoint=True).astype(np.uint8)


def order_scales(blocks: Array) -> Array:
    """Return bytes of scale factors, (128 n, factors), from n rows with the blocks of 128 matrix rows each."""
    cells = blocks.reshape(len(blocks), -1, BLOCK_ROWS, 4, PER_WORD).transpose(0, 3, 2, 1, 4)
    return cells.reshape(len(blocks) * 4 * BLOCK_ROWS, -1)


def decode_scales(dtype: str, blocks: Array) -> Array:
    """Return the scale factors, (128 n, factors), from n rows with the blocks of 128 matrix rows each: ue8m0 is a
    power of two, ue4m3 is e4m3 without a sign."""
    return widen(order_scales(blocks).view(_DTYPE[dtype]))


def decode_fp4(pairs: Array) -> Array:
    """Return e2m1 elements, two in a byte, the lower half first."""
    codes = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(len(pairs), -1)
    return widen(codes.view(ml_dtypes.float4_e2m1fn))
