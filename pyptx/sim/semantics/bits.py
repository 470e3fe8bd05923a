"""Integer helpers of several instructions: high halves, saturation, packed lanes, counting, bit fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array, Value


def to_int64(a: Array) -> Array:
    """Return 64-bit values that hold every value of a narrower type."""
    return a.astype(np.int64)


def find_limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the minimum and maximum of an integer type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def saturate_to(a: Array, dtype: np.dtype[Any]) -> Array:
    """Return 64-bit values clamped to a narrower type."""
    low, high = find_limits(dtype)
    return np.clip(a, low, high).astype(dtype)


def apply_to_packed(kind: str, function: Value, *values: Array, saturates: bool = False) -> Array:
    """Apply a function to the packed halves or bytes of 32-bit values (`u16x2`, `s8x4`)."""
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:-2]) // 8}")
    parts = [np.ascontiguousarray(v).view(dtype) for v in values]
    result = (
        saturate_to(function(*[to_int64(p) for p in parts]), dtype) if saturates else function(*parts).astype(dtype)
    )
    return result.view(np.uint32)


def multiply_high(a: Array, b: Array) -> Array:
    """Return the upper half of a product."""
    size = a.dtype.itemsize
    if size < 8:
        double = np.dtype(f"{a.dtype.kind}{2 * size}")
        return ((a.astype(double) * b.astype(double)) >> np.array(8 * size, double)).astype(a.dtype)
    high = multiply_high_u64(a.view(np.uint64), b.view(np.uint64))
    if a.dtype.kind == "i":
        high = (
            high - np.where(a < 0, b.view(np.uint64), np.uint64(0)) - np.where(b < 0, a.view(np.uint64), np.uint64(0))
        )
    return high.view(a.dtype)


def multiply_high_u64(a: Array, b: Array) -> Array:
    """Return the upper 64 bits of a product of unsigned 64-bit values."""
    low = np.uint64(0xFFFFFFFF)
    s = np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> s, b & low, b >> s
    middle = a1 * b0 + ((a0 * b0) >> s)
    cross = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> s) + (cross >> s)


def divide_toward_zero(a: Array, b: Array) -> tuple[Array, Array]:
    """Return quotient and remainder, rounded toward zero; a divisor of zero gives all ones and the dividend."""
    zero = b == 0
    divisor = np.where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // divisor
    else:
        unsigned = f"u{a.dtype.itemsize}"
        size = np.abs(a).view(unsigned) // np.abs(divisor).view(unsigned)
        quotient = np.where((a < 0) != (divisor < 0), -size.view(a.dtype), size.view(a.dtype))
    remainder = a - quotient * divisor
    ones = np.array(-1).astype(a.dtype)
    return np.where(zero, ones, quotient), np.where(zero, a, remainder)


def count_ones(a: Array) -> Array:
    """Return the number of set bits."""
    return np.bitwise_count(a).astype(np.uint32)


def count_leading(a: Array) -> Array:
    """Return the number of zero bits above the highest set one."""
    smeared = a.copy()
    bits, shift = 8 * a.dtype.itemsize, 1
    while shift < bits:
        smeared |= smeared >> np.array(shift, a.dtype)
        shift *= 2
    return (bits - np.bitwise_count(smeared).astype(np.int64)).astype(np.uint32)


def reverse_bits(a: Array) -> Array:
    """Return the bits in the opposite order."""
    bits = 8 * a.dtype.itemsize
    result, shift = a, bits // 2
    while shift:
        mask = sum(((1 << shift) - 1) << bit for bit in range(0, bits, 2 * shift))
        low = np.array(mask, a.dtype)
        result = ((result & low) << np.array(shift, a.dtype)) | ((result >> np.array(shift, a.dtype)) & low)
        shift //= 2
    return result


def extract_field(a: Array, start: Array, length: Array, bits: int) -> Array:
    """Return the field of `length` bits from `start` on, sign-extended for signed types (manual: bfe)."""
    last = np.minimum(start + length - 1, bits - 1)
    plain = a.view(f"u{bits // 8}").astype(np.uint64)
    field = np.where(start >= bits, np.uint64(0), plain >> np.minimum(start, 63).astype(np.uint64))
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    mask = np.where(length >= 64, ones, (np.uint64(1) << np.minimum(length, 63).astype(np.uint64)) - np.uint64(1))
    field = field & mask
    if a.dtype.kind == "i":
        sign = (plain >> np.maximum(last, 0).astype(np.uint64)) & np.uint64(1)
        fill = np.minimum(length, np.maximum(bits - start, 0)).astype(np.uint64)
        above = np.where(fill >= 64, np.uint64(0), ones << np.minimum(fill, np.uint64(63)))
        field = np.where((length > 0) & (sign != 0), field | above, field)
    return field.astype(f"u{bits // 8}").view(a.dtype)


def multiply_carryless(a: Array, b: Array, half: str) -> Array:
    """Return a half of the carry-less product of 64-bit values."""
    x, y = a.view(np.uint64), b.view(np.uint64)
    low, high = np.zeros(np.broadcast(x, y).shape, np.uint64), np.zeros(np.broadcast(x, y).shape, np.uint64)
    for bit_number in range(64):
        bit = (y >> np.uint64(bit_number)) & np.uint64(1)
        ones = np.uint64(0) - bit
        low ^= (x << np.uint64(bit_number)) & ones
        # NumPy shifts by 64 to 0.
        high ^= (x >> np.uint64(64 - bit_number)) & ones
    return (low if half == "lo" else high).view(a.dtype)
