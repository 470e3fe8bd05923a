"""`cp.async.bulk`: bulk copies and reductions between global and shared memory, issued by one thread.

Sizes and addresses are multiples of 16. Copies into shared memory signal a barrier; those into global memory belong to
a bulk group of the issuing thread.
"""

from __future__ import annotations

from typing import Any

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Dtype, Pred
from pyptx.ptx.boxes import BOXES
from pyptx.ptx.cp import tensor as tensor
from pyptx.ptx.orders import keep_present, spell_bulk_operation

__all__ = [
    "commit_group", "global_to_shared", "global_to_shared_cta", "prefetch", "reduce_to_global", "reduce_to_shared",
    "shared_to_global", "shared_to_shared", "tensor", "tensor_1d", "tensor_2d", "tensor_3d", "tensor_4d", "tensor_5d",
    "wait_group",
]  # fmt: skip

tensor_1d, tensor_2d, tensor_3d, tensor_4d, tensor_5d = BOXES

_SIGNAL, _HINT = "mbarrier::complete_tx::bytes", "L2::cache_hint"


def _select_operands(*values: Any) -> tuple[Any, ...]:
    return tuple([value for value in values if value is not None])


def global_to_shared(
    dst: Any,
    src: Any,
    size: Any,
    mbar: Any,
    *,
    multicast_mask: Any = None,
    cache_hint: Any = None,
    pred: Pred | None = None,
) -> None:
    """Emit `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes[.multicast::cluster][.L2::cache_hint]
    [dst], [src], size, [mbar][, mask][, policy]`. `size` is in bytes, a multiple of 16."""
    cast = None if multicast_mask is None else "multicast::cluster"
    level = None if cache_hint is None else _HINT
    words = keep_present("async", "bulk", "shared::cluster", "global", _SIGNAL, cast, level)
    emit(spell("cp", *words), (dst, src, size, mbar, *_select_operands(multicast_mask, cache_hint)), pred)


def global_to_shared_cta(
    dst: Any,
    src: Any,
    size: Any,
    mbar: Any,
    *,
    ignore_bytes: tuple[Any, Any] | None = None,
    cache_hint: Any = None,
    pred: Pred | None = None,
) -> None:
    """Emit `cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes[.L2::cache_hint][.ignore_oob] [dst], [src],
    size[, left, right], [mbar][, policy]`. `ignore_bytes=(left, right)` omits bytes at either end. `size` is in bytes,
    a multiple of 16."""
    pairs = (cache_hint, _HINT), (ignore_bytes, "ignore_oob")
    level, out = (None if value is None else word for value, word in pairs)
    words = keep_present("async", "bulk", "shared::cta", "global", _SIGNAL, level, out)
    emit(spell("cp", *words), (dst, src, size, *(ignore_bytes or ()), mbar, *_select_operands(cache_hint)), pred)


def shared_to_shared(dst: Any, src: Any, size: Any, mbar: Any, *, pred: Pred | None = None) -> None:
    """Emit `cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dst], [src], size, [mbar]`: copies
    to another CTA and signals its barrier. `size` is in bytes, a multiple of 16."""
    emit(spell("cp", "async", "bulk", "shared::cluster", "shared::cta", _SIGNAL), (dst, src, size, mbar), pred)


def shared_to_global(
    dst: Any, src: Any, size: Any, *, cache_hint: Any = None, byte_mask: Any = None, pred: Pred | None = None
) -> None:
    """Emit `cp.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint][.cp_mask] [dst], [src], size[, policy] [,
    mask]`. Bit i of `byte_mask` enables byte i of every 16. `size` is in bytes, a multiple of 16."""
    level, mask_word = (
        None if value is None else word for value, word in ((cache_hint, _HINT), (byte_mask, "cp_mask"))
    )
    words = keep_present("async", "bulk", "global", "shared::cta", "bulk_group", level, mask_word)
    emit(spell("cp", *words), (dst, src, size, *_select_operands(cache_hint, byte_mask)), pred)


def reduce_to_global(
    op: str, dtype: Dtype, dst: Any, src: Any, size: Any, *, cache_hint: Any = None, pred: Pred | None = None
) -> None:
    """Emit `cp.reduce.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint].op[.noftz].T [dst], [src], size [,
    policy]`; sums of f16 and bf16 have `.noftz`. `size` is in bytes, a multiple of 16."""
    level = None if cache_hint is None else _HINT
    words = keep_present(
        "reduce", "async", "bulk", "global", "shared::cta", "bulk_group", level, *spell_bulk_operation(op, dtype)
    )
    emit(spell("cp", *words), (dst, src, size, *_select_operands(cache_hint)), pred)


def reduce_to_shared(
    op: str, dtype: Dtype, dst: Any, src: Any, size: Any, mbar: Any, *, pred: Pred | None = None
) -> None:
    """Emit `cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.T [dst], [src], size,
    [mbar]`. `size` is in bytes, a multiple of 16."""
    words = ("reduce", "async", "bulk", "shared::cluster", "shared::cta", _SIGNAL, *spell_bulk_operation(op, dtype))
    emit(spell("cp", *words), (dst, src, size, mbar), pred)


def prefetch(src: Any, size: Any, *, cache_hint: Any = None, pred: Pred | None = None) -> None:
    """Emit `cp.async.bulk.prefetch.L2.global[.L2::cache_hint] [src], size[, policy]`. `size` is in bytes, a multiple of
    16."""
    level = None if cache_hint is None else _HINT
    words = keep_present("async", "bulk", "prefetch", "L2", "global", level)
    emit(spell("cp", *words), (src, size, *_select_operands(cache_hint)), pred)


def commit_group(*, pred: Pred | None = None) -> None:
    """Emit `cp.async.bulk.commit_group`."""
    emit(spell("cp", "async", "bulk", "commit_group"), (), pred)


def wait_group(n: int, *, read: bool = False, pred: Pred | None = None) -> None:
    """Emit `cp.async.bulk.wait_group[.read] n`; with `read`, waits only until the sources have been read."""
    emit(spell("cp", *keep_present("async", "bulk", "wait_group", "read" if read else None)), (n,), pred)


def __dir__() -> list[str]:
    return __all__
