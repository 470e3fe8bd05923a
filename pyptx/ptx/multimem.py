"""Memory of several devices behind one address: `multimem.ld_reduce`, `.st`, `.red` and its bulk copies.

`op` is "add", "min", "max", "and", "or", "xor"; `sem` is "weak", "relaxed", "acquire" or "release"; the last three take
a `scope`.
"""

from __future__ import annotations

from typing import Any

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Dtype, Pred, resolve_type
from pyptx.ptx.orders import choose_operand_type, keep_present, spell_bulk_operation, spell_vector

__all__ = ["cp_async_bulk", "cp_reduce_async_bulk", "ld_reduce", "red", "st"]


def ld_reduce(
    op: str,
    dtype: Dtype,
    dst: Any,
    addr: Any,
    *,
    sem: str | None = None,
    scope: str | None = None,
    acc: Dtype | None = None,
    space: str = "global",
    pred: Pred | None = None,
) -> None:
    """Emit `multimem.ld_reduce[.sem.scope][.space].op[.acc::T][.vN].T d, [a]`; `acc` is f32 or f16."""
    wide = None if acc is None else f"acc::{resolve_type(acc).name}"
    words = (
        *keep_present("ld_reduce", sem, scope, space, op, wide),
        *spell_vector(dst),
        choose_operand_type(op, dtype),
    )
    emit(spell("multimem", *words), (dst, addr), pred)


def st(
    dtype: Dtype,
    addr: Any,
    src: Any,
    *,
    sem: str | None = None,
    scope: str | None = None,
    space: str = "global",
    pred: Pred | None = None,
) -> None:
    """Emit `multimem.st[.sem.scope][.space][.vN].T [a], b`."""
    dtype = resolve_type(dtype)
    words = (*keep_present("st", sem, scope, space), *spell_vector(src), dtype.name)
    emit(spell("multimem", *words), (addr, src), pred)


def red(
    op: str,
    dtype: Dtype,
    addr: Any,
    value: Any,
    *,
    sem: str | None = None,
    scope: str | None = None,
    space: str = "global",
    pred: Pred | None = None,
) -> None:
    """Emit `multimem.red[.sem.scope][.space].op[.vN].T [a], b`."""
    words = (*keep_present("red", sem, scope, space, op), *spell_vector(value), choose_operand_type(op, dtype))
    emit(spell("multimem", *words), (addr, value), pred)


def cp_async_bulk(dst: Any, src: Any, size: int | Any, *, byte_mask: Any = None, pred: Pred | None = None) -> None:
    """Emit `multimem.cp.async.bulk.global.shared::cta.bulk_group[.cp_mask] [dst], [src], size[, mask]`. `size` is
    in bytes, a multiple of 16."""
    mask_words = () if byte_mask is None else ("cp_mask",)
    words = ("cp", "async", "bulk", "global", "shared::cta", "bulk_group", *mask_words)
    emit(spell("multimem", *words), (dst, src, size, *(() if byte_mask is None else (byte_mask,))), pred)


def cp_reduce_async_bulk(
    op: str, dtype: Dtype, dst: Any, src: Any, size: int | Any, *, pred: Pred | None = None
) -> None:
    """Emit `multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.op[.noftz].T [dst], [src], size`. `size` is
    in bytes, a multiple of 16."""
    words = ("cp", "reduce", "async", "bulk", "global", "shared::cta", "bulk_group", *spell_bulk_operation(op, dtype))
    emit(spell("multimem", *words), (dst, src, size), pred)


def __dir__() -> list[str]:
    return __all__
