"""Fences: between proxies, for mbarrier initialization, and for the memory consistency model; and `membar`."""

from __future__ import annotations

from typing import Any

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Pred

__all__ = [
    "acq_rel", "acquire", "acquire_shared_cluster", "mbarrier_init", "membar", "proxy_alias", "proxy_async",
    "proxy_async_generic_acquire_shared_cluster", "proxy_async_generic_release_shared_cta", "proxy_async_global",
    "proxy_async_shared_cluster", "proxy_async_shared_cta", "proxy_tensormap_acquire", "proxy_tensormap_release",
    "release", "release_shared_cta", "sc",
]  # fmt: skip


def proxy_async(*, pred: Pred | None = None) -> None:
    """Emit `fence.proxy.async`."""
    emit(spell("fence", "proxy", "async"), (), pred)


def proxy_async_global(*, pred: Pred | None = None) -> None:
    """Emit `fence.proxy.async.global`."""
    emit(spell("fence", "proxy", "async", "global"), (), pred)


def proxy_async_shared_cta(*, pred: Pred | None = None) -> None:
    """Emit `fence.proxy.async.shared::cta`."""
    emit(spell("fence", "proxy", "async", "shared::cta"), (), pred)


def proxy_async_shared_cluster(*, pred: Pred | None = None) -> None:
    """Emit `fence.proxy.async.shared::cluster`."""
    emit(spell("fence", "proxy", "async", "shared::cluster"), (), pred)


def proxy_async_generic_acquire_shared_cluster(*, pred: Pred | None = None) -> None:
    """Emit `fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster`."""
    words = ("async::generic", "acquire", "sync_restrict::shared::cluster", "cluster")
    emit(spell("fence", "proxy", *words), (), pred)


def proxy_async_generic_release_shared_cta(*, pred: Pred | None = None) -> None:
    """Emit `fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster`."""
    words = ("async::generic", "release", "sync_restrict::shared::cta", "cluster")
    emit(spell("fence", "proxy", *words), (), pred)


def proxy_alias(*, pred: Pred | None = None) -> None:
    """Emit `fence.proxy.alias`: for one location accessed through two virtual addresses."""
    emit(spell("fence", "proxy", "alias"), (), pred)


def proxy_tensormap_release(scope: str = "gpu", *, pred: Pred | None = None) -> None:
    """Emit `fence.proxy.tensormap::generic.release.scope`: use it after changing the map."""
    emit(spell("fence", "proxy", "tensormap::generic", "release", scope), (), pred)


def proxy_tensormap_acquire(desc: Any, scope: str = "gpu", *, size: int = 128, pred: Pred | None = None) -> None:
    """Emit `fence.proxy.tensormap::generic.acquire.scope [map], 128`: use it before using the changed map. `size` is in
    bytes."""
    emit(spell("fence", "proxy", "tensormap::generic", "acquire", scope), (desc, size), pred)


def mbarrier_init(*, pred: Pred | None = None) -> None:
    """Emit `fence.mbarrier_init.release.cluster`."""
    emit(spell("fence", "mbarrier_init", "release", "cluster"), (), pred)


def sc(scope: str = "gpu", *, pred: Pred | None = None) -> None:
    """Emit `fence.sc.scope`."""
    emit(spell("fence", "sc", scope), (), pred)


def acq_rel(scope: str = "gpu", *, pred: Pred | None = None) -> None:
    """Emit `fence.acq_rel.scope`."""
    emit(spell("fence", "acq_rel", scope), (), pred)


def acquire(scope: str = "gpu", *, pred: Pred | None = None) -> None:
    """Emit `fence.acquire.scope`."""
    emit(spell("fence", "acquire", scope), (), pred)


def release(scope: str = "gpu", *, pred: Pred | None = None) -> None:
    """Emit `fence.release.scope`."""
    emit(spell("fence", "release", scope), (), pred)


def acquire_shared_cluster(*, pred: Pred | None = None) -> None:
    """Emit `fence.acquire.sync_restrict::shared::cluster.cluster`."""
    emit(spell("fence", "acquire", "sync_restrict::shared::cluster", "cluster"), (), pred)


def release_shared_cta(*, pred: Pred | None = None) -> None:
    """Emit `fence.release.sync_restrict::shared::cta.cluster`."""
    emit(spell("fence", "release", "sync_restrict::shared::cta", "cluster"), (), pred)


def membar(level: str = "gl", *, pred: Pred | None = None) -> None:
    """Emit `membar.cta`, `.gl` or `.sys`: the older form of `fence.sc`."""
    emit(spell("membar", level), (), pred)


def __dir__() -> list[str]:
    return __all__
