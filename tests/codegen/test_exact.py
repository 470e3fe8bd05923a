"""The vocabulary of exact transcripts: what is written is emitted, as it is written and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pyptx import kernel, ptx, reg, smem
from pyptx.diagnostics import PtxError
from pyptx.types import b8, b32, b64, f32, pred, s32, s64, u32, u64


def body(write: Callable[[], object], **style: object) -> str:
    """Return the statements of a body as an exact module has them, without their indentation."""
    module = ptx.module((8, 7), "sm_90a", style=ptx.Style(indent="", **style))  # pyright: ignore[reportArgumentType]
    module.entry("k")(write)
    return module.ptx().partition("{\n")[2].rpartition("}\n")[0]


def test_nothing_is_added_hoisted_or_folded() -> None:
    def write() -> None:
        ptx.inst.mov.u32("%r1", 1)
        r = ptx.decl.reg(b32, "%r<4>")
        r[2] = r[1]

    assert body(write) == "mov.u32 %r1, 1;\n.reg .b32 %r<4>;\nmov.b32 %r2, %r1;\n"


def test_a_declaration_returns_what_its_names_stand_for() -> None:
    def write() -> None:
        r, p, v = ptx.decl.reg(b32, "%r<0x10>", "p", "$v<2>", align=4)
        ptx.inst.add.s32(r[15], p, v[-1])
        ptx.inst["made.up"](r[2:4], unchecked=True)

    assert body(write) == ".reg .align 4 .b32 %r<0x10>, p, $v<2>;\nadd.s32 %r15, p, $v1;\nmade.up {%r2, %r3};\n"


def test_vectors_and_their_parts() -> None:
    def write() -> None:
        v = ptx.decl.reg(f32, "v", vector=4)
        ptx.inst.mov.f32(ptx.sel(v, "x"), 1.0)

    assert body(write) == ".reg .v4 .f32 v;\nmov.f32 v.x, 0f3F800000;\n"


def test_variables_of_every_kind() -> None:
    def write() -> None:
        ptx.decl.var("shared", b8, "s", 1024, align=16)
        ptx.decl.var("global", u32, "a", (2, 3), ptx.decl.item("b"), init=[[1, 2], [3, ptx.imm("0x4")]])
        ptx.decl.var("global", u64, "p", None, init=[ptx.op.binary("+", "a", 4)], linking="visible")
        ptx.decl.var("global", u64, "q", (None,), init=[ptx.op.generic("a"), 0], attributes=["managed"])
        ptx.decl.var("const", u32, "c", bank=2)

    assert body(write) == (
        ".shared .align 16 .b8 s[1024];\n.global .u32 a[2][3] = {{1, 2}, {3, 0x4}}, b;\n"
        ".visible .global .u64 p = a+4;\n.global .attribute(.managed) .u64 q[] = {generic(a), 0};\n.const[2] .u32 c;\n"
    )


def test_operands_keep_their_spelling() -> None:
    def write() -> None:
        r = ptx.decl.reg(b32, "%r<3>")
        ptx.inst.ld.global_.u32(r[1], r[2])
        ptx.inst.ld.global_.u32(r[1], ptx.addr(r[2], ptx.op.binary("*", 4, 8)))
        ptx.inst.ld.global_.u32(r[1], ptx.op.index("a", 2))
        ptx.inst.ld.global_.u32(r[1], ptx.addr(r[2], -4))
        ptx.inst.mov.u32(r[1], ptx.op.conditional(1, 2, ptx.op.unary("~", (ptx.imm("0x3U"),))))
        ptx.inst["add.u32.sat"](r[1], r[2], ptx.imm("WARP_SZ"), unchecked=True)
        ptx.inst.tex._2d.v4.f32.s32([None] * 4, ptx.addr("t", "s", [r[1], r[2]]))

    assert body(write).split("\n")[1:-1] == [
        "ld.global.u32 %r1, [%r2];", "ld.global.u32 %r1, [%r2+4*8];", "ld.global.u32 %r1, a[2];",
        "ld.global.u32 %r1, [%r2+-4];", "mov.u32 %r1, 1?2:~(0x3U);", "add.u32.sat %r1, %r2, WARP_SZ;",
        "tex.2d.v4.f32.s32 {_, _, _, _}, [t, s, {%r1, %r2}];",
    ]  # fmt: skip


def test_names_are_given_in_order_to_each_class() -> None:
    def write() -> None:
        r, f, p = ptx.decl.reg(b32, "%r<9>"), ptx.decl.reg(f32, "%f<9>"), ptx.decl.reg(pred, "%p<3>")
        with ptx.names(r[5], f[1], r[6], p[1], f[2]):
            x = r[1] + r[2]
            y = reg.use("%r3", f32) * 2.0
            z = x ^ 3
            q = z == x
            ptx.inst.selp.f32(f[0], y, y * y, q)

    assert body(write).split("\n")[3:-1] == [
        "add.u32 %r5, %r1, %r2;", "mul.f32 %f1, %r3, 0f40000000;", "xor.b32 %r6, %r5, 3;",
        "setp.eq.b32 %p1, %r6, %r5;", "mul.f32 %f2, %f1, %f1;", "selp.f32 %f0, %f1, %f2, %p1;",
    ]  # fmt: skip


def test_names_that_run_out_are_made_afresh_and_declared() -> None:
    def write() -> None:
        r = ptx.decl.reg(b32, "%r<9>", "%fresh_r<2>")[0]
        with ptx.names(r[5]):
            ptx.inst.mov.u32(r[0], r[1] + 1 + 2)

    assert body(write) == (
        ".reg .b32 %fresh_fresh_r<1>;\n.reg .b32 %r<9>, %fresh_r<2>;\nadd.u32 %r5, %r1, 1;\n"
        "add.u32 %fresh_fresh_r0, %r5, 2;\nmov.u32 %r0, %fresh_fresh_r0;\n"
    )


def test_memory_and_ranges_made_inside_are_declared_first() -> None:
    def write() -> None:
        ptx.decl.reg(f32, "%acc<2>")
        tile = smem.alloc(f32, 4, name="tile")
        acc = reg.array(f32, 2, name="acc")
        ptx.inst.st.shared.f32(tile[1], acc[0])

    assert body(write) == (
        ".reg .f32 %acc_1_<2>;\n.shared .align 128 .b8 tile[16];\n"
        ".reg .f32 %acc<2>;\nst.shared.f32 [tile+4], %acc_1_0;\n"
    )


def test_a_typed_view_needs_a_declared_register() -> None:
    def write() -> None:
        r = ptx.decl.reg(b64, "%rd<290>")
        with ptx.names(r[1]):
            ptx.inst.mov.b64(r[0], reg.use("%rd289", s64) >> 1)
        reg.use("%rd290", s64)

    with pytest.raises(PtxError, match="no register `%rd290` is declared"):
        body(write)


def test_conditionals_have_the_forms_of_compilers() -> None:
    def write() -> None:
        p = ptx.decl.reg(pred, "%p<3>")
        with ptx.if_(p[1], label="$L__BB0_2"):
            ptx.inst.ret()
        with ptx.if_(~p[2], label="ELSE"):
            ptx.inst.ret()
        with ptx.else_(label="END", uni=True):
            ptx.inst.exit()
        with ptx.names(labels=("A", "B")), ptx.if_(p[1]), ptx.if_(p[2]):
            ptx.inst.trap()

    assert body(write).split("\n")[1:-1] == [
        "@!%p1 bra $L__BB0_2;", "ret;",
        "$L__BB0_2:", "@%p2 bra ELSE;", "ret;", "bra.uni END;", "ELSE:", "exit;", "END:",
        "@!%p1 bra A;", "@!%p2 bra B;", "trap;", "B:", "A:",
    ]  # fmt: skip


def test_else_follows_its_if_directly() -> None:
    def write() -> None:
        p = ptx.decl.reg(pred, "%p<3>")
        with ptx.if_(p[1], label="A"):
            pass
        ptx.inst.ret()
        with ptx.else_(label="B"):
            pass

    with pytest.raises(PtxError, match="must directly follow"):
        body(write)


def test_loops_have_the_form_of_compilers() -> None:
    def write() -> None:
        p = ptx.decl.reg(pred, "%p<3>")
        with ptx.loop("$L__BB0_3", pred=p[1]):
            ptx.inst.setp.ne.s32(p[1], "%r1", 0)
        with ptx.loop("L", uni=True):
            ptx.inst.exit(pred=~p[1])

    assert body(write).split("\n")[1:-1] == [
        "$L__BB0_3:", "setp.ne.s32 %p1, %r1, 0;", "@%p1 bra $L__BB0_3;", "L:", "@!%p1 exit;", "bra.uni L;",
    ]  # fmt: skip


def test_wait_loops_have_the_forms_of_libraries() -> None:
    def write() -> None:
        p = ptx.decl.reg(pred, "%p<3>")
        wait: Any = ptx.mbarrier.wait
        wait(ptx.addr("%r1"), "%r2", labels=("waitLoop",), predicate="complete", space="shared::cta", uni=True)
        wait(ptx.addr("%r1"), "%r2", labels=("LAB_WAIT", "DONE"), predicate="P1", suspend_hint=ptx.imm("0x989680"))
        wait("bar", 0, labels=("L",), predicate=p[1], sem="acquire", scope="cta")

    assert body(write).split("\n")[1:-1] == [
        "{", ".reg .pred complete;", "waitLoop:", "mbarrier.try_wait.parity.shared::cta.b64 complete, [%r1], %r2;",
        "@!complete bra.uni waitLoop;", "}", "{", ".reg .pred P1;", "LAB_WAIT:",
        "mbarrier.try_wait.parity.shared.b64 P1, [%r1], %r2, 0x989680;", "@P1 bra DONE;", "bra LAB_WAIT;", "DONE:", "}",
        "L:", "mbarrier.try_wait.parity.acquire.cta.shared.b64 %p1, [bar], 0;", "@!%p1 bra L;",
    ]  # fmt: skip


def test_helpers_of_several_instructions_leave_no_comments() -> None:
    def write() -> None:
        r = ptx.decl.reg(b32, "%r<9>")
        with ptx.names(r):
            ptx.warp.reduce_sum(reg.use("%r8", s32), width=2)

    assert body(write).split("\n")[1:-1] == [
        "shfl.sync.bfly.b32 %r0, %r8, 1, 31, 4294967295;",
        "add.s32 %r8, %r8, %r0;",
    ]


def test_layouts_of_statements_blocks_and_inline_assembly() -> None:
    def write() -> None:
        ptx.layout(before="// one\n", after=" // two\n")
        ptx.inst.ret()
        ptx.layout("", "\t", "\n")
        ptx.label("L")
        with ptx.block(), ptx.inline_asm():
            ptx.inst.mov.u32("%r1", [1])
            ptx.layout(before="\n")
        ptx.open_block()
        ptx.layout(inner={1: "  "})
        ptx.inst.exit()
        ptx.close_block()

    written = body(write, asm=ptx.Style("  ", around={"{_": " ", "_}": " "}))
    assert written == (
        "// one\nret; // two\n"
        "L\t:\n{\n\t// begin inline asm\n  mov.u32 %r1, { 1 };\n\n\t// end inline asm\n}\n{\nexit  ;\n}\n"
    )


def test_styles_say_what_stands_before_statements() -> None:
    def write() -> None:
        ptx.label("A")
        ptx.inst.ret()
        ptx.inst.ret()

    assert body(write, before={"label": "\n", "label inst": "\n\t"}, forms={"ret": {-1: "//\n"}}) == (
        "\nA:\n\n\tret;//\nret;//\n"
    )


def test_directives_as_statements() -> None:
    def write() -> None:
        ptx.directive("loc", 1, 2, 3, function_name=("f", 4), inlined_at=(1, 9, 3))
        ptx.directive("pragma", "nounroll")
        ptx.directive("branchtargets", "A", ("L", 4))
        ptx.directive("callprototype", params=[ptx.decl.param(b32, "_")], directives=["noreturn"])

    assert body(write) == (
        ".loc 1 2 3, function_name f+4, inlined_at 1 9 3\n.pragma \"nounroll\";\n.branchtargets A, L<4>;\n"
        ".callprototype _(.param .b32 _) .noreturn;\n"
    )  # fmt: skip


def test_a_module_holds_everything_in_order() -> None:
    module = ptx.module("8.07", ["sm_90a", "debug"], address_size=ptx.imm("0x40"), before="// x\n", ending="// end")
    module.directive("file", 1, "a.cu")
    module.declare("g", ptx.decl.param(b8, "x", ()), returns=[ptx.decl.param(b32, "r")], linking="extern")

    @module.entry("k", ptx.decl.param(u64, "p", ptr="global", ptr_align=16), directives=[("maxntid", 128)])
    def made() -> None:
        ptx.inst.ret()

    with module.section(".debug_info"):
        module.label("L")
        module.data(b8, 1, ("L", 4), ("L", "-", "M"))
    assert made.name == "k"
    assert module.ptx() == made.ptx() == (
        "// x\n.version 8.07\n.target sm_90a, debug\n.address_size 0x40\n.file 1 \"a.cu\"\n"
        ".extern .func (.param .b32 r) g(\n\t.param .b8 x[]\n);\n"
        ".entry k(\n\t.param .u64 .ptr .global .align 16 p\n)\n.maxntid 128\n{\n\tret;\n}\n"
        ".section .debug_info\n{\n\tL:\n\t.b8 1, L+4, L-M\n}\n// end"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".section .debug_str {\n.b9 1 }", "line 2 of the section: "),
        (".section .a { .b8 1 } .section .b {}", "expected one section"),
        (".global .u32 x;", "expected one section"),
        (".section .a {} // left over\n// more", "expected one section"),
        ("", "expected one section"),
    ],
)
def test_the_text_of_a_section_is_one_section(text: str, message: str) -> None:
    with pytest.raises(PtxError) as error:
        ptx.module("8.7", "sm_90a").section_text(text)
    assert [found.code for found in error.value.diagnostics] == ["PTX0819"]
    assert message in error.value.diagnostics[0].message


def test_an_exact_kernel_is_a_kernel() -> None:
    @kernel(exact=True, arch="sm_80", raw_params=[("u64", "p")])
    def k() -> None:
        r = ptx.decl.reg(b32, "%r<2>")
        ptx.layout(after=" // index\n")
        ptx.inst.mov.u32(r[1], "%tid.x")
        ptx.inst.ret()

    assert k.ptx().endswith("{\n\t.reg .b32 %r<2>;\n\tmov.u32 %r1, %tid.x; // index\n\tret;\n}\n")
    assert not [found for found in k.check() if found.code != "PTX0501"]


def test_what_ptxas_refuses_is_at_its_python_line() -> None:
    @kernel(exact=True, arch="sm_80")
    def k() -> None:
        ptx.layout(before="// one\n// two\n\n\t")
        rd = ptx.decl.reg(b64, "%rd<4>")
        ptx.layout(after=" // here\n\n")
        ptx.inst.add.f32(rd[1], rd[2], rd[3])
        ptx.inst.ret()

    module = ptx.module((8, 0), "sm_80", before="//\n//\n")

    @module.entry("k")
    def other() -> None:
        rd = ptx.decl.reg(b64, "%rd<4>")
        ptx.layout(before="\n\n")
        ptx.inst.add.f32(rd[1], rd[2], rd[3])
        ptx.inst.ret()

    source = Path(__file__).read_text().split("\n")
    for assembled in (k.cubin, module.cubin, other.owner.cubin):
        with pytest.raises(PtxError) as error:
            assembled()
        found = error.value.diagnostics[0].origin
        assert found is not None
        assert "add.f32" in source[found.line - 1]


@pytest.mark.parametrize(
    "wrong",
    [lambda: ptx.decl.reg(b32, "a b"), lambda: ptx.decl.reg(b32, "%r<x>"), lambda: ptx.decl.var("heap", b32, "x"),
     lambda: ptx.directive("nothing"), lambda: ptx.directive("loc", 1), lambda: ptx.directive("pragma", 'a"b'),
     lambda: ptx.close_block(), lambda: ptx.open_block(), lambda: ptx.inst.mov.u32("%r1", "a;b"),
     lambda: ptx.inst.add.s32("%r1", "%r2"), lambda: ptx.inst["ad.s32"]("%r1"), lambda: ptx.op.binary("**", 1, 2),
     lambda: ptx.layout(cast(Any, 1)), lambda: ptx.inst.ret(pred=3)],
)  # fmt: skip
def test_mistakes_are_refused_at_the_users_line(wrong: Callable[[], object]) -> None:
    with pytest.raises(PtxError) as error:
        body(wrong)
    assert str(error.value.diagnostics[0].origin).startswith(__file__)


@pytest.mark.parametrize(
    "outside",
    [lambda: ptx.layout(before=""), lambda: ptx.decl.reg(b32, "%r<2>"), lambda: ptx.directive("pragma", "x"),
     lambda: ptx.block().__enter__(), lambda: ptx.names().__enter__(), lambda: ptx.if_(cast(Any, u32), label="x")],
)  # fmt: skip
def test_exact_words_are_refused_in_other_kernels(outside: Callable[[], object]) -> None:
    k = kernel(outside_of(outside))
    with pytest.raises(PtxError):
        k.ptx()


def outside_of(write: Callable[[], object]) -> Callable[[], None]:
    """Return a kernel function with this body."""

    def k() -> None:
        write()

    return k
