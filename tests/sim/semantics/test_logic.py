"""Logic, shifts and packing against Python's integers."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# References are lambdas of any number of Python integers.

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.sim.lanes import compute, integers

ONES = 0xFFFFFFFF


def _check(code: str, names: str, reference: Callable[..., int], bits: int = 32) -> None:
    """Run an instruction on random words; shift counts slightly exceed the width."""
    dtype = np.dtype(f"u{bits // 8}")
    inputs = {n: integers(dtype if n in "abe" else np.uint32, seed=s) for s, n in enumerate(names)}
    got = compute(code, inputs, {"d": dtype})["d"]
    want = [reference(*[int(v) for v in row]) & ((1 << bits) - 1) for row in zip(*inputs.values(), strict=True)]
    assert got.tolist() == want


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_bitwise_and_shifts(bits: int) -> None:
    _check(f"and.b{bits} %d, %a, %b;", "ab", lambda a, b: a & b, bits)
    _check(f"xor.b{bits} %d, %a, %b;", "ab", lambda a, b: a ^ b, bits)
    _check(f"not.b{bits} %d, %a;", "a", lambda a: ~a, bits)
    _check(f"cnot.b{bits} %d, %a;", "a", lambda a: int(a == 0), bits)
    _check(f"shl.b{bits} %d, %a, %c;", "ac", lambda a, c: a << min(c, bits), bits)
    _check(f"shr.u{bits} %d, %a, %c;", "ac", lambda a, c: a >> min(c, bits), bits)
    sign = 1 << (bits - 1)
    _check(f"shr.s{bits} %d, %a, %c;", "ac", lambda a, c: ((a ^ sign) - sign) >> min(c, bits), bits)


@pytest.mark.parametrize("table", [0x00, 0x1E, 0x96, 0xCA, 0xE8, 0xFF])
def test_lop3(table: int) -> None:
    def reference(a: int, b: int, e: int) -> int:
        bits_of_result = [
            table >> ((a >> bits_of_result & 1) << 2 | (b >> bits_of_result & 1) << 1 | (e >> bits_of_result & 1)) & 1
            for bits_of_result in range(32)
        ]
        return sum(bit << bits_of_result for bits_of_result, bit in enumerate(bits_of_result))

    _check(f"lop3.b32 %d, %a, %b, %e, {table};", "abe", reference)


def test_funnel_shifts() -> None:
    def join_words(a: int, b: int) -> int:
        return b << 32 | a

    _check("shf.l.wrap.b32 %d, %a, %b, %c;", "abc", lambda a, b, c: join_words(a, b) << (c & 31) >> 32)
    _check("shf.r.wrap.b32 %d, %a, %b, %c;", "abc", lambda a, b, c: join_words(a, b) >> (c & 31))
    _check("shf.l.clamp.b32 %d, %a, %b, %c;", "abc", lambda a, b, c: join_words(a, b) << min(c, 32) >> 32)
    _check("shf.r.clamp.b32 %d, %a, %b, %c;", "abc", lambda a, b, c: join_words(a, b) >> min(c, 32))


def test_packing_and_unpacking() -> None:
    _check(".reg .b16 %x, %y;\nmov.b32 {%x, %y}, %a;\nmov.b32 %d, {%y, %x};", "a", lambda a: a >> 16 | a << 16)
    code = ".reg .b8 %w<4>;\nmov.b32 {%w0, %w1, %w2, %w3}, %a;\nmov.b32 %d, {%w3, %w2, %w1, %w0};"
    _check(code, "a", lambda a: int.from_bytes(a.to_bytes(4, "little"), "big"))
    code = ".reg .b128 %q;\nmov.b128 %q, {%a, %b};\nmov.b128 {%rd1, %rd2}, %q;\nxor.b64 %d, %rd1, %rd2;"
    _check(code, "ab", lambda a, b: a ^ b, 64)


def test_selection() -> None:
    code = "setp.lt.u32 %p1, %a, %b;\nselp.b32 %d, %a, %b, %p1;"
    _check(code, "ab", min)
    _check("slct.b32.s32 %d, %a, %b, %c;", "abc", lambda a, b, c: a if c < 1 << 31 else b)
    _check("cvt.pack.sat.u16.s32 %d, %a, %b;", "ab", lambda a, b: _u16(a) << 16 | _u16(b))


def _u16(x: int) -> int:
    return min(max(x - (1 << 32 if x >> 31 else 0), 0), 0xFFFF)


@pytest.mark.parametrize(
    "cmp", ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
)
def test_comparisons_of_floats(cmp: str) -> None:
    pool = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    a, b = (grid.ravel() for grid in np.meshgrid(pool, pool))
    code = f"setp.{cmp}.f32 %p1|%p2, %a, %b;\nset.{cmp}.u32.f32 %f, %a, %b;\n"
    code += "selp.u32 %d, 1, 0, %p1;\nselp.u32 %e, 1, 0, %p2;"
    got = compute(code, {"a": a, "b": b}, dict.fromkeys("def", np.uint32))
    has_nan = np.isnan(a) | np.isnan(b)
    plain = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "nu": ~has_nan}
    if cmp in ("num", "nan"):
        want = has_nan if cmp == "nan" else ~has_nan
    else:
        want = plain[cmp[:2]] | has_nan if cmp.endswith("u") else plain[cmp] & ~has_nan
    assert got["d"].tolist() == want.astype(int).tolist()
    assert got["e"].tolist() == (~want).astype(int).tolist()
    assert got["f"].tolist() == (want * ONES).tolist()


def test_predicates_join() -> None:
    a = np.arange(64, dtype=np.uint32)
    code = "setp.ge.u32 %p2, %a, 32;\nsetp.lt.and.u32 %p1, %a, 40, %p2;\nselp.u32 %d, 1, 0, %p1;\n"
    code += "setp.lt.xor.u32 %p1, %a, 40, !%p2;\nselp.u32 %e, 1, 0, %p1;"
    got = compute(code, {"a": a}, {"d": np.uint32, "e": np.uint32})
    assert got["d"].tolist() == [int(32 <= t < 40) for t in range(64)]
    assert got["e"].tolist() == [int((t < 40) != (t < 32)) for t in range(64)]
