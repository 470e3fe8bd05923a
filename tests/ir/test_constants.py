"""Constant expressions follow the manual's rules (Integer Constant Expression Evaluation)."""

from __future__ import annotations

import pytest

from pyptx.ir import AddressOperand, Instruction, displacement, evaluate, visit
from pyptx.parser import parse


def value(text: str) -> int | float | None:
    module = parse(f".version 8.0\n.target sm_90\n.entry k() {{ mov.b64 %rd1, {text}; }}\n")
    (instruction,) = [s for s in visit(module) if isinstance(s, Instruction)]
    return evaluate(instruction.operands[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("10-4-3", 3),
        ("-7/2", -3),
        ("7 % 4", 3),
        ("-1 % 4", 3),
        ("1<<4|3&2^1", 16 | (3 & 2) ^ 1),
        ("-8>>1", -4),
        ("1 ? 2 : 3 ? 4 : 5", 2),
        ("0 ? 2 : 0 ? 4 : 5", 5),
        ("~0", (1 << 64) - 1),
        ("!5 || 0 && 1", 0),
        ("-1 < 0", 1),
        ("-1 < 0U", 0),
        ("(.u64)-1", (1 << 64) - 1),
        ("(.s64)0xffffffffffffffff", -1),
        ("0x7fffffffffffffff+1", -(1 << 63)),
        ("1.5+2.0", 3.5),
        ("1.0 < 2.0", 1),
        ("WARP_SZ*2", 64),
        ("1/0", None),
        ("sym+4", None),
    ],
)
def test_values(text: str, expected: float | None) -> None:
    assert value(text) == expected


def test_displacements() -> None:
    assert displacement(AddressOperand("%rd1")) == 0
    assert displacement(AddressOperand("%rd1", "-0x10")) == -16
