"""Operands: count, kind, type, range, state space. ptxas rejects every wrong line here and accepts every correct
one."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.parser import parse
from pyptx.toolchain import validate
from tests.check.report import HEADER, report

WRONG = [
    ("add.s32 %r0, %r1;", "PTX0201"),
    ("add.s32 %r0, %r1, %r2, %r3;", "PTX0201"),
    ("ld.global.v2.f32 {%f0, %f1, %f2}, [%rd0];", "PTX0201"),
    ("add.s32 %r0, %f1, %r2;", "PTX0203"),
    ("add.s32 %rd0, %r1, %r2;", "PTX0203"),
    ("add.f32 %f0, %f1, 1;", "PTX0203"),
    ("add.s32 %r0, %r1, 1.5;", "PTX0203"),
    ("add.f16 %h0, %h1, 1.0;", "PTX0202"),
    ("mov.b64 %rd0, 0f3F800000;", "PTX0203"),
    ("ld.global.f64 %f0, [%rd0];", "PTX0203"),
    ("cvt.rn.f16.f32 %h0, %d0;", "PTX0203"),
    ("ld.global.b32 %r0, %rd0;", "PTX0202"),
    ("ld.global.b32 %r0, [%f0];", "PTX0203"),
    ("ld.global.b32 [%rd0], %r0;", "PTX0202"),
    ("add.s32 1, %r1, %r2;", "PTX0202"),
    ("add.s32 %r0, %tid.x, 1;", "PTX0202"),
    ("add.s32 %r0, {%r1}, 1;", "PTX0202"),
    ("add.u64 %rd0, g, 1;", "PTX0202"),
    ("add.u64 g+4, %rd0, 1;", "PTX0202"),
    ("mov.f32 %f0, g+4;", "PTX0203"),
    ("add.f32 %f0, %f1, g+4;", "PTX0203"),
    ("setp.eq.s32 %r0, %r1, %r2;", "PTX0203"),
    ("selp.b32 %r0, %r1, %r2, %r3;", "PTX0203"),
    ("bar.sync 16;", "PTX0204"),
    ("pmevent 16;", "PTX0204"),
    ("ld.shared.b32 %r0, [g];", "PTX0205"),
    ("ld.b32 %r0, [c];", "PTX0205"),
    ("ld.global.b32 %r0, [p];", "PTX0205"),
    ("@%r0 mov.b32 %r1, 2;", "PTX0206"),
    ("mov.f32 %v, %f0;", "PTX0202"),
    ("mov.f32 %f0, %v.b1;", "PTX0202"),
    ("mov.u64 %rd0, %tid.x;", "PTX0203"),
    ("add.u64 f, %rd0, 1;", "PTX0202"),
    ("bra f;", "PTX0202"),
    ("{ L: mov.u64 %rd0, L; }", "PTX0202"),
    ("setp.lt.f32 %p0|%r1, %f0, %f1;", "PTX0203"),
    ("setp.lt.f32 %r1|%p0, %f0, %f1;", "PTX0203"),
    ("add.f32 %f0, %v, %f1;", "PTX0202"),
    ("add.f32 %f0, %v.x, %v;", "PTX0202"),
    ("st.global.v2.b32 [%rd0], {%r0+4, %r1};", "PTX0202"),
    ("call takes, (%r0+4);", "PTX0202"),
    ("ld.global.b32 %r0+4, [%rd0];", "PTX0202"),
    ("cvt.u32.u32 %r0, {%r1};", "PTX0202"),
    ("min.u16x2 %r0, g+4, %r1;", "PTX0202"),
]
RIGHT = [
    "add.s32 %r0, %r1, 0x7fffffff;",
    "add.s32 %r0, %r1, (1 << 4) + 2;",
    "mov.b32 %r0, 0f3F800000;",
    "mov.b32 %r0, %f1;",
    "mov.f32 %f0, %r1;",
    "ld.global.u8 %r0, [%rd0 + 4];",
    "{ .reg .b8 b; .reg .u8 u; ld.global.u8 b, [%rd0]; ld.global.s8 u, [%rd0]; }",
    "mov.u64 %rd0, f;",
    "add.u64 %rd0, f, 1;",
    "add.f32 %f0, %f1, f;",
    "{ .param .b32 x; st.param.b32 [x], 1; call takes, (x); }",
    "{ bra L; L: }",
    "ld.global.b32 {%r0}, [%rd0];",
    "st.global.v2.f32 [%rd0], {%f0, %f1};",
    "ld.shared.b32 %r0, [tile + 16];",
    "ld.shared::cluster.b32 %r0, [tile];",
    "ld.b32 %r0, [g + 4];",
    "ld.param.u64 %rd0, [p];",
    "mov.u64 %rd0, g;",
    "mov.u64 %rd0, g + 8;",
    "mov.f32 %v.x, %f0;",
    "{ .reg .v4 .u32 T; mov.v4.u32 T, %tid; mov.v4.u32 {%r0, %r1, %r2, %r3}, %ntid; }",
    "setp.lt.and.f32 %p0|%p1, %f0, %f1, !%p2;",
    "setp.lt.f32 %p0, %f0, %f1;",
    "cvt.rn.f16.f32 %h0, %f0;",
    "call (%r0), f, (%r1);",
    "mad.wide.s32 %rd0, %r0, %r1, %rd1;",
    "mov.b64 {%r0, _}, %rd0;",
    "bar.sync 15, 64;",
    "add.u64 %rd0, %rd1+8, %rd2;",
    "st.global.b32 [%rd0], %r0+-4;",
    "mov.b32 %r0, %r1+(4*2);",
    "add.bf16x2 %r0, %r1+1, %r2;",
    "bar.sync %r0+1;",
    "ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%rd0];",
    "stmatrix.sync.aligned.m8n8.x1.b16 [%rd0+16], {%r0};",
    "mbarrier.arrive.b64 %rd0, [%rd1], {%r0};",
    "call (%r0), none;",
    "call (), nothing;",
    "{ .param .b32 x; P: .callprototype (.param .b32 _) _; call (x), %rd0, P; }",
]


@pytest.mark.parametrize(("line", "code"), WRONG)
def test_wrong_operands_are_reported_in_their_line(line: str, code: str) -> None:
    assert report(f"    mov.b32 %r9, 0;\n    {line}") == [f"{code} 2"]


@pytest.mark.parametrize("line", RIGHT)
def test_right_operands_are_clean(line: str) -> None:
    assert report(f"    {line}") == []


@pytest.mark.parametrize("line", [line for line, _ in WRONG] + RIGHT)
def test_ptxas_agrees(line: str) -> None:
    text = HEADER.format(target="sm_90a", version="8.6") + f"    {line}\n    ret;\n}}\n"
    errors = [d for d in validate(text) if d.severity is Severity.ERROR]
    assert bool(errors) == (line not in RIGHT)


_SCALED = (
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 "
    "{%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f4, %f5, %f6, %f7}, "
    "{%r6}, {%h0, %h1}, {%r7}, {%h2, %h3};"
)


@pytest.mark.parametrize(
    ("line", "target", "expected"),
    [
        (_SCALED, "sm_120a", []),
        ("st.bulk.weak.shared::cta [tile], 64, 0;", "sm_100a", ["PTX0202 1"]),
        ("st.bulk.weak.shared::cta [%r0], 64, 0;", "sm_100a", []),
        ("st.bulk [tile], 64, 0;", "sm_100a", []),
    ],
)
def test_newer_instructions(line: str, target: str, expected: list[str]) -> None:
    assert report(line, target, "8.7") == expected
    text = HEADER.format(target=target, version="8.7") + f"{line}\nret;\n}}\n"
    assert bool(expected) == any(d.severity is Severity.ERROR for d in validate(text))


def test_one_operand_is_singular() -> None:
    (finding,) = check(
        parse(".version 8.6\n.target sm_90\n.func f() { .reg .b32 %r0; activemask.b32 %r0, %r0; ret; }\n")
    )
    assert finding.message == "`activemask.b32` takes 1 operand, found 2"


TEX = "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, "
HANDLES = [
    (TEX + "[h, {%f4}];", "texref", "sm_90"),
    (TEX + "[t, h, {%f4}];", "samplerref", "sm_90, texmode_independent"),
    ("txq.width.b32 %r0, [h];", "texref", "sm_90"),
    ("suq.width.b32 %r0, [h];", "surfref", "sm_90"),
    ("suld.b.1d.b32.trap %r0, [h, {%r1}];", "surfref", "sm_90"),
]
"""Instructions, the type of their handle `h`, and their target."""
PARAMETERS = """.version 8.6
.target {target}
.address_size 64
.entry k(.param .texref t, .param .{declared} h) {{
.reg .f32 %f<5>;
.reg .b32 %r<2>;
mov.b32 %r1, 0;
mov.b32 %f4, %r1;
{line}
ret;
}}
"""


@pytest.mark.parametrize("declared", ["texref", "samplerref", "surfref"])
@pytest.mark.parametrize(("line", "right", "target"), HANDLES)
def test_a_handle_has_the_type_that_the_instruction_takes(line: str, right: str, target: str, declared: str) -> None:
    text = PARAMETERS.format(line=line, target=target, declared=declared)
    is_clean = declared == right or (line.startswith("txq") and declared == "samplerref")
    assert [d.line for d in check(parse(text)) if d.severity is Severity.ERROR] == [9] * (not is_clean)
    assert (declared == right) is not any(d.severity == "error" for d in validate(text))
