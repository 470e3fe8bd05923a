"""Operands other than registers and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.messages import raises
from tests.sim.lanes import compute

N = np.arange(32, dtype="u4")


@pytest.mark.parametrize(
    ("code", "dtype", "expected"),
    [
        ("add.u32 %d, %a+4, %a+-1;", "u4", 2 * N + np.uint32(3)),
        ("cvt.s64.s32 %d, %a+-4;", "i8", N.astype("i8") - 4),
        ("cvt.u32.u16 %d, %a+0xffff;", "u4", (N + np.uint32(0xFFFF)) & np.uint32(0xFFFF)),
        ("add.f32 %d, %a+0x3f800000, 0f00000000;", "f4", (N + np.uint32(0x3F800000)).view("f4")),
        ("shfl.sync.idx.b32 %d, %a+5, 3, 31, -1;", "u4", 0 * N + np.uint32(8)),
        ("setp.eq.u32 %p1, %a+1, 2; selp.b32 %d, %a+(2*2), 0, %p1;", "u4", 5 * (N == 1)),
    ],
)
def test_a_number_is_added_to_the_bits_of_the_register_first(code: str, dtype: str, expected: Any) -> None:
    np.testing.assert_array_equal(compute(code, {"a": N}, {"d": dtype})["d"], expected)


def _run(code: str, functions: str = "", target: str = "sm_90a", shared: int = 0) -> list[int]:
    module = parse(f""".version 8.7\n.target {target}\n.address_size 64\n{functions}
.visible .entry k(.param .u64 out)
{{
.reg .b64 %rd<6>; .reg .b32 %r<10>; .reg .b16 %h; .reg .f32 %f<6>; .shared .align 128 .b8 tile[128];
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 4, %rd1;
{code}
st.global.b32 [%rd1], %r2;
ret;
}}
""")
    out = np.zeros(32, "u4")
    sim.run(module, block=32, args=[out], shared=shared)
    return out.tolist()


_F = ".func (.param .b32 y) f { st.param.b32 [y], 7; ret; }"


@pytest.mark.parametrize(
    "call",
    ["call (x), f;", "call (x), f, ();", "mov.u64 %rd2, f; P: .callprototype (.param .b32 _) _; call (x), %rd2, P;"],
)
def test_a_call_may_go_without_a_list_of_arguments(call: str) -> None:
    assert _run(f"{{ .param .b32 x; {call} ld.param.b32 %r2, [x]; }}", _F) == [7] * 32


@pytest.mark.parametrize("operand", ["%r3", "%rd3"])
def test_ldmatrix_and_stmatrix_without_a_state_space_take_generic_and_shared_addresses(operand: str) -> None:
    output = _run(f"""
mov.u32 %r4, tile; mad.lo.u32 %r5, %r1, 4, %r4; st.shared.b32 [%r5], %r1; bar.sync 0;
and.b32 %r6, %r1, 7; mad.lo.u32 %r3, %r6, 16, %r4; cvt.u64.u32 %rd2, %r3; cvta.shared.u64 %rd3, %rd2;
ldmatrix.sync.aligned.m8n8.x1.b16 {{%r2}}, [{operand}]; bar.sync 0;
add.u32 %r2, %r2, 100; stmatrix.sync.aligned.m8n8.x1.b16 [{operand}], {{%r2}}; bar.sync 0;
ld.shared.b32 %r2, [%r5];""")
    assert output == list(range(100, 132))


def test_one_register_of_scales_may_stand_in_braces() -> None:
    output = _run(
        "mov.b32 %r2, 0; mov.b32 %r3, 0x7f7f7f7f; mov.b16 %h, 0; mov.f32 %f1, 0f3F800000;"
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
        " {%f2, %f3, %f4, %f5}, {%r2, %r2, %r2, %r2}, {%r2, %r2}, {%f1, %f1, %f1, %f1},"
        " {%r3}, {%h, %h}, {%r3}, {%h, %h}; mov.b32 %r2, %f2;",
        target="sm_120a",
    )
    assert output == [0x3F800000] * 32


_ARRAYS = """.global .u32 whole[40] = {%s}; .const .b16 half[40] = {%s}; .shared .align 8 .v2 .u32 pair[40];
.shared .u32 box[40]; .extern .shared .align 16 .b32 more[];""" % ((", ".join(str(7 * n) for n in range(40)),) * 2)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ld.global.u32 %r2, whole[3];", 21 + 0 * N), ("ld.global.u32 %r2, whole[2*2+1];", 35 + 0 * N),
        ("ld.u32 %r2, whole[%r1];", 7 * N), ("ld.global.u32 %r2, whole[%r1+4];", 7 * N + 28),
        ("ld.const.u16 %h, half[%r1]; cvt.u32.u16 %r2, %h;", 7 * N),
        ("cvt.u16.u32 %h, %r1; ld.const.u16 %h, half[%h]; cvt.u32.u16 %r2, %h;", 7 * N),
        ("mov.b64 %rd2, {%r1, %r1}; ld.global.u32 %r2, whole[%rd2];", 7 * N),
        ("add.u32 %r3, %r1, 0x40000000; ld.global.u32 %r2, whole[%r3];", 7 * N),
        ("st.shared.u32 box[%r1], %r1; bar.sync 0; ld.shared.u32 %r3, [box+8]; ld.shared.u32 %r2, box[5];"
         "add.u32 %r2, %r2, %r3;", 7 + 0 * N),
        ("cvt.u64.u32 %rd2, %r1; add.u64 %rd2, %rd2, 0x100000000; st.shared.u32 box[%rd2], %r1; bar.sync 0;"
         "shl.b32 %r3, %r1, 2; mov.u32 %r4, box; add.u32 %r3, %r3, %r4; ld.shared.u32 %r2, [%r3];", N),
        ("st.shared.u32 pair[%r1], %r1; bar.sync 0; ld.shared.v2.u32 {%r3, %r4}, [pair+16];"
         "mad.lo.u32 %r2, %r4, 99, %r3;", 5 * 99 + 4 + 0 * N),
        ("shl.b32 %r3, %r1, 2; st.shared.u32 more[%r3], %r1; bar.sync 0; ld.shared.u32 %r2, more[12];", 3 + 0 * N),
        ("st.shared.u32 box[1], 5; st.shared.u32 pair[1], 6; mov.u32 %r4, box; mov.u32 %r5, pair;"
         "sub.u32 %r3, %r5, %r4; shr.s32 %r3, %r3, 2; add.u32 %r3, %r3, 1; bar.sync 0; ld.shared.u32 %r6, box[%r3];"
         "sub.u32 %r3, 2, %r3; ld.shared.u32 %r7, pair[%r3]; mad.lo.u32 %r2, %r6, 10, %r7;", 65 + 0 * N),
        (".local .u32 own[40]; st.local.u32 own[%r1], %r1; st.local.u32 own[33], 9; ld.local.u32 %r3, own[%r1];"
         "ld.local.u32 %r4, [own+132]; add.u32 %r2, %r3, %r4;", N + 9),
    ],
)  # fmt: skip
def test_an_index_counts_elements(code: str, expected: Any) -> None:
    """ptxas multiplies, in 32 bits, by the size of the type, that of one element of a vector, and by 1 if the array has
    no size."""
    assert _run(code, _ARRAYS, shared=128) == expected.tolist()


@pytest.mark.parametrize("back", [1, 4, 32])
def test_an_index_below_zero_wraps_in_shared_memory(back: int) -> None:
    code = f""".reg .pred %p;
mov.u32 %r4, box; mad.lo.u32 %r5, %r1, 4, %r4; st.shared.u32 [%r5], %r1; bar.sync 0;
sub.u32 %r3, %r1, {back}; mov.u32 %r2, 99; sub.u32 %r6, %r3, 32;
setp.ge.s32 %p, %r3, 0; @%p ld.shared.u32 %r2, far[%r6];"""
    arrays = ".shared .u32 box[32]; .shared .u32 far[32];"
    assert _run(code, arrays) == [n - back if n >= back else 99 for n in range(32)]


def test_an_index_counts_elements_of_a_functions_own_array() -> None:
    function = """.func (.param .b32 y) f (.param .b32 x)
{ .reg .b32 %a; .local .u32 own[40]; ld.param.u32 %a, [x]; st.local.u32 own[%a], %a; st.local.u32 own[39], 1;
ld.local.u32 %a, own[%a]; st.param.b32 [y], %a; ret; }"""
    call = "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call (y), f, (x); ld.param.b32 %r2, [y]; }"
    assert _run(call, function) == N.tolist()


@pytest.mark.parametrize("address", ["[8]", "[4*2]", "[(8)]", "[16+-8]"])
def test_an_absolute_address_is_one_of_local_memory(address: str) -> None:
    code = f".local .align 16 .u32 own[4]; st.local.u32 {address}, %r1; ld.local.u32 %r2, [own+8];"
    assert _run(code) == N.tolist()


@pytest.mark.parametrize("address", ["box[1.5]", "%rd1[1]", "f[1]"])
def test_an_index_that_is_no_integer_or_of_no_array_is_refused(address: str) -> None:
    functions = f".shared .u32 box[4];\n{_F}"
    with raises(PtxError) as caught:
        _run(f"ld.shared.u32 %r2, {address};", functions)
    [found] = caught.value.diagnostics
    assert (found.code, found.message) == ("PTX1105", "`ld.shared.u32` is not simulated")


def test_a_float_is_the_low_half_of_a_wider_register() -> None:
    output = _run("cvt.u64.u32 %rd2, %r1; or.b64 %rd2, %rd2, 0x7654321000000000; st.global.f32 [%rd1], %rd2;"
                  "ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, 5;")  # fmt: skip
    assert output == list(range(5, 37))
