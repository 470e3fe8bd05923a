"""Printing: default spacing, and the effect of edits on the surrounding text."""

from __future__ import annotations

from pyptx.emitter import NVCC, emit, emit_statement
from pyptx.ir import (
    AddressOperand,
    AddressSize,
    Block,
    Function,
    FunctionDirective,
    ImmediateOperand,
    Instruction,
    Label,
    LinkingDirective,
    Module,
    Param,
    Predicate,
    RegDecl,
    RegisterOperand,
    ScalarType,
    Statement,
    StateSpace,
    Target,
    VarDecl,
    VectorOperand,
    Version,
    replace_statements,
    strip_layout,
    visit,
)
from pyptx.parser import parse

R1, R2 = RegisterOperand("%r1"), RegisterOperand("%r2")


def module(*body: Statement) -> Module:
    params = (Param(StateSpace.PARAM, ScalarType.U64, "a"), Param(StateSpace.PARAM, ScalarType.U32, "b"))
    entry = Function(
        True, "k", params, None, body, LinkingDirective.VISIBLE, (FunctionDirective("maxntid", (32, 1, 1)),)
    )
    return Module(Version(8, 0), Target(("sm_90a",)), AddressSize(64), (entry,))


def test_default_spacing() -> None:
    body = (
        RegDecl(ScalarType.B32, "%r", 4),
        VarDecl(StateSpace.SHARED, ScalarType.B8, "s", 16, 8),
        Label("L"),
        Instruction("ld", (".shared", ".v2", ".b32"), (VectorOperand((R1, R2)), AddressOperand("%r3", "4"))),
        Instruction("mov", (".b32",), (R1, ImmediateOperand("-1")), Predicate("%p1", True)),
        Instruction("ret"),
    )
    assert emit(module(*body)) == (
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(\n\t.param .u64 a,\n\t.param .u32 b\n)\n.maxntid 32, 1, 1\n{\n"
        "\t.reg .b32 %r<4>;\n\t.shared .align 8 .b8 s[16];\n\tL:\n"
        "\tld.shared.v2.b32 {%r1, %r2}, [%r3+4];\n\t@!%p1 mov.b32 %r1, -1;\n\tret;\n}\n"
    )


def test_styles_space_only_what_has_no_layout() -> None:
    fresh = module(Instruction("mov", (".b32",), (R1, R2)))
    assert "\tmov.b32 \t%r1, %r2;\n" in emit(fresh, style=NVCC)
    reparsed = parse(emit(fresh))
    assert emit(reparsed, style=NVCC) == emit(fresh)
    assert emit(strip_layout(reparsed), style=NVCC) == emit(fresh, style=NVCC)


TEXT = """.version 8.0
.target sm_90
.entry k()
{
    // before
    add.s32   %r1,%r2 , %r3; // after
    ret; }
// end"""


def emit_edit(change: dict[str, object]) -> str:
    return emit(
        replace_statements(
            parse(TEXT), lambda s: s.replace(**change) if isinstance(s, Instruction) and s.opcode == "add" else s
        )
    )


def test_an_edit_keeps_its_surroundings() -> None:
    assert emit_edit({"opcode": "sub"}) == TEXT.replace("add", "sub")


def test_a_structural_edit_respaces_one_statement_and_keeps_comments() -> None:
    assert emit_edit({"operands": (R1, R2)}) == TEXT.replace("add.s32   %r1,%r2 , %r3;", "add.s32 %r1, %r2;")
    assert "    // before\n    add.sat.s32 %r1, %r2, %r3; // after\n" in emit_edit({"modifiers": (".sat", ".s32")})
    with_guard = emit_edit({"predicate": Predicate("%p1")})
    assert "    // before\n    @%p1 add.s32 " in with_guard
    assert "; // after\n" in with_guard


def test_a_statement_after_a_last_comment_begins_a_line() -> None:
    original = parse(".version 8.0\n.target sm_90\n.global .u32 x; // no line end")
    longer = original.replace(directives=(*original.directives, VarDecl(StateSpace.GLOBAL, ScalarType.U32, "y")))
    assert emit(longer).endswith("x; // no line end\n.global .u32 y;\n")
    assert parse(emit(longer)) == longer


def test_what_follows_an_unfinished_line_begins_a_line() -> None:
    """A statement made in place, and the brace of a body whose layout is unknown."""
    parsed = parse(".version 8.0\n.target sm_90\n.entry k() { { ret; } exit;}")
    (entry,) = (s for s in visit(parsed) if isinstance(s, Function))
    (block, last) = entry.body
    assert isinstance(block, Block)
    edited = block.replace(closing=None, body=(*block.body, Instruction("trap")))
    text = emit(parsed.replace(directives=(entry.replace(body=(edited, last), closing=None),)))
    assert text == ".version 8.0\n.target sm_90\n.entry k() { { ret;\n\t\ttrap;\n\t}\n exit;\n}\n"


def test_one_statement() -> None:
    assert emit_statement(Instruction("ret")) == "ret;\n"
