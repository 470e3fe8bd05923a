"""Pairs and fours of small numbers in one register, with stochastic rounding and scale factors.

Manual: cvt, Packed Floating Point Data Types. The first operand of an instruction lands in the upper bits.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics.arrays import F32, F64, U32, Array
from pyptx.sim.numerics.formats import decode, table
from pyptx.sim.numerics.rounding import encode, encode_s2f6, encode_ue8m0

WIDTHS = {"e2m1": 4, "f16": 16, "bf16": 16}
"""Bits that each element takes in a register, where they are not 8: e2m3 and e3m2 have two zero bits above them."""

_RANDOM_BITS = {"f16": 13, "bf16": 16, "e2m1": 8}
"""Random bits that one element uses, where they are not 16."""


def element_width(name: str) -> int:
    """Return the bits that one element takes in a register."""
    return WIDTHS.get(name, 8)


def join(elements: list[Array], name: str) -> Array:
    """Put elements side by side in a register, the first one uppermost."""
    width = element_width(name)
    bits = max(width * len(elements), 8)
    dtype = np.dtype(f"u{bits // 8}")
    result = np.zeros(np.shape(elements[0]), dtype)
    for element in elements:
        # One step: a shift by all of the type's bits is undefined, and the first round shifts zeros only.
        result = (result << dtype.type(width % bits)) | element.astype(dtype)
    return result


def split(register: Array, name: str, count: int) -> list[Array]:
    """Take a register apart, the uppermost element first."""
    width = element_width(name)
    dtype = np.dtype("u2" if width == 16 else "u1")
    mask = register.dtype.type((1 << width) - 1)
    return [((register >> register.dtype.type(width * place)) & mask).astype(dtype) for place in reversed(range(count))]


def pack(values: list[F64], name: str, rounding: str = "rn", *, satfinite: bool = False, relu: bool = False) -> Array:
    """Round values and pack them, the first one uppermost."""
    if name == "ue8m0":
        return join([encode_ue8m0(value, rounding, satfinite=satfinite) for value in values], name)
    if name == "s2f6":
        return join([encode_s2f6(value, rounding, relu=relu) for value in values], name)
    return join([encode(value, name, rounding, satfinite=satfinite, relu=relu) for value in values], name)


def unpack(register: Array, name: str, count: int) -> list[F32]:
    """Return the values of a pack, the uppermost one first."""
    return [decode(codes, name).astype(np.float32) for codes in split(register, name, count)]


def pack_stochastic(values: list[F64], name: str, random: U32, *, satfinite: bool = False, relu: bool = False) -> Array:
    """Round values with the bits of one random register (`cvt.rs`) and pack them.

    Pairs have one half of the register each. Fours: the first two share the upper half, the last two the lower one;
    e2m1 takes the upper byte of each half for the first two and the lower byte for the last two.
    """
    bits = _RANDOM_BITS.get(name, 16)
    mask = np.uint32((1 << bits) - 1)
    codes = [
        encode(
            value,
            name,
            "rs",
            satfinite=satfinite,
            relu=relu,
            random=((random >> np.uint32(shift)) & mask).astype(np.uint64),
            random_bits=bits,
        )
        for value, shift in zip(values, _random_places(name, len(values)), strict=True)
    ]
    return join(codes, name)


def _random_places(name: str, count: int) -> tuple[int, ...]:
    if count == 2:
        return 16, 0
    return (24, 8, 16, 0) if name == "e2m1" else (16, 16, 0, 0)


def scales(register: Array) -> tuple[F64, F64]:
    """Return the two ue8m0 scale factors of a register, the upper one first."""
    high, low = split(register, "ue8m0", 2)
    return table("ue8m0")[high].astype(np.float64), table("ue8m0")[low].astype(np.float64)


def rescale_down(values: list[F64], register: Array) -> list[F64]:
    """Divide values by their scale factors, before rounding (`.scaled::n2::ue8m0`)."""
    return [value / scale for value, scale in zip(values, scales(register), strict=True)]


def rescale_up(values: list[F64], register: Array) -> list[F64]:
    """Multiply values by their scale factors, after decoding (`.scaled::n2::ue8m0`)."""
    return [value * scale for value, scale in zip(values, scales(register), strict=True)]
