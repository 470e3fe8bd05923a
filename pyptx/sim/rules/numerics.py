"""Values: NaN, infinity, lost bits, outputs that nobody writes. Reported on request only: PTX0992-PTX0998."""

from __future__ import annotations

from pyptx.sim.rules.definitions import ARITHMETIC, warning

_INDEXED = """\
mov.u64 %rd1, flag;
    {}
    add.s64 %rd1, %rd1, %rd2;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ld.global.u32 %r3, [%rd1];"""
NAN = warning(
    992,
    "NaN first produced here",
    "No operand is NaN but the result is: 0 * inf, inf - inf, 0 / 0, the root or logarithm of a negative number, or a "
    "value beyond a format without infinity.",
    "check the operands: guard the division, clamp the argument, or scale the values",
    wrong=ARITHMETIC.format("mov.f32 %f0, 0fFF800000;\n    sub.f32 %f1, %f0, %f0;"),
    right=ARITHMETIC.format("mov.f32 %f0, 0f3F800000;\n    sub.f32 %f1, %f0, %f0;"),
)
INFINITY = warning(
    993,
    "infinity first produced here",
    "All operands are finite but the result is not: a sum, product or conversion beyond the type's range, or a "
    "division by zero. An infinity that a kernel writes itself is an operand.",
    "scale the values, accumulate in a wider type, or convert with `.satfinite`",
    wrong=ARITHMETIC.format("mov.f32 %f0, 0f00000000;\n    rcp.approx.f32 %f1, %f0;"),
    right=ARITHMETIC.format("mov.f32 %f0, 0f3F800000;\n    rcp.approx.f32 %f1, %f0;"),
)
ADDRESS_OVERFLOW = warning(
    994,
    "integer overflow in address arithmetic",
    "The exact result does not fit the type, and the wrapped value becomes part of an address or a coordinate.",
    "compute the index in 64 bits: `mul.wide`, `mad.wide`, or `cvt` to 64 bits before the arithmetic",
    wrong=ARITHMETIC.format(_INDEXED.format("mul.lo.s32 %r2, %r1, 134217728;\n    mul.wide.s32 %rd2, %r2, 4;")),
    right=ARITHMETIC.format(_INDEXED.format("mul.wide.s32 %rd2, %r1, 536870912;")),
)
NARROWED = warning(
    995,
    "value lost by narrowing",
    "The dropped bits are neither zeros nor copies of the sign: the remaining bits equal the value neither as a "
    "signed nor as an unsigned number.",
    "keep the value wide, or narrow with `.sat`",
    wrong=ARITHMETIC.format("mul.lo.s32 %r2, %r1, 100000;\n    cvt.u16.u32 %h1, %r2;"),
    right=ARITHMETIC.format("mul.lo.s32 %r2, %r1, 1000;\n    cvt.u16.u32 %h1, %r2;"),
)
INEXACT = warning(
    996,
    "integer not exact as a floating-point number",
    "f32 represents all integers up to 2^24, f64 up to 2^53, f16 up to 2^11, bf16 up to 2^8; larger ones are rounded.",
    "convert to a wider type, or keep the integer",
    wrong=ARITHMETIC.format("mad.lo.s32 %r2, %r1, 1, 16777216;\n    cvt.rn.f32.s32 %f1, %r2;"),
    right=ARITHMETIC.format("mad.lo.s32 %r2, %r1, 2, 16777216;\n    cvt.rn.f32.s32 %f1, %r2;"),
)
OUT_OF_RANGE = warning(
    997,
    "floating-point number outside the integer's range",
    "A value that does not fit silently becomes the nearest limit of the integer type, NaN becomes 0 or the "
    "smallest integer (cvt).",
    "clamp before the conversion, or write `.sat` if the limit is intended",
    wrong=ARITHMETIC.format("mov.f32 %f0, 0fBF800000;\n    cvt.rzi.u32.f32 %r2, %f0;"),
    right=ARITHMETIC.format("mov.f32 %f0, 0fBF000000;\n    cvt.rzi.u32.f32 %r2, %f0;"),
)
UNWRITTEN = warning(
    998,
    "output elements never written",
    "Elements that no thread writes keep the previous contents of the array; those of an output that the call "
    "allocates are undefined.",
    "let the grid cover the whole output, tail included, or pass an initialized array as `out=`",
)
