"""Spans inside statements are computed from tokens and layout."""

from __future__ import annotations

from pyptx.diagnostics import Span
from pyptx.ir import (
    Function,
    Instruction,
    guard_span,
    modifier_span,
    opcode_span,
    operand_span,
    part_span,
    visit,
)
from pyptx.parser import parse

TEXT = """.version 8.0
.target sm_90
.address_size 64
.entry k(.param .u64 a,
    .param .u32 bb)
{
    @!%p1 add.rn.f32 %f1, [%rd1 + 4],
        {%f2, %f3}; ret;
}
"""


def test_places_inside_an_instruction() -> None:
    add, ret = [s for s in visit(parse(TEXT)) if isinstance(s, Instruction)]
    assert add.origin == Span(7, 5)
    assert guard_span(add) == Span(7, 5, 5)
    assert opcode_span(add) == Span(7, 11, 10)
    assert modifier_span(add, 1) == Span(7, 17, 4)
    assert operand_span(add, 0) == Span(7, 22, 3)
    assert operand_span(add, 1) == Span(7, 27, 10)
    assert operand_span(add, 2) == Span(8, 9, 10)
    assert opcode_span(ret) == Span(8, 21, 3)


def test_places_inside_a_header() -> None:
    (function,) = [s for s in visit(parse(TEXT)) if isinstance(s, Function)]
    assert part_span(function, function.params[0]) == Span(4, 10, 13)
    assert part_span(function, function.params[1]) == Span(5, 5, 14)


def test_what_is_no_part_of_a_header_is_at_the_header() -> None:
    (function,) = [s for s in visit(parse(TEXT)) if isinstance(s, Function)]
    assert part_span(function, function.params[0].replace(name="c")) == function.origin == Span(4, 1)


def test_an_edited_instruction_points_at_itself() -> None:
    add = next(s for s in visit(parse(TEXT)) if isinstance(s, Instruction))
    edit = add.replace(operands=add.operands[:1])
    assert operand_span(edit, 0) == Span(7, 5)
