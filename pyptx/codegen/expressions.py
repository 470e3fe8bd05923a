"""Lists and replaces the direct parts of expressions. Knows every kind of expression, not what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyptx.codegen.plan import (
    Attribute,
    Binary,
    Call,
    Comprehension,
    Expr,
    Item,
    Lambda,
    List,
    Slice,
    Tuple,
    Unary,
)


def list_parts(value: Expr) -> Sequence[Expr]:
    """Return the direct parts of an expression, in Python's evaluation order."""
    if isinstance(value, Attribute):
        return (value.value,)
    if isinstance(value, Call):
        return (value.function, *value.arguments, *(v for _, v in value.keywords))
    if isinstance(value, Binary):
        return value.left, value.right
    if isinstance(value, Unary):
        return (value.operand,)
    if isinstance(value, Item):
        return value.value, value.index
    if isinstance(value, List | Tuple):
        return value.elements
    if isinstance(value, Comprehension):
        return value.values, value.target, value.body
    if isinstance(value, Lambda):
        return (value.body,)
    if isinstance(value, Slice):
        return [end for end in (value.start, value.stop, value.step) if end is not None]
    return ()


def rebuild(value: Expr, parts: Sequence[Expr]) -> Expr:
    """Return an expression with other direct parts, in the order of `list_parts`."""
    if isinstance(value, Attribute):
        return Attribute(parts[0], value.name)
    if isinstance(value, Call):
        count = 1 + len(value.arguments)
        keywords = tuple([(key, part) for (key, _), part in zip(value.keywords, parts[count:], strict=True)])
        return Call(parts[0], tuple(parts[1:count]), keywords)
    if isinstance(value, Binary):
        return Binary(value.operator, *parts)
    if isinstance(value, Unary):
        return Unary(value.operator, parts[0])
    if isinstance(value, Item):
        return Item(*parts)
    if isinstance(value, List | Tuple):
        return type(value)(tuple(parts))
    if isinstance(value, Comprehension):
        return Comprehension(parts[2], parts[1], parts[0])
    if isinstance(value, Lambda):
        return Lambda(parts[0])
    if isinstance(value, Slice):
        remaining = iter(parts)
        return Slice(*[None if end is None else next(remaining) for end in (value.start, value.stop, value.step)])
    return value


def replace_parts(value: Expr, replace: Callable[[Expr], Expr]) -> Expr:
    """Return an expression with each direct part replaced; the same object if none changes."""
    parts = list_parts(value)
    new_parts = [replace(part) for part in parts]
    unchanged = all(mine is theirs for mine, theirs in zip(new_parts, parts, strict=True))
    return value if unchanged else rebuild(value, new_parts)
