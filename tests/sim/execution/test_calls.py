"""Calls through lists of targets and prototypes, arguments and results of 128 bits, and of any number of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.messages import raises

_TEXT = """.version 9.0
.target sm_100a
.address_size 64
.func (.param .b32 r) less(.param .b32 p)
{{ .reg .b32 %w; ld.param.b32 %w, [p]; sub.u32 %w, %w, 1; st.param.b32 [r], %w; ret; }}
.func (.param .b32 r) more(.param .b32 p)
{{ .reg .b32 %w; ld.param.b32 %w, [p]; add.u32 %w, %w, 100; st.param.b32 [r], %w; ret; }}
.func (.param .b128 r) same(.param .b128 p) {{ .reg .b128 %w; ld.param.b128 %w, [p]; st.param.b128 [r], %w; ret; }}
.func (.reg .b128 r) turned(.reg .b128 p)
{{ .reg .b64 %a, %b; mov.b128 {{%a, %b}}, p; mov.b128 r, {{%b, %a}}; ret; }}
.func (.reg .v2 .b32 r) two(.reg .b32 p) {{ add.u32 r.x, p, 3; add.u32 r.y, p, 4; ret; }}
.visible .entry k(.param .u64 out)
{{
.reg .v2 .b32 %v; .reg .pred %odd; .reg .b32 %t, %n; .reg .b64 %o, %a, %b, %f; .reg .b128 %q; .reg .pred %p;
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 16, %o;
cvt.u64.u32 %a, %t; add.u64 %b, %a, 500; mov.b128 %q, {{%a, %b}}; mov.u32 %n, %t; setp.gt.u32 %p, %t, 19;
{code}
{store}
ret;
}}
"""
NAMES = "T: .calltargets less, more; P: .callprototype (.param .b32 _) _ (.param .b32 _);"
T = np.arange(40)


def run(code: str, store: str) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the two words of 64 bits that each of 40 threads stores."""
    out = np.zeros((40, 2), np.int64)
    sim.run(parse(_TEXT.format(code=code, store=store)), block=40, args=[out])
    return out


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("mov.u64 %f, less; @%p mov.u64 %f, more; call (%n), %f, (%n), T;", np.where(T > 19, T + 100, (T - 1) % 2**32)),
        ("mov.u64 %f, more; @%p call (%n), %f, (%n), T;", np.where(T > 19, T + 100, T)),
        ("mov.u64 %f, less; @!%p call (%n), %f, (7), P;", np.where(T > 19, T, 6)),
        ("@%p call (%n), more, (%n);", np.where(T > 19, T + 100, T)),
        ("and.b32 %n, %t, 1; setp.ne.u32 %odd, %n, 0; mov.u32 %n, %t; @%odd bra over; @%p call (%n), more, (%n); over:",
         np.where((T > 19) & (T % 2 == 0), T + 100, T)),
        ("mov.v2.u32 %v, {5, 9}; @%p call (%v), two, (%n); mad.lo.u32 %n, %v.x, 1000, %v.y;",
         np.where(T > 19, 1001 * T + 3004, 5009)),
        ("{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x], %n; @!%p call (y), less, (x);"
         "call (z), more, (x); @%p call (y), more, (x); ld.param.b32 %n, [y]; }",
         np.where(T > 19, T + 100, (T - 1) % 2**32)),
    ],
)  # fmt: skip
def test_each_lane_has_the_result_of_its_own_call(code: str, expected: object) -> None:
    """The first target of a list need not be named elsewhere; a lane that makes no call keeps what it has."""
    found = run(NAMES + code, "st.global.b32 [%o], %n;")
    np.testing.assert_array_equal(found[:, 0], expected)


@pytest.mark.parametrize(
    ("code", "low", "high"),
    [
        ("call (%q), same, (%q);", T, T + 500), ("call (%q), turned, (%q);", T + 500, T),
        ("call (%q), same, (-5);", 0 * T - 5, 0 * T),
        ("@%p call (%q), turned, (77);", np.where(T > 19, 0, T), np.where(T > 19, 77, T + 500)),
        ("{ .param .b128 x; .param .b128 y; st.param.b128 [x], %q; call (y), turned, (x); ld.param.b128 %q, [y]; }",
         T + 500, T),
    ],
)  # fmt: skip
def test_arguments_and_results_of_128_bits(code: str, low: object, high: object) -> None:
    found = run(code, "st.global.b128 [%o], %q;")
    np.testing.assert_array_equal(found[:, 0], low)
    np.testing.assert_array_equal(found[:, 1], high)


@pytest.mark.parametrize("kind", ["b8", "u8", "s8", "b16", "u16", "s16", "f32"])
def test_a_parameter_narrower_than_the_register_takes_its_low_bits(kind: str) -> None:
    """The function returns the parameter with what lies beside it."""
    bits = int(kind[1:])
    body = f"ld.param.b{bits} %h, [p]; st.param.b{bits} [r], %h;"
    module = parse(f""".version 9.0
.target sm_90
.address_size 64
.func (.param .{kind} r) same(.param .{kind} p) {{ .reg .b{max(bits, 16)} %h; {body} ret; }}
.visible .entry k(.param .u64 out)
{{
.reg .b32 %t, %n; .reg .b64 %o; .reg .b{max(bits, 16)} %h, %g; .reg .f32 %f;
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 4, %o;
mad.lo.u32 %n, %t, 77, 40000; cvt.u{max(bits, 16)}.u32 %h, %n; mov.b{max(bits, 16)} %g, 0;
call (%g), same, (%h);
cvt.u32.u{max(bits, 16)} %n, %g; st.global.b32 [%o], %n;
ret;
}}
""")
    out = np.zeros(40, np.uint32)
    sim.run(module, block=40, args=[out])
    expected = 77 * T + 40000
    if bits == 8:
        low = expected & 0xFF
        expected = np.where((kind == "s8") & (low > 127), low | 0xFF00, low)
    np.testing.assert_array_equal(out, expected & (1 << max(bits, 16)) - 1)


@pytest.mark.parametrize("call", ["call (%n), %f, (%n);", "call %f;"])
def test_a_call_through_a_register_without_a_prototype_is_illegal(call: str) -> None:
    with raises(PtxError) as caught:
        run(f"mov.u64 %f, less; {call}", "")
    [found] = caught.value.diagnostics
    text = "`call` through a register names no `.callprototype` or `.calltargets`"
    assert (found.code, found.line, found.message) == ("PTX1106", 17, text)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 20, 24])
def test_arguments_and_results_of_any_number_of_bytes(size: int) -> None:
    """Nothing beside them changes."""
    through = "".join(f"ld.param.b8 %w, [p+{at}]; st.param.b8 [r+{at}], %w;" for at in range(size))
    into = "".join(f"add.u32 %n, %t, {at}; st.param.b8 [x+{at}], %n;" for at in range(size))
    out_of = "".join(f"ld.param.b8 %n, [y+{at}]; st.global.u8 [%o+{at}], %n;" for at in range(size))
    module = parse(f""".version 9.0
.target sm_90
.address_size 64
.func (.param .b8 r[{size}]) same(.param .b8 p[{size}], .param .b8 q)
{{ .reg .b32 %w; {through} ret; }}
.visible .entry k(.param .u64 out)
{{
.reg .b32 %t, %n; .reg .b64 %o;
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 32, %o;
{{
.param .b8 x[{size}]; .param .b8 one; .param .b8 y[{size}]; .param .b8 end;
{into} st.param.b8 [one], 77; st.param.b8 [end], 99;
call (y), same, (x, one);
{out_of} ld.param.b8 %n, [one]; st.global.u8 [%o+30], %n; ld.param.b8 %n, [end]; st.global.u8 [%o+31], %n;
}}
ret;
}}
""")
    out, expected = np.zeros((40, 32), "u1"), np.zeros((40, 32), "u1")
    sim.run(module, block=40, args=[out])
    expected[:, :size] = T[:, None] + np.arange(size)
    expected[:, 30:] = 77, 99
    np.testing.assert_array_equal(out, expected)


def test_a_table_of_functions_in_global_memory() -> None:
    functions = "".join(
        f".func (.reg .b32 r) {name}(.reg .b32 p) {{ {opcode}.u32 r, p, {number}; ret; }}\n"
        for name, opcode, number in (("plus", "add", 7), ("minus", "sub", 9))
    )
    module = parse(f""".version 8.0
.target sm_90
.address_size 64
{functions}.global .u64 table[2] = {{minus, plus}};
.visible .entry k(.param .u64 out)
{{
.reg .b32 %t, %n; .reg .b64 %o, %f;
P: .callprototype (.reg .b32 _) _ (.reg .b32 _);
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 4, %o;
and.b32 %n, %t, 1; mov.u64 %f, table; mad.wide.u32 %f, %n, 8, %f; ld.global.u64 %f, [%f];
call (%n), %f, (%t), P;
st.global.b32 [%o], %n;
ret;
}}
""")
    out = np.zeros(40, np.int32)
    sim.run(module, block=40, args=[out])
    np.testing.assert_array_equal(out, np.where(T % 2 != 0, T + 7, T - 9))
