"""Arithmetic that several kernels use."""

from __future__ import annotations

from pyptx import ptx, reg
from pyptx.types import f32


def power_of_two(exponent: reg.Reg) -> reg.Reg:
    """Return 2 ** exponent."""
    power = reg.scalar(f32)
    ptx.inst.ex2.approx.ftz.f32(power, exponent)
    return power
