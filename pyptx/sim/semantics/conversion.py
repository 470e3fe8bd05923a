"""Manual: Data Movement and Conversion Instructions: cvt, cvt.pack."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.numbers import FORMATS, is_float, split_packed
from pyptx.sim.base.formats import Array, Value, dtype_of
from pyptx.sim.numerics.formats import TF32_KEPT, encode_nan, widen
from pyptx.sim.numerics.rounding import (
    SCALE,
    encode_exact,
    flush,
    flush_result,
    round_directed,
    round_to_format,
    round_to_odd,
    to_f32,
)
from pyptx.sim.semantics import rounding as r
from pyptx.sim.semantics.bits import find_limits
from pyptx.sim.semantics.floating_point import make_canonical_nan
from pyptx.sim.semantics.narrow import pack, unpack
from pyptx.sim.semantics.vocabulary import COPY, Builder, Operation, Signature, value
from pyptx.types import ALL

_TYPES = frozenset(t.name for t in ALL)
WHOLE: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _cvt(match: Match, signature: Signature) -> Operation | None:
    if "pack" in match.modifiers:
        return _pack(match)
    target, source = [m for m in match.modifiers if m in _TYPES]
    if is_float(source):
        return _convert_float(match, target, source)
    if split_packed(source)[1] > 1 or split_packed(target)[1] > 1:
        return _unpack(match, target, source)
    return _convert_integer(match, target, source)


def _convert_integer(match: Match, target: str, source: str) -> Operation | None:
    if not is_float(target):
        return value(partial(_clamp_integer, dtype_of(target), "sat" in match.modifiers))
    mode = match.chosen["frnd"]
    sat = "sat" in match.modifiers

    def convert(a: Array) -> Array:
        exact = a.astype(np.longdouble)
        if target in ("f32", "f64"):
            near = a.astype(dtype_of(target))
            result = near if mode == "rn" else round_directed(near, exact - near, mode)
            return r.saturate(result) if sat else result
        near = a.astype(np.float64)
        result = round_to_format(round_to_odd(near, (exact - near).astype(np.float64)), target, mode)
        return encode_exact(r.saturate(result) if sat else result, target)

    return value(convert)


def _clamp_integer(dtype: np.dtype[Any], sat: bool, a: Array) -> Array:
    if sat:
        low, high = (f(x, y) for f, x, y in zip((max, min), find_limits(dtype), find_limits(a.dtype), strict=True))
        a = np.clip(a, a.dtype.type(low), a.dtype.type(high))
    return a.astype(dtype)


def _convert_float(match: Match, target: str, source: str) -> Operation | None:
    flags = set(match.modifiers)
    name, count = split_packed(target)
    if is_float(target):
        return _round_to_float(match, target, source)
    if is_float(name) and count > 1:
        return _convert_to_packed(match, target)
    if name == "ue8m0":
        return value(lambda a, b: _scale_bits(b, flags) | (_scale_bits(a, flags) << np.uint16(8)))
    if name == "s2f6":
        mode = match.chosen["rnd"]

        def encode_pair(a: Array, b: Array, scale: Array | None = None) -> Array:
            return _join([_encode_fixed(x, flags, mode) for x in _unscale([b, a], scale)])

        return value(encode_pair)
    to_integral = WHOLE[match.chosen["irnd"]]
    return value(lambda a: _round_to_integer(_widen(a, source, flags), to_integral, dtype_of(target), source))


def _widen(a: Array, source: str, flags: set[str]) -> Array:
    """Return a float operand as f64, subnormals flushed where `.ftz` says so."""
    if source == "f64":
        return a
    if source in ("f32", "tf32"):
        return (flush(a) if "ftz" in flags else a).astype(np.float64)
    return widen(a, source)


def _round_to_integer(x: Array, to_integral: Callable[[Array], Array], dtype: np.dtype[Any], source: str) -> Array:
    low, high = find_limits(dtype)
    y = to_integral(x)
    nan = np.isnan(x)
    above, below = y >= float(high), y <= float(low)
    result = np.where(above | below | nan, 0.0, y).astype(dtype)
    result = np.where(above, dtype.type(high), np.where(below, dtype.type(low), result))
    is_wide = source == "f64" or dtype.itemsize == 8
    nan_result = np.array(1 << (8 * dtype.itemsize - 1), f"u{dtype.itemsize}").view(dtype) if is_wide else dtype.type(0)
    return np.where(nan, nan_result, result)


def _round_to_float(match: Match, target: str, source: str) -> Operation | None:
    # ptxas ignores `.ftz` where the result is f16.
    flags = set(match.modifiers) - ({"ftz"} if target == "f16" else set())
    mode = next((m for m in match.modifiers if m in ("rn", "rna", "rz", "rm", "rp")), "rn")
    to_integral = WHOLE.get(match.chosen.get("irnd", ""))
    if target == source and to_integral is None and not flags & {"sat", "ftz"}:
        return COPY

    def convert(a: Array) -> Array:
        x = _widen(a, source, flags)
        if to_integral is not None:
            x = to_integral(x)
        return _finish(x, target, mode, flags)

    return value(convert)


def _finish(x: Array, target: str, mode: str, flags: set[str]) -> Array:
    """Round f64 values to a type, clamp and encode them."""
    satfinite = "satfinite" in flags
    if target == "f64":
        result = x
    elif target == "f32":
        result = to_f32(x, mode)
    else:
        result = round_to_format(x, target, mode, satfinite=satfinite)
    result = _clamp(result, flags)
    if target == "f32":
        if "ftz" in flags:
            result = flush_result(result, lambda: to_f32(x * 2.0**SCALE, mode))
        nan = np.isnan(result)
        return np.where(nan, make_canonical_nan("f4"), result) if nan.any() else result
    if target == "f64":
        return result
    bits = encode_exact(result, target)
    return bits & TF32_KEPT if target == "tf32" else bits


def _clamp(values: Array, flags: set[str]) -> Array:
    if "sat" in flags:
        return r.saturate(values)
    if "relu" in flags:
        return np.where((values > 0) | np.isnan(values), values, values.dtype.type(0))
    return values


def _convert_to_packed(match: Match, target: str) -> Operation:
    flags = set(match.modifiers)
    name, count = split_packed(target)
    mode = next((m for m in match.modifiers if m in ("rn", "rz", "rs")), "rn")

    def convert(*values: Value) -> Array:
        parts, noise = _order_operands(values, mode, count, name)
        results = [
            _clamp(round_to_format(x, name, mode, satfinite="satfinite" in flags, noise=n), flags)
            for x, n in zip(parts, noise, strict=True)
        ]
        return pack(results, target)

    return value(convert)


def _order_operands(values: Value, mode: str, count: int, name: str) -> tuple[list[Array], list[Array | None]]:
    """Return the elements as f64, the lowest first, and the random bits of each: the last operand is the lowest."""
    rbits = values[-1] if mode == "rs" else None
    sources = values[:-1] if mode == "rs" else values
    elements = sources[0] if isinstance(sources[0], tuple) else sources
    parts = [v.astype(np.float64) for v in reversed(elements)]
    if rbits is None:
        return parts, [None] * count
    return parts, [_extract_noise(rbits, element, count, name) for element in range(count)]


def _extract_noise(rbits: Array, element: int, count: int, name: str) -> Array:
    """Return the random fraction for one element: in pairs, the bits that it drops; four elements share bytes."""
    if count == 2:
        bits = FORMATS["f32"].mantissa - FORMATS[name].mantissa
        return ((rbits >> np.uint32(16 * element)) & np.uint32((1 << bits) - 1)).astype(np.float64) / (1 << bits)
    if name == "e2m1":
        shift = np.uint32(8 * (element // 2))
        bits_of_pair = ((rbits >> shift) & np.uint32(0xFF)) | ((rbits >> (shift + np.uint32(8))) & np.uint32(0xFF00))
        return bits_of_pair.astype(np.float64) / (1 << 16)
    return ((rbits >> np.uint32(16 * (element // 2))) & np.uint32(0xFFFF)).astype(np.float64) / (1 << 16)


def _scale_bits(a: Array, flags: set[str]) -> Array:
    """Return the power of two at or next to a positive value as an exponent of 8 bits."""
    x, form, nan = a.astype(np.float64), FORMATS["ue8m0"], encode_nan("ue8m0")
    fraction, exponent = np.frexp(np.where(np.isfinite(x), np.abs(x), 1.0))
    power = exponent - 1
    if "rp" in flags:
        power = power + (fraction > 0.5)
    largest = form.largest if "satfinite" in flags else nan
    codes = np.where(x == 0, 0, np.clip(power + form.bias, 0, largest))
    codes = np.where(np.isinf(x), largest, codes)
    return np.where(np.isnan(x), nan, codes).astype(np.uint16)


def _encode_fixed(a: Array, flags: set[str], mode: str) -> Array:
    form = FORMATS["s2f6"]
    multiples = a.astype(np.float64) * (1 << form.mantissa)
    units = np.clip(np.rint(multiples) if mode == "rn" else np.trunc(multiples), -form.sign, form.largest)
    units = np.where(np.isnan(units), form.largest, units)
    units = np.maximum(units, 0) if "relu" in flags else units
    return units.astype(np.int8).view(np.uint8).astype(np.uint16)


def _unpack(match: Match, target: str, source: str) -> Operation | None:
    flags = set(match.modifiers)
    name, _ = split_packed(target)
    if name == "s2f6":
        mode = match.chosen["rnd"]

        def encode_pair(a: Array, scale: Array | None = None) -> Array:
            return _join([_encode_fixed(x, flags, mode) for x in _unscale(unpack(a, source), scale)])

        return value(encode_pair)
    if name == "ue8m0":
        return value(lambda a: _join([_scale_bits(x, flags) for x in unpack(a, source)]))
    mode = next((m for m in match.modifiers if m in ("rn", "rz")), "rn")

    def convert(a: Array, scale: Array | None = None) -> Array:
        parts = unpack(a, source)
        if scale is not None:
            parts = [p * s for p, s in zip(parts, unpack(scale, "ue8m0x2"), strict=True)]
        results = [_clamp(round_to_format(p, name, mode, satfinite="satfinite" in flags), flags) for p in parts]
        return pack(results, target)

    return value(convert)


def _unscale(values: list[Array], scale: Array | None) -> list[Array]:
    """Return values, the one for the lower half first, divided by their scale factors if there are any."""
    if scale is None:
        return values
    return [x.astype(np.float64) / s for x, s in zip(values, unpack(scale, "ue8m0x2"), strict=True)]


def _join(parts: list[Array]) -> Array:
    return parts[0] | (parts[1] << np.uint16(8))


def _pack(match: Match) -> Operation | None:
    kind = match.chosen["type"]
    bits = int(kind[1:])
    low, high = (0, (1 << bits) - 1) if kind[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    mask = (1 << bits) - 1

    def pack(a: Array, b: Array, c: Array | None = None) -> Array:
        parts = [np.clip(v.astype(np.int64), low, high) & mask for v in (a, b)]
        word = (parts[0] << bits) | parts[1]
        if c is not None:
            word |= c.astype(np.int64) << (2 * bits)
        return (word & 0xFFFFFFFF).astype(np.uint32)

    return value(pack)


BUILDERS: dict[str, Builder] = {"cvt": _cvt}
