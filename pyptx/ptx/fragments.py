"""Registers holding a matrix fragment, as operands: one register, a list or a range, each a vector."""

from __future__ import annotations

from typing import Any, cast

from pyptx.dsl import rules
from pyptx.dsl.emit import describe
from pyptx.dsl.trace import fail
from pyptx.dsl.values import Register, RegisterRange


def to_vector(value: Any) -> Any:
    """Return registers as the operand `{…}`; a single register is a vector of one."""
    if isinstance(value, RegisterRange | list):
        return cast("object", value)
    if isinstance(value, tuple):
        return list(cast("tuple[Any, ...]", value))
    return [value] if isinstance(value, Register) else value


def list_registers(value: Any, name: str) -> list[Register]:
    """Return the registers of a fragment one by one."""
    if isinstance(value, RegisterRange):
        return list(value.__members__)
    items: list[Any] = list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]
    for item in items:
        if not isinstance(item, Register):
            fail(
                rules.ARGUMENT,
                f"`{name}` must be registers, found {describe(item)}",
                help="pass reg.array(…) or a list",
            )
    return items


def spell_shape(shape: Any, instruction: str) -> str:
    """Return `m64n128k16` for (64, 128, 16)."""
    numbers = tuple(cast("tuple[object, ...]", shape)) if isinstance(shape, tuple | list) else ()
    if len(numbers) != 3 or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        fail(
            rules.ARGUMENT,
            f"`shape` of {instruction} must be three numbers (m, n, k), found {shape!r}",
            help="pass shape=(16, 8, 16)",
        )
    m, n, k = numbers
    return f"m{m}n{n}k{k}"


def to_hashable(value: Any) -> Any:
    """Return a value usable as a cache key: a list as a tuple, an unhashable value as its text."""
    if isinstance(value, list | tuple):
        return tuple(cast("list[object]", value))
    return value if isinstance(value, str | int | None) else repr(value)
