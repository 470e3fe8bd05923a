"""Lines as patterns with holes: what may differ between two similar statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyptx.codegen.plan import (
    Attribute,
    Binary,
    Call,
    Comprehension,
    Expr,
    Item,
    Lambda,
    List,
    Literal,
    Name,
    Slice,
    Tuple,
    Unary,
)

_FIXED = frozenset(("ptx", "reg", "abs", "range", "enumerate"))


def compute_shape(value: Expr) -> object:
    """Return the pattern that two expressions share if they differ only in their leaves."""
    if isinstance(value, Name):
        return "name" if value.id not in _FIXED else value.id
    if isinstance(value, Literal):
        return (type(value.value).__name__, value.hex) if value.value is not None else "None"
    if isinstance(value, Attribute):
        return "attribute", value.name, compute_shape(value.value)
    if isinstance(value, Call):
        arguments = tuple([compute_shape(argument) for argument in value.arguments])
        return (
            "call",
            compute_shape(value.function),
            arguments,
            tuple([(key, compute_shape(v)) for key, v in value.keywords]),
        )
    if isinstance(value, Binary):
        return value.operator, compute_shape(value.left), compute_shape(value.right)
    if isinstance(value, Unary):
        return "unary", value.operator, compute_shape(value.operand)
    if isinstance(value, Item):
        return "item", compute_shape(value.value), compute_shape(value.index)
    if isinstance(value, List | Tuple):
        return type(value).__name__, tuple([compute_shape(element) for element in value.elements])
    if isinstance(value, Slice):
        return "slice", tuple(
            [None if end is None else compute_shape(end) for end in (value.start, value.stop, value.step)]
        )
    return id(value)


def list_parts(value: Expr) -> Sequence[Expr]:
    """Return the direct parts of an expression, always in the same order."""
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
    """Return an expression with other direct parts, in the order of `inside`."""
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


def _fill(value: Expr, by_place: Mapping[int, Expr], at: list[int]) -> Expr:
    if is_leaf(value):
        at[0] += 1
        return by_place.get(at[0] - 1, value)
    parts = list_parts(value)
    result = [_fill(part, by_place, at) for part in parts]
    return value if all(mine is theirs for mine, theirs in zip(result, parts, strict=True)) else rebuild(value, result)


def substitute(value: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return an expression with names replaced and constant arithmetic evaluated."""
    if isinstance(value, Name):
        return values.get(value.id, value)
    parts = list_parts(value)
    new_parts = [substitute(part, values) for part in parts]
    if isinstance(value, Binary):
        left, right = (part.value if isinstance(part, Literal) else None for part in new_parts)
        if type(left) is int and type(right) is int and value.operator in ("+", "*"):
            return Literal(left + right if value.operator == "+" else left * right)
    return (
        value
        if all(mine is theirs for mine, theirs in zip(new_parts, parts, strict=True))
        else rebuild(value, new_parts)
    )
