"""`check="numerics"`: first NaN and infinity, addresses that wrap, and conversions that lose information.

In a body, `//@` marks the line of the only finding. Near misses compute almost the same and are clean.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from pyptx.tensormap import ElementType, TensorMap
from tests.messages import raises
from tests.sim.kernels import kernel

Findings = list[Finding]


def findings(body: str, check: str = "numerics", threads: int = 64, **options: Any) -> Findings:
    """Run a body in some threads and return its findings."""
    out = np.zeros(threads, np.int32)
    return sim.run(parse(kernel(body)), "k", block=threads, args=(out,), check=check, **options).hazards


def the_one(body: str, code: str, *words: str, count: int, thread: int = 0) -> Finding:
    """Expect one finding at the marked line, by a thread, with these words and this count."""
    lines = [number for number, line in enumerate(kernel(body).splitlines(), 1) if "//@" in line]
    (violation,) = findings(body)
    assert violation.place.origin is not None
    assert (violation.rule.code, violation.place.origin.line, violation.count) == (code, lines[0], count), str(
        violation
    )
    assert violation.agent is not None
    assert (violation.agent.cta, violation.agent.warp * 32 + violation.agent.lane) == (0, thread)
    for word in words:
        assert word in str(violation)
    return violation


ONE, ZERO, INF, LARGE, LESS = "0f3F800000", "0f00000000", "0f7F800000", "0f7F000000", "0fBF800000"
DOUBLE = ".reg .f64 %fd<3>; mov.f64 %fd1, 0d7FE0000000000000;"
PRODUCED = [
    ("sum", f"mov.f32 %f1, {LARGE};\nadd.f32 %f2, %f1, %f1; //@\nadd.f32 %f3, %f2, %f1;", "PTX0993",
     ("a = 1.7014118e+38, b = 1.7014118e+38: the result is inf",)),
    ("inf - inf", f"mov.f32 %f1, {INF};\nsub.rn.f32 %f2, %f1, %f1; //@\nadd.f32 %f3, %f2, %f2;", "PTX0992",
     ("a = inf, b = inf: the result is nan",)),
    ("0 * inf", f"mov.f32 %f1, {INF}; mov.f32 %f2, {ZERO};\nfma.rn.f32 %f3, %f1, %f2, %f2; //@", "PTX0992",
     ("a = inf, b = 0.0, c = 0.0: the result is nan",)),
    ("division", f"mov.f32 %f1, {ONE}; mov.f32 %f2, {ZERO};\ndiv.rn.f32 %f3, %f1, %f2; //@", "PTX0993",
     ("a = 1.0, divisor b = 0.0: the result is inf",)),
    ("quick division", f"mov.f32 %f1, {LESS}; mov.f32 %f2, {ZERO};\ndiv.full.f32 %f3, %f1, %f2; //@", "PTX0993",
     ("divisor b = 0.0: the result is -inf",)),
    ("0 / 0", f"mov.f32 %f2, {ZERO};\ndiv.approx.f32 %f3, %f2, %f2; //@", "PTX0992", ("divisor b = 0.0",)),
    ("reciprocal", f"mov.f32 %f2, {ZERO};\nrcp.approx.ftz.f32 %f3, %f2; //@", "PTX0993", ("divisor a = 0.0",)),
    ("root", f"mov.f32 %f1, {LESS};\nsqrt.rn.f32 %f3, %f1; //@", "PTX0992", ("a = -1.0",)),
    ("logarithm", f"mov.f32 %f1, {ZERO};\nlg2.approx.f32 %f3, %f1; //@", "PTX0993", ("a = 0.0: the result is -inf",)),
    ("power", "mov.f32 %f1, 0f43480000;\nex2.approx.f32 %f3, %f1; //@", "PTX0993", ("a = 200.0",)),
    ("double", f"{DOUBLE}\nadd.f64 %fd2, %fd1, %fd1; //@", "PTX0993", ("a = 8.98846567431158e+307",)),
    ("half", "mov.b16 %h1, 0x7BFF;\nadd.f16 %h2, %h1, %h1; //@", "PTX0993", ("a = 65504.0, b = 65504.0",)),
    ("bf16", "mov.b16 %h1, 0x7F7F;\nmul.bf16 %h2, %h1, %h1; //@", "PTX0993", ("the result is inf",)),
    ("second of a pair", "mov.b32 %r1, 0x7BFF3C00;\nadd.f16x2 %r2, %r1, %r1; //@", "PTX0993",
     ("a = 65504.0, b = 65504.0: the result is inf in element 1",)),
    ("first of a pair", "mov.b32 %r1, 0x3F807F80; mov.b32 %r2, 0x3F80FF80;\nadd.bf16x2 %r3, %r1, %r2; //@", "PTX0992",
     ("a = inf, b = -inf: the result is nan in element 0",)),
    ("to half", f"mov.f32 %f1, {LARGE};\ncvt.rn.f16.f32 %h1, %f1; //@", "PTX0993", ("a = 1.7014118e+38",)),
    ("to a pair", f"mov.f32 %f1, {LARGE}; mov.f32 %f2, {INF};\ncvt.rn.f16x2.f32 %r1, %f1, %f2; //@", "PTX0993",
     ("a = 1.7014118e+38: the result is inf in element 1",)),
    ("to single", f"{DOUBLE}\ncvt.rn.f32.f64 %f1, %fd1; //@", "PTX0993", ("a = 8.98846567431158e+307",)),
    ("from an integer", "mov.u32 %r1, 131072;\ncvt.rn.f16.u32 %h1, %r1; //@", "PTX0993",
     ("a = 131072: the result is inf",)),
]  # fmt: skip


@pytest.mark.parametrize(("body", "code", "words"), [pytest.param(*case[1:], id=case[0]) for case in PRODUCED])
def test_where_nan_and_infinity_begin(body: str, code: str, words: tuple[str, ...]) -> None:
    the_one(body, code, *words, count=64)


FINE = [
    f"mov.f32 %f1, {ONE}; mov.f32 %f2, {LARGE}; add.f32 %f3, %f1, %f2; div.rn.f32 %f4, %f1, %f2;",
    f"mov.f32 %f1, {INF}; mov.f32 %f2, {ONE}; add.f32 %f3, %f1, %f2; mul.f32 %f3, %f1, %f1; sqrt.rn.f32 %f3, %f1;",
    "mov.f32 %f1, 0fFF800000; ex2.approx.f32 %f2, %f1; max.f32 %f3, %f1, %f2; neg.f32 %f4, %f1; abs.f32 %f4, %f1;",
    f"mov.f32 %f1, 0f7FFFFFFF; mov.f32 %f2, {INF}; add.f32 %f3, %f1, %f2; sqrt.rn.f32 %f4, %f1;",
    f"mov.f32 %f1, {LARGE}; cvt.rn.satfinite.f16.f32 %h1, %f1; cvt.rn.satfinite.e4m3x2.f32 %h2, %f1, %f1;",
    f"mov.f32 %f1, {LARGE}; add.sat.f32 %f2, %f1, %f1;",
    f"mov.f32 %f1, {ONE}; mov.f32 %f2, {ZERO}; setp.gt.u32 %p1, %t, 100; @%p1 div.rn.f32 %f3, %f1, %f2;",
    f"mov.f32 %f1, {ONE}; cvt.rn.f16x2.f32 %r1, %f1, %f1; add.f16x2 %r2, %r1, %r1; fma.rn.f16x2 %r3, %r2, %r2, %r1;",
    "mov.b32 %r1, 0x7C003C00; mov.b32 %r2, 0x3C003C00; add.f16x2 %r3, %r1, %r2;",
]  # fmt: skip


@pytest.mark.parametrize("body", FINE)
def test_nothing_begins_here(body: str) -> None:
    assert findings(body) == []


def test_the_lanes_that_a_guard_lets_through_count() -> None:
    body = f"""mov.f32 %f1, {ONE}; mov.f32 %f2, {ZERO}; setp.gt.u32 %p1, %t, 40;
@%p1 div.rn.f32 %f3, %f1, %f2; //@"""
    the_one(body, "PTX0993", "(23 times)", count=23, thread=41)


def test_the_lanes_of_a_branch_count() -> None:
    body = f"""cvt.rn.f32.u32 %f1, %t; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; mov.f32 %f2, {ONE};
@%p1 bra even;
sub.f32 %f1, %f1, {ONE};
div.rn.f32 %f3, %f2, %f1; //@
even:"""
    the_one(body, "PTX0993", "divisor b = 0.0", count=1, thread=1)


MAIN = "mul.wide.s32 %rd1, %r2, 4; add.s64 %rd1, %o, %rd1; setp.gt.u32 %p1, %t, 99; @%p1 ld.global.u32 %r3, [%rd1];"
"""An array element with a signed index; no thread selects it, but that is not known in advance."""
UNSIGNED = MAIN.replace("mul.wide.s32", "mul.wide.u32")
WRAPS = [
    ("product", f"mov.u32 %r1, 50000;\nmul.lo.s32 %r2, %r1, %r1; //@\n{MAIN}",
     ("a = 50000, b = 50000: 2500000000 does not fit s32, -1794967296 becomes part of an address",), 64, 0),
    ("product and sum", f"mov.u32 %r1, 46341;\nmad.lo.s32 %r2, %r1, %r1, %t; //@\n{MAIN}",
     ("2147488281 does not fit",), 64, 0),
    ("some lanes", f"mov.u32 %r1, 100000000;\nmul.lo.s32 %r2, %t, %r1; //@\n{MAIN}",
     ("a = 22, b = 100000000",), 42, 22),
    ("sum", f"mov.u32 %r1, 2147483647;\nadd.s32 %r2, %t, %r1; //@\n{MAIN}", ("2147483648 does not fit s32",), 63, 1),
    ("difference", f"mov.u32 %r1, -2147483648;\nsub.s32 %r2, %r1, %t; //@\n{MAIN}", ("-2147483649 does not",), 63, 1),
    ("shift", f"mov.u32 %r1, 0x30000000;\nshl.b32 %r2, %r1, 2; //@\n{MAIN}",
     ("a = 805306368, b = 2: 3221225472",), 64, 0),
    ("shift by more than all bits", f"mov.u32 %r4, 40; mov.u32 %r1, 3;\nshl.b32 %r2, %r1, %r4; //@\n{MAIN}",
     ("a = 3, b = 32: 12884901888 does not fit s32, 0 becomes part",), 64, 0),
    ("unsigned product", f"mov.u32 %r1, 70000;\nmul.lo.u32 %r2, %r1, %r1; //@\n{UNSIGNED}",
     ("4900000000 does not fit u32, 605032704",), 64, 0),
    ("unsigned sum", f"ld.global.u32 %r4, [%o]; and.b32 %r4, %r4, 0; or.b32 %r1, %r4, 0x90000000;\n"
     f"add.u32 %r2, %r1, %r1; //@\n{UNSIGNED}", ("4831838208 does not fit u32",), 64, 0),
    ("earlier", f"mov.u32 %r1, 50000;\nmul.lo.s32 %r4, %r1, %r1; //@\nadd.s32 %r5, %r4, %t; mov.u32 %r2, %r5;\n{MAIN}",
     ("2500000000 does not fit s32",), 64, 0),
    ("through cvt", "mov.u32 %r1, 50000;\nmul.lo.s32 %r2, %r1, %r1; //@\ncvt.s64.s32 %rd1, %r2; shl.b64 %rd1, %rd1, 2;"
     " add.s64 %rd1, %o, %rd1; setp.gt.u32 %p1, %t, 99; @%p1 ld.global.u32 %r3, [%rd1];", ("does not fit s32",), 64, 0),
    ("a complement", f"mov.u32 %r1, 50000;\nmul.lo.s32 %r4, %r1, %r1; //@\nand.b32 %r2, %r4, ~7;\n{MAIN}",
     ("2500000000 does not fit s32",), 64, 0),
    ("sums of a loop", "mov.u32 %r2, 0; mov.u32 %r5, 0;\nagain: add.s32 %r2, %r2, 600000000; //@\n"
     f"add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 5; @%p2 bra again;\n{MAIN}",
     ("a = 1800000000, b = 600000000: 2400000000",), 64, 0),
    ("a selection", f"mov.u32 %r1, 50000; setp.lt.u32 %p2, %t, 8;\nmul.lo.s32 %r4, %r1, %r1; //@\n"
     f"selp.b32 %r2, %r4, %t, %p2;\n{MAIN}", ("2500000000",), 64, 0),
    ("shared memory", "mov.u32 %r1, 70000;\nmul.lo.u32 %r2, %r1, %r1; //@\nsetp.gt.u32 %p1, %t, 99;"
     " @%p1 ld.shared.u32 %r3, [%r2];", ("4900000000 does not fit u32",), 64, 0),
    ("16 bits", "cvt.u16.u32 %h1, %t;\nmul.lo.s16 %h2, %h1, 1000; //@\nmul.wide.s16 %r2, %h2, 4; cvt.s64.s32 %rd1, %r2;"
     " add.s64 %rd1, %o, %rd1; setp.gt.u32 %p1, %t, 99; @%p1 ld.global.u32 %r3, [%rd1];",
     ("a = 33, b = 1000: 33000 does not fit s16, -32536",), 31, 33),
    ("the low half", "cvt.u16.u32 %h1, %t; mov.u16 %h3, 0;\nmul.lo.s16 %h2, %h1, 1100; //@\nmov.b32 %r2, {%h2, %h3};\n"
     f"{MAIN}", ("a = 60, b = 1100: 66000 does not fit",), 4, 60),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "words", "count", "thread"), [pytest.param(*case[1:], id=case[0]) for case in WRAPS]
)  # fmt: skip
def test_addresses_that_wrap(body: str, words: tuple[str, ...], count: int, thread: int) -> None:
    the_one(body, "PTX0994", *words, count=count, thread=thread)


STRAIGHT = [
    # The product does not become an address: it is a hash, a random number, or a value that is stored.
    f"mov.u32 %r1, 50000; mul.lo.s32 %r4, %r1, %r1; and.b32 %r2, %r4, 63; {MAIN}",
    f"mov.u32 %r1, 50000; mul.lo.s32 %r4, %r1, %r1; shr.u32 %r2, %r4, 26; {MAIN}",
    f"mov.u32 %r1, 50000; mul.lo.s32 %r4, %r1, %r1; xor.b32 %r5, %r4, %t; rem.u32 %r2, %r5, 64; {MAIN}",
    "mov.u32 %r1, 50000; mul.lo.s32 %r4, %r1, %r1; st.global.u32 [%o], %r4;",
    # The value fits the way it is read.
    f"mov.u32 %r1, 50000; mul.lo.s32 %r2, %r1, %r1; {UNSIGNED}",
    f"mov.u32 %r1, 0x30000000; shl.b32 %r2, %r1, 2; {UNSIGNED}",
    f"mov.u32 %r1, 46340; mul.lo.s32 %r2, %r1, %r1; {MAIN}",
    "mov.u32 %r1, 50000; mul.wide.s32 %rd1, %r1, %r1; shl.b64 %rd1, %rd1, 2; add.s64 %rd1, %o, %rd1;setp.gt.u32 %p1, "
    "%t, 99; @%p1 ld.global.u32 %r3, [%rd1];",
    # Subtraction by adding a negative number, written as an unsigned one.
    f"add.u32 %r1, %t, 5; add.u32 %r2, %r1, 4294967295; {UNSIGNED}",
    f"add.u32 %r1, %t, 5; mov.u32 %r4, -1; add.u32 %r2, %r1, %r4; {UNSIGNED}",
    f"sub.u32 %r1, %t, 70; add.u32 %r2, %r1, 100; {UNSIGNED}",
    f"add.s32 %r2, %t, -3; {MAIN}",
    f"sub.s32 %r1, %t, 20; shl.b32 %r2, %r1, 3; {MAIN}",
    # The address uses another value of the register.
    f"mov.u32 %r1, 50000; mul.lo.s32 %r2, %r1, %r1; st.global.u32 [%o], %r2; mov.u32 %r2, %t; {MAIN}",
    # Half of a register holds the bits of a number of either sign.
    f"cvt.u16.u32 %h1, %t; mov.u16 %h3, 0; mul.lo.s16 %h2, %h1, 1000; mov.b32 %r2, {{%h2, %h3}}; {MAIN}",
    # The access is guarded.
    f"mov.u32 %r2, 0; mov.u32 %r1, 50000; setp.gt.u32 %p2, %t, 99; @%p2 mul.lo.s32 %r2, %r1, %r1; {MAIN}",
    # A 32-bit address may wrap in one reading: from above 2^31 back to where the array is.
    ".shared .b8 box[1024]; mov.u32 %r1, box; and.b32 %r3, %t, 0; or.b32 %r4, %r3, 0xFFFFFFC0; add.u32 %r2, %r1, %r4;"
    "st.shared.u32 [%r2+64], %t;",
    # Shared memory, swizzled.
    ".shared .b8 box[1024]; mov.u32 %r1, box; shl.b32 %r2, %t, 4; xor.b32 %r2, %r2, 112; add.u32 %r2, %r2, %r1;"
    "st.shared.u32 [%r2], %t;",
]  # fmt: skip


@pytest.mark.parametrize("body", STRAIGHT)
def test_addresses_that_do_not_wrap(body: str) -> None:
    assert findings(body) == []


LOST = [
    ("low half", "mul.lo.u32 %r1, %t, 2000;\ncvt.u16.u32 %h1, %r1; //@", "PTX0995",
     ("66000 becomes 464 as u16",), 31, 33),
    ("byte", "mul.lo.u32 %r1, %t, 9;\ncvt.s8.s32 %h1, %r1; //@", "PTX0995", ("261 becomes 5 as s8",), 35, 29),
    ("address", "mad.wide.u32 %rd1, %t, 1073741824, 0;\ncvt.u32.u64 %r2, %rd1; //@\n" + UNSIGNED, "PTX0995",
     ("4294967296 becomes 0 as u32, and becomes part of an address",), 60, 4),
    ("taken apart", "mad.wide.u32 %rd1, %t, 1073741824, 0;\nmov.b64 {%r2, %r4}, %rd1; //@\n" + UNSIGNED, "PTX0995",
     ("becomes 0 as b32, and becomes part of an address",), 60, 4),
    ("to f32", "mad.lo.u32 %r1, %t, 1, 16777216;\ncvt.rn.f32.s32 %f1, %r1; //@", "PTX0996",
     ("16777217 becomes 16777216 as f32",), 32, 1),
    ("to f32 upwards", "mad.lo.u32 %r1, %t, 1, 16777216;\ncvt.rp.f32.u32 %f1, %r1; //@", "PTX0996",
     ("16777217 becomes 16777218 as f32",), 32, 1),
    ("to f64", ".reg .f64 %fd<2>; mov.u64 %rd1, 9007199254740993;\ncvt.rn.f64.s64 %fd1, %rd1; //@", "PTX0996",
     ("9007199254740993 becomes 9007199254740992 as f64",), 64, 0),
    ("negative to f32", "mov.u32 %r1, -16777217;\ncvt.rn.f32.s32 %f1, %r1; //@", "PTX0996",
     ("becomes -16777216",), 64, 0),
    ("to f16", "add.u32 %r1, %t, 2000;\ncvt.rn.f16.u32 %h1, %r1; //@", "PTX0996", ("2049 becomes 2048 as f16",), 8, 49),
    ("above", f"mov.f32 %f1, {LARGE};\ncvt.rzi.s32.f32 %r1, %f1; //@", "PTX0997",
     ("becomes 2147483647 as s32",), 64, 0),
    ("below", f"mov.f32 %f1, {LESS};\ncvt.rni.u32.f32 %r1, %f1; //@", "PTX0997", ("-1.0 becomes 0 as u32",), 64, 0),
    ("NaN", "mov.f32 %f1, 0f7FFFFFFF;\ncvt.rni.sat.s32.f32 %r1, %f1; //@", "PTX0997", ("nan becomes 0 as s32",), 64, 0),
    ("half", "mov.b16 %h1, 0x7BFF;\ncvt.rzi.u8.f16 %h2, %h1; //@", "PTX0997", ("65504.0 becomes 255 as u8",), 64, 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "code", "words", "count", "thread"), [pytest.param(*case[1:], id=case[0]) for case in LOST]
)
def test_what_conversions_lose(body: str, code: str, words: tuple[str, ...], count: int, thread: int) -> None:
    the_one(body, code, *words, count=count, thread=thread)


KEPT = [
    "mul.lo.u32 %r1, %t, 1000; cvt.u16.u32 %h1, %r1; cvt.s8.s32 %h2, %t; mov.u32 %r2, -3; cvt.s8.s32 %h3, %r2;",
    "mul.lo.u32 %r1, %t, 2000; cvt.sat.u16.u32 %h1, %r1;",
    # The numbers of lanes 0 to 31 are exact.
    "mul.lo.u32 %r1, %t, 2000; setp.lt.u32 %p1, %t, 32; @%p1 cvt.u16.u32 %h1, %r1;",
    "mad.lo.u32 %r1, %t, 1000000, 1; setp.lt.u32 %p1, %t, 16; @%p1 cvt.rn.f32.s32 %f1, %r1;",
    "cvt.rn.f32.u32 %f1, %t; ex2.approx.f32 %f1, %f1; setp.lt.u32 %p1, %t, 31; @%p1 cvt.rzi.s32.f32 %r1, %f1;",
    # The lower part of a word or product is intended.
    "mul.lo.u32 %r1, %t, 2000; cvt.u16.u32 %h1, %r1; shr.u32 %r2, %r1, 16; cvt.u16.u32 %h2, %r2;",
    "mul.lo.u32 %r1, %t, 2000; and.b32 %r2, %r1, 0xfffff; cvt.u16.u32 %h2, %r2;",
    "mad.wide.u32 %rd1, %t, 1073741824, 0; cvt.u32.u64 %r2, %rd1; st.global.u32 [%o], %r2;",
    "mad.wide.u32 %rd1, %t, 1073741824, 0; mov.b64 {%r2, %r4}, %rd1; st.global.u32 [%o], %r2;",
    # Both halves are used.
    "mad.wide.u32 %rd1, %t, 0, %o; mov.b64 {%r2, %r4}, %rd1; mov.b64 %rd2, {%r2, %r4}; ld.global.u32 %r5, [%rd2];",
    # Either a negative or a small index.
    "cvt.u64.u32 %rd2, %t; sub.s64 %rd1, %rd2, 64; cvt.u32.u64 %r2, %rd1; " + MAIN,
    "mad.lo.u32 %r1, %t, 2, 16777216; cvt.rn.f32.s32 %f1, %r1; mov.u32 %r2, 0x80000000; cvt.rn.f32.s32 %f2, %r2;",
    ".reg .f64 %fd<2>; mov.u64 %rd1, 9007199254740992; cvt.rn.f64.s64 %fd1, %rd1; cvt.rn.f64.s32 %fd1, %t;",
    ".reg .f64 %fd<2>; mov.f64 %fd1, 0d41EFFFFFFFE00000; cvt.rzi.u32.f64 %r1, %fd1;",
    f"mov.f32 %f1, {LARGE}; cvt.rzi.sat.s32.f32 %r1, %f1; mov.f32 %f2, 0fBF000000; cvt.rzi.u32.f32 %r2, %f2;",
    "mov.f32 %f1, 0f4EFFFFFF; cvt.rzi.s32.f32 %r1, %f1; cvt.rzi.u64.f32 %rd1, %f1;",
    "mov.f32 %f1, 0f3FAA0000; cvt.rn.f16.f32 %h1, %f1; mov.f32 %f1, 0f3F8E147B; cvt.rn.bf16.f32 %h1, %f1;",
]  # fmt: skip


@pytest.mark.parametrize("body", KEPT)
def test_conversions_that_keep_what_counts(body: str) -> None:
    assert findings(body) == []


def test_only_who_asks_by_name_hears_of_values() -> None:
    body = f"mov.f32 %f1, {LARGE}; add.f32 %f2, %f1, %f1; bar.sync 0;"
    for check in ("all", "strict", "none", "races"):
        assert findings(body, check) == []
    for check in ("numerics", "all,numerics", "numerics,races"):
        assert [finding.rule.code for finding in findings(body, check)] == ["PTX0993"]
    assert [finding.rule.code for finding in findings(body, "all")] == []
    out = np.zeros(64, np.int32)
    with raises(PtxError, match="PTX0993"):
        sim.run(parse(kernel(body)), "k", block=64, args=(out,), check={"strict", "numerics"})


def test_a_module_is_run_with_and_without() -> None:
    module = parse(kernel(f"mov.f32 %f1, {LARGE}; add.f32 %f2, %f1, %f1;"))
    counts = [
        len(sim.run(module, "k", block=32, args=(np.zeros(32, np.int32),), check=check).hazards)
        for check in ("all", "all,numerics", "all", "numerics", "none")
    ]
    assert counts == [0, 1, 0, 1, 0]


def test_results_are_the_same() -> None:
    body = """cvt.rn.f32.u32 %f1, %t; mul.f32 %f2, %f1, %f1; setp.gt.u32 %p1, %t, 9; @%p1 rcp.approx.f32 %f2, %f1;
cvt.rn.f16x2.f32 %r1, %f2, %f1; add.f16x2 %r1, %r1, %r1; cvt.u16.u32 %h1, %r1; mul.lo.s32 %r2, %r1, %t;
cvt.u32.u16 %r3, %h1; add.u32 %r2, %r2, %r3; st.global.u32 [%o], %r2;"""
    outputs: list[list[int]] = []
    for check in ("none", "all,numerics"):
        out = np.zeros(64, np.int32)
        sim.run(parse(kernel(body)), "k", block=64, args=(out,), check=check)
        outputs.append(out.tolist())
    assert outputs[0] == outputs[1]


def test_uses_in_the_loop_of_a_function_count() -> None:
    module = """.func (.reg .b32 %sum) add_up(.reg .b32 %n, .reg .b64 %at)
{
.reg .b64 %wide; .reg .pred %more;
mov.b32 %sum, 0;
again: mul.wide.u32 %wide, %n, 4;
add.u64 %wide, %at, %wide;
ld.global.u32 %sum, [%wide];
add.u32 %n, %n, -1;
setp.gt.s32 %more, %n, 40;
@%more bra again;
ret;
}"""
    text = kernel("sub.u32 %r1, %t, 1;\ncall (%r2), add_up, (%t, %o);", module=module)
    result = sim.run(parse(text), "k", block=64, args=(np.zeros(256, np.int32),), check="numerics", on_hazard="report")
    assert [(finding.rule.code, finding.place.text) for finding in result.hazards] == []


def test_an_address_that_wraps_stands_before_the_error_it_leads_to() -> None:
    body = "mov.u32 %r1, 50000;\nmul.lo.s32 %r2, %r1, %r1;\n" + MAIN.replace("@%p1", "")
    out = np.zeros(64, np.int32)
    for check, codes in (("all,numerics", ["PTX0994", "PTX1110"]), ("all", ["PTX1110"])):
        with raises(PtxError) as excinfo:
            sim.run(parse(kernel(body)), "k", block=64, args=(out,), check=check)
        assert [d.code for d in excinfo.value.diagnostics] == codes


@pytest.mark.parametrize("schedule", ["lazy", "random", "adversarial"])
def test_every_schedule_finds_the_same(schedule: str) -> None:
    body = WRAPS[0][1] + "\n" + PRODUCED[3][1]
    assert [f.rule.code for f in findings(body, schedule=schedule, seed=3)] == ["PTX0994", "PTX0993"]


BASE = "ld.param.u64 %rd1, [out];\n"
MEMORY = [
    ("red", f"{BASE}mov.f32 %f1, {LARGE};\nred.global.add.f32 [%rd1], %f1; //@", "PTX0993", 1, 1,
     "old = 1.7014118e+38, b = 1.7014118e+38: the result is inf"),
    ("atom", f"{BASE}mov.f32 %f1, {LARGE};\natom.global.add.f32 %f2, [%rd1], %f1; //@", "PTX0993", 1, 1, "is inf"),
    ("guarded", f"{BASE}mov.f32 %f1, {LARGE}; setp.gt.u32 %p1, %t, 4;\n@%p1 red.global.add.f32 [%rd1], %f1; //@",
     "PTX0993", 6, 1, "is inf"),
    ("each its own", f"mov.f32 %f1, {LARGE}; st.global.f32 [%o], %f1;\nred.global.add.f32 [%o], %f1; //@", "PTX0993", 0,
     64, "is inf"),
    ("nan", "st.global.u32 [%o], 0x7F800000;\nmov.f32 %f1, 0fFF800000;\nred.global.add.f32 [%o], %f1; //@", "PTX0992",
     0, 64, "old = inf, b = -inf: the result is nan"),
    ("pair", "st.global.u32 [%o], 0x7BFF3C00;\nmov.b32 %r1, 0x7BFF3C00;\nred.global.add.noftz.f16x2 [%o], %r1; //@",
     "PTX0993", 0, 64, "the result is inf in element 1"),
    ("bf16", "mov.b16 %h1, 0x7F7F; st.global.b16 [%o], %h1;\nred.global.add.noftz.bf16 [%o], %h1; //@", "PTX0993", 0,
     64, "is inf"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "code", "thread", "count", "words"), [m[1:] for m in MEMORY], ids=[m[0] for m in MEMORY]
)
def test_sums_in_memory(body: str, code: str, thread: int, count: int, words: str) -> None:
    the_one(body, code, words, count=count, thread=thread)


QUIET = [
    f"{BASE}mov.f32 %f1, {ONE}; red.global.add.f32 [%rd1], %f1;",
    f"{BASE}mov.f32 %f1, {INF}; red.global.add.f32 [%rd1], %f1;",
    f"{BASE}mov.u32 %r1, 0x7F000000; red.global.add.u32 [%rd1], %r1;",
    f"{BASE}mov.u32 %r1, 0x7F800000; atom.global.exch.b32 %r2, [%rd1], %r1;",
]


@pytest.mark.parametrize("body", QUIET)
def test_sums_that_begin_nothing(body: str) -> None:
    assert findings(body) == []


SENT = """.shared .align 16 .f32 part[4];
mov.u32 %r1, part; shl.b32 %r2, %t, 2; add.u32 %r2, %r2, %r1; mov.f32 %f1, {value};
setp.lt.u32 %p1, %t, 4; @%p1 st.shared.f32 [%r2], %f1; fence.proxy.async; bar.sync 0;
ld.param.u64 %rd1, [out]; setp.eq.u32 %p2, %t, 0; @!%p2 bra past;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16; cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0; fence.proxy.async;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16; //@
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
past:"""


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_sums_of_copies(schedule: str) -> None:
    (finding,) = findings(SENT.format(value=LARGE), schedule=schedule)
    assert (finding.rule.code, finding.count) == ("PTX0993", 4)
    assert "old = 1.7014118e+38, new = 1.7014118e+38: the result is inf" in finding.what
    assert finding.place.origin is not None
    assert "//@" in kernel(SENT).splitlines()[finding.place.origin.line - 1]
    assert findings(SENT.format(value=ONE), schedule=schedule) == []


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("check", ["numerics", "all"])
@pytest.mark.parametrize(("element", "bits", "dtype"), [(ElementType.F32, 0x7F000000, "u4"),
                                                        (ElementType.F16, 0x7BFF, "u2")])  # fmt: skip
def test_sums_of_tensors(element: ElementType, bits: int, dtype: str, check: str, schedule: str) -> None:
    body = """.shared .align 128 .b8 box[1024];
    mov.u32 %r1, box; shl.b32 %r2, %t, 4; add.u32 %r2, %r2, %r1; mov.b32 %r3, BITS;
    st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3}; fence.proxy.async; bar.sync 0;
    mov.b64 %rd1, out; cvta.param.u64 %rd1, %rd1; setp.eq.u32 %p1, %t, 0; @!%p1 ret;
    cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd1, {0, 0}], [%r1]; //@
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;""".replace("BITS", str(bits | bits << 16 * (dtype == "u2")))
    width = 64 // np.dtype(dtype).itemsize
    for value, count in ((bits, width * 16), (0, 0)):
        inputs = np.full((16, width), value, dtype)
        source = TensorMap(element, 0, (width, 16), (64,), (width, 16))
        text = kernel(body, params=".param .align 128 .b8 out[128]")
        (*results,) = sim.run(parse(text), "k", block=64, args=[sim.Tensor(inputs, source)], check=check,
                            schedule=schedule).hazards  # fmt: skip
        expected = [("PTX0993", count)] if count and check == "numerics" else []
        assert [(item.rule.code, item.count) for item in results] == expected


def test_what_a_finding_looks_like() -> None:
    (finding,) = findings(f"mov.f32 %f1, {LARGE}; add.f32 %f2, %f1, %f1;")
    text = str(finding.diagnostic())
    assert re.search(r"^<ptx>:\d+:\d+: warning\[PTX0993\]: infinity first produced here: ", text)
    assert "by CTA 0 warp 0 lane 0" in finding.diagnostic().notes[0]
    assert finding.as_json()["count"] == 64
