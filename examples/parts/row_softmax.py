"""Online softmax with one row of scores per thread, as `tcgen05.ld` reads it: a row needs no shuffles.

Blackwell's FMA pipe computes two f32 in one instruction, on register pairs (f32x2).
"""

from __future__ import annotations

from examples.parts.arithmetic import pack, power_of_two, power_of_two_by_fma, repeat, unpack
from pyptx import intrinsic, ptx, reg
from pyptx.types import b64, bf16x2, f32

LOWEST, HEADROOM = -1.0e30, 8.0
"""A peak below every score; and how much larger, in powers of two, a new peak must be to replace the old one."""
SHARE = 4
"""One in so many exponentials is a polynomial, on the FMA pipe instead of the unit for special functions."""


@intrinsic
def raise_peak(scores: reg.RegArray, peak: reg.Reg, scale: float) -> reg.Reg:
    """Update the peak of a row if a score exceeds it by more than the headroom; return the factor of earlier sums."""
    largest = [reg.from_(score, f32) for score in scores[:4]]
    for i in range(4, scores.count, 2):
        ptx.inst.max.f32(largest[i // 2 % 4], largest[i // 2 % 4], scores[i], scores[i + 1])
    ptx.inst.max.f32(largest[0], largest[0], largest[1], largest[2])
    ptx.inst.max.f32(largest[0], largest[0], largest[3])
    growth = (largest[0] - peak) * scale
    grows = growth > HEADROOM
    factor = ptx.selp(f32, power_of_two(-growth), 1.0, grows)
    ptx.selp(f32, peak, largest[0], peak, grows)
    return factor


@intrinsic
def weigh(scores: reg.RegArray, peak: reg.Reg, weights: reg.RegArray, scale: float) -> reg.Reg:
    """Write 2 ** ((score - peak) * scale) as bf16 pairs, and return their sum; two chains of additions of pairs."""
    scales, bias, totals = repeat(scale), repeat(-peak * scale), [repeat(0.0) for _ in range(2)]
    for i, pair in enumerate(weights):
        exponents = reg.scalar(b64)
        ptx.inst.fma.rn.f32x2(exponents, pack(scores[2 * i], scores[2 * i + 1]), scales, bias)
        if i % SHARE == 0:
            low, high = unpack(power_of_two_by_fma(exponents))
        else:
            low, high = (power_of_two(exponent) for exponent in unpack(exponents))
        ptx.inst.add.rn.f32x2(totals[i % 2], totals[i % 2], pack(low, high))
        ptx.cvt(bf16x2, f32, pair, [high, low], rounding="rn")
    ptx.inst.add.rn.f32x2(totals[0], totals[0], totals[1])
    low, high = unpack(totals[0])
    return low + high
