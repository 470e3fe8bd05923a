"""What a kernel and its helpers read is compared with the last call: a value that has changed in place is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from pyptx import Tile, intrinsic, kernel, ptx
from pyptx.types import s32

pytestmark = pytest.mark.usefixtures("device", "implementation")
torch: Any = import_module("torch")
SCALE = 2


class Base:
    """A class with the number of blocks that a kernel copies."""

    factor = 2


class Config(Base):
    """A class that inherits it."""


@dataclass
class Options:
    """An object with fields."""

    factor: int = 2

    def multiply(self, value: Any) -> Any:
        """Multiply by the field."""
        return value * (self.factor + SCALE - 2)


@intrinsic
def scale_by(value: Any) -> Any:
    """Multiply by the global SCALE."""
    return value * SCALE


FACTORS, TABLE, OBJECT, OPTIONS, NESTED = [2], {"factor": 2}, Config(), Options(), [{"factor": {"by": 2}}]


def use_list(value: Any) -> Any:
    return value * FACTORS[-1]


def use_table(value: Any) -> Any:
    return value * [*TABLE.values()][-1]


def use_class(value: Any) -> Any:
    return value * Config.factor


def use_object(value: Any) -> Any:
    return value * OBJECT.factor


def use_options(value: Any) -> Any:
    return value * OPTIONS.factor


def use_nested(value: Any) -> Any:
    return value * NESTED[0]["factor"]["by"]


def use_wrapped(value: Any) -> Any:
    return scale_by(value)


CHANGES: dict[str, tuple[Callable[[Any], Any], Callable[[pytest.MonkeyPatch], object]]] = {
    "an item": (use_list, lambda patch: FACTORS.append(3)),
    "a value": (use_table, lambda patch: patch.setitem(TABLE, "factor", 3)),
    "one more key": (use_table, lambda patch: patch.setitem(TABLE, "last", 3)),
    "an attribute of a class": (use_class, lambda patch: patch.setattr(Config, "factor", 3, raising=False)),
    "an attribute of its base": (use_class, lambda patch: patch.setattr(Base, "factor", 3)),
    "an attribute of an object": (use_object, lambda patch: patch.setattr(OBJECT, "factor", 3, raising=False)),
    "an attribute of its class": (use_object, lambda patch: patch.setattr(Base, "factor", 3)),
    "a field": (use_options, lambda patch: patch.setattr(OPTIONS, "factor", 3)),
    "an item of an item": (use_nested, lambda patch: patch.setitem(NESTED[0]["factor"], "by", 3)),
    "what a method names": (OPTIONS.multiply, lambda patch: patch.setattr(f"{__name__}.SCALE", 3)),
    "a field of its object": (OPTIONS.multiply, lambda patch: patch.setattr(OPTIONS, "factor", 3)),
    "what a wrapper wraps": (
        use_wrapped, lambda patch: patch.setitem(vars(scale_by), "__wrapped__", use_options)
    ),
    "what a wrapped function names": (use_wrapped, lambda patch: patch.setattr(f"{__name__}.SCALE", 3)),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_changes_in_place_are_noticed(change: str, bindings: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    multiply, apply = CHANGES[change]
    monkeypatch.setattr(f"{__name__}.FACTORS", [2])

    @kernel(in_specs=[Tile(32, s32)], out_specs=[Tile(32, s32)], grid=(1,), block=(32, 1, 1))
    def scale(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        offset = ptx.special.tid.x() * 4
        ptx.st(s32, ptx.addr(py, offset), multiply(ptx.ld(s32, ptx.addr(px, offset))))

    x = torch.arange(32, dtype=torch.int32)
    for _ in range(3):
        assert torch.equal(scale(x), x * 2)
    assert len(bindings) == 1
    apply(monkeypatch)
    scale(x)
    assert len(bindings) == 2
