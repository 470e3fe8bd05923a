"""Hopper's warpgroup matrix products: `ptx.wgmma.mma_async`, its fences and groups, and operand descriptors."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from pyptx.dsl import rules
from pyptx.dsl.emit import Spelling, describe, emit, spell
from pyptx.dsl.ranges import RegArray
from pyptx.dsl.registers import Dtype, Pred, Reg, resolve_type
from pyptx.dsl.scopes import intrinsic
from pyptx.dsl.shared import SharedSlice, SharedView
from pyptx.dsl.trace import fail, get_trace
from pyptx.dsl.values import is_integer
from pyptx.isa.descriptors import WgmmaDescriptor
from pyptx.isa.swizzle import find_swizzle
from pyptx.ptx.descriptors import (
    BASE_OFFSET,
    advance_descriptor,
    build_matrix,
    check_bytes,
    check_field,
    check_offset,
    choose_tile_layout,
    emit_descriptor,
    encode_or_fail,
    get_descriptor,
)
from pyptx.ptx.fragments import spell_shape, to_hashable, to_vector
from pyptx.ptx.signatures import arrange_operands
from pyptx.tensormap import Swizzle
from pyptx.types import PtxType
from pyptx.wgmma_layout import GmmaLayout, LayoutType, Major

__all__ = [
    "MASKED_DESC_B128", "SWIZZLE_128B", "SWIZZLE_32B", "SWIZZLE_64B", "SWIZZLE_NONE", "auto_descriptor", "commit_group",
    "fence", "make_descriptor", "masked_descriptor", "mma_async", "wait_group",
]  # fmt: skip

SWIZZLE_NONE, SWIZZLE_128B, SWIZZLE_64B, SWIZZLE_32B = (
    int(kind) for kind in (LayoutType.INTERLEAVE, LayoutType.B128, LayoutType.B64, LayoutType.B32)
)
MASKED_DESC_B128 = WgmmaDescriptor(0, 16, 1024, Swizzle.B128).encode()
"""The constant bits for rows of 128 swizzled bytes: leading offset 16, stride 1024."""

_SWIZZLES = {
    SWIZZLE_NONE: Swizzle.NONE, SWIZZLE_128B: Swizzle.B128, SWIZZLE_64B: Swizzle.B64, SWIZZLE_32B: Swizzle.B32,
}  # fmt: skip
_TRANSPOSABLE = ("f16", "bf16")
"""Types whose operands may be MN-major."""


def mma_async(
    *,
    shape: tuple[int, int, int],
    dtype_d: Dtype,
    dtype_a: Dtype,
    dtype_b: Dtype,
    d: RegArray,
    a: Any,
    b: Any,
    scale_d: Reg | bool | int = False,
    scale_a: int = 1,
    scale_b: int = 1,
    trans_a: int = 0,
    trans_b: int = 0,
    a_k_offset: int = 0,
    b_k_offset: int = 0,
    sparse_metadata: Reg | None = None,
    sparsity_selector: int = 0,
    satfinite: bool = False,
    pred: Pred | None = None,
) -> None:
    """Emit `wgmma.mma_async[.sp].sync.aligned.mMnNkK[.satfinite].D.A.B`: exactly one instruction.

    `a` and `b` are descriptors, or allocations with a layout (`smem.wgmma_tile`), or slices of these; `a` may also be
    registers. `scale_d` False or 0: D = A*B, else D += A*B; a predicate selects at run time. `scale_a`, `scale_b` are 1
    or -1. `trans_a=1` reads an MN-major A; it is implied for an allocation created MN-major. `a_k_offset` and
    `b_k_offset` are bytes, multiples of 16, added to the start address; `tile.k_offset(k)` returns the byte offset of
    element k along K. `sparse_metadata` selects `.sp`: A is 2:4 sparse.

    The descriptor of an allocation at a constant address is built once, at the start of the kernel; that of a slice
    indexed by a register is built here. Both are named scopes `wgmma_descriptor`: `and.b32`, `shr.u32`, `cvt.u64.u32`,
    `or.b64` after the address. An offset to a descriptor given as a register is one `add.s64`, in `descriptor_step`.
    """
    trace = get_trace()
    if isinstance(scale_d, int) and scale_d not in (0, 1):
        fail(
            rules.ARGUMENT, f"`scale_d` must be False, True or a predicate, found {scale_d}", help="0 starts a new sum"
        )
    sparse = sparse_metadata is not None
    type_a, type_b = resolve_type(dtype_a), resolve_type(dtype_b)
    spelling = _choose_spelling(to_hashable(shape), resolve_type(dtype_d), type_a, type_b, sparse, satfinite)
    m, n, k = shape
    a, trans_a = _convert_operand("a", a, type_a, int(trans_a), a_k_offset, (m, k // 2 if sparse else k))
    b, trans_b = _convert_operand("b", b, type_b, int(trans_b), b_k_offset, (n, k))
    operands: dict[str, Any] = {"d": to_vector(d), "a": a, "b": b, "scale_d": scale_d}
    if sparse:
        operands["meta"] = sparse_metadata
    for name, value in zip(_DEFAULTS, (scale_a, scale_b, trans_a, trans_b, sparsity_selector), strict=True):
        # Compared by identity: `==` on a register would add a comparison to the kernel, and small numbers are shared.
        if value is not _DEFAULTS[name]:
            operands[name] = value
    emit(spelling, arrange_operands(trace, spelling, operands, _DEFAULTS, _REMEDY), pred, trace)


_DEFAULTS = {"scale_a": 1, "scale_b": 1, "transpose_a": 0, "transpose_b": 0, "selector": 0}
_REMEDY = (
    "trans_a and trans_b are for f16 and bf16 (trans_a not for registers), scale_a and scale_b for floats, "
    "sparsity_selector for sparse_metadata"
)


@lru_cache(maxsize=4096)
def _choose_spelling(
    shape: Any, dtype_d: PtxType, dtype_a: PtxType, dtype_b: PtxType, sparse: bool, satfinite: bool
) -> Spelling:
    types = dtype_d.name, dtype_a.name, dtype_b.name
    words = ["mma_async", *(["sp"] if sparse else []), "sync", "aligned", spell_shape(shape, "wgmma.mma_async")]
    words += ["satfinite"] if satfinite else []
    return spell("wgmma", *words, *types, *(["and", "popc"] if dtype_a.name == "b1" else []))


def _convert_operand(
    name: str, value: Any, dtype: PtxType, transpose: int, offset: int, extents: tuple[int, int]
) -> tuple[Any, int]:
    """Return the operand and its transpose immediate."""
    if isinstance(value, SharedView):
        return _make_descriptor(name, value, dtype, transpose, check_offset(name, offset), extents)
    if not check_offset(name, offset):
        return value, transpose
    return advance_descriptor(name, value, offset), transpose


def _make_descriptor(
    name: str, view: SharedView, dtype: PtxType, transpose: int, offset: int, extents: tuple[int, int]
) -> tuple[Reg, int]:
    """Return the descriptor of an allocation and its transpose immediate, cached for a constant address."""
    if view.register is not None:
        return _describe_operand(name, view, dtype, transpose, offset, extents)
    # An allocation is its own key; two slices are equal if they start at the same place of one allocation.
    place = (view.alloc, view.byte_offset, view.shape) if isinstance(view, SharedSlice) else view
    key, once = ("wgmma operand", name, place, dtype.name, transpose, offset, extents), get_trace().once
    descriptor = once.get(key)
    if descriptor is None:
        descriptor = once[key] = _describe_operand(name, view, dtype, transpose, offset, extents)
    return descriptor


def _describe_operand(
    name: str, view: SharedView, dtype: PtxType, transpose: int, offset: int, extents: tuple[int, int]
) -> tuple[Reg, int]:
    operand = build_matrix(view, dtype, bool(transpose), name)
    if operand.major is Major.MN and dtype.name not in _TRANSPOSABLE:
        fail(rules.ARGUMENT, f"operand `{name}`: wgmma reads MN-major operands only of f16 and bf16, found {dtype}",
             help=f"store it with contiguous K: smem.wgmma_tile({dtype}, (rows, k), 'K')")  # fmt: skip
    operand.check_start(name, offset, *extents)
    return get_descriptor(operand, offset, _encode_layout, "wgmma_descriptor"), int(operand.major)


def _encode_layout(layout: GmmaLayout) -> int:
    descriptor = WgmmaDescriptor(
        0, layout.leading_byte_offset, layout.stride_byte_offset, find_swizzle(layout.smem_swizzle)
    )
    return encode_or_fail("the layout", descriptor.encode)


def fence(*, pred: Pred | None = None) -> None:
    """Emit `wgmma.fence.sync.aligned`."""
    emit(_FENCE, (), pred)


def commit_group(*, pred: Pred | None = None) -> None:
    """Emit `wgmma.commit_group.sync.aligned`."""
    emit(_COMMIT, (), pred)


def wait_group(n: int, *, pred: Pred | None = None) -> None:
    """Emit `wgmma.wait_group.sync.aligned n`."""
    emit(_WAIT, (n,), pred)


_FENCE = spell("wgmma", "fence", "sync", "aligned")
_COMMIT = spell("wgmma", "commit_group", "sync", "aligned")
_WAIT = spell("wgmma", "wait_group", "sync", "aligned")


@intrinsic
def make_descriptor(
    smem_base: Any,
    *,
    leading_byte_offset: int,
    stride_byte_offset: int,
    swizzle: int = 0,
    base_offset: int = 0,
    addr_byte_offset: int = 0,
) -> Reg:
    """Return a register with the descriptor of a matrix; `swizzle` is `SWIZZLE_NONE`, `_128B`, `_64B` or `_32B`.
    `leading_byte_offset`, `stride_byte_offset` and `addr_byte_offset` are in bytes, multiples of 16; `base_offset`
    counts lines of 128 bytes, 0 to 7.

    Emits the address (`mov.u32` for an allocation or a symbol, `cvt.u32.u64` for a 64-bit register, `add.s32` for an
    offset to a register), then `and.b32`, `shr.u32`, `cvt.u64.u32`, `or.b64`.
    """
    if not is_integer(swizzle) or swizzle not in _SWIZZLES:
        fail(rules.ARGUMENT, f"`swizzle` must be 0 (none), 1 (128B), 2 (64B) or 3 (32B), found {describe(swizzle)}",
             help="use swizzle=ptx.wgmma.SWIZZLE_128B")  # fmt: skip
    check_bytes(leading_byte_offset=leading_byte_offset, stride_byte_offset=stride_byte_offset)
    check_bytes(addr_byte_offset=addr_byte_offset)
    check_field("base_offset", base_offset, 7, BASE_OFFSET)
    descriptor = WgmmaDescriptor(0, leading_byte_offset, stride_byte_offset, _SWIZZLES[swizzle], base_offset)
    return emit_descriptor(smem_base, addr_byte_offset, encode_or_fail("wgmma descriptor", descriptor.encode))


@intrinsic
def auto_descriptor(smem_base: Any, *, dtype: Dtype, shape: tuple[int, int], major: str | int) -> Reg:
    """Return a register with the descriptor of a tile in the canonical layout of its shape: (M or N, K) if K-major, (K,
    M or N) if MN-major. Emits the same as `make_descriptor`."""
    kind = resolve_type(dtype)
    try:
        gmma_major = Major.of(major)
    except ValueError as wrong:
        fail(rules.ARGUMENT, str(wrong), help="use major='K' or major='MN'")
    return emit_descriptor(smem_base, 0, _encode_layout(choose_tile_layout(kind, _check_extents(shape), gmma_major)))


def _check_extents(shape: object) -> tuple[int, ...]:
    numbers = list(cast("tuple[Any, ...]", shape)) if isinstance(shape, tuple | list) else []
    if [is_integer(number, 1) for number in numbers] != [True, True]:
        fail(rules.ARGUMENT, f"`shape` must be two numbers of elements, found {shape!r}",
             help="use (M or N, K) for a K-major tile, (K, M or N) for an MN-major one")  # fmt: skip
    return tuple(numbers)


@intrinsic
def masked_descriptor(
    smem_addr: Any, *, byte_offset: int = 0, mask: int = 0x3FF80, const_bits: int = MASKED_DESC_B128
) -> Reg:
    """Return a register with `((smem_addr + byte_offset) & mask) >> 4 | const_bits`. Emits the same as
    `make_descriptor`. `byte_offset` is in bytes."""
    return emit_descriptor(smem_addr, byte_offset, const_bits, mask)


def __dir__() -> list[str]:
    return __all__
