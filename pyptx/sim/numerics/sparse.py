"""Structured sparse matrices: expands stored elements and their metadata to a dense matrix.

Manual: Sparse matrix storage. Each group of four metadata bits belongs to one chunk of a row and holds two 2-bit
indices.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyptx.sim.numerics.arrays import U32, Array, Mask

ORDERED = (0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110)
"""Metadata of `.sp::ordered_metadata`, wgmma and tcgen05: two indices in increasing order."""
HALVES = (0b0100, 0b1110)
"""Metadata of 1:2 sparsity: the first or the second element."""

_ORDERED = np.isin(np.arange(16), ORDERED)
_HALVES = np.isin(np.arange(16), HALVES)
_DISTINCT = (np.arange(16) & 3) != (np.arange(16) >> 2)


def split_nibbles(metadata: U32) -> Array:
    """Return the eight 4-bit groups of each word along a new last axis, lowest first."""
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    return ((metadata[..., None] >> shifts) & np.uint32(15)).astype(np.uint8)


def is_valid(codes: Array, kind: str, *, in_order: bool = True) -> Mask:
    """Return which metadata groups are defined for sparsity "2:4", "4:8" or "1:2"."""
    if kind == "1:2":
        return _HALVES[codes]
    return (_ORDERED if in_order else _DISTINCT)[codes]


def expand(elements: Array, codes: Array, kind: str) -> Array:
    """Return the dense matrix; elements that the metadata does not select are zero.

    `elements` has the shape (..., M, K / 2). `codes` has one metadata group per chunk: K / 4 per row for "2:4", K / 8
    for "4:8" (which keeps pairs of elements together), K / 2 for "1:2".
    """
    rows = elements.shape[:-1]
    if kind == "1:2":
        dense = np.zeros((*elements.shape, 2), elements.dtype)
        np.put_along_axis(dense, (codes[..., None] >> 3).astype(np.intp), elements[..., None], axis=-1)
        return dense.reshape(*rows, -1)
    pair = 2 if kind == "4:8" else 1
    parts = elements.reshape(*rows, -1, 2, pair)
    dense = np.zeros((*rows, parts.shape[-3], 4, pair), elements.dtype)
    for place in (0, 1):
        index = ((codes >> (2 * place)) & 3).astype(np.intp)[..., None, None]
        np.put_along_axis(dense, np.broadcast_to(index, (*index.shape[:-1], pair)), parts[..., place, None, :], axis=-2)
    return dense.reshape(*rows, -1)


def multiply_stored(
    multiply: Callable[[Array, Array, Array], Array], a: Array, b: Array, addend: Array, find_stored: Callable[[], Mask]
) -> Array:
    """Return a @ b + addend as `multiply` computes it, for an expanded A. `find_stored` returns which elements of A are
    stored. The others do not meet those of B, so that an infinity or NaN there does not count (measured on an H200)."""
    result = multiply(a, b, addend)
    is_finite = np.isfinite(b)
    if is_finite.all():
        return result
    shape = result.shape[:-2]
    missing = np.broadcast_to(~find_stored(), (*shape, *a.shape[-2:]))
    a, b, addend = (np.broadcast_to(x, (*shape, *x.shape[-2:])) for x in (a, b, addend))
    *batch, row, column = np.nonzero(np.matmul(missing.astype(np.float32), (~is_finite).astype(np.float32)))
    factors = np.swapaxes(b, -1, -2)[(*batch, column)]
    factors = np.where(missing[(*batch, row)], factors.dtype.type(0), factors)
    parts = multiply(
        a[(*batch, row)][:, None],
        factors[..., None],
        np.ascontiguousarray(addend[(*batch, row, column)])[:, None, None],
    )
    result = result.copy()
    result[(*batch, row, column)] = parts[:, 0, 0]
    return result
