"""Video instructions against Python's integers."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# References are lambdas of Python integers.

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.sim.lanes import compute, integers

Reference = Callable[[int, int, int], int]


def _check(code: str, reference: Reference) -> None:
    inputs = {n: integers(np.uint32, seed=s) for s, n in enumerate("abc")}
    got = compute(code, inputs, {"d": np.uint32})["d"]
    want = [reference(*[int(v) for v in row]) & 0xFFFFFFFF for row in zip(*inputs.values(), strict=True)]
    assert got.tolist() == want


def _part(x: int, unit: str, signed: bool) -> int:
    bits = {"b": 8, "h": 16}.get(unit[:1], 32)
    part = x >> bits * int(unit[1:] or 0) & ((1 << bits) - 1)
    return part - (1 << bits) if signed and part >> (bits - 1) else part


def _clamp(x: int, signed: bool, bits: int = 32) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return min(max(x, low), high)


def _signed(x: int) -> int:
    return _part(x, "", True)


def _without_sign(x: int, most: int) -> int:
    """Saturate as ptxas's code does for part of a word."""
    return x if 0 <= x <= most else most


def _largest(x: int, c: int) -> int:
    """Return the larger value as ptxas's code for `.max` does: compared in 64 bits without a sign."""
    return max(x & ((1 << 64) - 1), c)


def _wrap(x: int, bits: int) -> int:
    """Keep the low bits of a number, with a sign."""
    return (x + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


@pytest.mark.parametrize(
    ("code", "reference"),
    [
        ("vadd.s32.u32.s32 %d, %a.b1, %b.h1;", lambda a, b, c: _part(a, "b1", False) + _part(b, "h1", True)),
        ("vsub.s32.s32.s32.sat %d, %a, %b;", lambda a, b, c: _clamp(_signed(a) - _signed(b), True)),
        ("vabsdiff.u32.u32.u32.add %d, %a, %b, %c;", lambda a, b, c: abs(a - b) + c),
        ("vadd.u32.u32.u32.sat %d, %a, %b;", lambda a, b, c: a + b),
        ("vsub.u32.u32.u32.sat %d, %a, %b;", lambda a, b, c: max(a - b, 0)),
        ("vadd.u32.u32.u32.sat %d.b0, %a, %b, %c;", lambda a, b, c: c & ~0xFF | min(a + b, 255)),
        ("vadd.u32.u32.u32.max %d, %a, %b, %c;", lambda a, b, c: _largest(_signed(a + b & 0xFFFFFFFF), c)),
        ("vsub.u32.s32.s32.min %d, %a, %b, %c;", lambda a, b, c: (
            a - b & 0xFFFFFFFF if _signed(a - b & 0xFFFFFFFF) >= 0 and a - b & 0xFFFFFFFF < c else c)),
        ("vmax.s32.u32.u32.min %d, %a, %b, %c;", lambda a, b, c: min(max(a, b), _signed(c))),
        ("vabsdiff.s32.u32.u32.max %d, %a, %b, %c;", lambda a, b, c: max(abs(a - b), _signed(c))),
        ("vmin.u32.s32.s32.max %d, %a, %b, %c;", lambda a, b, c: _largest(min(_signed(a), _signed(b)), c)),
        ("vshl.u32.u32.u32.clamp.min %d, %a, %b, %c;", lambda a, b, c: min(a << min(b, 32), c)),
        ("vsub.s32.s32.s32.sat %d.b1, %a.b0, %b.b0, %c;", lambda a, b, c: c & ~0xFF00 | 256 * _without_sign(
            _part(a, "b0", True) - _part(b, "b0", True), 127)),
        ("vshr.s32.u32.u32.sat.wrap %d.b0, %a, %b, %c;", lambda a, b, c: c & ~0xFF
            | min(a >> (b & 31), 0x7FFFFFFF) & 255),
        ("vmin.s32.s32.s32 %d.b2, %a, %b, %c;", lambda a, b, c: c & ~0xFF0000
            | (min(_signed(a), _signed(b)) & 255) << 16),
        ("vmax.u32.u32.u32.sat %d.h0, %a, %b.b3, %c;", lambda a, b, c: c & ~0xFFFF
            | _clamp(max(a, _part(b, "b3", False)), False, 16)),
        ("vshl.u32.u32.u32.sat.clamp %d, %a, %b;", lambda a, b, c: _clamp(_wrap(a << min(b, 32), 34), False)),
        ("vshl.u32.u32.u32.wrap %d, %a, %b;", lambda a, b, c: a << (b & 31)),
        ("vshr.s32.s32.u32.clamp.add %d, %a, %b, %c;", lambda a, b, c: (_signed(a) >> min(b, 32)) + c),
        ("vmad.s32.s32.s32 %d, %a.h0, %b.b0, -%c;", lambda a, b, c: (
            _part(a, "h0", True) * _part(b, "b0", True) - _signed(c))),
        ("vmad.u32.u32.u32.shr15 %d, %a.h1, %b.h0, %c;", lambda a, b, c: (
            _part(a, "h1", False) * _part(b, "h0", False) + _signed(c)) >> 15),
        ("vmad.u32.s32.s32.sat %d, %a, %b, %c;", lambda a, b, c: (
            _clamp(_signed(a) * _signed(b) + _signed(c), True))),
        ("vset.s32.u32.lt.max %d, %a, %b.b0, %c;", lambda a, b, c: max(
            int(_signed(a) < _part(b, "b0", False)), _signed(c)) & 0xFFFFFFFF),
    ],
)  # fmt: skip
def test_scalar(code: str, reference: Reference) -> None:
    _check(code, reference)


def _simd(bits: int, function: Callable[[int, int], int], *, signed: bool = False, adds: bool = False) -> Reference:
    unit = "b" if bits == 8 else "h"

    def reference(a: int, b: int, c: int) -> int:
        parts = [
            function(_part(a, f"{unit}{index}", signed), _part(b, f"{unit}{index}", signed))
            for index in range(32 // bits)
        ]
        if adds:
            return sum(parts) + c
        return sum((v & ((1 << bits) - 1)) << bits * index for index, v in enumerate(parts))

    return reference


@pytest.mark.parametrize(
    ("code", "reference"),
    [
        ("vadd4.u32.u32.u32 %d, %a, %b, %c;", _simd(8, lambda x, y: x + y)),
        ("vadd2.s32.s32.s32.sat %d, %a, %b, %c;", _simd(16, lambda x, y: _clamp(x + y, True, 16), signed=True)),
        ("vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;", _simd(8, lambda x, y: abs(x - y), adds=True)),
        ("vavrg4.u32.u32.u32 %d, %a, %b, %c;", _simd(8, lambda x, y: (x + y + 1) // 2)),
        ("vmin2.s32.s32.s32 %d, %a, %b, %c;", _simd(16, min, signed=True)),
        ("vset4.u32.u32.lt %d, %a, %b, %c;", _simd(8, lambda x, y: int(x < y))),
        ("vset4.u32.u32.lt.add %d, %a, %b, %c;", _simd(8, lambda x, y: int(x < y), adds=True)),
        ("vmax4.u32.u32.u32 %d.b20, %a, %b, %c;", lambda a, b, c: c & 0xFF00FF00
            | _simd(8, max)(a, b, c) & 0x00FF00FF),
        ("vadd2.u32.u32.u32 %d, %a.h30, %b.h22, %c;", lambda a, b, c: (
            (b >> 16) + (b & 0xFFFF) & 0xFFFF) << 16 | (a + b & 0xFFFF)),
    ],
)  # fmt: skip
def test_simd(code: str, reference: Reference) -> None:
    _check(code, reference)
