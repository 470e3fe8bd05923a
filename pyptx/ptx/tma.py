"""Tensor copies of the rank-3 view used for large tiles: (64, rows, columns / 64), which allows boxes of any width."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import describe
from pyptx.dsl.registers import NegPred, Pred, Reg
from pyptx.dsl.scopes import Named, format_arguments
from pyptx.dsl.trace import fail
from pyptx.dsl.values import is_integer
from pyptx.ptx import cluster
from pyptx.ptx.cp.bulk import tensor_3d

__all__ = ["load_3d", "load_3d_multicast", "store_3d"]

_WIDTH = 64
"""Elements of the innermost dimension: 128 bytes of 16-bit values."""


def _choose_coordinates(row: Any, col: Any, coords: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if coords is not None:
        if row is not None or col is not None:
            fail(rules.ARGUMENT, "`row` and `col` cannot be combined with `coords`", help="omit one of them")
        if len(coords) != 3:
            fail(
                rules.ARGUMENT, f"`coords` must have 3 coordinates, found {len(coords)}", help="(0, row, column // 64)"
            )
        return coords
    if row is None or col is None:
        fail(rules.ARGUMENT, "a tensor copy needs the coordinates of its box", help="pass row= and col=, or coords=")
    if isinstance(col, Reg):
        return 0, row, col >> _WIDTH.bit_length() - 1
    if not is_integer(col) or col % _WIDTH:
        fail(rules.ARGUMENT, f"`col` must be a register or a multiple of {_WIDTH}, found {describe(col)}",
             help="the view consists of blocks of 64 columns: pass its coordinates with coords=")  # fmt: skip
    return 0, row, col // _WIDTH


def _open_scope(name: str, *args: Any) -> AbstractContextManager[Any]:
    """Return a named scope if more than the copy is emitted."""
    return Named(name, format_arguments(args, {})) if isinstance(args[-1], Reg) else nullcontext()


def load_3d(
    dst: Any,
    src: Any,
    row: Any = None,
    col: Any = None,
    mbar: Any = None,
    coords: tuple[Any, ...] | None = None,
    *,
    pred: Pred | None = None,
) -> None:
    """Emit `cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [dst], [map, {0, row, col
    / 64}], [mbar]`. A register `col` is divided with a `shr`, in a scope `load_3d` together with the copy. `row` and
    `col` count elements of the tensor."""
    with _open_scope("load_3d", dst, src, row, col):
        tensor_3d(dst=dst, src=src, coord=_choose_coordinates(row, col, coords), mbar=mbar, pred=pred)


def load_3d_multicast(
    dst: Any,
    src: Any,
    row: Any = None,
    col: Any = None,
    mbar: Any = None,
    mask: Any = None,
    coords: tuple[Any, ...] | None = None,
    *,
    issuer: int | Pred | None = None,
    pred: Pred | None = None,
) -> None:
    """Emit `load_3d` with `.multicast::cluster` and the mask. `issuer` is a predicate, or the rank of the issuing CTA,
    which emits a `mov` of `%cluster_ctarank` and a `setp`; combined with `pred`, both must be true (one `and`). Bit i
    of `mask` is the CTA of rank i."""
    if mask is None:
        fail(rules.ARGUMENT, "a multicast needs a mask of the destination CTAs", help="pass mask=0b11")
    with Named("load_3d_multicast", format_arguments((dst, src, row, col), {})):
        guard = pred
        if issuer is not None:
            is_issuer = issuer if isinstance(issuer, Reg | NegPred) else cluster.rank(issuer)
            guard = is_issuer if pred is None else is_issuer & pred
        coord = _choose_coordinates(row, col, coords)
        tensor_3d(dst=dst, src=src, coord=coord, mbar=mbar, multicast_mask=mask, pred=guard)


def store_3d(
    dst: Any,
    src: Any,
    row: Any = None,
    col: Any = None,
    coords: tuple[Any, ...] | None = None,
    *,
    pred: Pred | None = None,
) -> None:
    """Emit `cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [map, {0, row, col / 64}], [src]`; a register
    `col` as in `load_3d`. `row` and `col` count elements."""
    with _open_scope("store_3d", dst, src, row, col):
        tensor_3d.store_tile(dst, src, _choose_coordinates(row, col, coords), pred=pred)


def __dir__() -> list[str]:
    return __all__
