"""Cache instructions: `prefetch`, `prefetchu`, `applypriority`, `discard`, `createpolicy`."""

from __future__ import annotations

from typing import Any

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Pred, Reg, create_register
from pyptx.dsl.tensors import TensorSpec
from pyptx.ptx.orders import keep_present
from pyptx.types import b64


def prefetch(addr: Any, *, level: str = "L2", space: str = "global", pred: Pred | None = None) -> None:
    """Emit `prefetch.space.level [a]`; `level` is "L1", "L2", "L2::evict_last" or "L2::evict_normal", `space`
    "global", "local" or "" for a generic address."""
    emit(spell("prefetch", *keep_present(space, level)), (addr,), pred)


def prefetch_tensormap(desc: Any, *, space: str = "", pred: Pred | None = None) -> None:
    """Emit `prefetch.tensormap [a]` for a tensor map, by generic address, or a tensor of the kernel."""
    address = desc.tma_desc() if isinstance(desc, TensorSpec) else desc
    emit(spell("prefetch", *keep_present(space, "tensormap")), (address,), pred)


def prefetchu(addr: Any, *, pred: Pred | None = None) -> None:
    """Emit `prefetchu.L1 [a]`, with a generic address."""
    emit(spell("prefetchu", "L1"), (addr,), pred)


def applypriority(addr: Any, *, size: int = 128, pred: Pred | None = None) -> None:
    """Emit `applypriority.global.L2::evict_normal [a], 128`. `size` is in bytes."""
    emit(spell("applypriority", "global", "L2::evict_normal"), (addr, size), pred)


def discard(addr: Any, *, size: int = 128, pred: Pred | None = None) -> None:
    """Emit `discard.global.L2 [a], 128`: the cache line is discarded without writing it back. `size` is in bytes."""
    emit(spell("discard", "global", "L2"), (addr, size), pred)


def createpolicy_fractional(
    primary: str, secondary: str | None = None, *, fraction: float | Reg | None = None, pred: Pred | None = None
) -> Reg:
    """Emit `createpolicy.fractional.L2::primary[.L2::secondary].b64 d[, fraction]`; return the policy, a `cache_hint`.

    `primary` is "evict_last", "evict_normal", "evict_first" or "evict_unchanged"; `secondary` is one of the last two.
    """
    policy = create_register(b64)
    words = ("fractional", f"L2::{primary}", *(() if secondary is None else (f"L2::{secondary}",)), "b64")
    emit(spell("createpolicy", *words), (policy,) if fraction is None else (policy, fraction), pred)
    return policy


def createpolicy_range(
    addr: Any,
    primary_size: int | Reg,
    total_size: int | Reg,
    primary: str,
    secondary: str | None = None,
    *,
    pred: Pred | None = None,
) -> Reg:
    """Emit `createpolicy.range.global.L2::primary[.L2::secondary].b64 d, [a], primary_size, total_size`. Both sizes are
    in bytes."""
    policy = create_register(b64)
    words = ("range", "global", f"L2::{primary}", *(() if secondary is None else (f"L2::{secondary}",)), "b64")
    emit(spell("createpolicy", *words), (policy, addr, primary_size, total_size), pred)
    return policy


def createpolicy_cvt(access_property: Reg, *, pred: Pred | None = None) -> Reg:
    """Emit `createpolicy.cvt.L2.b64 d, a`: a policy from an access property of the CUDA API."""
    policy = create_register(b64)
    emit(spell("createpolicy", "cvt", "L2", "b64"), (policy, access_property), pred)
    return policy
