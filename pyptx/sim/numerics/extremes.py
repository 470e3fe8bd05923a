"""min and max: NaN, signed zeros, magnitudes and the XOR of signs.

Manual: Floating-Point Instructions: min, max. Works on codes, so that zeros and NaN keep their bits.
"""

from __future__ import annotations

import numpy as np

from pyptx.numbers import FORMATS
from pyptx.sim.numerics.arrays import Array, Mask
from pyptx.sim.numerics.rounding import flush, flush_half


def minimum(
    *operands: Array, name: str = "f32", nan: bool = False, ftz: bool = False, abs: bool = False, xorsign: bool = False
) -> Array:
    """Return the smallest operand; -0 is below +0."""
    return _select_extreme(operands, name, nan=nan, ftz=ftz, magnitudes=abs, xorsign=xorsign, largest=False)


def maximum(
    *operands: Array, name: str = "f32", nan: bool = False, ftz: bool = False, abs: bool = False, xorsign: bool = False
) -> Array:
    """Return the largest operand; +0 is above -0."""
    return _select_extreme(operands, name, nan=nan, ftz=ftz, magnitudes=abs, xorsign=xorsign, largest=True)


def _select_extreme(
    operands: tuple[Array, ...], name: str, *, nan: bool, ftz: bool, magnitudes: bool, xorsign: bool, largest: bool
) -> Array:
    form = FORMATS[name]
    signed = np.dtype(f"i{form.bits // 8}")
    kind = operands[0].dtype
    codes = [_flush(operand, name, ftz).view(signed) for operand in operands]
    mask = signed.type(~np.iinfo(signed).min)
    sign = (codes[0] ^ codes[1]) & ~mask
    infinity, canonical = signed.type(form.infinity or 0), signed.type(form.nan or 0)
    if magnitudes:
        codes = [code & mask for code in codes]
    # Inverting the magnitude bits of negative numbers orders codes as integers.
    keys: list[Array] = [code ^ ((code >> signed.type(form.bits - 1)) & mask) for code in codes]
    nans: list[Mask] = [(code & mask) > infinity for code in codes]
    best: Array = codes[0]
    best_key: Array = keys[0]
    best_nan: Mask = nans[0]
    for code, key, is_nan in zip(codes[1:], keys[1:], nans[1:], strict=True):
        better: Mask = key > best_key if largest else key < best_key
        take = (better & ~is_nan) | best_nan
        best, best_key = np.where(take, code, best), np.where(take, key, best_key)
        best_nan = best_nan | is_nan if nan else best_nan & is_nan
    if xorsign:
        best = best & mask | sign
    return np.where(best_nan, canonical, best).astype(signed).view(kind)


def _flush(x: Array, name: str, ftz: bool) -> Array:
    if not ftz:
        return x
    return flush(x) if name == "f32" else flush_half(x, name)
