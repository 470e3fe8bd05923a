"""Floating-point formats narrower than f32, packed and unpacked, as f64. Knows formats, no instruction."""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.numerics import formats
from pyptx.sim.numerics.formats import table
from pyptx.sim.numerics.rounding import held

FORMATS = {name: formats.FORMATS[name] for name in "f32 tf32 f16 bf16 e5m2 e4m3 e3m2 e2m3 e2m1".split()}
"""Formats that values are rounded to here, by way of f64."""
_BYTES = ("ue8m0", "e2m1p4")
"""Formats that are only read: powers of two, and e2m1 in the low half of a byte."""


def decode(bits: Array, name: str) -> Array:
    """Return the values of a format's bits as f64."""
    if name in ("f32", "tf32"):
        return bits.view(np.float32).astype(np.float64)
    if name == "f16":
        return bits.view(np.float16).astype(np.float64)
    if name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return table("e2m1" if name == "e2m1p4" else name)[bits].astype(np.float64)


def element_of(kind: str) -> tuple[str, int]:
    """Return the element format of a packed type and how many there are: `e4m3x2` -> (`e4m3`, 2)."""
    base, _, count = kind.rpartition("x")
    return (base, int(count)) if base and count.isdigit() else (kind, 1)


def container(name: str, count: int) -> int:
    """Return the bits that one element takes in a packed value: 6-bit formats fill bytes, 4-bit ones nibbles."""
    if name in _BYTES:
        return 8
    bits = FORMATS[name].bits
    return 8 if bits == 6 else bits


def unpacked(bits: Array, kind: str) -> list[Array]:
    """Return the elements of a packed value as f64, the lowest bits first."""
    name, count = element_of(kind)
    width = container(name, count)
    dtype = {4: "u1", 8: "u1", 16: "u2", 32: "u4"}[width]
    parts = [(bits >> np.array(width * at, bits.dtype)).astype(dtype) for at in range(count)]
    return [decode(part, name) for part in parts]


def packed(values: list[Array], kind: str) -> Array:
    """Return rounded values as a packed one, the first in the lowest bits."""
    name, count = element_of(kind)
    width = container(name, count)
    whole = np.dtype(f"u{max(8, width * count) // 8}")
    result = np.zeros(np.shape(values[0]), whole)
    for at, value in enumerate(values):
        result = result | (held(value, name).astype(whole) << np.array(width * at, whole))
    return result
