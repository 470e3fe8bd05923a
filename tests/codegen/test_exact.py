"""The vocabulary of exact transcripts: a module emits exactly what was written, in the same layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pyptx import kernel, ptx, reg, smem
from pyptx.diagnostics import PtxError
from pyptx.dsl.registers import Reg
from pyptx.ptx.transcript import ExactModule
from pyptx.toolchain import sass
from pyptx.types import b8, b32, b64, f32, f64, pred, s32, s64, u32, u64
from tests.messages import raises


def body(write: Callable[[], object], **style: object) -> str:
    """Return the statements of a body in an exact module, without their indentation."""
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
        ptx.inst.ld.global_.u32(r[1], ptx.op.address("a"))
        ptx.inst.ld.global_.u32(r[1], ptx.op.address("a", 8))
        ptx.inst.mov.u32(r[1], ptx.op.conditional(1, 2, ptx.op.unary("~", (ptx.imm("0x3U"),))))
        ptx.inst["add.u32.sat"](r[1], r[2], ptx.imm("WARP_SZ"), unchecked=True)
        ptx.inst.tex._2d.v4.f32.s32([None] * 4, ptx.addr("t", "s", [r[1], r[2]]))

    assert body(write).split("\n")[1:-1] == [
        "ld.global.u32 %r1, [%r2];", "ld.global.u32 %r1, [%r2+4*8];", "ld.global.u32 %r1, a[2];",
        "ld.global.u32 %r1, [%r2+-4];", "ld.global.u32 %r1, [a];",
        "ld.global.u32 %r1, [a+8];", "mov.u32 %r1, 1?2:~(0x3U);", "add.u32.sat %r1, %r2, WARP_SZ;",
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


def test_registers_may_be_declared_after_names_are_made() -> None:
    def write() -> None:
        a = reg.scalar(u32)
        ptx.inst.mov.u32(a, 1)
        b = ptx.decl.reg(b32, "%r0")
        ptx.inst.mov.u32(b, a)

    assert body(write) == (".reg .b32 %fresh_r<1>;\nmov.u32 %fresh_r0, 1;\n.reg .b32 %r0;\nmov.u32 %r0, %fresh_r0;\n")


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

    with raises(PtxError, match="no register `%rd290` is declared"):
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


def test_labels_that_are_not_given_are_new() -> None:
    def write() -> None:
        p = ptx.decl.reg(pred, "%p<3>")
        ptx.label("$fresh_if_2")
        with ptx.names(labels=("A",)), ptx.if_(p[0]), ptx.if_(p[1]):
            ptx.inst.trap()
        with ptx.if_(p[2]):
            ptx.inst.trap()

    assert body(write).split("\n")[1:-1] == [
        "$fresh_if_2:", "@!%p0 bra A;", "@!%p1 bra $fresh_if_1;", "trap;", "$fresh_if_1:", "A:",
        "@!%p2 bra $fresh_if_3;", "trap;", "$fresh_if_3:",
    ]  # fmt: skip


def test_blocks_may_have_the_same_labels() -> None:
    def write() -> None:
        for _ in range(2):
            with ptx.block():
                ptx.label("L")
                ptx.inst.bra("L")
        ptx.label("L")

    assert body(write).split() == "{ L: bra L; } { L: bra L; } L:".split()


def test_addresses_and_floats_become_operands() -> None:
    def write() -> None:
        r, f, d = ptx.decl.reg(b64, "%rd<3>"), ptx.decl.reg(f32, "%f<3>"), ptx.decl.reg(f64, "%d<3>")
        inner = ptx.addr(r[1], 4)
        assert ptx.addr(inner) is inner
        ptx.inst.ld.global_.f32(f[0], inner)
        ptx.inst.ld.global_.f32(f[0], ptx.addr(ptx.op.binary("+", "a", 4)))
        ptx.inst.mov.f64(d[0], 1.5)
        ptx.inst["made.up"](f[0], 1.5, unchecked=True)
        ptx.inst.mov.b64(d[0], [1.5, f[1]])

    assert body(write).split("\n")[3:-1] == [
        "ld.global.f32 %f0, [%rd1+4];", "ld.global.f32 %f0, [a+4];", "mov.f64 %d0, 0d3FF8000000000000;",
        "made.up %f0, 0f3FC00000;", "mov.b64 %d0, {0f3FC00000, %f1};",
    ]  # fmt: skip


def test_else_follows_its_if_directly() -> None:
    def write() -> None:
        p = ptx.decl.reg(pred, "%p<3>")
        with ptx.if_(p[1], label="A"):
            pass
        ptx.inst.ret()
        with ptx.else_(label="B"):
            pass

    with raises(PtxError, match="must directly follow"):
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

    text = body(write, asm=ptx.Style("  ", around={"{_": " ", "_}": " "}))
    assert text == (
        "// one\nret; // two\n"
        "L\t:\n{\n\t// begin inline asm\n  mov.u32 %r1, { 1 };\n\n\t// end inline asm\n}\n{\nexit  ;\n}\n"
    )


def test_a_block_in_inline_assembly_leaves_it_as_it_was() -> None:
    def write() -> None:
        with ptx.inline_asm():
            with ptx.block(), ptx.inline_asm():
                ptx.inst.ret()
            ptx.inst.exit()
        ptx.inst.ret()

    assert body(write, asm=ptx.Style("  ")).splitlines()[-3:] == ["  exit;", "\t// end inline asm", "ret;"]


def test_a_layout_with_other_gaps_than_the_statement_sets_the_outer_ones() -> None:
    def write() -> None:
        ptx.layout(" ", "ignored", " // index\n")
        ptx.inst.mov.u32("%r1", 2)

    assert body(write) == " mov.u32 %r1, 2; // index\n"


def test_styles_say_what_stands_before_statements() -> None:
    def write() -> None:
        ptx.label("A")
        ptx.inst.ret()
        ptx.inst.ret()

    assert body(write, before={"label": "\n", "label inst": "\n\t"}, forms={"ret": {-1: "//\n"}}) == (
        "\nA:\n\n\tret;//\nret;//\n"
    )


def test_styles_say_what_stands_in_guarded_statements() -> None:
    """A form holds for guards of its own kind only."""

    def write() -> None:
        for guard in ("%p1", "%p2"):
            ptx.inst.bra("L", pred=guard)
            ptx.inst.bra("L", pred=ptx.op.negated(guard))
        ptx.inst.bra("L")

    guarded = "@%p1  bra L;\n@!%p1 bra L;\n@%p2  bra L;\n@!%p2 bra L;\nbra L;\n"
    negated = "@%p1 bra L;\n@!%p1  bra L;\n@%p2 bra L;\n@!%p2  bra L;\nbra L;\n"
    assert body(write, forms={"@ bra": {2: "  "}}) == guarded
    assert body(write, forms={"@! bra": {3: "  "}}) == negated


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
    with raises(PtxError) as error:
        ptx.module("8.7", "sm_90a").section_text(text)
    assert [finding.code for finding in error.value.diagnostics] == ["PTX0819"]
    assert message in error.value.diagnostics[0].message


def test_an_exact_kernel_is_a_kernel() -> None:
    @kernel(exact=True, arch="sm_80", raw_params=[("u64", "p")])
    def k() -> None:
        r = ptx.decl.reg(b32, "%r<2>")
        ptx.layout(after=" // index\n")
        ptx.inst.mov.u32(r[1], "%tid.x")
        ptx.inst.ret()

    assert k.ptx().endswith("{\n\t.reg .b32 %r<2>;\n\tmov.u32 %r1, %tid.x; // index\n\tret;\n}\n")
    assert not [finding for finding in k.check() if finding.code != "PTX0501"]


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
    for assemble_kernel in (k.cubin, module.cubin, other.owner.cubin):
        with raises(PtxError) as error:
            assemble_kernel()
        origin = error.value.diagnostics[0].origin
        assert origin is not None
        assert "add.f32" in source[origin.line - 1]


@pytest.mark.parametrize(
    "wrong",
    [lambda: ptx.decl.reg(b32, "a b"), lambda: ptx.decl.reg(b32, "%r<x>"), lambda: ptx.decl.var("heap", b32, "x"),
     lambda: ptx.directive("nothing"), lambda: ptx.directive("loc", 1), lambda: ptx.directive("pragma", 'a"b'),
     lambda: ptx.close_block(), lambda: ptx.open_block(), lambda: ptx.inst.mov.u32("%r1", "a;b"),
     lambda: ptx.inst.add.s32("%r1", "%r2"), lambda: ptx.inst["ad.s32"]("%r1"), lambda: ptx.op.binary("**", 1, 2),
     lambda: ptx.layout(cast(Any, 1)), lambda: ptx.inst.ret(pred=3)],
)  # fmt: skip
def test_mistakes_are_refused_at_the_users_line(wrong: Callable[[], object]) -> None:
    with raises(PtxError) as error:
        body(wrong)
    assert str(error.value.diagnostics[0].origin).startswith(__file__)


def new_module() -> ExactModule:
    """Return a module without functions."""
    return ptx.module((8, 7), "sm_90a")


EXACT: list[tuple[Callable[[], Any], str, str, str | None]] = [
    (lambda: ptx.inst.mov.u32("%r1", object), "PTX0806",
     "an operand cannot be <class 'object'> (type)",
     "pass a register, a number, a name (str), a list, a tuple, ptx.addr(...) or a ptx.op value"),
    (lambda: ptx.inst.mov.u32("%r1", {1}), "PTX0806",
     "an operand cannot be {1} (set)",
     "pass a register, a number, a name (str), a list, a tuple, ptx.addr(...) or a ptx.op value"),
    (lambda: ptx.addr(ptx.addr("%r1", 4), 8), "PTX0818",
     "only a register, a symbol or a number takes an offset, found `[%r1+4]`",
     "write one expression: ptx.addr(ptx.op.binary('+', …))"),
    (lambda: ptx.addr(ptx.addr("m"), [1, 2]), "PTX0818",
     "only a register, a symbol or a number takes an offset, found `[m]`",
     "write one expression: ptx.addr(ptx.op.binary('+', …))"),
    (lambda: ptx.addr(ptx.op.binary("+", "a", 4), 8), "PTX0818",
     "only a register, a symbol or a number takes an offset, found `a+4`",
     "write one expression: ptx.addr(ptx.op.binary('+', …))"),
    (lambda: (reg.scalar(u32), ptx.decl.reg(b32, "%fresh_r<3>")), "PTX0815",
     "`%fresh_r` could collide with a generated register name", "rename it"),
    (lambda: ptx.decl.reg(b32), "PTX0818", "`ptx.decl.reg` needs a name: ptx.decl.reg(b32, '%r<24>')", None),
    (lambda: ptx.decl.reg(b32, cast(Any, 5)), "PTX0815",
     "expected registers such as '%x' or '%r<24>', found 5 (int)", None),
    (lambda: ptx.decl.reg(b32, "%r<1><2>"), "PTX0815",
     "expected registers such as '%x' or '%r<24>', found '%r<1><2>' (str)", None),
    (lambda: ptx.decl.var("shared", u32, "x", 1.5), "PTX0818", "expected an integer, found 1.5 (float)", None),
    (lambda: ptx.decl.var("shared", u32, "x", True), "PTX0818", "expected an integer, found True (bool)", None),
    (lambda: ptx.decl.var("shared", u32, "x", ptx.imm("1.5")), "PTX0818",
     "expected an integer, found ImmediateOperand(text='1.5') (ImmediateOperand)", None),
    (lambda: ptx.decl.var("shared", u32, "x", linking="public"), "PTX0818",
     "expected 'visible', 'extern', 'weak' or 'common', found 'public' (str)", None),
    (lambda: ptx.decl.var("global", u32, "x", attributes=["man aged"]), "PTX0815",
     "expected an attribute such as 'managed', found '.man aged' (str)", None),
    (lambda: ptx.directive("loc", 1, 2, 3, inlined_at=(1, 2)), "PTX0818",
     "`inlined_at` must be (file, line, column), found (1, 2) (tuple)", None),
    (lambda: ptx.mbarrier.wait("bar", 0, labels=("A", "B", "C")), "PTX0818",
     "a wait loop has one or two labels, found 3", 'labels=("waitLoop",), or ("LAB_WAIT", "DONE")'),
    (lambda: ptx.mbarrier.wait("bar", 0, labels=("A",), predicate=cast(Any, 5)), "PTX0818",
     "the predicate of a wait loop must be a register, or the name of one to declare", None),
    (lambda: ptx.op.index(1, 2), "PTX0806", "only a variable or register can be indexed, found 1 (int)", None),
    (lambda: ptx.op.address(1, 2), "PTX0806",
     "only a variable or register can be the base of an address, found 1 (int)", None),
    (lambda: ptx.op.mask("x", 2), "PTX0806", "a mask must be a number, found 'x' (str)", None),
    (lambda: new_module().entry("k", directives=[("Max ntid", 1)]), "PTX0818",
     "expected the name of a directive such as 'maxntid', found 'Max ntid' (str)", None),
    (lambda: new_module().entry("k", directives=[(5, 1)]), "PTX0818",
     "expected the name of a directive such as 'maxntid', found 5 (int)", None),
    (lambda: new_module().entry("k", linked="weak", named=1), "PTX0818",
     "`k` is declared with unknown options: linked, named", None),
    (lambda: new_module().entry("k", cast(Any, "x")), "PTX0818",
     "`k` is declared with a parameter that is not ptx.decl.param(…)", None),
    (lambda: new_module().func("f", returns=[cast(Any, "x")]), "PTX0818",
     "`f` is declared with a parameter that is not ptx.decl.param(…)", None),
    (lambda: new_module().label("L"), "PTX0810",
     "a label is only allowed in a function or a section", None),
    (lambda: new_module().data(b8, 1), "PTX0810",
     "data are only allowed in a section",
     'with module.section(".debug_info"):'),
    (lambda: ptx.module((8, 7), []), "PTX0821", "a module needs a target, such as 'sm_90a'", None),
    (lambda: ptx.module(cast(Any, (8, 7, 1)), "sm_90a"), "PTX0821",
     "a version must be (8, 7) or '8.7', found (8, 7, 1) (tuple)", None),
    (lambda: ptx.module("8.7", "sm 90a"), "PTX0815",
     "expected a PTX name (letters, digits, `_`, `$`; `%` only first), found 'sm 90a' (str)", None),
    (lambda: ptx.module("8.7", ["sm_90a", "debug;"]), "PTX0815",
     "expected a PTX name (letters, digits, `_`, `$`; `%` only first), found 'debug;' (str)", None),
    (lambda: ptx.module("8.x", "sm_90a"), "PTX0821", "a version must be (8, 7) or '8.7', found '8.x' (str)", None),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "rule", "message", "help"), EXACT, ids=[message for *_, message, _ in EXACT])
def test_a_refusal_states_exactly(wrong: Callable[[], Any], rule: str, message: str, help: str | None) -> None:
    with raises(PtxError) as error:
        body(wrong)
    (found,) = error.value.diagnostics
    assert (found.code, found.message, found.help) == (rule, message, help)
    assert (getattr(found.origin, "file", ""), found.line) == (__file__, wrong.__code__.co_firstlineno)


def test_a_register_of_another_kernel_is_refused() -> None:
    kept: list[Any] = []

    @kernel
    def other() -> None:
        kept.append(reg.scalar(u32))

    other.ptx()
    with raises(PtxError, match=r"PTX0802\]: `%r0` belongs to the kernel `other`, not this one"):
        body(lambda: ptx.inst.mov.u32("%r1", kept[0]))


def test_a_section_is_in_no_section() -> None:
    module = new_module()
    message = "a section is only allowed at module level: a section can only contain labels and data"
    for wrong in (lambda: module.section(".b").__enter__(), lambda: module.section_text(".section .b {}")):
        with raises(PtxError) as error, module.section(".a"):
            wrong()
        (found,) = error.value.diagnostics
        assert (found.code, found.message) == ("PTX0810", message)
        assert str(found.origin).startswith(__file__)
    with module.section(".a"):
        module.label("L")
    (section,) = module.module().directives
    assert str(section.origin).startswith(__file__)
    assert module.ptx() == ".version 8.7\n.target sm_90a\n.section .a\n{\n\tL:\n}\n"


def test_a_module_is_assembled_and_described() -> None:
    module = new_module()

    @module.entry("k")
    def made() -> None:
        ptx.inst.exit()

    assert (repr(module), repr(made)) == ("<exact module for sm_90a>", "<exact function k>")
    assert module.sass() == sass(module.cubin())
    assert "EXIT" in module.sass()


@pytest.mark.parametrize(
    "outside",
    [lambda: ptx.layout(before=""), lambda: ptx.decl.reg(b32, "%r<2>"), lambda: ptx.directive("pragma", "x"),
     lambda: ptx.block().__enter__(), lambda: ptx.names().__enter__(), lambda: ptx.if_(cast(Any, u32), label="x")],
)  # fmt: skip
def test_exact_words_are_refused_in_other_kernels(outside: Callable[[], object]) -> None:
    k = kernel(outside_of(outside))
    with raises(PtxError):
        k.ptx()


def outside_of(write: Callable[[], object]) -> Callable[[], None]:
    """Return a kernel function with this body."""

    def k() -> None:
        write()

    return k


def test_registers_of_a_module_are_what_those_of_a_function_are() -> None:
    module = new_module()
    x = module.reg(b32, "%x")
    several = module.reg(f32, "%f", "%r<2>", "v")
    assert isinstance(x, Reg)
    assert [(r.name, r.dtype.name) for r in (x, several[0], *several[1], several[2])] == [
        ("%x", "b32"), ("%f", "f32"), ("%r0", "f32"), ("%r1", "f32"), ("v", "f32"),
    ]  # fmt: skip
    assert module.ptx().endswith(".reg .b32 %x;\n.reg .f32 %f, %r<2>, v;\n")
