"""Shared memory: `smem.alloc(bf16, (128, 64))`, `smem.mbarrier(4)`."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl import shared as _shared
from pyptx.dsl.registers import Dtype, Reg
from pyptx.dsl.shared import SharedAlloc, SharedSlice
from pyptx.dsl.trace import fail
from pyptx.dsl.values import is_integer
from pyptx.ptx.descriptors import choose_tile_layout
from pyptx.ptx.shared_barriers import MbarrierArray, MbarrierRef, allocate_barriers
from pyptx.wgmma_layout import Major

__all__ = [
    "MbarrierArray", "MbarrierRef", "SharedAlloc", "SharedSlice", "alloc", "apply_swizzle", "base", "load", "mbarrier",
    "store", "wgmma_tile",
]  # fmt: skip


def alloc(
    dtype: Dtype,
    shape: tuple[int, ...] | int,
    swizzle: str | None = None,
    align: int | None = None,
    name: str | None = None,
) -> SharedAlloc:
    """Allocate shared memory: `.shared .align A .b8 name[bytes]`. By default A is 128, and for a swizzled tile the size
    of its pattern: 256, 512 or 1024 for 32B, 64B, 128B. `shape` counts elements, `align` is in bytes.

    Beyond 48 KiB in total, all allocations of the kernel move behind one dynamic symbol. `swizzle` is for descriptors
    and checks; element access is linear.
    """
    return _shared.allocate(dtype, shape, swizzle, align, name)


def wgmma_tile(
    dtype: Dtype, shape: tuple[int, ...], major: str = "K", *, align: int | None = None, name: str | None = None
) -> SharedAlloc:
    """Allocate an operand of wgmma or tcgen05, with the layout for its descriptor: (M, K) or (N, K) if K-major, (K, M)
    or (K, N) if MN-major. Preceding dimensions count tiles of a ring, indexed by a number or a register. `shape` counts
    elements, `align` is in bytes."""
    if major not in ("K", "MN"):
        fail(
            rules.ARGUMENT,
            f"major must be 'K' or 'MN', found {major!r}",
            help="the dimension whose elements are contiguous",
        )
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    if len(dims) < 2 or not all(is_integer(dim, 1) for dim in dims):
        fail(rules.ARGUMENT, f"a tile has two dimensions, found shape {shape!r}", help="write (64, 64) for 64 x 64")
    layout = choose_tile_layout(dtype, dims, Major.of(major))
    tile = _shared.allocate(dtype, dims, layout.smem_swizzle, align or 1024, name)
    tile.gmma_layout, tile.gmma_major = layout, major
    return tile


def mbarrier(count: int, name: str | None = None) -> MbarrierArray:
    """Allocate barriers: `.shared .align 8 .b64 name[count]`."""
    return allocate_barriers(count, name)


def base(name: str | None = None) -> Reg:
    """Return a register with the address of the dynamic shared memory."""
    return _shared.get_dynamic_base(name)


def load(dtype: Dtype, address: Any) -> Reg:
    """Emit `ld.shared.T` into a new register."""
    return _shared.load(dtype, address)


def store(dtype: Dtype, address: Any, value: Any) -> None:
    """Emit `st.shared.T`."""
    _shared.store(dtype, address, value)


def apply_swizzle(logical_offset: Reg, swizzle: str | None) -> Reg:
    """Return where a linear offset in bytes lies in this swizzle mode (`32B`, `64B`, `128B`): and, shr, xor."""
    return _shared.apply_swizzle(logical_offset, swizzle)


def __dir__() -> list[str]:
    return __all__
