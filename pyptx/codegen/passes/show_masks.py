"""Writes numbers that are bit patterns in hexadecimal: masks of `and`, descriptors, 64-bit constants.

Contract: returns expressions with other spellings of the same numbers; values and emitted statements are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyptx.codegen.expressions import replace_parts
from pyptx.codegen.plan import Binary, Block, Call, Expr, Line, Literal, Repeat, Step, format_path

_LARGE = 1 << 20
_SMALL = 255
_PATTERNS = frozenset(("ptx.and_", "ptx.or_", "ptx.xor_"))


def show_masks(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with bit patterns in hexadecimal."""
    out: list[Step] = []
    for step in steps:
        if isinstance(step, Line):
            step = step.replace(value=show(step.value, step.operator in _BITS))
        elif isinstance(step, Block):
            step = step.replace(header=show(step.header, False), body=show_masks(step.body))
        elif isinstance(step, Repeat):
            step = step.replace(body=show_masks(step.body))
        out.append(step)
    return tuple(out)


_BITS = frozenset(("&", "|", "^"))


def show(value: Expr, pattern: bool) -> Expr:
    """Return an expression with its bit patterns in hexadecimal; `pattern` tells whether its position expects one."""
    if isinstance(value, Literal):
        number = value.value
        if type(number) is not int or value.hex or number < 0:
            return value
        is_sparse = number.bit_count() * 2 < number.bit_length() + 8 or not number & (number + 1)
        large = number >= _LARGE and is_sparse
        mask = pattern and number > _SMALL and number & (number + 1)
        return Literal(number, True) if large or mask else value
    bits = (isinstance(value, Binary) and value.operator in _BITS) or (
        isinstance(value, Call) and format_path(value.function) in _PATTERNS
    )
    return replace_parts(value, lambda part: show(part, bits))
