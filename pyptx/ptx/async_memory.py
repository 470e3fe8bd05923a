"""Asynchronous stores and reductions: `st.async`, `red.async`, `st.bulk`."""

from __future__ import annotations

from typing import Any

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Dtype, Pred, resolve_type
from pyptx.dsl.scopes import Named
from pyptx.dsl.shared import SharedView
from pyptx.ptx.orders import choose_operand_type, spell_vector

_SIGNAL = "mbarrier::complete_tx::bytes"


def st_async(dtype: Dtype, addr: Any, src: Any, mbar: Any, *, pred: Pred | None = None) -> None:
    """Emit `st.async.shared::cluster.mbarrier::complete_tx::bytes[.vN].T [a], b, [mbar]`: data and barrier belong to
    one CTA of the cluster, both by mapped addresses."""
    dtype = resolve_type(dtype)
    words = ("async", "shared::cluster", _SIGNAL, *spell_vector(src), dtype.name)
    emit(spell("st", *words), (addr, src, mbar), pred)


def st_async_global(
    dtype: Dtype, addr: Any, src: Any, *, scope: str = "gpu", mmio: bool = False, pred: Pred | None = None
) -> None:
    """Emit `st.async.release.scope.global.T [a], b`, or with `mmio` `st.async.mmio.release.sys.global.T`."""
    dtype = resolve_type(dtype)
    head = ("mmio", "release", "sys") if mmio else ("release", scope)
    emit(spell("st", "async", *head, "global", dtype.name), (addr, src), pred)


def red_async(op: str, dtype: Dtype, addr: Any, value: Any, mbar: Any, *, pred: Pred | None = None) -> None:
    """Emit `red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.op.T [a], b, [mbar]`."""
    words = ("async", "relaxed", "cluster", "shared::cluster", _SIGNAL, op, choose_operand_type(op, dtype))
    emit(spell("red", *words), (addr, value, mbar), pred)


def red_async_global(
    op: str, dtype: Dtype, addr: Any, value: Any, *, scope: str = "gpu", mmio: bool = False, pred: Pred | None = None
) -> None:
    """Emit `red.async.release.scope.global.op.T [a], b`, or with `mmio` `red.async.mmio.release.sys.global.op.T`."""
    head = ("mmio", "release", "sys") if mmio else ("release", scope)
    emit(spell("red", "async", *head, "global", op, choose_operand_type(op, dtype)), (addr, value), pred)


def st_bulk(addr: Any, size: Any, *, pred: Pred | None = None) -> None:
    """Emit `st.bulk.shared::cta [a], size, 0`: fill with zero. `size` is in bytes, a multiple of 8.

    ptxas accepts only registers as its address: for an allocation, a `mov` precedes it, in a scope `st_bulk`.
    """
    spelling = spell("st", "bulk", "shared::cta")
    if isinstance(addr, SharedView) and addr.register is None:
        with Named("st_bulk", addr.name):
            emit(spelling, (addr.address(), size, 0), pred)
    else:
        emit(spelling, (addr, size, 0), pred)
