"""Takes over the work of clusters that have not started: `clusterlaunchcontrol`."""

from __future__ import annotations

from typing import Any

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Pred, Reg, create_register
from pyptx.types import pred as pred_type
from pyptx.types import u32

__all__ = ["get_first_ctaid", "get_first_ctaid_dim", "is_canceled", "try_cancel"]


def try_cancel(dst: Any, mbar: Any, *, multicast: bool = False, pred: Pred | None = None) -> None:
    """Emit `clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes[.multicast::cluster::all]
    .b128 [dst], [mbar]`; the 16-byte response is written to shared memory through the async proxy."""
    words = ("multicast::cluster::all",) if multicast else ()
    head = ("try_cancel", "async", "shared::cta", "mbarrier::complete_tx::bytes")
    emit(spell("clusterlaunchcontrol", *head, *words, "b128"), (dst, mbar), pred)


def is_canceled(answer: Reg, *, pred: Pred | None = None) -> Reg:
    """Emit `clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer`."""
    result = create_register(pred_type)
    emit(spell("clusterlaunchcontrol", "query_cancel", "is_canceled", "pred", "b128"), (result, answer), pred)
    return result


def get_first_ctaid(answer: Reg, *, pred: Pred | None = None) -> tuple[Reg, Reg, Reg]:
    """Emit `clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, answer`; return x, y, z."""
    x, y, z = create_register(u32), create_register(u32), create_register(u32)
    words = ("query_cancel", "get_first_ctaid", "v4", "b32", "b128")
    emit(spell("clusterlaunchcontrol", *words), ([x, y, z, None], answer), pred)
    return x, y, z


def get_first_ctaid_dim(answer: Reg, dim: str, *, pred: Pred | None = None) -> Reg:
    """Emit `clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 d, answer`; or `y`, `z`."""
    result = create_register(u32)
    words = ("query_cancel", f"get_first_ctaid::{dim}", "b32", "b128")
    emit(spell("clusterlaunchcontrol", *words), (result, answer), pred)
    return result


def __dir__() -> list[str]:
    return __all__
