"""`cp.async`: copies 4, 8 or 16 bytes per thread from global to shared memory; with its groups and barrier."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Pred
from pyptx.dsl.trace import fail
from pyptx.dsl.values import is_integer
from pyptx.ir.operands import ImmediateOperand
from pyptx.ptx.cp import bulk as bulk
from pyptx.ptx.orders import keep_present

__all__ = ["bulk", "ca", "cg", "commit_group", "mbarrier_arrive", "wait_all", "wait_group"]


def cg(
    smem_dst: Any,
    global_src: Any,
    byte_count: int | ImmediateOperand,
    *,
    src_size: Any = None,
    ignore_src: Pred | None = None,
    cache_hint: Any = None,
    prefetch: str | None = None,
    pred: Pred | None = None,
) -> None:
    """Emit `cp.async.cg.shared.global[.L2::cache_hint][.prefetch] [dst], [src], 16[, src_size | ignore_src][, policy]`.
    `byte_count` is in bytes, 16.

    `src_size` bytes are copied and the rest is zeroed; a true `ignore_src` zeroes everything. `prefetch` is "L2::64B",
    "L2::128B" or "L2::256B".
    """
    _emit_copy("cg", smem_dst, global_src, byte_count, src_size, ignore_src, cache_hint, prefetch, pred)


def ca(
    smem_dst: Any,
    global_src: Any,
    byte_count: int | ImmediateOperand,
    *,
    src_size: Any = None,
    ignore_src: Pred | None = None,
    cache_hint: Any = None,
    prefetch: str | None = None,
    pred: Pred | None = None,
) -> None:
    """Emit `cp.async.ca.shared.global…` for 4, 8 or 16 bytes; arguments as for `cg`."""
    _emit_copy("ca", smem_dst, global_src, byte_count, src_size, ignore_src, cache_hint, prefetch, pred)


def _emit_copy(
    cop: str, dst: Any, src: Any, size: Any, src_size: Any, ignore: Any, hint: Any, prefetch: str | None, pred: Any
) -> None:
    if src_size is not None and ignore is not None:
        fail(rules.ARGUMENT, f"`cp.async.{cop}` takes either `src_size` or `ignore_src`, found both",
             help="select the size instead: ptx.selp(u32, size, 0, 16, ignore)")  # fmt: skip
    if cop == "ca" and is_integer(size) and size not in (4, 8, 16):
        fail(rules.ARGUMENT, f"`cp.async.ca` copies 4, 8 or 16 bytes, found {size}",
             help="split a larger range into several copies, or use ptx.cp.async_.bulk")  # fmt: skip
    level = None if hint is None else "L2::cache_hint"
    extras = [value for value in (src_size, ignore, hint) if value is not None]
    words = keep_present("async", cop, "shared", "global", level, prefetch)
    emit(spell("cp", *words), (dst, src, size, *extras), pred)


def commit_group(*, pred: Pred | None = None) -> None:
    """Emit `cp.async.commit_group`."""
    emit(spell("cp", "async", "commit_group"), (), pred)


def wait_group(n: int, *, pred: Pred | None = None) -> None:
    """Emit `cp.async.wait_group n`: waits until at most n of this thread's groups are pending."""
    emit(spell("cp", "async", "wait_group"), (n,), pred)


def wait_all(*, pred: Pred | None = None) -> None:
    """Emit `cp.async.wait_all`."""
    emit(spell("cp", "async", "wait_all"), (), pred)


def mbarrier_arrive(mbar: Any, *, noinc: bool = False, pred: Pred | None = None) -> None:
    """Emit `cp.async.mbarrier.arrive[.noinc].shared.b64 [m]`: arrives when this thread's prior copies complete. Without
    `noinc`, the pending count is first incremented by 1."""
    words = keep_present("async", "mbarrier", "arrive", "noinc" if noinc else None, "shared", "b64")
    emit(spell("cp", *words), (mbar,), pred)


def __dir__() -> list[str]:
    return __all__
