"""Describes values by text that is the same in every process: a function by its code and by all that the code reads.

Functions and classes of libraries are described by their names.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from functools import partial
from types import BuiltinMethodType, CodeType, EllipsisType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from pyptx.dsl.key import is_foreign
from pyptx.dsl.run import Definition
from pyptx.types import PtxType

_PLAIN = (bool, int, float, complex, str, bytes, type(None), EllipsisType, range, slice)
_FIXED = (Enum, PtxType, np.generic, np.dtype)
_ATTRIBUTES = {
    CodeType: (
        "co_code co_exceptiontable co_flags co_argcount co_posonlyargcount co_kwonlyargcount co_names co_varnames "
        "co_cellvars co_freevars co_consts"
    ),
    MethodType: "__func__ __self__",
    partial: "func args keywords",
}
"""What objects of a type consist of."""
Visits = dict[object, tuple[int, object]]
"""The number of each object that was described, and the object, so that its identity is not reused."""


class Unknown(Exception):
    """A value consists of, or a function reads, an object that cannot be described."""


def describe(value: Any) -> str:
    """Return the description of a value. Raise Unknown if there is none."""
    return "\n".join(_iterate_parts(value, frozenset(), {}))


def _iterate_parts(value: Any, names: frozenset[str], visits: Visits) -> Iterator[str]:
    """Yield the parts of a description. `names` are those that the code uses which reads the value."""
    kind = cast("type[object]", type(value))
    yield f"{kind.__module__}.{kind.__qualname__}"
    if kind in _PLAIN or isinstance(value, _FIXED):
        yield repr(cast("object", value))
        return
    key = (id(value), names if isinstance(value, ModuleType) else None)
    if key in visits:
        yield f"number {visits[key][0]}"
        return
    visits[key] = len(visits), value
    if isinstance(value, ModuleType):
        yield value.__name__
        yield from () if _is_library(value.__name__) else _iterate_names(vars(value), names, visits)
    elif kind in (set, frozenset):
        yield from sorted("\n".join(_iterate_parts(item, names, visits)) for item in value)
    elif kind is np.ndarray and not value.dtype.hasobject:
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif name := _find_name(value):
        yield name
    else:
        items = _list_items(value)
        yield str(len(items))
        used = _list_names(value.__code__) if isinstance(value, FunctionType) else names
        for item in items:
            yield from _iterate_parts(item, used, visits)
        if isinstance(value, FunctionType):
            yield from _iterate_names(value.__globals__, used, visits)


def _iterate_names(space: dict[str, Any], names: frozenset[str], visits: Visits) -> Iterator[str]:
    for name in sorted(names & space.keys()):
        yield name
        yield from _iterate_parts(space[name], names, visits)


def _list_items(value: Any) -> list[Any]:
    """Return what a value consists of. Raise Unknown if that may not be all."""
    kind = cast("type[object]", type(value))
    if kind is list or isinstance(value, tuple):
        return list(cast("list[Any]", value))
    if kind is dict:
        return [part for pair in value.items() for part in pair]
    if kind in _ATTRIBUTES:
        return [getattr(value, name) for name in _ATTRIBUTES[kind].split()]
    if isinstance(value, FunctionType):
        cells = [_read_cell(cell) for cell in value.__closure__ or ()]
        return [value.__code__, value.__defaults__, value.__kwdefaults__, vars(value), *cells]
    if isinstance(value, BuiltinMethodType) and not isinstance(value.__self__, ModuleType):
        return [value.__name__, value.__self__]
    if _is_library(kind.__module__):
        return _list_attributes(value, kind)
    raise Unknown(f"an object of type `{kind.__qualname__}`")


def _list_attributes(value: Any, kind: type[object]) -> list[Any]:
    """Return the attributes that matter of an object of a library's class."""
    definition: object = getattr(value, "definition", None)
    if isinstance(definition, Definition):
        return [definition, value.grid]
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    if parameters is not None and parameters.frozen:
        return [getattr(value, field.name) for field in fields(cast("Any", kind))]
    if "__wrapped__" in getattr(value, "__dict__", {}):
        return [value.__wrapped__]
    raise Unknown(f"the class `{value.__qualname__}`" if kind is type else f"an object of type `{kind.__qualname__}`")


def _read_cell(cell: Any) -> Any:
    """Return the value of a variable of an enclosing function; `...` if it has none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return ...


def _list_names(code: CodeType) -> frozenset[str]:
    """Return the names of globals and attributes that some code uses."""
    inner = [_list_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*inner)


def _find_name(value: Any) -> str:
    """Return the name by which a library has an object, or nothing."""
    module: Any = getattr(value, "__module__", None)
    name: Any = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not _is_library(module):
        return ""
    candidate: Any = sys.modules.get(module)
    for part in name.split("."):
        candidate = getattr(candidate, part, None)
    return f"{module}.{name}" if candidate is value else ""


def _is_library(module: str) -> bool:
    """Tell whether a module is installed, rather than the user's own."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return is_foreign(module) or "site-packages" in file or "dist-packages" in file
