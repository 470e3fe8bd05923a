"""Constant expressions follow the manual's rules (Integer Constant Expression Evaluation)."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

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
        ("-(1.5)", -1.5),
        ("(.u64)1.5", 1.5),
        ("1 ? 2.5 : 1", 2.5),
        ("~(1.5)", None),
        ("1.0 < 2.0", 1),
        ("WARP_SZ*2", 64),
        ("1/0", None),
        ("sym+4", None),
    ],
)
def test_values(text: str, expected: float | None) -> None:
    assert value(text) == expected


NUMBERS = (-3, -1, 0, 1, 2, 5)
OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&&": lambda a, b: bool(a) and bool(b), "||": lambda a, b: bool(a) or bool(b),
    "/": lambda a, b: int(a / b), "%": lambda a, b: (a % (1 << 64)) % (b % (1 << 64)),
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
}  # fmt: skip


FLOAT_OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": lambda a, b: a / b, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_integers(name: str) -> None:
    for a, b in itertools.product(NUMBERS, NUMBERS):
        if (name in "/%" and b == 0) or (name in ("<<", ">>") and b < 0):
            continue
        signed = value(f"({a}){name}({b})")
        assert signed is not None
        assert (int(signed) - OPERATORS[name](a, b)) % (1 << 64) == 0, (a, b)
        if name != "/":
            unsigned = value(f"({a}U){name}({b}U)" if min(a, b) >= 0 else f"((.u64){a}){name}((.u64){b})")
            whole = OPERATORS[name](a % (1 << 64), b % (1 << 64))
            assert unsigned is not None
            assert int(unsigned) % (1 << 64) == whole % (1 << 64), (a, b)


@pytest.mark.parametrize("name", FLOAT_OPERATORS)
def test_operators_of_floats(name: str) -> None:
    for a, b in itertools.product((0.5, 1.0, 2.5), (0.5, 1.0, 2.5)):
        assert value(f"{a}{name}{b}") == FLOAT_OPERATORS[name](a, b)


def test_displacements() -> None:
    assert displacement(AddressOperand("%rd1")) == 0
    assert displacement(AddressOperand("%rd1", "-0x10")) == -16
    assert displacement(AddressOperand("%rd1", "1.5")) is None
