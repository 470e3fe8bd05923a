"""The tensor copies of each rank; their methods are the functions of `ptx.cp.async_.bulk.tensor`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

from pyptx.dsl import rules
from pyptx.dsl.emit import Spelling, describe, emit, spell
from pyptx.dsl.registers import Pred
from pyptx.dsl.shared import SharedView
from pyptx.dsl.tensors import TensorSpec
from pyptx.dsl.trace import fail
from pyptx.dsl.values import RegisterRange
from pyptx.ir.operands import AddressOperand
from pyptx.ptx.memory import addr
from pyptx.ptx.orders import keep_present

_SIGNAL, _HINT = "mbarrier::complete_tx::bytes", "L2::cache_hint"


def map_address(desc: Any, coord: Any) -> AddressOperand:
    """Return `[map, {x, y}]`; without coordinates, the address must already have them."""
    if coord is None:
        if isinstance(desc, AddressOperand):
            return desc
        fail(rules.ARGUMENT, "a tensor copy needs the coordinates of its box",
             help="pass coord=(x, y), innermost dimension first")  # fmt: skip
    if isinstance(desc, SharedView):
        fail(rules.ARGUMENT, f"`{desc.name}` is shared memory, but a tensor map is expected",
             help="a load takes dst=tile, src=map, a store dst=map, src=tile; map is tensor.tma_desc()")  # fmt: skip
    if isinstance(desc, TensorSpec):
        desc = desc.tma_desc()
    if isinstance(coord, RegisterRange):
        coord = coord.__members__
    elements = list(cast("tuple[Any, ...]", coord)) if isinstance(coord, tuple | list) else [coord]
    return addr(desc, elements)


def group_words(cta_group: Any) -> tuple[str, ...]:
    """Return `.cta_group::2`, or nothing for one CTA, the default."""
    if isinstance(cta_group, bool) or cta_group not in (None, 1, 2):
        fail(
            rules.ARGUMENT,
            f"`cta_group` must be 1 or 2, found {describe(cta_group)}",
            help="use cta_group=2 for CTA pairs",
        )
    return ("cta_group::2",) if cta_group == 2 else ()


class TensorCopy:
    """The tensor copies of one rank."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __repr__(self) -> str:
        return f"ptx.cp.async_.bulk.tensor_{self.rank}d"

    def __call__(
        self,
        *,
        dst: Any,
        src: Any,
        coord: Sequence[Any] | None = None,
        mbar: Any = None,
        cta_group: int = 1,
        multicast_mask: Any | None = None,
        cache_hint: Any | None = None,
        pred: Pred | None = None,
    ) -> None:
        """Emit `cp.async.bulk.tensor.Nd.shared::cluster.global.tile.mbarrier::complete_tx::bytes[.multicast::cluster]
        [.cta_group::2][.L2::cache_hint] [dst], [map, {c}], [mbar][, mask][, policy]`. Coordinates count elements,
        innermost dimension first."""
        self.tile(dst, src, coord, mbar=mbar, cache_hint=cache_hint, multicast_mask=multicast_mask,
                  cta_group=cta_group, pred=pred)  # fmt: skip

    def store(
        self,
        *,
        dst: Any,
        src: Any,
        coord: Sequence[Any] | None = None,
        cache_hint: Any | None = None,
        pred: Pred | None = None,
    ) -> None:
        """Emit `cp.async.bulk.tensor.Nd.global.shared::cta.bulk_group[.L2::cache_hint] [map, {c}], [src][, policy]`."""
        self._emit_tile_store((), dst, src, coord, cache_hint, pred)

    def shared_cta_global_tile(
        self,
        *,
        dst: Any,
        src: Any,
        coord: Sequence[Any] | None = None,
        mbar: Any,
        cta_group: int = 1,
        cache_hint: Any | None = None,
        pred: Pred | None = None,
    ) -> None:
        """Emit `cp.async.bulk.tensor.Nd.shared::cta.global.tile.mbarrier::complete_tx::bytes[.cta_group::2]
        [.L2::cache_hint] [dst], [map, {c}], [mbar][, policy]`: into the CTA's own shared memory."""
        self._emit_load("shared::cta", "tile", dst, src, coord, mbar, [], None, cta_group, cache_hint, pred)

    def tile(
        self,
        dst: Any,
        src: Any,
        coord: Any = None,
        *,
        mbar: Any = None,
        cache_hint: Any | None = None,
        multicast_mask: Any | None = None,
        cta_group: int = 1,
        pred: Pred | None = None,
    ) -> None:
        """Emit the same as calling this object."""
        self._emit_load(
            "shared::cluster", "tile", dst, src, coord, mbar, [], multicast_mask, cta_group, cache_hint, pred
        )

    def im2col(
        self,
        dst: Any,
        src: Any,
        coord: Any = None,
        *,
        offsets: Any,
        mode: str = "im2col",
        mbar: Any = None,
        cache_hint: Any | None = None,
        multicast_mask: Any | None = None,
        cta_group: int = 1,
        pred: Pred | None = None,
    ) -> None:
        """Emit `cp.async.bulk.tensor.Nd.shared::cluster.global.im2col… [dst], [map, {c}], [mbar], {offsets}[, mask] [,
        policy]`: N - 2 offsets of 16 bits. With `mode` "im2col::w" or "im2col::w::128" they are the halo and the offset
        along W. Offsets count elements."""
        self._emit_load("shared::cluster", mode, dst, src, coord, mbar, [list(offsets)], multicast_mask, cta_group,
                   cache_hint, pred)  # fmt: skip

    def gather4(
        self,
        dst: Any,
        src: Any,
        coord: Any = None,
        *,
        mbar: Any = None,
        cache_hint: Any | None = None,
        multicast_mask: Any | None = None,
        cta_group: int = 1,
        pred: Pred | None = None,
    ) -> None:
        """Emit `cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4…`: four rows, at {column, row0 … row3}."""
        self._emit_load("shared::cluster", "tile::gather4", dst, src, coord, mbar, [], multicast_mask, cta_group,
                   cache_hint, pred)  # fmt: skip

    def store_tile(
        self, dst: Any, src: Any, coord: Any = None, *, cache_hint: Any | None = None, pred: Pred | None = None
    ) -> None:
        """Emit `cp.async.bulk.tensor.Nd.global.shared::cta.tile.bulk_group[.L2::cache_hint] [map, {c}], [src]
        [, policy]`."""
        self._emit_tile_store(("tile",), dst, src, coord, cache_hint, pred)

    def store_im2col(
        self, dst: Any, src: Any, coord: Any = None, *, cache_hint: Any | None = None, pred: Pred | None = None
    ) -> None:
        """Emit `cp.async.bulk.tensor.Nd.global.shared::cta.im2col_no_offs.bulk_group… [map, {c}], [src]`."""
        self._emit_tile_store(("im2col_no_offs",), dst, src, coord, cache_hint, pred)

    def scatter4(
        self, dst: Any, src: Any, coord: Any = None, *, cache_hint: Any | None = None, pred: Pred | None = None
    ) -> None:
        """Emit `cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group…`: at {column, row0 … row3}."""
        self._emit_tile_store(("tile::scatter4",), dst, src, coord, cache_hint, pred)

    def reduce(
        self,
        op: str,
        dst: Any,
        src: Any,
        coord: Any = None,
        *,
        mode: str = "tile",
        cache_hint: Any | None = None,
        pred: Pred | None = None,
    ) -> None:
        """Emit `cp.reduce.async.bulk.tensor.Nd.global.shared::cta.op.tile.bulk_group[.L2::cache_hint] [map, {c}], [src]
        [, policy]`; `op` is add, min, max, inc, dec, and, or, xor, `mode` "tile" or "im2col_no_offs"."""
        words = ("reduce", "async", "bulk", "tensor", f"{self.rank}d", "global", "shared::cta", op, mode, "bulk_group")
        self._emit_store(words, dst, src, coord, cache_hint, pred)

    def prefetch(
        self,
        src: Any,
        coord: Any = None,
        *,
        mode: str = "tile",
        offsets: Any = None,
        cache_hint: Any | None = None,
        pred: Pred | None = None,
    ) -> None:
        """Emit `cp.async.bulk.prefetch.tensor.Nd.L2.global.mode[.L2::cache_hint] [map, {c}][, {offsets}][, policy]`;
        `mode` is as for a load. The offsets (im2col only) count elements."""
        level = None if cache_hint is None else _HINT
        words = keep_present("async", "bulk", "prefetch", "tensor", f"{self.rank}d", "L2", "global", mode, level)
        extras = [list(offsets)] if offsets is not None else []
        extras += [] if cache_hint is None else [cache_hint]
        emit(spell("cp", *words), (map_address(src, coord), *extras), pred)

    def _emit_load(
        self, space: str, mode: str, dst: Any, src: Any, coord: Any, mbar: Any, offsets: list[Any], mask: Any,
        cta_group: Any, hint: Any, pred: Pred | None,
    ) -> None:  # fmt: skip
        if mbar is None:
            fail(rules.ARGUMENT, "a tensor load needs a barrier to signal, found none", help="pass mbar=bars[stage]")
        spelling = _spell_load(self.rank, space, mode, mask is not None, group_words(cta_group), hint is not None)
        extras = [value for value in (mask, hint) if value is not None]
        emit(spelling, (dst, map_address(src, coord), mbar, *offsets, *extras), pred)

    def _emit_tile_store(
        self, mode: tuple[str, ...], dst: Any, src: Any, coord: Any, hint: Any, pred: Pred | None
    ) -> None:
        words = ("async", "bulk", "tensor", f"{self.rank}d", "global", "shared::cta", *mode, "bulk_group")
        self._emit_store(words, dst, src, coord, hint, pred)

    def _emit_store(self, words: tuple[str, ...], dst: Any, src: Any, coord: Any, hint: Any, pred: Pred | None) -> None:
        address = map_address(dst, coord)
        if hint is None:
            emit(spell("cp", *words), (address, src), pred)
        else:
            emit(spell("cp", *words, _HINT), (address, src, hint), pred)


@cache
def _spell_load(rank: int, space: str, mode: str, cast: bool, group: tuple[str, ...], hint: bool) -> Spelling:
    head = ("async", "bulk", "tensor", f"{rank}d", space, "global", mode, _SIGNAL)
    options = keep_present("multicast::cluster" if cast else None, *group, _HINT if hint else None)
    return spell("cp", *head, *options)


BOXES = tuple(TensorCopy(rank) for rank in range(1, 6))
