"""Arithmetic that several kernels use."""

from __future__ import annotations

from pyptx import intrinsic, ptx, reg
from pyptx.types import f32, u32


def power_of_two(exponent: reg.Reg) -> reg.Reg:
    """Return 2 ** exponent."""
    power = reg.scalar(f32)
    ptx.inst.ex2.approx.ftz.f32(power, exponent)
    return power


@intrinsic
def power_of_two_by_fma(exponent: reg.Reg) -> reg.Reg:
    """Return 2 ** exponent, within 8e-5 of it, without the unit for special functions; 2 ** -125 for all exponents
    below -125. The exponent must be less than 127.

    Adding 1.5 * 2 ** 23 rounds to an integer n in the lowest bits. A polynomial gives 2 to the rest, from -1/2 to 1/2,
    and n is added to its exponent bits.
    """
    clamped = exponent.max(_SMALLEST)
    shifted = clamped + _ROUNDER
    rest = clamped - (shifted - _ROUNDER)
    power = reg.from_(_COEFFICIENTS[0], f32)
    for coefficient in _COEFFICIENTS[1:]:
        power = ptx.mad(power, rest, coefficient)
    return (ptx.bitcast(u32, power) + (ptx.bitcast(u32, shifted) << 23)).view(f32)


_SMALLEST, _ROUNDER = -125.0, 1.5 * 2.0**23
_COEFFICIENTS = (0.0551717, 0.2426112, 0.69326099, 0.99992807)
"""Of least relative error from -1/2 to 1/2: 7.5e-5."""
