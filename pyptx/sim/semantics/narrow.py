"""Floating-point formats narrower than f32: decode to f64, round and encode. Knows formats, no instruction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np

from pyptx.sim.formats import Array


@dataclass(frozen=True, slots=True)
class Narrow:
    """A format: bits of the significand (the hidden one included), the exponent of its smallest normal, its greatest
    value, its width, whether it has infinities, and its NaN (None without one)."""

    name: str
    precision: int
    least: int
    greatest: float
    bits: int
    infinite: bool
    nan: int | None


FORMATS = {
    f.name: f
    for f in (
        Narrow("f32", 24, -126, 3.4028234663852886e38, 32, True, 0x7FFFFFFF),
        Narrow("tf32", 11, -126, 3.4011621342146535e38, 32, True, 0x7FFFFFFF),
        Narrow("f16", 11, -14, 65504.0, 16, True, 0x7FFF),
        Narrow("bf16", 8, -126, 3.3895313892515355e38, 16, True, 0x7FFF),
        Narrow("e5m2", 3, -14, 57344.0, 8, True, 0x7F),
        Narrow("e4m3", 4, -6, 448.0, 8, False, 0x7F),
        Narrow("e3m2", 3, -2, 28.0, 6, False, None),
        Narrow("e2m3", 4, 0, 7.5, 6, False, None),
        Narrow("e2m1", 2, 0, 6.0, 4, False, None),
    )
}
_BYTES = ("ue8m0", "e2m1p4")
"""Formats that are only read: powers of two, and e2m1 in the low half of a byte."""
_ML = {
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}


def rounded(x: Array, name: str, mode: str, *, satfinite: bool = False, noise: Array | None = None) -> Array:
    """Round f64 values to a format, kept as f64. Modes: rn rna rz rm rp rs (with random bits below the last place, as a
    fraction in `noise`)."""
    f = FORMATS[name]
    exponent = np.maximum(np.frexp(np.where(np.isfinite(x), x, 0.0))[1] - 1, f.least) - (f.precision - 1)
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
    made = np.copysign(np.ldexp(whole, exponent), x)
    over = np.abs(made) > f.greatest
    if satfinite:
        return np.where(over | np.isinf(x), np.copysign(f.greatest, x), made)
    if over.any():
        inward = (mode == "rz") | ((mode == "rm") & (x > 0)) | ((mode == "rp") & (x < 0))
        limit = np.where(inward & np.isfinite(x), f.greatest, np.inf if f.infinite else np.nan)
        made = np.where(over, np.copysign(limit, x), made)
    return made


def encode(x: Array, name: str) -> Array:
    """Return the bits of f64 values that the format holds exactly, in its container; NaN is the canonical one."""
    f = FORMATS[name]
    nan = np.isnan(x)
    if name in ("f32", "tf32"):
        bits = x.astype(np.float32).view(np.uint32)
    elif name == "f16":
        bits = x.astype(np.float16).view(np.uint16)
    elif name == "bf16":
        bits = (x.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    else:
        greatest = f.greatest
        bits = np.where(nan & (f.nan is None), greatest, x).astype(_ML[name]).view(np.uint8)
    if f.nan is not None and nan.any():
        bits = np.where(nan, bits.dtype.type(f.nan), bits)
    return bits


def decode(bits: Array, name: str) -> Array:
    """Return the values of a format's bits as f64."""
    if name in ("f32", "tf32"):
        return bits.view(np.float32).astype(np.float64)
    if name == "f16":
        return bits.view(np.float16).astype(np.float64)
    if name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if name == "ue8m0":
        return np.where(bits == 0xFF, np.nan, np.ldexp(1.0, bits.astype(np.int32) - 127))
    if name == "e2m1p4":
        name = "e2m1"
    return _values(name)[bits & np.uint8((1 << FORMATS[name].bits) - 1)]


@cache
def _values(name: str) -> Array:
    """Return the value of every bit pattern of a format of at most 8 bits."""
    patterns = np.arange(1 << FORMATS[name].bits, dtype=np.uint8)
    return patterns.view(_ML[name]).astype(np.float64)


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
