"""Nodes are frozen values: constructed by position, compared without layout and origin, replaced field by field."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from pyptx import types
from pyptx.diagnostics import Span
from pyptx.ir import (
    UNSIZED,
    AddressOperand,
    AddressSize,
    Block,
    Function,
    FunctionDirective,
    ImmediateOperand,
    Instruction,
    IntrinsicScope,
    Label,
    LabelOperand,
    LinkingDirective,
    Module,
    NegatedOperand,
    Node,
    Number,
    Param,
    ParenthesizedOperand,
    PipeOperand,
    PragmaDirective,
    Predicate,
    RegDecl,
    RegisterOperand,
    ScalarType,
    StateSpace,
    Target,
    VarDecl,
    VectorOperand,
    Version,
    layout_of,
    tokens,
)

A, B = RegisterOperand("%r1"), RegisterOperand("%r2")
SPELLED = [
    (A, "%r1"),
    (RegisterOperand("%tid.x"), "%tid .x"),
    (ImmediateOperand("-1"), "- 1"),
    (LabelOperand("L"), "L"),
    (VectorOperand((A, B)), "{ %r1 , %r2 }"),
    (AddressOperand("%rd1"), "[ %rd1 ]"),
    (AddressOperand("%rd1", "-4"), "[ %rd1 + - 4 ]"),
    (AddressOperand("map", None, (VectorOperand((A, B)),)), "[ map , { %r1 , %r2 } ]"),
    (ParenthesizedOperand((A,)), "( %r1 )"),
    (NegatedOperand(A), "! %r1"),
    (PipeOperand(A, B), "%r1 | %r2"),
    (Predicate("%p1", True), "@ ! %p1"),
    (Version(8, 7), ".version 8.7"),
    (Target(("sm_90a", "debug")), ".target sm_90a , debug"),
    (AddressSize(64), ".address_size 64"),
    (RegDecl(ScalarType.B32, "%r", 10), ".reg .b32 %r < 10 > ;"),
    (
        VarDecl(StateSpace.GLOBAL, ScalarType.U32, "x", 2, 8, ("1", "-2"), LinkingDirective.VISIBLE),
        ".visible .global .align 8 .u32 x [ 2 ] = { 1 , - 2 } ;",
    ),
    (VarDecl(StateSpace.CONST, ScalarType.F32, "c", initializer=("1.0",)), ".const .f32 c = 1.0 ;"),
    (VarDecl(StateSpace.SHARED, ScalarType.B8, "s", UNSIZED), ".shared .b8 s [ ] ;"),
    (Instruction("add", (".rn", ".f32"), (A, B), Predicate("%p1")), "@ %p1 add .rn .f32 %r1 , %r2 ;"),
    (Label("L"), "L :"),
    (PragmaDirective("nounroll"), '.pragma "nounroll" ;'),
    (Block(()), "{"),
    (IntrinsicScope("f", "1", ()), ""),
    (
        Param(StateSpace.PARAM, ScalarType.U64, "p", None, 8, StateSpace.GLOBAL, 16),
        ".param .align 8 .u64 .ptr .global .align 16 p",
    ),
    (FunctionDirective("maxntid", (128, 1, 1)), ".maxntid 128 , 1 , 1"),
    (Function(True, "k", (), None, (), LinkingDirective.VISIBLE), ".visible .entry k ( ) {"),
]


@pytest.mark.parametrize(("node", "spelling"), SPELLED, ids=[spelling for _, spelling in SPELLED])
def test_tokens_come_from_fields(node: Node, spelling: str) -> None:
    assert list(tokens(node)) == spelling.split()


@pytest.mark.parametrize("node", [node for node, _ in SPELLED])
def test_nodes_are_values(node: Node) -> None:
    twin = type(node)(*[getattr(node, field.name) for field in dataclasses.fields(node)])
    assert twin == node
    assert hash(twin) == hash(node)
    assert repr(twin) == repr(node)
    assert pickle.loads(pickle.dumps(node)) == node
    assert copy.copy(node) == node
    assert dataclasses.replace(node) == node
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(node, dataclasses.fields(node)[0].name, None)


def test_layout_and_origin_do_not_count() -> None:
    plain = Instruction("ret")
    elsewhere = Instruction("ret", layout=layout_of(("\t", "", "\n")), origin=Span(3, 4))
    assert plain == elsewhere
    assert hash(plain) == hash(elsewhere)
    assert elsewhere.origin == Span(3, 4)
    assert "layout" not in repr(elsewhere)


def test_different_nodes_differ() -> None:
    nodes = [node for node, _ in SPELLED]
    assert len(set(nodes)) == len(nodes)
    assert A != "%r1"
    assert Instruction("add", operands=(A, B)) != Instruction("add", operands=(B, A))
    assert LabelOperand("x") != RegisterOperand("x")


def test_a_replaced_operand_forgets_its_text() -> None:
    from pyptx.ir import text_of

    operand = AddressOperand("%rd1", "4")
    assert text_of(operand) == "[%rd1+4]"
    assert text_of(dataclasses.replace(operand, offset="8")) == "[%rd1+8]"
    assert text_of(operand.replace(base="%rd9")) == "[%rd9+4]"


def test_repr_shows_what_is_not_default() -> None:
    assert repr(Instruction("add", (".s32",), (A,))) == (
        "Instruction(opcode='add', modifiers=('.s32',), operands=(RegisterOperand(name='%r1'),))"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16", 16),
        ("-1", -1),
        ("0x10U", 16),
        ("017", 15),
        ("0b11", 3),
        ("WARP_SZ", 32),
        ("0F3F800000", 1.0),
        ("1e5", 1e5),
        ("0d3FF0000000000000", 1.0),
        ("-1.5", -1.5),
        (".5", 0.5),
        ("0", 0),
    ],
)
def test_values_of_numbers(text: str, value: float) -> None:
    assert ImmediateOperand(text).value == value
    assert type(ImmediateOperand(text).value) is type(value)


def test_scalar_types_are_those_of_the_package() -> None:
    assert {member.value for member in ScalarType} == set(types.ALL)
    assert ScalarType.F32.ptx == ".f32"
    assert ScalarType.from_ptx(".f16x2") is ScalarType.from_ptx("f16x2") is ScalarType.F16X2
    with pytest.raises(ValueError, match="f33"):
        ScalarType.from_ptx(".f33")
    assert StateSpace.from_ptx(".shared") is StateSpace.SHARED
    assert LinkingDirective.WEAK.ptx == ".weak"


def test_numbers_keep_their_spelling() -> None:
    declaration = RegDecl(ScalarType.B32, "%r", Number(16, "0x10"))
    assert declaration == RegDecl(ScalarType.B32, "%r", 16)
    assert "0x10" in tokens(declaration)
    assert pickle.loads(pickle.dumps(Number(16, "0x10"))).text == "0x10"


def test_a_module_lists_header_and_directives() -> None:
    entry = Function(True, "k", body=(Instruction("ret"),))
    module = Module(Version(8, 0), Target(("sm_90",)), AddressSize(64), (entry,))
    assert module.statements == (Version(8, 0), Target(("sm_90",)), AddressSize(64), entry)
