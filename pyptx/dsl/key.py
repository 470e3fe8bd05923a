"""Snapshots what a traced function depends on besides its arguments: closure cells, globals and defaults that it names
and, recursively, the user's own helpers.

Scalars, types, and tuples, lists, sets and dicts of these compare by value, everything else by identity.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, cast

from pyptx.dsl.origin import PACKAGE
from pyptx.types import PtxType

Snapshot = tuple[object, ...]
_BY_VALUE = (bool, int, float, complex, str, bytes, type(None), PtxType, Enum)


class Same:
    """A value that compares by identity. Holding a reference prevents its identity from being reused."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def take_snapshot(function: Callable[..., Any]) -> Snapshot:
    """Return the current dependencies of the function; equal snapshots mean the same trace."""
    return tuple(_iterate_captures(function, set()))


def fingerprint(value: object, around: tuple[int, ...] = ()) -> object:
    """Return a value for comparison together with its type, so that 1, 1.0 and True differ. `around` are the
    enclosing lists and dicts: one that contains itself is replaced by its level, and one nested too deeply compares
    by identity."""
    if isinstance(value, _BY_VALUE):
        return type(value), repr(value) if isinstance(value, float) else value
    if isinstance(value, SimpleNamespace) or (is_dataclass(value) and not isinstance(value, type)):
        members = {name: getattr(value, name, None) for name in _list_fields(value)}
        return type(cast("object", value)), fingerprint(members, around)
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return _fingerprint_array(value)
    kind: type = type(cast("object", value))
    if id(cast("object", value)) in around:
        return kind, "contains itself", len(around) - around.index(id(cast("object", value)))
    if len(around) >= _DEEPEST:
        return Same(cast("object", value))
    inside = (*around, id(cast("object", value)))
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return dict, tuple((fingerprint(key, inside), fingerprint(members, inside)) for key, members in items)
    prints = [fingerprint(item, inside) for item in cast("list[object]", value)]
    return kind, tuple(prints) if isinstance(value, list | tuple) else frozenset(prints)


_DEEPEST = 64
_SMALL = 1 << 16
"""Size in bytes up to which a NumPy array compares by contents."""


def _list_fields(value: Any) -> Iterable[str]:
    return [field.name for field in fields(value)] if is_dataclass(value) else cast("dict[str, Any]", vars(value))


def _fingerprint_array(value: Any) -> object:
    """Return a small NumPy array by contents, anything else by identity."""
    kind = cast("type[object]", type(value))
    if kind.__module__ == "numpy" and hasattr(value, "tobytes") and value.nbytes <= _SMALL:
        return kind, str(value.dtype), value.shape, value.tobytes()
    return Same(value)


def _iterate_captures(function: object, visits: set[int]) -> Iterator[object]:
    plain = unwrap(function)
    if plain is None or id(plain) in visits:
        return
    visits.add(id(plain))
    yield Same(plain.__code__)
    for value in (*(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).values()):
        yield from _iterate_value(value, visits)
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        yield name
        yield from _iterate_value(content, visits)
        yield from _iterate_attributes(plain.__code__, content, visits)
    yield from _iterate_globals(plain.__code__, plain.__globals__, visits)


def _iterate_globals(code: CodeType, namespace: dict[str, Any], visits: set[int]) -> Iterator[object]:
    for name in code.co_names:
        if name in namespace:
            yield name
            value = namespace[name]
            yield from _iterate_value(value, visits)
            yield from _iterate_attributes(code, value, visits)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _iterate_globals(constant, namespace, visits)


def _iterate_attributes(code: CodeType, owner: object, visits: set[int]) -> Iterator[object]:
    """Yield what the code may read from one of the user's own modules, classes and objects: `config.TILE`."""
    for space in _iterate_namespaces(owner):
        for name in code.co_names:
            if name in space:
                yield name
                yield from _iterate_value(space[name], visits)


def _iterate_namespaces(owner: object) -> Iterator[Mapping[str, Any]]:
    """Yield the namespaces that hold an owner's attributes, if they are the user's."""
    if isinstance(owner, ModuleType):
        if not is_foreign(owner.__name__):
            yield vars(owner)
        return
    kind: type = owner if isinstance(owner, type) else type(owner)
    if is_foreign(kind.__module__):
        return
    if kind is not owner and hasattr(owner, "__dict__"):
        yield vars(owner)
    for base in kind.__mro__:
        if not is_foreign(base.__module__):
            yield vars(base)


def _iterate_value(value: object, visits: set[int]) -> Iterator[object]:
    if unwrap(value) is None:
        yield fingerprint(value)
    elif isinstance(value, MethodType):
        yield Same(value.__self__)
    yield from _iterate_captures(value, visits)


def unwrap(value: object) -> FunctionType | None:
    """Return the user's own function behind decorators, or None."""
    while isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType) and not value.__code__.co_filename.startswith(PACKAGE):
        return None if is_foreign(value.__module__ or "") else value
    inner: object = getattr(value, "__dict__", {}).get("__wrapped__")
    return None if inner is None else unwrap(inner)


def is_foreign(module: str) -> bool:
    """Tell whether a module belongs to Python or to this package."""
    root = module.partition(".")[0]
    return (root in sys.stdlib_module_names and root != "__main__") or root == "pyptx"
