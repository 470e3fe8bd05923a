"""Tensor memory: allocation, loads and stores of registers, copies from shared memory, completion and ordering."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.registers import Dtype, Pred, Reg, make_destination, resolve_type
from pyptx.dsl.scopes import Named
from pyptx.dsl.shared import SharedAlloc, SharedSlice, SharedView
from pyptx.dsl.trace import fail
from pyptx.dsl.values import Register, is_integer
from pyptx.ir.operands import AddressOperand
from pyptx.isa.descriptors import Tcgen05Descriptor
from pyptx.ptx.descriptors import emit_descriptor
from pyptx.ptx.fragments import to_vector
from pyptx.ptx.shared_barriers import MbarrierArray, MbarrierRef


def check_tmem(value: Any, name: str) -> Register | AddressOperand:
    """Return a tensor memory address as an operand: a 32-bit integer register, or `ptx.addr(register, n)`."""
    if isinstance(value, AddressOperand):
        return value
    if not isinstance(value, Register) or value.__type_name__ not in ("u32", "s32", "b32"):
        fail(
            rules.ARGUMENT,
            f"`{name}` must be a tensor memory address in a 32-bit register, found {describe(value)}",
            help="load the address written by tcgen05.alloc: ptx.ld(u32, taddr, slot, space='shared')",
        )
    return value


def group(cta_group: Any) -> str:
    """Return `cta_group::1` or `cta_group::2`."""
    if not is_integer(cta_group) or cta_group not in (1, 2):
        fail(
            rules.ARGUMENT,
            f"`cta_group` must be 1 or 2, found {describe(cta_group)}",
            help="2 pairs this CTA with its peer",
        )
    return f"cta_group::{cta_group}"


def _check_columns(ncols: Any, exclusive: bool) -> Any:
    """Refuse a number of columns that cannot be allocated."""
    if not isinstance(ncols, int) or exclusive:
        return ncols
    if not 32 <= ncols <= 512 or ncols & ncols - 1:
        near = min((32, 64, 128, 256, 512), key=lambda columns: (columns < ncols, abs(columns - ncols)))
        fail(rules.ARGUMENT, f"`ncols` must be a power of two from 32 to 512, found {ncols}", help=f"allocate {near}")
    return ncols


def _spell_exclusive(exclusive: bool) -> tuple[str, ...]:
    return (*(("exclusive",) if exclusive else ()), "sync", "aligned")


def alloc(
    tmem_addr: Any, ncols: int | Reg, *, cta_group: int = 1, exclusive: bool = False, pred: Pred | None = None
) -> None:
    """Emit `tcgen05.alloc.cta_group::g.sync.aligned.shared::cta.b32 [a], n`: writes the address of the columns to
    shared memory. `exclusive=True` takes multiples of 32 columns, all for this CTA. `ncols` counts columns, a power of
    two from 32 to 512."""
    words = (group(cta_group), *_spell_exclusive(exclusive), "shared::cta", "b32")
    emit(spell("tcgen05", "alloc", *words), (tmem_addr, _check_columns(ncols, exclusive)), pred)


def dealloc(
    taddr: Any, ncols: int | Reg, *, cta_group: int = 1, exclusive: bool = False, pred: Pred | None = None
) -> None:
    """Emit `tcgen05.dealloc.cta_group::g.sync.aligned.b32 t, n`. `ncols` counts columns."""
    words = (group(cta_group), *_spell_exclusive(exclusive), "b32")
    emit(spell("tcgen05", "dealloc", *words), (taddr, _check_columns(ncols, exclusive)), pred)


def relinquish_alloc_permit(*, cta_group: int = 1, pred: Pred | None = None) -> None:
    """Emit `tcgen05.relinquish_alloc_permit.cta_group::g.sync.aligned`."""
    emit(spell("tcgen05", "relinquish_alloc_permit", group(cta_group), "sync", "aligned"), (), pred)


def fence_before_thread_sync(*, pred: Pred | None = None) -> None:
    """Emit `tcgen05.fence::before_thread_sync`."""
    emit(spell("tcgen05", "fence::before_thread_sync"), (), pred)


def fence_after_thread_sync(*, pred: Pred | None = None) -> None:
    """Emit `tcgen05.fence::after_thread_sync`."""
    emit(spell("tcgen05", "fence::after_thread_sync"), (), pred)


def wait_ld(*, pred: Pred | None = None) -> None:
    """Emit `tcgen05.wait::ld.sync.aligned`."""
    emit(spell("tcgen05", "wait::ld", "sync", "aligned"), (), pred)


def wait_st(*, pred: Pred | None = None) -> None:
    """Emit `tcgen05.wait::st.sync.aligned`."""
    emit(spell("tcgen05", "wait::st", "sync", "aligned"), (), pred)


def commit(
    mbar: Any,
    *,
    cta_group: int = 1,
    multicast: bool = False,
    multicast_mask: Any | None = None,
    space: str | None = "cluster",
    pred: Pred | None = None,
) -> None:
    """Emit `tcgen05.commit.cta_group::g.mbarrier::arrive::one[.shared::cluster][.multicast::cluster].b64 [m][, mask]`.

    `space` is "cluster", or "generic" for a generic address. `multicast_mask` (16 bits; a 32-bit register selects
    `.multicast::cluster::32b`) signals that barrier in every CTA of the mask.
    """
    if space not in ("cluster", "shared::cluster", "generic", "", None):
        fail(
            rules.ARGUMENT,
            f"`space` must be 'cluster' or 'generic', found {describe(space)}",
            help="omit it for shared",
        )
    shared = space in ("cluster", "shared::cluster")
    if not shared and isinstance(mbar, MbarrierRef | MbarrierArray | SharedView):
        fail(rules.ARGUMENT, f"`{mbar.name}` is in shared memory, so its address is not generic",
             help="omit `space`, or convert the address with cvta first")  # fmt: skip
    if multicast and multicast_mask is None:
        fail(rules.ARGUMENT, "`multicast` needs `multicast_mask`", help="pass the CTAs: multicast_mask=0b11")
    several = multicast_mask is not None
    words = [group(cta_group), "mbarrier::arrive::one", *(["shared::cluster"] if shared else [])]
    words += [_spell_multicast(multicast_mask)] if several else []
    operands = (mbar, multicast_mask) if several else (mbar,)
    emit(spell("tcgen05", "commit", *words, "b64"), operands, pred)


def _spell_multicast(mask: Any) -> str:
    """Return the modifier for a 16-bit or a 32-bit mask."""
    wide = mask.dtype.bits == 32 if isinstance(mask, Register) else isinstance(mask, int) and mask >= 1 << 16
    return "multicast::cluster::32b" if wide else "multicast::cluster"


def ld(
    dst_regs: Any,
    taddr: Any,
    *,
    shape: str = "16x128b",
    count: int = 1,
    dtype: Dtype = "b32",
    pack: bool = False,
    split: int | None = None,
    red: str | None = None,
    red_dst: Reg | None = None,
    red_abs: bool = False,
    red_nan: bool = False,
    pred: Pred | None = None,
) -> Any:
    """Emit `tcgen05.ld.sync.aligned.SHAPE.xN[.pack::16b].b32 {regs}, [t]`. `count` is the N of `.xN`: repetitions of
    the shape along the columns.

    Shape "16x32bx2" takes `split`, the columns between its halves. `red="min"` or `"max"` also reduces the columns of
    each lane into `red_dst`: `tcgen05.ld.red.….xN.min[.abs][.NaN].f32 {regs}, r, [t]`, with `dtype` f32, u32 or s32.
    `dst_regs=[b32] * 4` creates registers; the destination is returned.
    """
    kind = resolve_type(dtype).name
    words = ["red"] if red else []
    words += ["sync", "aligned", shape, f"x{count}"]
    words += [red, *(["abs"] if red_abs else []), *(["NaN"] if red_nan else [])] if red else []
    words += ["pack::16b"] if pack else []
    if (red is None) != (red_dst is None) or (red is None and (red_abs or red_nan)):
        fail(rules.ARGUMENT, "a reducing load needs `red` and `red_dst`",
             help="pass red='max', red_dst=reg.alloc(f32), dtype='f32'")  # fmt: skip
    result = make_destination(dst_regs)
    operands = [to_vector(result), *([red_dst] if red else []), check_tmem(taddr, "taddr"), *_check_split(shape, split)]
    emit(spell("tcgen05", "ld", *words, kind), operands, pred)
    return result


def ld_spcompress(
    dst_regs: Any,
    meta_regs: Any,
    taddr: Any,
    *,
    op: str,
    count: int,
    abs: bool = False,
    red_dst: Reg | None = None,
    red_nan: bool = False,
    pred: Pred | None = None,
) -> None:
    """Emit `tcgen05.ld[.red].spcompress.sync.aligned.32x32b.xN.OP.sp::2:4[.abs][.NaN].f32.b2 {meta}, {regs}, [r,] [t]`.
    `count` is the N of `.xN`, in columns.

    Loads the two largest (`op="max"`) or smallest of every four columns; `meta_regs` identify them.
    """
    words = ["red"] if red_dst is not None else []
    words += ["spcompress", "sync", "aligned", "32x32b", f"x{count}", op, "sp::2:4"]
    words += [*(["abs"] if abs else []), *(["NaN"] if red_nan else []), "f32", "b2"]
    operands = [
        to_vector(meta_regs),
        to_vector(dst_regs),
        *([] if red_dst is None else [red_dst]),
        check_tmem(taddr, "taddr"),
    ]
    emit(spell("tcgen05", "ld", *words), operands, pred)


def st(
    taddr: Any,
    src_regs: Any,
    *,
    shape: str = "16x128b",
    count: int = 1,
    dtype: Dtype = "b32",
    unpack: bool = False,
    split: int | None = None,
    pred: Pred | None = None,
) -> None:
    """Emit `tcgen05.st.sync.aligned.SHAPE.xN[.unpack::16b].b32 [t], {regs}`; `split` as for `ld`. `count` is the N of
    `.xN`: repetitions of the shape along the columns."""
    kind = resolve_type(dtype).name
    words = ["sync", "aligned", shape, f"x{count}", *(["unpack::16b"] if unpack else []), kind]
    operands = [check_tmem(taddr, "taddr"), *_check_split(shape, split), to_vector(src_regs)]
    emit(spell("tcgen05", "st", *words), operands, pred)


def _check_split(shape: str, split: int | None) -> list[int]:
    if (shape == "16x32bx2") != (split is not None):
        fail(rules.ARGUMENT, f"`split` is for shape 16x32bx2, found shape {shape} and split {split}",
             help="pass shape='16x32bx2', split=16")  # fmt: skip
    return [] if split is None else [split]


_CORE_MATRIX = 128
"""Bytes of 8 contiguous rows of 16 bytes: one stride describes the layout of copies with such rows."""


def cp(
    taddr: Any,
    src: Any,
    *,
    cta_group: int = 1,
    size: str = "128x256b",
    src_is_addr: bool | None = None,
    src_format: str | None = None,
    pred: Pred | None = None,
) -> None:
    """Emit `tcgen05.cp.cta_group::g.SIZE [t], desc`. The size is lanes by bits.

    `size` is "128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23" or "32x128b.warpx4";
    `src_format` "b6x16_p32" or "b4x16_p64" unpacks to bytes. `src` is a descriptor, or (an allocation, a 32-bit
    register, `src_is_addr=True`) the address of contiguous, unswizzled 16-byte rows: its descriptor is built here, in a
    named scope `tcgen05_cp_descriptor`.
    """
    name, *words = size.split(".")
    words += ["warpx4"] if name == "32x128b" and not words else []
    words += ["b8x16", src_format.removeprefix("b8x16.")] if src_format else []
    narrow = isinstance(src, SharedView | str) or (isinstance(src, Register) and src.dtype.bits == 32)
    address = check_tmem(taddr, "taddr")
    if narrow if src_is_addr is None else src_is_addr:
        src = _make_rows_descriptor(src, name)
    emit(spell("tcgen05", "cp", group(cta_group), name, *words), (address, src), pred)


def _make_rows_descriptor(src: Any, size: str) -> Reg:
    if not size.endswith("x128b"):
        fail(
            rules.ARGUMENT,
            f"rows of {size} can have several layouts, which an address does not specify",
            help="pass a descriptor: ptx.tcgen05.descriptor(tile, stride_bytes=…, leading_bytes=…, swizzle=…)",
        )
    owner = src.alloc if isinstance(src, SharedSlice) else src
    if isinstance(owner, SharedAlloc) and owner.swizzle is not None:
        fail(rules.ARGUMENT, f"`{owner.name}` has swizzle {owner.swizzle}, but an address alone means unswizzled rows",
             help=f"pass a descriptor: ptx.tcgen05.descriptor({owner.name}, …, swizzle='{owner.swizzle}')")  # fmt: skip
    bits = Tcgen05Descriptor(0, 0, _CORE_MATRIX).encode()
    with Named("tcgen05_cp_descriptor", getattr(src, "name", str(src))):
        return emit_descriptor(src, 0, bits)


def shift(taddr: Any, *, cta_group: int = 1, pred: Pred | None = None) -> None:
    """Emit `tcgen05.shift.cta_group::g.down [t]`."""
    emit(spell("tcgen05", "shift", group(cta_group), "down"), (check_tmem(taddr, "taddr"),), pred)
