"""Which branches leave a loop, and which leave the loop around it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyptx.codegen.analysis.structure import Choice, Cycle, Part, Shape, find_shape
from pyptx.ir.nodes import Function, Instruction, Statement
from pyptx.parser import parse
from tests.codegen.transcripts import kernel

LOOP = """OUTER:
{before}
INNER:
@%p2 bra {target};
@%p3 bra INNER;
{after}
@%p4 bra OUTER;
DONE:
ret;
"""
PLACES = {
    "the body": ("", ""),
    "an if": ("@%p1 bra END;", "END:"),
    "an else": ("@%p1 bra ELSE;\nmov.u32 %r1, 1;\nbra.uni END;\nELSE:", "END:"),
    "an else in an else": (
        "@%p1 bra ELSE;\nmov.u32 %r1, 1;\nbra.uni END;\nELSE:\n@%p5 bra MORE;\nmov.u32 %r1, 2;\nbra.uni LAST;\nMORE:",
        "LAST:\nEND:",
    ),
}


def build_loop(before: str, after: str, target: str) -> tuple[Sequence[Statement], Shape]:
    """Return the statements and the shape of a loop inside another one; the inner one has a branch to a label."""
    *_, function = parse(kernel(LOOP.format(before=before, after=after, target=target))).statements
    assert isinstance(function, Function)
    return function.body, find_shape(function.body)


def cycles(parts: list[Part]) -> list[Cycle]:
    """Return all loops, the outer ones first."""
    loops: list[Cycle] = []
    for part in parts:
        if isinstance(part, Cycle):
            loops += [part, *cycles(part.body)]
        elif isinstance(part, Choice):
            loops += [*cycles(part.then), *cycles(part.otherwise)]
    return loops


@pytest.mark.parametrize("target", ["DONE", "OUTER"])
@pytest.mark.parametrize("place", PLACES)
def test_a_branch_that_leaves_two_loops_breaks_and_continues_neither(place: str, target: str) -> None:
    _, shape = build_loop(*PLACES[place], target)
    assert len(cycles(shape.parts)) == 2
    assert shape.leaves == {}
    assert all(cycle.end is None for cycle in cycles(shape.parts))


@pytest.mark.parametrize("place", PLACES)
def test_a_branch_to_the_top_of_its_own_loop_continues_it(place: str) -> None:
    body, shape = build_loop(*PLACES[place], "INNER")
    inner = cycles(shape.parts)[1]
    assert shape.leaves == {inner.label + 1: "continue"}
    assert isinstance(body[inner.label + 1], Instruction)


def test_a_branch_behind_its_own_loop_breaks_it() -> None:
    _, shape = build_loop("", "NEXT:", "NEXT")
    outer, inner = cycles(shape.parts)
    assert shape.leaves == {inner.label + 1: "break"}
    assert (outer.end, inner.end) == (None, inner.tail + 1)


def test_a_conditional_at_the_end_of_an_else_ends_with_it() -> None:
    lines = "@%p1 bra ELSE;\nmov.u32 %r1, 1;\nbra.uni END;\nELSE:\n@%p2 bra END;\nmov.u32 %r1, 2;\nEND:\nret;\n"
    *_, function = parse(kernel(lines)).statements
    assert isinstance(function, Function)
    outer = next(part for part in find_shape(function.body).parts if isinstance(part, Choice))
    (inner,) = outer.otherwise
    assert isinstance(inner, Choice)
    assert (inner.label, inner.owns_label, outer.owns_label) == (outer.end, False, True)
