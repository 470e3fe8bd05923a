"""Modifies tensor maps on the device: `tensormap.replace`, `tensormap.cp_fenceproxy`.

After a change, call `ptx.fence.proxy_tensormap_release`, and in each CTA that uses the map `proxy_tensormap_acquire`.
"""

from __future__ import annotations

from typing import Any

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Pred

__all__ = ["cp_fenceproxy", "replace"]

_WIDE = ("global_address", "global_stride")


def replace(
    field: str, desc: Any, value: Any, *, dim: int | None = None, space: str = "global", pred: Pred | None = None
) -> None:
    """Emit `tensormap.replace.tile.field.space.b1024.b32 [map][, dim], value`; `.b64` for an address or a stride.

    `box_dim`, `global_dim`, `global_stride`, `element_stride` take `dim`; `space` is "global" or "shared::cta".
    """
    bits = "b64" if field in _WIDE else "b32"
    operands = (desc, value) if dim is None else (desc, dim, value)
    emit(spell("tensormap", "replace", "tile", field, space, "b1024", bits), operands, pred)


def cp_fenceproxy(dst: Any, src: Any, *, scope: str = "gpu", size: int = 128, pred: Pred | None = None) -> None:
    """Emit `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [dst], [src],
    128`: the whole warp copies a map and releases it. `size` is in bytes."""
    words = ("global", "shared::cta", "tensormap::generic", "release", scope, "sync", "aligned")
    emit(spell("tensormap", "cp_fenceproxy", *words), (dst, src, size), pred)


def __dir__() -> list[str]:
    return __all__
