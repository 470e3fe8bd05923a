"""Into how many pieces memory splits the access of a warp: wavefronts of shared memory, sectors of global memory.

Shared memory has 32 banks of 4 bytes; a wavefront reads one word from each bank, which many lanes may share. Accesses
of 8 bytes per lane take two halves of the warp, of 16 bytes four quarters, like rows of ldmatrix and stmatrix. Global
memory transfers sectors of 32 bytes. Knows only arrays.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.formats import Array

BANKS, WORD, SECTOR, WARP = 32, 4, 32, 32


def count_wavefronts(offsets: Array, warp: Array, lane: Array, size: int) -> tuple[int, int, int]:
    """Return the wavefronts of an access, the fewest possible, and the most of one warp. `offsets` are bytes from bank
    0, one per lane; each lane accesses `size` bytes."""
    words = max(1, size // WORD)
    phase = warp.astype(np.int64) * words + lane.astype(np.int64) * words // WARP
    _, phase = np.unique(phase, return_inverse=True)
    word = (offsets[:, None] // WORD + np.arange(words)).reshape(-1)
    group = np.repeat(phase.reshape(-1), words)
    low = int(word.min())
    span = int(word.max()) - low + 1
    distinct = np.unique(group * span + (word - low))
    group, word = np.divmod(distinct, span)
    count = np.bincount(group * BANKS + (word + low) % BANKS)
    bank_counts = np.zeros(-(-len(count) // BANKS) * BANKS, np.int64)
    bank_counts[: len(count)] = count
    counts = bank_counts.reshape(-1, BANKS).max(axis=1)
    first = np.zeros(len(counts), np.int64)
    first[phase.reshape(-1)] = warp
    per_warp = np.bincount(np.unique(first, return_inverse=True)[1].reshape(-1), weights=counts)
    return int(counts.sum()), len(counts), int(per_warp.max())


def count_sectors(addresses: Array, warp: Array, size: int) -> tuple[int, int, int]:
    """Return the sectors of an access, the fewest that could hold its bytes, and the most of one warp."""
    units = max(1, size // SECTOR)
    _, row = np.unique(warp, return_inverse=True)
    row = row.reshape(-1)
    byte_addresses = addresses.astype(np.int64)
    sector = (byte_addresses[:, None] // SECTOR + np.arange(units)).reshape(-1)
    counts = _count_distinct(np.repeat(row, units), sector)
    used = _count_distinct(row, byte_addresses // size) * size
    return int(counts.sum()), int((-(-used // SECTOR)).sum()), int(counts.max())


def _count_distinct(row: Array, value: Array) -> Array:
    """Return how many distinct values each row has."""
    low = int(value.min())
    span = int(value.max()) - low + 1
    return np.bincount(np.unique(row.astype(np.int64) * span + (value - low)) // span)
