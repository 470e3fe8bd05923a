"""What a traced function depends on besides its arguments, as things that must stay the same objects."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pyptx import intrinsic, reg, smem
from pyptx.dsl.guards import are_kept, list_guards
from pyptx.types import s32

SCALE, COUNTS = 2, [1]


def use_list(x: Any) -> None:
    smem.alloc(s32, (COUNTS[0],))


def use_helper(x: Any) -> None:
    use_list(x)


def use_numbers(x: Any) -> None:
    reg.scalar(s32, SCALE)


class Config:
    tile = 4


def use_class(x: Any) -> None:
    reg.scalar(s32, Config.tile)


class Other:
    tile = 8

    def use(self, x: Any) -> None:
        reg.scalar(s32, self.tile)


def use_both(x: Any) -> None:
    use_class(x)
    reg.scalar(s32, Config.tile + Other.tile)
    use_both(x)


class Bare:
    """An object without a dictionary."""

    __slots__ = ("tile",)


@dataclass
class Sizes:
    rows: int


SIZES, LARGE = Sizes(4), Sizes(4)


def use_comparison(x: Any) -> None:
    reg.scalar(s32, int(SIZES == LARGE))


BARE, NAMES, NAMESPACE = Bare(), {"a"}, types.SimpleNamespace(tile=4)


def use_bare(x: Any) -> None:
    reg.scalar(s32, BARE.tile)


def use_set(x: Any) -> None:
    reg.scalar(s32, len(NAMES))


def use_namespace(x: Any) -> None:
    reg.scalar(s32, NAMESPACE.tile)


def test_what_can_change_unnoticed_is_not_guarded() -> None:
    assert list_guards(use_bare) is None
    assert list_guards(use_set) is None
    assert list_guards(use_namespace) is None
    assert list_guards(types.SimpleNamespace) is None


def test_items_and_attributes_are_guarded() -> None:
    for function in (use_list, use_helper):
        assert (COUNTS, ..., (1,)) in (list_guards(function) or ())
    assert (vars(Config), "tile", 4) in (list_guards(use_class) or ())


def test_each_attribute_is_guarded_once() -> None:
    assert [value for _, key, value in list_guards(use_both) or () if key == "tile"] == [4, 8]


def test_the_object_of_a_method_is_guarded() -> None:
    owner = Other()
    assert (vars(owner), "tile", ...) in (list_guards(owner.use) or ())
    assert (vars(Other), "tile", 8) in (list_guards(owner.use) or ())


def test_an_intrinsic_is_guarded_with_the_function_it_wraps() -> None:
    wrapper = intrinsic(use_class)
    guards = list_guards(wrapper)
    assert guards is not None
    assert (vars(wrapper), "__wrapped__", use_class) in guards
    assert (use_class, False, use_class.__code__) in guards


def test_globals_that_are_missing_are_guarded_in_inner_code_too() -> None:
    def use_inner(x: Any) -> None:
        class Inner:
            low, width = min, len("ab")

        reg.scalar(s32, [abs(i) for i in (1,)][Inner.width])

    guards = list_guards(use_inner)
    assert guards is not None
    missing = {key for owner, key, value in guards if owner is globals() and value is ...}
    assert missing >= {"min", "len", "abs"}
    assert "width" not in missing


def test_code_and_globals_are_guarded() -> None:
    guards = list_guards(use_numbers)
    assert guards is not None
    assert (use_numbers, False, use_numbers.__code__) in guards
    assert (globals(), "SCALE", 2) in guards
    assert (globals(), "reg", reg) in guards


def test_a_global_that_is_missing_is_guarded() -> None:
    guards = list_guards(use_absent)
    assert guards is not None
    assert (globals(), "range", ...) in guards


def use_absent(x: Any) -> None:
    for _ in range(SCALE):
        reg.scalar(s32)


def test_closures_and_defaults_are_guarded() -> None:
    width = 3

    def use_cell(x: Any, factor: int = 4, *, offset: int = 5) -> None:
        reg.scalar(s32, width * factor + offset)

    guards = list_guards(use_cell)
    assert guards is not None
    assert [key for owner, key, value in guards if isinstance(owner, types.CellType) and value == width] == [None]
    assert (use_cell, None, (4,)) in guards
    assert ({"offset": 5}, "offset", 5) in guards


def _make_closure() -> tuple[Callable[..., None], Callable[[], None], Callable[[], None]]:
    width = 3

    def use_cell(x: Any, factor: int = 4, *, offset: int = 5) -> None:
        reg.scalar(s32, width * factor + offset)

    def widen() -> None:
        nonlocal width
        width = 4

    def forget() -> None:
        nonlocal width
        del width

    return use_cell, widen, forget


CHANGES: list[Callable[[Any, Any, Any], object]] = [
    lambda use, widen, forget: widen(),
    lambda use, widen, forget: forget(),
    lambda use, widen, forget: setattr(use, "__code__", use.__code__.replace(co_name="other")),
    lambda use, widen, forget: setattr(use, "__defaults__", (5,)),
    lambda use, widen, forget: use.__kwdefaults__.update(offset=6),
]


@pytest.mark.parametrize("change", CHANGES)
def test_guards_hold_until_the_function_changes(change: Callable[[Any, Any, Any], object]) -> None:
    use, widen, forget = _make_closure()
    guards = list_guards(use)
    assert guards
    assert are_kept(guards)
    change(use, widen, forget)
    assert not are_kept(guards)


@pytest.mark.parametrize(
    ("function", "name", "value"),
    [(use_numbers, "SCALE", 3), (use_list, "COUNTS", [1]), (use_absent, "range", list), (use_class, "Config", Bare)],
)
def test_guards_hold_until_a_global_changes(
    function: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    guards = list_guards(function)
    assert guards
    assert are_kept(guards)
    monkeypatch.setitem(globals(), name, value)
    assert not are_kept(guards)


@pytest.mark.parametrize("items", [[], [2], [1, 1]])
def test_guards_hold_until_a_list_changes(items: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    guards = list_guards(use_list)
    assert guards
    monkeypatch.setattr(Config, "tile", 5)
    assert are_kept(guards)
    COUNTS[:] = items
    try:
        assert not are_kept(guards)
    finally:
        COUNTS[:] = [1]


def test_guards_hold_until_an_attribute_of_a_class_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    guards = list_guards(use_class)
    assert guards
    monkeypatch.setattr(Config, "other", 5, raising=False)
    assert are_kept(guards)
    monkeypatch.setattr(Config, "tile", 5)
    assert not are_kept(guards)


@pytest.mark.parametrize("owner", [SIZES, LARGE])
def test_guards_hold_until_a_field_of_a_compared_dataclass_changes(
    owner: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    guards = list_guards(use_comparison)
    assert guards
    assert are_kept(guards)
    monkeypatch.setattr(owner, "rows", 5)
    assert not are_kept(guards)
