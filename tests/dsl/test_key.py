"""What a kernel depends on besides its arguments: equal snapshots mean the same trace, a change of a value that the
kernel or its helpers read means another."""

from __future__ import annotations

import enum
import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pyptx import TensorSpec, Tile, kernel, reg, types
from pyptx.dsl.key import fingerprint, take_snapshot
from pyptx.types import f32, u32


@dataclass
class Config:
    tile: int
    names: list[str] = field(default_factory=list[str])


@dataclass
class Other:
    tile: int
    names: list[str] = field(default_factory=list[str])


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Quiet(enum.Enum):
    ONE = 1
    TWO = 2

    def __repr__(self) -> str:
        return "Quiet"


class Plain:
    pass


PLAIN = Plain()


def _nest(depth: int, last: object) -> list[object]:
    value: list[object] = [last]
    for _ in range(depth - 1):
        value = [value]
    return value


def _contain(depth: int) -> list[object]:
    """Return a list that contains itself below some levels."""
    top: list[object] = []
    inner = top
    for _ in range(depth):
        lower: list[object] = []
        inner.append(lower)
        inner = lower
    inner.append(top)
    return top


def _contain_inner() -> list[object]:
    """Return a list with a list that contains itself."""
    inner: list[object] = []
    inner.append(inner)
    return [inner]


DIFFERENT: dict[str, tuple[object, object]] = {
    "numbers": (1, 2), "types of numbers": (1, 1.0), "truth and number": (1, True), "signs of zero": (0.0, -0.0),
    "text and bytes": ("a", b"a"), "none and zero": (None, 0), "types": (types.f32, types.f16),
    "members of an enumeration": (Mode.FAST, Mode.SLOW),
    "members that look equal": (Quiet.ONE, Quiet.TWO), "lists": ([1, 2], [2, 1]), "list and tuple": ([1], (1,)),
    "sets": ({1, 2}, {1, 3}), "set and frozen set": ({1}, frozenset({1})), "values of a dict": ({"a": 1}, {"a": 2}),
    "keys of a dict": ({"a": 1}, {"b": 1}), "fields": (Config(1), Config(2)), "kinds of fields": (Config(1), Other(1)),
    "lists in fields": (Config(1, ["a"]), Config(1, ["b"])), "numbers in fields": (Config(1), Config(True)),
    "namespaces": (SimpleNamespace(a=1), SimpleNamespace(a=2)), "nested": ([{"a": (1,)}], [{"a": (2,)}]),
    "elements of arrays": (np.arange(4), np.arange(1, 5)), "shapes": (np.zeros(4), np.zeros((2, 2))),
    "dtypes of arrays": (np.zeros(4, np.int32), np.zeros(4, np.float32)), "objects": (Plain(), Plain()),
    "large arrays": (np.zeros(1 << 14), np.zeros(1 << 14)), "levels of a circle": (_contain(1), _contain(2)),
    "beginnings of a circle": (_contain(1), _contain_inner()),
    "values below many lists": (_nest(64, 1), _nest(64, 2)),
    "values below too many lists": (_nest(65, 1), _nest(65, 1)),
    "NumPy numbers": (np.float32(1), np.float64(1)),
}  # fmt: skip
EQUAL: dict[str, Callable[[], object]] = {
    "number": lambda: 1000, "float": lambda: float("nan"), "text": lambda: "a" * 3, "type": lambda: types.f32,
    "list": lambda: [1, [2.5]], "tuple": lambda: (1, 2), "set": lambda: {1, "b"}, "dict": lambda: {"a": [1]},
    "fields": lambda: Config(1, ["a"]), "namespace": lambda: SimpleNamespace(a=1, b=[2]),
    "array": lambda: np.arange(6).reshape(2, 3), "largest array": lambda: np.zeros(1 << 16, np.uint8),
    "circle": lambda: _contain(2), "64 lists": lambda: _nest(64, 5), "enumeration": lambda: Mode.FAST,
    "NumPy number": lambda: np.float32(1.5), "object": lambda: [PLAIN],
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_values(name: str) -> None:
    first, second = map(fingerprint, DIFFERENT[name])
    assert first != second
    assert first == fingerprint(DIFFERENT[name][0])


@pytest.mark.parametrize("name", EQUAL)
def test_equal_values(name: str) -> None:
    assert fingerprint(EQUAL[name]()) == fingerprint(EQUAL[name]())
    assert hash(fingerprint(EQUAL[name]())) == hash(fingerprint(EQUAL[name]()))


def test_an_object_without_a_field_is_equal_to_itself() -> None:
    value = Config(1)
    del value.tile
    assert fingerprint(value) == fingerprint(value) != fingerprint(Config(1))


# Functions


def _make(**names: object) -> Callable[[], object]:
    """Return a function of a user's module with these globals, which it and its helper name."""
    space = {"__name__": "user", **names}
    exec("def helper(): return deep\ndef kernel(): return (lambda: number), config.tile, helper(), late", space)
    return space["kernel"]  # type: ignore[no-any-return]


def _close(value: object, *, default: object = 1, keyword: object = 1) -> Callable[..., object]:
    def kernel(a: object = default, *, b: object = keyword) -> object:
        return value, a, b

    return kernel


class Owner:
    size = 1

    def __init__(self, tile: int) -> None:
        self.tile = tile

    def run(self) -> int:
        return self.size


def _wrap(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    def wrapper(*values: object) -> object:
        return function(*values)

    return wrapper


NAMES: dict[str, object] = {"number": 1, "deep": 2, "config": SimpleNamespace(tile=3), "late": 4, "other": 5}


@pytest.mark.parametrize(
    ("change", "is_seen"),
    [
        ({"number": 2}, True), ({"deep": 1}, True), ({"config": SimpleNamespace(tile=4)}, True), ({"late": "4"}, True),
        ({"other": 6}, False), ({}, False),
    ],
)  # fmt: skip
def test_globals_that_a_function_or_its_helper_names(change: dict[str, object], is_seen: bool) -> None:
    kernel = _make(**NAMES)
    space = kernel.__globals__  # type: ignore[attr-defined]
    before = take_snapshot(kernel)
    space.update(change)
    assert (take_snapshot(kernel) != before) == is_seen


def test_a_global_that_is_defined_later_changes_the_snapshot() -> None:
    kernel = _make(**{name: value for name, value in NAMES.items() if name != "late"})
    before = take_snapshot(kernel)
    kernel.__globals__["late"] = 4  # type: ignore[attr-defined]
    assert take_snapshot(kernel) != before


def test_cells_and_defaults() -> None:
    values = [1]
    kernel = _close(values)
    before = take_snapshot(kernel)
    assert take_snapshot(kernel) == before
    values.append(2)
    assert take_snapshot(kernel) != before
    snapshots = [take_snapshot(_close(1, default=a, keyword=b)) for a, b in ((1, 1), (2, 1), (1, 2), (1, 1))]
    assert [snapshot == snapshots[0] for snapshot in snapshots] == [True, False, False, True]


def test_an_empty_cell_is_left_out() -> None:
    def kernel() -> object:
        return late

    before = take_snapshot(kernel)
    late = 1
    assert take_snapshot(kernel) != before


def test_attributes_of_objects_and_classes_that_a_function_names() -> None:
    owner = Owner(1)
    kernel = _close(owner)

    def read() -> object:
        return owner.tile, owner.size

    before, read_before = take_snapshot(kernel), take_snapshot(read)
    owner.tile = 2
    assert take_snapshot(kernel) == before
    assert take_snapshot(read) != read_before
    read_before = take_snapshot(read)
    try:
        Owner.size = 2
        assert take_snapshot(read) != read_before
    finally:
        Owner.size = 1
    assert take_snapshot(read) == read_before


def test_methods_depend_on_their_object() -> None:
    owner = Owner(1)
    assert take_snapshot(owner.run) == take_snapshot(owner.run)
    first, second = (take_snapshot(_close(method)) for method in (owner.run, Owner(1).run))
    assert first != second


def test_the_function_behind_a_decorator_counts() -> None:
    values = [1]

    def helper() -> object:
        return values

    kernel = _close(_wrap(helper))
    before = take_snapshot(kernel)
    assert take_snapshot(kernel) == before
    values[0] = 2
    assert take_snapshot(kernel) != before


def test_functions_of_python_compare_by_identity() -> None:
    assert take_snapshot(_close(math.sqrt)) == take_snapshot(_close(math.sqrt)) != take_snapshot(_close(math.sin))
    assert take_snapshot(_close(functools.wraps)) == take_snapshot(_close(functools.wraps))


def test_functions_that_call_each_other() -> None:
    space: dict[str, Any] = {"__name__": "user", "number": 1}
    exec("def first(): return second\ndef second(): return first, number", space)
    before = take_snapshot(space["first"])
    assert take_snapshot(space["first"]) == before
    space["number"] = 2
    assert take_snapshot(space["first"]) != before


global_step = 3
TABLE = [1, 2]


def test_only_dimensions_that_are_read_trace_again() -> None:
    runs = iter(range(9))  # compared by identity, unlike a list

    @kernel(in_specs=(Tile("M", "N", f32),))
    def body(a: TensorSpec) -> None:
        next(runs)
        reg.scalar(u32, a.shape[1])

    body.ptx(M=1, N=8)
    body.ptx(M=2, N=8)
    assert "mov.u32 %r0, 16;" in body.ptx(M=2, N=16)
    body.ptx(M=9, N=8)
    assert next(runs) == 2


def test_template_parameters_globals_helpers_and_containers_are_part_of_the_key() -> None:
    global global_step
    options = {"depth": 2}

    def helper() -> int:
        return global_step + options["depth"] + TABLE[0]

    @kernel
    def body(*, extra: int = 0) -> None:
        reg.scalar(u32, helper() + extra)

    def value(**kwargs: Any) -> int:
        match = re.search(r"mov.u32 %r0, (\d+);", body.ptx(**kwargs))
        assert match
        return int(match[1])

    assert value() == 6
    global_step = 10
    assert value() == 13
    options["depth"] = 5
    assert value() == 16
    TABLE[0] = 7
    assert value() == 22
    assert value(extra=100) == 122
    global_step, TABLE[0] = 3, 1


def test_a_global_in_a_nested_function_is_part_of_the_key() -> None:
    global global_step

    @kernel
    def body() -> None:
        reg.scalar(u32, (lambda: global_step)())

    assert "mov.u32 %r0, 3;" in body.ptx()
    global_step = 4
    assert "mov.u32 %r0, 4;" in body.ptx()
