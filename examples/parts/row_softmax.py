"""Online softmax with one row of scores per thread, as `tcgen05.ld` reads it: a row needs no shuffles."""

from __future__ import annotations

from examples.parts.arithmetic import power_of_two, power_of_two_by_fma
from pyptx import intrinsic, ptx, reg
from pyptx.types import bf16x2, f32

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
    """Write 2 ** ((score - peak) * scale) as bf16 pairs, and return their sum; four chains of additions."""
    bias, totals = -peak * scale, [reg.scalar(f32, 0.0) for _ in range(4)]
    for i, pair in enumerate(weights):
        compute = power_of_two_by_fma if i % SHARE == 0 else power_of_two
        low, high = (compute(ptx.mad(score, scale, bias)) for score in scores[2 * i : 2 * i + 2])
        for j, weight in enumerate((low, high)):
            totals[2 * (i % 2) + j] += weight
        ptx.cvt(bf16x2, f32, pair, [high, low], rounding="rn")
    return (totals[0] + totals[1]) + (totals[2] + totals[3])
