"""Guards: what must be the same object for a traced function to have the same snapshot (`key`), so that a call need not
take one."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from operator import is_
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType, SimpleNamespace
from typing import Any, cast

from pyptx.dsl.key import is_foreign, unwrap
from pyptx.types import PtxType

Guard = tuple[object, object, object]
"""A dictionary, a key and its value, `...` for a missing one; a list or a dictionary, `...` and a tuple of its items; a
cell, None and its content; a function, False and its code; a function, None and its defaults."""
_FIXED = (bool, int, float, complex, str, bytes, type(None), PtxType, Enum)
_MOST_CODES = 4096
_NO_CODE = (lambda: None).__code__
"""What names nothing."""


class _Unguarded(Exception):
    """The function depends on something whose changes cannot be noticed."""


def list_guards(function: Callable[..., Any]) -> tuple[Guard, ...] | None:
    """Return what the function depends on besides its arguments; None if changes of some of it cannot be noticed."""
    try:
        guards = list(_iterate_function(function, set()))
    except _Unguarded:
        return None
    return tuple({(id(_identify(owner)), id(key)): (owner, key, value) for owner, key, value in guards}.values())


def are_kept(guards: Iterable[Guard]) -> bool:
    """Tell whether nothing has changed that guards name."""
    return all(_is_kept(*guard) for guard in guards)


def _is_kept(owner: Any, key: object, expected: Any) -> bool:
    if key is ...:
        items = _list_items(owner)
        return len(items) == len(expected) and all(map(is_, items, expected))
    if isinstance(owner, CellType):
        try:
            return owner.cell_contents is expected
        except ValueError:
            return False
    if isinstance(owner, FunctionType):
        return (owner.__defaults__ if key is None else owner.__code__) is expected
    return owner.get(key, ...) is expected


def _identify(owner: object) -> object:
    """Return an object that is the same for each view of the same attributes of a class."""
    if isinstance(owner, MappingProxyType):
        return cast("Mapping[str, object]", owner).get("__dict__", cast("object", owner))
    return owner


def _iterate_function(function: object, visits: set[int]) -> Iterator[Guard]:
    if isinstance(function, MethodType):
        owner, function = function.__self__, function.__func__
        yield from _iterate_value(getattr(function, "__code__", _NO_CODE), owner, visits)
    plain = unwrap(function)
    if plain is None or not isinstance(function, FunctionType):
        raise _Unguarded
    if id(function) in visits:
        return
    visits.add(id(function))
    while function is not plain:
        inner = vars(function)["__wrapped__"]
        yield vars(function), "__wrapped__", inner
        if not isinstance(inner, FunctionType):
            raise _Unguarded
        function = inner
    yield function, False, function.__code__
    yield function, None, function.__defaults__
    for value in function.__defaults__ or ():
        yield from _iterate_value(function.__code__, value, visits)
    for name, value in (function.__kwdefaults__ or {}).items():
        yield function.__kwdefaults__, name, value
        yield from _iterate_value(function.__code__, value, visits)
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            raise _Unguarded from None
        yield cell, None, content
        yield from _iterate_value(function.__code__, content, visits)
    yield from _iterate_names(function.__code__, function.__globals__, visits)


def _iterate_names(code: CodeType, namespace: dict[str, Any], visits: set[int]) -> Iterator[Guard]:
    for name in code.co_names:
        if name in namespace:
            yield namespace, name, namespace[name]
            yield from _iterate_value(code, namespace[name], visits)
        elif name in _find_globals(code):
            yield namespace, name, ...
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _iterate_names(constant, namespace, visits)


@lru_cache(_MOST_CODES)
def _find_globals(code: CodeType) -> frozenset[str]:
    """Return the names that some code looks up outside of itself."""
    return frozenset(item.argval for item in dis.get_instructions(code) if item.opname in ("LOAD_GLOBAL", "LOAD_NAME"))


def _iterate_value(code: CodeType, value: object, visits: set[int]) -> Iterator[Guard]:
    """Yield the guards behind a value that some code names."""
    if isinstance(value, _FIXED):
        return
    if isinstance(value, tuple | frozenset):
        for item in cast("tuple[object, ...]", value):
            yield from _iterate_value(code, item, visits)
    elif type(value) in (list, dict):
        yield from _iterate_items(code, cast("list[object] | dict[object, object]", value), visits)
    elif isinstance(value, ModuleType):
        if not is_foreign(value.__name__):
            yield from _iterate_space(code, vars(value), visits)
    elif isinstance(value, FunctionType | MethodType):
        if unwrap(value) is not None:
            yield from _iterate_function(value, visits)
    elif not _is_fixed(value):
        yield from _iterate_attributes(code, value, visits)


def _iterate_items(
    code: CodeType, value: list[object] | dict[object, object], visits: set[int]
) -> Iterator[Guard]:  # fmt: skip
    """Yield the guards of a list or a dictionary, which are compared item by item."""
    if id(value) in visits:
        return
    visits.add(id(value))
    items = _list_items(value)
    yield value, ..., tuple(items)
    for item in items:
        yield from _iterate_value(code, item, visits)


def _list_items(value: list[object] | dict[object, object]) -> list[object]:
    return [part for pair in value.items() for part in pair] if isinstance(value, dict) else value


def _iterate_space(code: CodeType, space: Mapping[str, Any], visits: set[int]) -> Iterator[Guard]:
    for name in code.co_names:
        yield space, name, space.get(name, ...)
        if name in space:
            yield from _iterate_value(code, space[name], visits)


def _iterate_attributes(code: CodeType, owner: object, visits: set[int]) -> Iterator[Guard]:
    """Yield the guards of one of the user's own classes or objects: of what the code may read from it."""
    kind: type = owner if isinstance(owner, type) else type(owner)
    has_space = hasattr(cast("object", owner), "__dict__")
    if is_foreign(kind.__module__) or hasattr(cast("object", owner), "__wrapped__"):
        raise _Unguarded
    if kind is not owner:
        if is_dataclass(owner):
            yield from _iterate_fields(code, owner, visits)
        elif not has_space:
            raise _Unguarded
        if has_space:
            yield from _iterate_space(code, vars(owner), visits)
    for base in kind.__mro__:
        if not is_foreign(base.__module__):
            yield from _iterate_space(code, vars(base), visits)


def _iterate_fields(code: CodeType, owner: Any, visits: set[int]) -> Iterator[Guard]:
    """Yield the guards of all fields, by which a dataclass is compared."""
    parameters: Any = vars(type(cast("object", owner))).get("__dataclass_params__")
    frozen = bool(parameters and parameters.frozen)
    if not frozen and not hasattr(owner, "__dict__"):
        raise _Unguarded
    for field in fields(owner):
        value = getattr(owner, field.name, ...)
        if not frozen:
            yield vars(owner), field.name, value
        yield from _iterate_value(code, value, visits)


def _is_fixed(value: object) -> bool:
    """Return whether a snapshot compares a value by its identity only, or it cannot change."""
    if hasattr(value, "__wrapped__") or isinstance(value, set | SimpleNamespace):
        return False
    kind: Any = value if isinstance(value, type) else type(value)
    if not is_foreign(kind.__module__):
        return False
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return parameters is None or isinstance(value, type) or bool(parameters.frozen)
