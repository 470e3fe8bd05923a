"""Clusters: the cluster barrier, and shared memory and memory barriers of other CTAs."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.registers import Pred, Reg, create_register, move
from pyptx.dsl.scopes import Scope, intrinsic
from pyptx.dsl.trace import fail
from pyptx.dsl.values import Register, Value, is_integer
from pyptx.ptx.loops import while_
from pyptx.ptx.orders import spell_barrier_order
from pyptx.ptx.scalar import sreg
from pyptx.types import u32

__all__ = ["arrive", "arrive_multicast", "arrive_remote", "getctarank", "map_shared_u32", "rank", "sync", "wait"]

_LARGEST = 16
"""Maximum number of CTAs in a cluster."""


def arrive(
    *, aligned: bool = False, sem: str | None = None, scope: str | None = None, pred: Pred | None = None
) -> None:
    """Emit `barrier.cluster.arrive[.sem][.aligned]`; `sem` is "release", the default, or "relaxed"."""
    _emit_barrier("arrive", aligned, sem, scope, pred)


def wait(*, aligned: bool = False, sem: str | None = None, scope: str | None = None, pred: Pred | None = None) -> None:
    """Emit `barrier.cluster.wait[.acquire][.aligned]`."""
    _emit_barrier("wait", aligned, sem, scope, pred)


def _emit_barrier(op: str, is_aligned: bool, sem: str | None, scope: str | None, pred: Pred | None) -> None:
    if scope not in (None, "cluster"):
        fail(rules.ARGUMENT, f"a cluster barrier orders memory for the cluster, found scope={scope!r}",
             help="omit scope=")  # fmt: skip
    words = (*(() if sem is None else (sem,)), *(("aligned",) if is_aligned else ()))
    emit(spell("barrier", "cluster", op, *words), (), pred)


@intrinsic
def sync(*, aligned: bool = False, pred: Pred | None = None) -> None:
    """Emit `barrier.cluster.arrive[.aligned]` and `barrier.cluster.wait[.aligned]`."""
    arrive(aligned=aligned, pred=pred)
    wait(aligned=aligned, pred=pred)


@intrinsic
def rank(cta_rank: int | Reg) -> Reg:
    """Return a predicate that is true in the CTA of that rank. Emits `mov` of `%cluster_ctarank` and `setp.eq`."""
    if not isinstance(cta_rank, Register) and not is_integer(cta_rank, 0):
        fail(rules.ARGUMENT, f"a rank must be an integer or a register, found {describe(cta_rank)}")
    return sreg("%cluster_ctarank") == cta_rank


def map_shared_u32(bar_addr: Any, cta_id: Reg | int, *, pred: Pred | None = None) -> Reg:
    """Emit `mapa.shared::cluster.u32 d, address, cta`: the corresponding address in another CTA's shared memory."""
    result = create_register(u32)
    emit(_MAPA, (result, bar_addr, cta_id), pred)
    return result


_MAPA = spell("mapa", "shared::cluster", "u32")


def getctarank(address: Any, *, pred: Pred | None = None) -> Reg:
    """Emit `getctarank.shared::cluster.u32 d, address`: the rank of the CTA that the address belongs to."""
    result = create_register(u32)
    emit(spell("getctarank", "shared::cluster", "u32"), (result, address), pred)
    return result


def _get_address(barrier: Any) -> Any:
    """Return a barrier as an operand of `mapa`; anything but a register or a symbol with an offset goes into a
    register."""
    return barrier.__single__() if isinstance(barrier, Value) else barrier


@intrinsic
def arrive_remote(
    bar_addr: Any,
    cta_id: Reg | int,
    count: Reg | int = 1,
    *,
    sem: str | None = None,
    scope: str | None = None,
    pred: Pred | None = None,
) -> None:
    """Arrive at the corresponding barrier of another CTA. `count` counts arrivals.

    Emits a block `{ .reg .b32 %remAddr32; mapa.shared::cluster.u32 …; mbarrier.arrive[.sem.scope].shared::cluster.b64
    _, [%remAddr32], n; }`, preceded by one instruction for the address if it is not a single operand.
    """
    _emit_arrive(_get_address(bar_addr), cta_id, count, sem, scope, pred)


def _emit_arrive(address: Any, cta_id: Any, count: Any, sem: str | None, scope: str | None, pred: Pred | None) -> None:
    order = spell_barrier_order(sem, scope, "release")
    with Scope():
        remote = create_register(u32, "remAddr32")
        emit(_MAPA, (remote, address, cta_id), pred)
        emit(spell("mbarrier", "arrive", *order, "shared::cluster", "b64"), (None, remote, count), pred)


@intrinsic
def arrive_multicast(
    bar_addr: Any,
    mask: Any,
    count: Reg | int = 1,
    *,
    sem: str | None = None,
    scope: str | None = None,
    pred: Pred | None = None,
) -> None:
    """Arrive at the same barrier of every CTA whose bit is set in `mask`: emits what `arrive_remote` emits, for each
    CTA. `count` counts arrivals at each.

    A constant mask is unrolled. A 32-bit register emits a loop: while the mask is not 0, `brev` and `clz` find the
    lowest bit, and `sub`, `and` clear it.
    """
    address = _get_address(bar_addr)
    if not isinstance(mask, Reg):
        if not is_integer(mask, 1) or mask >> _LARGEST:
            fail(
                rules.ARGUMENT,
                f"a CTA mask must be 1 to {(1 << _LARGEST) - 1:#x} or a register, found {describe(mask)}",
            )
        for cta in range(_LARGEST):
            if mask >> cta & 1:
                _emit_arrive(address, cta, count, sem, scope, pred)
        return
    remaining, mirror, cta, minus_one = (create_register(u32) for _ in range(4))
    if pred is None:
        move(remaining, mask)
    else:
        emit(spell("selp", "b32"), (remaining, mask, 0, pred))
    with while_(lambda: remaining != 0):
        emit(spell("brev", "b32"), (mirror, remaining))
        emit(spell("clz", "b32"), (cta, mirror))
        _emit_arrive(address, cta, count, sem, scope, None)
        emit(spell("sub", "u32"), (minus_one, remaining, 1))
        emit(spell("and", "b32"), (remaining, remaining, minus_one))


def __dir__() -> list[str]:
    return __all__
