"""Arithmetic that several kernels use."""

from __future__ import annotations

from pyptx import intrinsic, ptx, reg
from pyptx.types import b64, f32, u32


def power_of_two(exponent: reg.Reg) -> reg.Reg:
    """Return 2 ** exponent."""
    power = reg.scalar(f32)
    ptx.inst.ex2.approx.ftz.f32(power, exponent)
    return power


@intrinsic
def power_of_two_by_fma(exponents: reg.Reg) -> reg.Reg:
    """Return 2 ** exponent for a pair of f32, within 8e-5 of it, without the unit for special functions; 2 ** -125 for
    all exponents below -125. They must be less than 127.

    Adding 1.5 * 2 ** 23 rounds to an integer n in the lowest bits. A polynomial gives 2 to the rest, from -1/2 to 1/2,
    and n is added to its exponent bits.
    """
    clamped = pack(*(exponent.max(_SMALLEST) for exponent in unpack(exponents)))
    rounder, shifted, rest = repeat(_ROUNDER), reg.scalar(b64), reg.scalar(b64)
    ptx.inst.add.rn.f32x2(shifted, clamped, rounder)
    ptx.inst.sub.rn.f32x2(rest, shifted, rounder)
    ptx.inst.sub.rn.f32x2(rest, clamped, rest)
    power = repeat(_COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        ptx.inst.fma.rn.f32x2(power, power, rest, repeat(coefficient))
    halves = [
        (ptx.bitcast(u32, value) + (ptx.bitcast(u32, number) << 23)).view(f32)
        for value, number in zip(unpack(power), unpack(shifted), strict=True)
    ]
    return pack(*halves)


@intrinsic
def power_of_two_by_scalar_fma(exponent: reg.Reg) -> reg.Reg:
    """Return the same as `power_of_two_by_fma` for a single f32, on targets without f32x2."""
    clamped = exponent.max(_SMALLEST)
    shifted = clamped + _ROUNDER
    rest = clamped - (shifted - _ROUNDER)
    power = reg.scalar(f32, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        power = ptx.mad(power, rest, coefficient)
    return (ptx.bitcast(u32, power) + (ptx.bitcast(u32, shifted) << 23)).view(f32)


_SMALLEST, _ROUNDER = -125.0, 1.5 * 2.0**23
_COEFFICIENTS = (0.0551717, 0.2426112, 0.69326099, 0.99992807)
"""Of least relative error from -1/2 to 1/2: 7.5e-5."""


def pack(low: reg.Reg, high: reg.Reg) -> reg.Reg:
    """Return a register pair; ptxas places it so that this takes no instruction if the registers are adjacent."""
    return ptx.bitcast(b64, [low, high])


def unpack(pair: reg.Reg) -> tuple[reg.Reg, reg.Reg]:
    """Return both halves of a register pair."""
    low, high = reg.scalar(f32), reg.scalar(f32)
    ptx.inst.mov.b64([low, high], pair)
    return low, high


def repeat(value: reg.Reg | float) -> reg.Reg:
    """Return a register pair with the same f32 twice."""
    half = value if isinstance(value, reg.Reg) else reg.scalar(f32, value)
    return pack(half, half)
