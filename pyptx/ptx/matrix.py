"""Matrix transfers between shared memory and the registers of a warp: ldmatrix, stmatrix, movmatrix, and a transposing
epilogue."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.ranges import RegArray
from pyptx.dsl.registers import Dtype, Pred, Reg, create_register, make_destination
from pyptx.dsl.scopes import intrinsic
from pyptx.dsl.shared import SharedAddress, SharedAlloc, SharedSlice, SharedView, shift_address
from pyptx.dsl.trace import fail
from pyptx.dsl.values import Register, is_integer
from pyptx.ptx.fragments import list_registers, to_vector
from pyptx.ptx.memory import addr
from pyptx.types import PtxType, b32, u32

GROUP = 8
"""f32 registers per thread that one `stmatrix.x4` stores: 16 columns of a warp's 16 rows."""


def _split_words(layout: str, shape: str) -> tuple[str, ...]:
    """Return shape and count: `layout` is "x4", or both combined as in "m8n8.x4"."""
    words = [word for word in str(layout).split(".") if word]
    return tuple(words) if len(words) > 1 else (shape, *words)


def _spell_space(space: str | None) -> tuple[str, ...]:
    return (space.strip("."),) if space else ()


def _spell_format(dtype: Dtype) -> tuple[str, ...]:
    return tuple((dtype.name if isinstance(dtype, PtxType) else dtype).strip(".").split("."))


def ldmatrix(
    *,
    dst: RegArray | list[Any] | Reg,
    src: Any,
    layout: str = "x4",
    trans: bool = False,
    dtype: Dtype = "b16",
    space: str | None = "shared",
    pred: Pred | None = None,
) -> Any:
    """Emit `ldmatrix.sync.aligned.m8n8.<x1|x2|x4>[.trans].shared.b16`.

    `layout` is the count, or shape and count: "m8n8.x4", "m16n16.x1" (with `trans=True`, `dtype="b8"`), "m8n16.x2".
    `dtype` may also unpack: "b8x16.b6x16_p32", "b8x16.b4x16_p64", "s8.s4". `space` is "shared", "shared::cta", or None
    for a generic address. `dst=[b32] * 4` creates registers; the destination is returned.
    """
    words = (*_split_words(layout, "m8n8"), *(("trans",) if trans else ()), *_spell_space(space), *_spell_format(dtype))
    result = make_destination(dst)
    emit(spell("ldmatrix", "sync", "aligned", *words), (to_vector(result), src), pred)
    return result


def stmatrix(
    *,
    smem: Any,
    regs: RegArray | list[Reg] | Reg,
    layout: str = "x4",
    trans: bool = False,
    shape: str = "m8n8",
    space: str | None = "shared",
    pred: Pred | None = None,
) -> None:
    """Emit `stmatrix.sync.aligned.m8n8.<x1|x2|x4>[.trans].shared.b16`.

    Shape "m16n8" holds bytes, `.b8`, and needs `trans=True`. `layout` may name the shape too: "m16n8.x2".
    """
    shape_name, *count = _split_words(layout, shape)
    dtype = "b8" if shape_name == "m16n8" else "b16"
    words = (shape_name, *count, *(("trans",) if trans else ()), *_spell_space(space), dtype)
    emit(spell("stmatrix", "sync", "aligned", *words), (smem, to_vector(regs)), pred)


def movmatrix(*, dst: Reg, src: Reg, pred: Pred | None = None) -> None:
    """Emit `movmatrix.sync.aligned.m8n8.trans.b16`: transpose an 8 x 8 matrix across the warp."""
    emit(spell("movmatrix", "sync", "aligned", "m8n8", "trans", "b16"), (dst, src), pred)


@intrinsic
def stmatrix_x4_trans_f32_bf16(
    *,
    frag: RegArray | list[Reg],
    smem_base: Any,
    lane: Reg,
    row_stride: int,
    tmp_bf16: RegArray | list[Reg] | None = None,
    tmp_pack: RegArray | list[Reg] | None = None,
) -> None:
    """Store a warpgroup's f32 accumulator as bf16, transposed: row n of the tile in shared memory is column n.

    `frag` is a thread's part of a wgmma accumulator, 8 registers for every 16 columns. `smem_base` is the address of
    row 0 of the tile; consecutive rows are `row_stride` elements of 2 bytes apart. `lane` is the thread within the
    warpgroup, 0 to 127: each warp stores its own 16 elements of every row. Group g of 8 registers goes to byte `2 *
    ((lane >> 5) * 16 + (lane & 7) * row_stride + ((lane & 31) >> 4) * 8 * row_stride + (lane & 8)) + g * 32 *
    row_stride` after `smem_base`.

    Emits the address once: `and.b32` ×4, `shr.u32`, `shl.b32`, `or.b32` ×2, `mad.lo.u32`, `add` (a `mov` first for a
    symbol). Then for every 8 registers four packs and `stmatrix.sync.aligned.m8n8.x4.trans.shared.b16`; a pack is
    `cvt.rn.bf16x2.f32`, or with `tmp_bf16` twice `cvt.rn.bf16.f32` and `mov.b32 {lo, hi}`. Temporaries are reused
    cyclically.
    """
    values = list_registers(frag, "frag")
    _check_epilogue(values, lane, row_stride)
    _check_room(smem_base, len(values) // GROUP * 16, row_stride)
    packs = _list_temporaries(tmp_pack, "tmp_pack", 4, "b32") or [create_register(b32) for _ in range(4)]
    halves = _list_temporaries(tmp_bf16, "tmp_bf16", GROUP, "bf16")
    address = _compute_lane_address(smem_base, lane, row_stride)
    for first in range(0, len(values), GROUP):
        sources: list[Register] = []
        for pair in range(first // 2, first // 2 + 4):
            packed = packs[pair % len(packs)]
            _pack(packed, values[2 * pair], values[2 * pair + 1], halves, 2 * pair)
            sources.append(packed)
        offset = first // GROUP * 32 * row_stride
        emit(_TRANSPOSED, (addr(address, offset or None), sources))


_TRANSPOSED = spell("stmatrix", "sync", "aligned", "m8n8", "x4", "trans", "shared", "b16")


def _check_epilogue(values: list[Register], lane: Any, row_stride: Any) -> None:
    if not values or len(values) % GROUP:
        fail(
            rules.ARGUMENT,
            f"`frag` must be {GROUP} f32 registers for every 16 columns, found {len(values)}",
            help="pass the whole accumulator, or a slice of it: frag=acc[0:32]",
        )
    if not is_integer(row_stride, 8) or row_stride % 8:
        fail(
            rules.ARGUMENT,
            f"`row_stride` must be a multiple of 8 elements (of 2 bytes), found {describe(row_stride)}",
            help="a row of 64 bf16 with 8 of padding needs row_stride=72",
        )
    if not isinstance(lane, Register) or lane.dtype.bits != 32 or lane.dtype.kind == "f":
        fail(
            rules.ARGUMENT,
            f"`lane` must be a 32-bit register with the thread's index in its warpgroup, found {describe(lane)}",
            help="lane=ptx.special.tid.x() & 127",
        )


def _check_room(base: Any, rows: int, row_stride: int) -> None:
    """Refuse to store past the allocation, the effect of a stride in bytes."""
    if not isinstance(base, SharedAlloc | SharedSlice) or base.register is not None:
        return
    owner = base.__owner__()
    room, end = owner.byte_offset + owner.size - base.byte_offset, 2 * ((rows - 1) * row_stride + 16)
    if end > room:
        fail(
            rules.ARGUMENT,
            (
                f"{rows} rows {row_stride} elements apart end at byte {end:,}, but `{owner.name}` has only "
                f"{room:,} from there"
            ),
            help="`row_stride` is in elements, not bytes; otherwise allocate a larger tile",
        )


def _list_temporaries(fragment: Any, name: str, least: int, dtype: str) -> list[Register]:
    temporaries = [] if fragment is None else list_registers(fragment, name)
    if fragment is not None and (not temporaries or len(temporaries) % least):
        fail(
            rules.ARGUMENT,
            f"`{name}` must be a multiple of {least} registers, found {len(temporaries)}",
            help=f"pass {name}=reg.array({dtype}, {least}), or omit it",
        )
    return temporaries


def _pack(packed: Register, low: Register, high: Register, halves: list[Register], first: int) -> None:
    if not halves:
        emit(spell("cvt", "rn", "bf16x2", "f32"), (packed, high, low))
        return
    pair = [halves[(first + i) % len(halves)] for i in range(2)]
    for half, value in zip(pair, (low, high), strict=True):
        emit(spell("cvt", "rn", "bf16", "f32"), (half, value))
    emit(spell("mov", "b32"), (packed, pair))


def _compute_lane_address(base: Any, lane: Register, row_stride: int) -> Any:
    """Return the address for this lane: lanes 0–7 address rows 0–7, lanes 8–15 the same rows 8 elements further, lanes
    16–31 rows 8–15; each warp starts 16 elements after the previous one."""
    row, upper, half, warp, offset = (create_register(u32) for _ in range(5))
    emit(spell("and", "b32"), (row, lane, 7))
    emit(spell("and", "b32"), (upper, lane, 16))
    emit(spell("shr", "u32"), (upper, upper, 1))
    emit(spell("or", "b32"), (row, row, upper))
    emit(spell("and", "b32"), (half, lane, 8))
    emit(spell("shl", "b32"), (half, half, 1))
    # A warp's 16 elements are 32 bytes, one byte per thread.
    emit(spell("and", "b32"), (warp, lane, -32))
    emit(spell("or", "b32"), (half, half, warp))
    emit(spell("mad", "lo", "u32"), (offset, row, 2 * row_stride, half))
    if isinstance(base, SharedView):
        return shift_address(base, offset)
    if isinstance(base, str):
        return shift_address(SharedAddress(base, 0), offset)
    if not isinstance(base, Register):
        fail(rules.ARGUMENT, f"`smem_base` must be an address in shared memory, found {describe(base)}",
             help="pass an allocation, a slice of one, or a register")  # fmt: skip
    total = create_register(base.dtype)
    if base.dtype.bits == 64:
        emit(spell("cvt", "u64", "u32"), (wide := create_register(base.dtype), offset))
        offset = wide
    emit(spell("add", f"u{base.dtype.bits}"), (total, base, offset))
    return total
