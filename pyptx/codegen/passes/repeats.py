"""Lines as patterns with holes: what may differ between two similar statements."""

from __future__ import annotations

from collections.abc import Mapping

from pyptx.codegen.expressions import list_parts, rebuild, replace_parts
from pyptx.codegen.plan import Binary, Expr, Literal, Name

_FIXED = frozenset(("ptx", "reg", "abs", "range", "enumerate"))
_HOLE = Name("_")


def compute_shape(value: Expr) -> object:
    """Return the pattern that two expressions share if they differ only in their leaves."""
    if isinstance(value, Name):
        return "name" if value.id not in _FIXED else value.id
    if isinstance(value, Literal):
        return (type(value.value).__name__, value.hex) if value.value is not None else "None"
    parts = list_parts(value)
    return rebuild(value, [_HOLE] * len(parts)), tuple([compute_shape(part) for part in parts])


def is_leaf(value: Expr) -> bool:
    """Tell whether an expression is a name or number that may differ between iterations."""
    return isinstance(value, Literal) or (isinstance(value, Name) and value.id not in _FIXED)


def list_leaves(value: Expr) -> list[Expr]:
    """Return the leaves of an expression."""
    out: list[Expr] = []
    stack = [value]
    while stack:
        part = stack.pop()
        if is_leaf(part):
            out.append(part)
        else:
            stack += reversed(list_parts(part))
    return out


def fill(value: Expr, by_place: Mapping[int, Expr], start: int = 0) -> Expr:
    """Return an expression with some leaves replaced; `start` is the position of the first leaf."""
    return _fill(value, by_place, [start])


def _fill(value: Expr, by_place: Mapping[int, Expr], counter: list[int]) -> Expr:
    if is_leaf(value):
        counter[0] += 1
        return by_place.get(counter[0] - 1, value)
    return replace_parts(value, lambda part: _fill(part, by_place, counter))


def substitute(value: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return an expression with names replaced and constant arithmetic evaluated."""
    if isinstance(value, Name):
        return values.get(value.id, value)
    result = replace_parts(value, lambda part: substitute(part, values))
    if isinstance(result, Binary) and result.operator in ("+", "*"):
        left, right = (part.value if isinstance(part, Literal) else None for part in (result.left, result.right))
        if type(left) is int and type(right) is int:
            return Literal(left + right if result.operator == "+" else left * right)
    return result
