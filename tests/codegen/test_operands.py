"""Operands of the plain transpiler: integers, and expressions up to the depth at which parts become variables."""

from __future__ import annotations

import re

import pytest

from pyptx.codegen import ptx_to_python
from pyptx.codegen.operands import parse_integer
from pyptx.codegen.printer import format_expression
from tests.codegen.transcripts import kernel, problem


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("0", True), ("-1", True), ("9" * 19, True), ("-" + "9" * 19, True), ("9" * 20, False),
        ("18446744073709551615", False), ("007", False), ("-0", False), ("--1", False), ("+1", False), ("", False),
        ("-", False), ("0x1", False), ("1U", False), ("²", False), ("٤", False),
    ],
)  # fmt: skip
def test_which_integers_are_spelled_alike(text: str, is_plain: bool) -> None:
    expression = parse_integer(text)
    assert (None if expression is None else format_expression(expression)) == (text if is_plain else None)


@pytest.mark.parametrize(("depth", "variables"), [(11, 0), (12, 1), (24, 1), (25, 2), (37, 2), (38, 3)])
def test_deep_expressions_become_variables(depth: int, variables: int) -> None:
    source = kernel(f".reg .b32 %r<2>;\nmov.u32 %r1, {'(' * depth}1{')' * depth};\n")
    python = ptx_to_python(source)
    assert len(re.findall(r"^ +part(?:_\d+)? = ptx", python, re.MULTILINE)) == variables
    assert problem(source) is None
