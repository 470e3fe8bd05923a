"""Floating-point formats narrower than f32: decode to f64, round and encode. Knows formats, no instruction."""

from __future__ import annotations

import numpy as np

from pyptx.sim.formats import Array
from pyptx.sim.numerics import formats
from pyptx.sim.numerics.formats import table
from pyptx.sim.numerics.rounding import canonical, held

FORMATS = {name: formats.FORMATS[name] for name in "f32 tf32 f16 bf16 e5m2 e4m3 e3m2 e2m3 e2m1".split()}
"""Formats that values are rounded to here, by way of f64."""
_BYTES = ("ue8m0", "e2m1p4")
"""Formats that are only read: powers of two, and e2m1 in the low half of a byte."""


def rounded(x: Array, name: str, mode: str, *, satfinite: bool = False, noise: Array | None = None) -> Array:
    """Round f64 values to a format, kept as f64. Modes: rn rna rz rm rp rs (with random bits below the last place, as a
    fraction in `noise`)."""
    f = FORMATS[name]
    exponent = np.maximum(np.frexp(np.where(np.isfinite(x), x, 0.0))[1] - 1, f.least_exponent) - f.mantissa
    scaled = np.ldexp(x, -exponent)
    if mode == "rn":
        whole = np.rint(scaled)
    elif mode == "rna":
        whole = np.trunc(scaled + np.copysign(0.5, scaled))
    elif mode == "rz":
        whole = np.trunc(scaled)
    elif mode == "rs":
        whole = np.copysign(np.floor(np.abs(scaled) + (0.0 if noise is None else noise)), scaled)
    else:
        whole = np.floor(scaled) if mode == "rm" else np.ceil(scaled)
    made, greatest = np.copysign(np.ldexp(whole, exponent), x), f.maximum
    over = np.abs(made) > greatest
    if satfinite:
        return np.where(over | np.isinf(x), np.copysign(greatest, x), made)
    if over.any():
        inward = (mode == "rz") | ((mode == "rm") & (x > 0)) | ((mode == "rp") & (x < 0))
        limit = np.where(inward & np.isfinite(x), greatest, np.nan if f.infinity is None else np.inf)
        made = np.where(over, np.copysign(limit, x), made)
    return made


def encode(x: Array, name: str) -> Array:
    """Return the bits of f64 values that the format holds exactly, in its container; NaN is the canonical one."""
    if name not in ("f32", "tf32"):
        return held(x, name)
    return canonical(x.astype(np.float32)).view(np.uint32)


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
    made = np.zeros(np.shape(values[0]), whole)
    for at, value in enumerate(values):
        made = made | (encode(value, name).astype(whole) << np.array(width * at, whole))
    return made
