"""The CTA's numbered barriers, `bar.sync`, `bar.arrive`, `bar.red`, and the warp barrier."""

from __future__ import annotations

from typing import Any

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Pred, Reg, create_register
from pyptx.types import pred as pred_type
from pyptx.types import u32

__all__ = ["arrive", "red_and", "red_or", "red_popc", "sync", "warp_sync"]


def _list_operands(n: Any, count: Any) -> tuple[Any, ...]:
    return (n,) if count is None else (n, count)


def sync(n: Any = 0, count: Any | None = None, *, pred: Pred | None = None) -> None:
    """Emit `bar.sync n[, count]`. `count` counts threads, a multiple of 32."""
    emit(spell("bar", "sync"), _list_operands(n, count), pred)


def arrive(n: Any, count: Any, *, pred: Pred | None = None) -> None:
    """Emit `bar.arrive n, count`: arrive without waiting. `count` counts threads, a multiple of 32."""
    emit(spell("bar", "arrive"), (n, count), pred)


def red_popc(value: Pred, n: Any = 0, count: Any | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `bar.red.popc.u32 d, n[, count], p`: wait; return the number of threads for which the predicate holds.
    `count` counts threads, a multiple of 32."""
    result = create_register(u32)
    emit(spell("bar", "red", "popc", "u32"), (result, *_list_operands(n, count), value), pred)
    return result


def red_and(value: Pred, n: Any = 0, count: Any | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `bar.red.and.pred q, n[, count], p`: wait; return whether the predicate holds for all threads. `count`
    counts threads, a multiple of 32."""
    result = create_register(pred_type)
    emit(spell("bar", "red", "and", "pred"), (result, *_list_operands(n, count), value), pred)
    return result


def red_or(value: Pred, n: Any = 0, count: Any | None = None, *, pred: Pred | None = None) -> Reg:
    """Emit `bar.red.or.pred q, n[, count], p`: wait; return whether the predicate holds for any thread. `count` counts
    threads, a multiple of 32."""
    result = create_register(pred_type)
    emit(spell("bar", "red", "or", "pred"), (result, *_list_operands(n, count), value), pred)
    return result


def warp_sync(membermask: Any = 0xFFFFFFFF, *, pred: Pred | None = None) -> None:
    """Emit `bar.warp.sync mask`."""
    emit(spell("bar", "warp", "sync"), (membermask,), pred)


def __dir__() -> list[str]:
    return __all__
