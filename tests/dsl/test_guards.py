"""What a traced function depends on besides its arguments, as things that must stay the same objects."""

from __future__ import annotations

import types
from typing import Any

from pyptx import reg, smem
from pyptx.dsl.guards import list_guards
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


class Bare:
    """An object without a dictionary."""

    __slots__ = ("tile",)


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
