"""Online softmax over scores in the registers of a wgmma accumulator.

Register 4 j + 2 h + e of an accumulator is column 8 j + 2 (lane & 3) + e of row h of the lane's two rows, which are
(lane >> 2) + 8 h of the warp's 16. Four lanes share a row. Per row, `peaks` are the largest scores times the scale, in
units of log2, and `totals` this lane's share of the sum of weights. Knows no particular kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from examples.parts.arithmetic import power_of_two, power_of_two_by_scalar_fma
from pyptx import intrinsic, ptx, reg
from pyptx.types import bf16x2, f32

LOWEST = -1.0e30
"""The peak before the first score: below every score, but finite, so that differences of peaks are numbers."""


def make_rows() -> tuple[reg.RegArray, reg.RegArray]:
    """Return the peaks and totals of no scores."""
    peaks, totals = reg.array(f32, 2, name="peak"), reg.array(f32, 2, name="total")
    for half in range(2):
        ptx.mov(f32, peaks[half], LOWEST)
        ptx.mov(f32, totals[half], 0)
    return peaks, totals


def list_row(registers: Sequence[reg.Reg], half: int) -> list[reg.Reg]:
    """Return the registers of one of the lane's two rows."""
    return [register for i, register in enumerate(registers) if i // 2 % 2 == half]


@intrinsic
def mask_scores(scores: reg.RegArray, limits: list[reg.Reg], *, before: bool = False) -> None:
    """Exclude the scores of columns from a limit on, or those before it. There is one limit (s32) per row, counted from
    the lane's first column."""
    for i, score in enumerate(scores):
        column, limit = 8 * (i // 4) + i % 2, limits[i // 2 % 2]
        ptx.selp(f32, score, score, -math.inf, limit <= column if before else limit > column)


@intrinsic
def raise_peaks(
    scores: reg.RegArray, peaks: reg.RegArray, totals: reg.RegArray, scale: float, headroom: float = 0.0
) -> list[reg.Reg]:  # fmt: skip
    """Update the peaks with new scores, and rescale the totals. Return each row's factor for `rescale`. With headroom,
    a peak stays until a score exceeds it by that many powers of two: most factors are 1."""
    factors = list[reg.Reg]()
    for half in range(2):
        row = list_row(scores.regs(), half)
        # Two chains of maxima: each takes half the latency.
        largest = [reg.from_(score, f32) for score in row[:2]]
        for i, score in enumerate(row[2:]):
            ptx.inst.max.f32(largest[i % 2], largest[i % 2], score)
        ptx.inst.max.f32(largest[0], largest[0], largest[1])
        ptx.warp.reduce_max(largest[0], width=4)
        peak = peaks[half].max(largest[0] * scale)
        if headroom:
            ptx.selp(f32, peak, peak, peaks[half], peak - peaks[half] > headroom)
        factors.append(power_of_two(peaks[half] - peak))
        ptx.mov(f32, peaks[half], peak)
        ptx.mul(f32, totals[half], totals[half], factors[half])
    return factors


@intrinsic
def weigh(scores: reg.RegArray, peaks: reg.RegArray, totals: reg.RegArray, scale: float, share: int = 0) -> None:
    """Replace scores by weights, 2 ** (score * scale - peak), and add them to the totals. With a `share` of n, every
    n-th weight is a polynomial, which spares the special function unit."""
    for half in range(2):
        bias = -peaks[half]
        for i, score in enumerate(list_row(scores.regs(), half)):
            exponentiate = power_of_two_by_scalar_fma if share and i % share == share - 1 else power_of_two
            ptx.mov(f32, score, exponentiate(ptx.mad(score, scale, bias)))
            ptx.add(f32, totals[half], totals[half], score)


@intrinsic
def rescale(sums: reg.RegArray, factors: Sequence[reg.Reg]) -> None:
    """Multiply each row by its factor."""
    for half in range(2):
        for register in list_row(sums.regs(), half):
            ptx.mul(f32, register, register, factors[half])


@intrinsic
def rescale_if_needed(sums: reg.RegArray, factors: Sequence[reg.Reg]) -> None:
    """Multiply each row by its factor, unless all factors of the warp are 1."""
    with ptx.if_(ptx.warp.vote_any((factors[0] != 1.0) | (factors[1] != 1.0))):
        rescale(sums, factors)


@intrinsic
def pack(values: Iterable[reg.Reg], packed: Iterable[reg.Reg]) -> None:
    """Round values to bf16, two to a register. Weights packed so are the A operand of the next product: the layouts of
    an accumulator and of A in registers agree."""
    pending = iter(values)
    for pair in packed:
        low, high = next(pending), next(pending)
        ptx.cvt(bf16x2, f32, pair, [high, low], rounding="rn")


@intrinsic
def finish_rows(peaks: reg.RegArray, totals: reg.RegArray) -> tuple[list[reg.Reg], list[reg.Reg]]:
    """Return for each row the inverse of its total, summed over its four lanes, and its log-sum-exp."""
    inverses, logarithms = list[reg.Reg](), list[reg.Reg]()
    for half in range(2):
        ptx.warp.reduce_sum(totals[half], width=4)
        inverse, logarithm = reg.scalar(f32), reg.scalar(f32)
        ptx.inst.rcp.rn.f32(inverse, totals[half])
        ptx.inst.lg2.approx.f32(logarithm, totals[half])
        inverses.append(inverse)
        logarithms.append((logarithm + peaks[half]) * math.log(2))
    return inverses, logarithms
