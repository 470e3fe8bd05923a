"""Structured sparse matrices: from the stored elements and their metadata to a dense matrix.

Manual: Sparse matrix storage. Each four bits of metadata belong to one chunk of a row and hold two 2-bit places.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics.arrays import U32, Array, Mask

ORDERED = (0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110)
"""What `.sp::ordered_metadata`, wgmma and tcgen05 take: two places in increasing order."""
HALVES = (0b0100, 0b1110)
"""What 1:2 sparsity takes: the first or the second element."""

_ORDERED = np.isin(np.arange(16), ORDERED)
_HALVES = np.isin(np.arange(16), HALVES)
_DISTINCT = (np.arange(16) & 3) != (np.arange(16) >> 2)


def nibbles(metadata: U32) -> Array:
    """Return the eight groups of four bits of every word along a new last axis, the lowest first."""
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    return ((metadata[..., None] >> shifts) & np.uint32(15)).astype(np.uint8)


def valid(codes: Array, kind: str, *, ordered: bool = True) -> Mask:
    """Tell which groups of metadata have a defined meaning for sparsity "2:4", "4:8" or "1:2"."""
    if kind == "1:2":
        return _HALVES[codes]
    return (_ORDERED if ordered else _DISTINCT)[codes]


def expand(stored: Array, codes: Array, kind: str) -> Array:
    """Return the dense matrix: zeros but at the places that the metadata names.

    `stored` has the shape (..., M, K / 2); `codes` one group of metadata for every chunk: K / 4 in a row for "2:4",
    K / 8 for "4:8" (pairs of elements stay together), K / 2 for "1:2".
    """
    rows = stored.shape[:-1]
    if kind == "1:2":
        dense = np.zeros((*stored.shape, 2), stored.dtype)
        np.put_along_axis(dense, (codes[..., None] >> 3).astype(np.intp), stored[..., None], axis=-1)
        return dense.reshape(*rows, -1)
    pair = 2 if kind == "4:8" else 1
    parts = stored.reshape(*rows, -1, 2, pair)
    dense = np.zeros((*rows, parts.shape[-3], 4, pair), stored.dtype)
    for place in (0, 1):
        at = ((codes >> (2 * place)) & 3).astype(np.intp)[..., None, None]
        np.put_along_axis(dense, np.broadcast_to(at, (*at.shape[:-1], pair)), parts[..., place, None, :], axis=-2)
    return dense.reshape(*rows, -1)
