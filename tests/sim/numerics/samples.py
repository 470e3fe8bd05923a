"""Operands that reveal mistakes: boundaries of each format, their neighbors, ties, and random ones of any exponent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def floats32(count: int, seed: int, *, narrow: bool = False) -> NDArray[np.float32]:
    """Return random f32 of any finite exponent, mixed with special ones; `narrow` ones lie near 1, none special."""
    generator = np.random.default_rng(seed)
    exponent = generator.integers(120, 134, count) if narrow else generator.integers(0, 255, count)
    fraction = generator.integers(0, 1 << 23, count) & generator.choice([0, 0x7FFFFF, 0x7FF000, 0x400000, 3], count)
    sign = generator.integers(0, 2, count) << 31
    bits = (sign | (exponent << 23) | fraction).astype(np.uint32)
    special = np.array(
        [0, 1 << 31, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0x3F800001, 0x3F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFE], np.uint32
    )
    place = generator.random(count) < (0.0 if narrow else 0.1)
    return np.where(place, generator.choice(special, count), bits).astype(np.uint32).view(np.float32)


def floats64(count: int, seed: int, *, narrow: bool = False) -> NDArray[np.float64]:
    """Return random f64 of any finite exponent, mixed with special ones; `narrow` ones lie near 1, none special."""
    generator = np.random.default_rng(seed)
    exponent = generator.integers(1018, 1030, count) if narrow else generator.integers(0, 2047, count)
    full = (1 << 52) - 1
    fraction = generator.integers(0, 1 << 52, count) & generator.choice([0, full, full - 255, 1 << 51, 3], count)
    bits = ((generator.integers(0, 2, count) << 63) | (exponent << 52) | fraction).view(np.uint64)
    special = np.array([0, 1 << 63, 1, (1 << 52) - 1, 1 << 52, 1023 << 52, 0x7FEFFFFFFFFFFFFF], np.uint64)
    place = generator.random(count) < (0.0 if narrow else 0.1)
    return np.where(place, generator.choice(special, count), bits).view(np.float64)


def codes16(count: int, seed: int, infinity: int) -> NDArray[np.uint16]:
    """Return random finite codes of a 16-bit format."""
    generator = np.random.default_rng(seed)
    return (generator.integers(0, infinity, count) | (generator.integers(0, 2, count) << 15)).astype(np.uint16)
