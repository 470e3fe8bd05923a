"""Conversion between state-space addresses and generic ones: `cvta`, `cvta.to`, `isspacep`."""

from __future__ import annotations

from typing import Any

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Pred, Reg, create_register
from pyptx.types import b64
from pyptx.types import pred as pred_type

__all__ = [
    "const", "global_", "isspacep", "local", "param", "shared", "to_const", "to_global", "to_local", "to_param",
    "to_shared",
]  # fmt: skip


def _convert(words: tuple[str, ...], src: Any, dst: Reg | None, pred: Pred | None) -> Reg:
    result = create_register(b64) if dst is None else dst
    emit(spell("cvta", *words, "u64"), (result, src), pred)
    return result


def param(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.param.u64 d, a`: the generic address of a parameter."""
    return _convert(("param",), src, dst, pred)


def to_global(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.to.global.u64 d, a`."""
    return _convert(("to", "global"), src, dst, pred)


def to_shared(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.to.shared.u64 d, a`."""
    return _convert(("to", "shared"), src, dst, pred)


def to_local(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.to.local.u64 d, a`."""
    return _convert(("to", "local"), src, dst, pred)


def to_const(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.to.const.u64 d, a`."""
    return _convert(("to", "const"), src, dst, pred)


def to_param(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.to.param.u64 d, a`."""
    return _convert(("to", "param"), src, dst, pred)


def global_(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.global.u64 d, a`: the generic address of global memory."""
    return _convert(("global",), src, dst, pred)


def shared(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.shared.u64 d, a`: the generic address of an allocation, a symbol or a 64-bit register."""
    return _convert(("shared",), src, dst, pred)


def local(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.local.u64 d, a`: the generic address of local memory."""
    return _convert(("local",), src, dst, pred)


def const(src: Any, dst: Reg | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `cvta.const.u64 d, a`: the generic address of constant memory."""
    return _convert(("const",), src, dst, pred)


def isspacep(space: str, address: Reg, *, pred: Pred | None = None) -> Reg:
    """Emit `isspacep.space p, a`: whether a generic address is in the state space."""
    result = create_register(pred_type)
    emit(spell("isspacep", space), (result, address), pred)
    return result


def __dir__() -> list[str]:
    return __all__
