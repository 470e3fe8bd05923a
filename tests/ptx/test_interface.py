"""The public interface exists in full, with its argument names, their order, kinds and defaults."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import Parameter
from typing import Any

import pytest

import pyptx.ptx
from pyptx.ir.base import Node
from pyptx.specs import Layout
from tests.digests import assert_digest
from tests.ptx.interface import INTERFACE

MISSING: frozenset[str] = frozenset()
"""Entries that are not implemented yet. Remove an entry when it is implemented: the test fails for names that exist."""

ELSEWHERE = {"pyptx.TmaDescriptorHandle": "pyptx.dsl.tensors"}
"""Classes that users receive but do not import."""
_ABSENT: Any = object()


def entries() -> Iterator[tuple[str, str]]:
    """Return each entry of the interface with its module."""
    for module, text in INTERFACE.items():
        for line in text.strip().replace("\n    ", " ").splitlines():
            yield from ((module, part) for part in ([line] if "(" in line or "=" in line else line.split()))


def path_of(entry: str) -> str:
    """Return the name of an entry without its arguments or value."""
    return entry.partition("(")[0].partition(" = ")[0]


def find_object(module: str, entry: str) -> Any:
    """Return the object with this name; an attribute that only instances have counts as well."""
    path = path_of(entry)
    try:
        value: Any = import_module(ELSEWHERE.get(f"{module}.{path.split('.')[0]}", module))
    except ModuleNotFoundError as wrong:
        if wrong.name and wrong.name.startswith("pyptx"):
            return _ABSENT
        raise
    for name in path.split("."):
        owner, value = value, getattr(value, name, _ABSENT)
        if value is _ABSENT:
            return None if isinstance(owner, type) and _is_set(owner, name) else _ABSENT
    return value


def _is_set(owner: type, name: str) -> bool:
    """Return whether a class declares an attribute, or its constructor sets one."""
    makers: list[Any] = [base.__dict__.get("__init__") for base in owner.__mro__]
    codes = [maker.__code__ for maker in makers if hasattr(maker, "__code__")]
    return name in getattr(owner, "__annotations__", {}) or any(name in code.co_names for code in codes)


def parse_parameters(entry: str) -> dict[str, Parameter]:
    """Return the parameters that an entry declares."""
    function = ast.parse(f"lambda {entry.partition('(')[2][:-1]}: 0", mode="eval")
    stub: Callable[..., Any] = eval(compile(function, "interface", "eval"), {"Layout": Layout})
    return dict(inspect.signature(stub).parameters)


def parameters(value: Any) -> dict[str, Parameter]:
    """Return the parameters of a function, method or class. Nodes of the IR generate their constructors on first
    use."""
    if _is_node(value):
        kind, unset = Parameter.POSITIONAL_OR_KEYWORD, dataclasses.MISSING
        defaults = [(f.name, Parameter.empty if f.default is unset else f.default) for f in dataclasses.fields(value)]
        return {name: Parameter(name, kind, default=default) for name, default in defaults}
    have = dict(inspect.signature(value).parameters)
    if inspect.isfunction(value) and next(iter(have), None) == "self":
        del have["self"]
    return have


def _is_node(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Node)


def differences(entry: str, value: Any) -> Iterator[str]:
    """Return the differences between an entry and the object. Extra optional parameters are allowed."""
    if " = " in entry and "(" not in entry:
        if value != ast.literal_eval(entry.partition(" = ")[2]):
            yield f"is {value!r}"
        return
    if "(" not in entry:
        return
    expected = parse_parameters(entry)
    have = parameters(value)
    places = [name for name, p in expected.items() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    order = [name for name, p in have.items() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    if order[: len(places)] != places:
        yield f"has the arguments {order}, not {places}"
    for name, parameter in expected.items():
        if name not in have:
            yield f"lacks `{name}`"
        elif parameter.default not in (Parameter.empty, have[name].default):
            yield f"`{name}` is {have[name].default!r} by default, not {parameter.default!r}"
    if "(*, sem=" in entry:
        return
    for name, parameter in have.items():
        if name not in expected and parameter.default is Parameter.empty and parameter.kind not in _VARIADIC:
            yield f"demands `{name}`"


_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


ALL = list(entries())


def test_all_of_the_interface_is_there() -> None:
    absent = {f"{module}.{path_of(entry)}" for module, entry in ALL if find_object(module, entry) is _ABSENT}
    names = {f"{module}.{path_of(entry)}" for module, entry in ALL}
    print(f"{len(names)} names, {len(absent)} missing: {', '.join(sorted(absent))}")  # noqa: T201
    assert absent == MISSING


@pytest.mark.parametrize(("module", "entry"), ALL, ids=[f"{module}.{path_of(entry)}" for module, entry in ALL])
def test_what_is_there_is_called_as_stated(module: str, entry: str) -> None:
    value = find_object(module, entry)
    if value is not _ABSENT and value is not None:
        assert list(differences(entry, value)) == []


def list_signatures() -> Iterator[str]:
    """Yield every public function and method of `ptx`, `reg` and `smem` with its arguments and their defaults."""
    for name in dir(pyptx.ptx):
        getattr(pyptx.ptx, name)  # Creates the functions that are created on first use.
    families = [part.name for part in pkgutil.walk_packages(pyptx.ptx.__path__, "pyptx.ptx.")]
    for module in map(import_module, (*families, "pyptx.reg", "pyptx.smem")):
        for name, value in sorted(vars(module).items()):
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
                for member, function in sorted(vars(value).items()) if inspect.isclass(value) else [("", value)]:
                    if inspect.isfunction(function) and (member in ("__init__", "__call__") or member[:1] != "_"):
                        arguments = inspect.signature(function).parameters.values()
                        words = ", ".join(str(argument.replace(annotation=Parameter.empty)) for argument in arguments)
                        yield f"{module.__name__}.{name}.{member}({words})"


def test_the_signatures_are_the_reviewed_ones() -> None:
    assert_digest("signatures", "ptx, reg, smem", re.sub(" at 0x[0-9a-f]+", "", "\n".join(list_signatures())))


PLANTED = [
    ("a, b", "f(b, a)"),
    ("a, b=1", "f(a, b=2)"),
    ("a", "f(a, *, pred=None)"),
    ("a, b, *, pred=None", "f(a, *, pred=None)"),
    ("x, a, *, pred=None", "f(a, *, pred=None)"),
    ("*, a=1", "f(a=1)"),
    ("*args, **kwargs", "f(a)"),
]


@pytest.mark.parametrize(("have", "entry"), PLANTED)
def test_a_difference_is_noticed(have: str, entry: str) -> None:
    assert list(differences(entry, eval(f"lambda {have}: 0")))


def test_an_absence_is_noticed() -> None:
    assert find_object("pyptx.reg", "nothing(x)") is _ABSENT
    assert find_object("pyptx.nothing", "f(x)") is _ABSENT
    assert find_object("pyptx.reg", "Reg.nothing") is _ABSENT
    assert list(differences("a = 1", 2))
