"""Guards: what must be the same object for a traced function to have the same snapshot (`key`), so that a call need not
take one. Knows only dependencies that cannot change in place."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from enum import Enum
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, cast

from pyptx.dsl.key import is_foreign, unwrap
from pyptx.types import PtxType

Guard = tuple[object, object, object]
"""A dictionary, a key and its value, `...` for a missing one; a cell, None and its content; a function, False and its
code; a function, None and its defaults."""
_FIXED = (bool, int, float, complex, str, bytes, type(None), PtxType, Enum)


class _Unguarded(Exception):
    """The function depends on something that can change in place."""


def list_guards(function: Callable[..., Any]) -> tuple[Guard, ...] | None:
    """Return what the function depends on besides its arguments; None if some of it can change in place."""
    try:
        return tuple(_iterate_function(function, set()))
    except _Unguarded:
        return None


def _iterate_function(function: object, visits: set[int]) -> Iterator[Guard]:
    if not isinstance(function, FunctionType) or unwrap(function) is not function:
        raise _Unguarded
    if id(function) in visits:
        return
    visits.add(id(function))
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
    used = {item.argval for item in dis.get_instructions(code) if item.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for name in code.co_names:
        if name in namespace:
            yield namespace, name, namespace[name]
            yield from _iterate_value(code, namespace[name], visits)
        elif name in used:
            yield namespace, name, ...
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _iterate_names(constant, namespace, visits)


def _iterate_value(code: CodeType, value: object, visits: set[int]) -> Iterator[Guard]:
    """Yield the guards behind a value that some code names."""
    if isinstance(value, _FIXED):
        return
    if isinstance(value, tuple | frozenset):
        for item in cast("tuple[object, ...]", value):
            yield from _iterate_value(code, item, visits)
    elif isinstance(value, ModuleType):
        if not is_foreign(value.__name__):
            yield from _iterate_module(code, vars(value), visits)
    elif isinstance(value, FunctionType):
        if unwrap(value) is not None:
            yield from _iterate_function(value, visits)
    elif not _is_fixed(value):
        raise _Unguarded


def _iterate_module(code: CodeType, space: dict[str, Any], visits: set[int]) -> Iterator[Guard]:
    for name in code.co_names:
        yield space, name, space.get(name, ...)
        if name in space:
            yield from _iterate_value(code, space[name], visits)


def _is_fixed(value: object) -> bool:
    """Return whether a snapshot compares a value by its identity only, or it cannot change."""
    if hasattr(value, "__wrapped__") or isinstance(value, list | dict | set | SimpleNamespace):
        return False
    kind: Any = value if isinstance(value, type) else type(value)
    if not is_foreign(kind.__module__):
        return False
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return parameters is None or isinstance(value, type) or bool(parameters.frozen)
