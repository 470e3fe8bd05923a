"""Packed values of narrow formats, as f64. Knows formats, no instruction."""

from __future__ import annotations

import numpy as np

from pyptx.numbers import FORMATS, split_packed
from pyptx.sim.base.formats import Array
from pyptx.sim.numerics.formats import code_dtype, widen
from pyptx.sim.numerics.rounding import encode_exact


def unpack(bits: Array, kind: str) -> list[Array]:
    """Return the elements of a packed value as f64, the lowest bits first."""
    name, count = split_packed(kind)
    form = FORMATS[name]
    dtype = code_dtype(form)
    parts = [(bits >> np.array(form.lane * index, bits.dtype)).astype(dtype) for index in range(count)]
    return [widen(part, name) for part in parts]


def pack(values: list[Array], kind: str) -> Array:
    """Return rounded values as a packed one, the first in the lowest bits."""
    name, count = split_packed(kind)
    width = FORMATS[name].lane
    dtype = np.dtype(f"u{max(8, width * count) // 8}")
    result = np.zeros(np.shape(values[0]), dtype)
    for index, value in enumerate(values):
        result = result | (encode_exact(value, name).astype(dtype) << np.array(width * index, dtype))
    return result
