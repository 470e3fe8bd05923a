"""Shared memory: addresses of elements and slices by number and register, swizzled elements, the dynamic symbol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyptx import ptx, reg, smem
from pyptx.types import b32, bf16, f32, s16, s64, u16, u32, u64

from .tracing import code, make_kernel


def slices() -> None:
    """Slices by register: of them, elements and slices by number and register."""
    tile, row = smem.alloc(f32, (4, 4, 8), name="t"), reg.scalar(u32)
    view = tile[row]
    assert (repr(view), f"{tile[1]}", f"{tile[1, 2]}") == ("t[%r0]", "t[1]", "t[1, …]")
    assert (tile.size, tile[1].size, view.size, tile[1, 2].size) == (512, 128, 128, 32)
    reg.scalar(b32, view)
    _ = view[0], view[1], view[0, 3], view[1, row], view + 0, view + 4
    assert view[0].address() is view.address()


def narrow_and_wide_indices() -> None:
    """Indices of 16 and 64 bits, extended by their own sign or cut."""
    tile = smem.alloc(f32, 4, name="t")
    _ = tile[reg.scalar(u16)], tile + reg.scalar(s16), tile[reg.scalar(s64)]


def stripes() -> None:
    """Elements of a tile in two stripes, with a register as row or as column."""
    tile, x = smem.wgmma_tile(bf16, (64, 128), name="t"), reg.scalar(u32)
    _ = tile.swizzled(3, x), tile.swizzled(x, 100), tile.swizzled(-1, -1)


def managed() -> None:
    """Swizzled elements behind a dynamic symbol of the user: one tile is aligned to its pattern, one is not."""
    for align in (128, 1024):
        tile = smem.alloc(bf16, (8, 64), "128B", align=align)
        tile.swizzled(1, 2).load()


def low_alignment() -> None:
    """A swizzled element where the alignment is less than the pattern."""
    smem.alloc(bf16, (8, 64), "128B", align=128, name="t").swizzled(1, 2).load()


def named_base() -> None:
    """The dynamic symbol under the user's name, asked for again by name and without."""
    for name in ("mine", "mine", None):
        smem.base(name)


def barriers() -> None:
    """Barriers as operands: all of them, one by number, one by register."""
    bars, index = smem.mbarrier(4, name="bars"), reg.scalar(u16)
    one, other = bars[2], bars[index]
    assert (repr(bars), repr(one), repr(other)) == (
        "MbarrierArray('bars', 4)", "MbarrierRef('bars', 2)", "MbarrierRef('bars', Reg('%rs0', u16))",
    )  # fmt: skip
    assert (len(bars), f"{bars}", one.address_operand().base, one.address_operand().offset) == (
        4, "MbarrierArray('bars', 4)", "bars", "16",
    )  # fmt: skip
    for value in (bars, one, other):
        ptx.inst.mov.u32(reg.scalar(u32), value)
    ptx.inst.mbarrier.inval.shared.b64(bars)
    assert (bars.address().name, one.addr_reg().name) == ("%r6", "%r7")
    assert other.address() is other.addr_reg()
    ptx.mbarrier.array(other, 8, 2)[1].init(1)


def rings() -> None:
    """Rings on a symbol and on a register: slots as operands, by number and by register."""
    first, second = ptx.mbarrier.array("bars", 8, 3), ptx.mbarrier.array(reg.scalar(u32), 8, 2)
    assert (repr(first), repr(second), len(first)) == ("BarrierArray(bars+8, 3)", "BarrierArray(%r0+8, 2)", 3)
    assert (f"{first[1]!r}, {second[-1]!r}", first[1].byte_offset) == ("BarrierSlot(bars+16), BarrierSlot(%r0+16)", 16)
    ptx.inst.mov.u32(reg.scalar(u32), first[1])
    ptx.inst.mov.u32(reg.scalar(u32), ptx.mbarrier.array(reg.scalar(u32), 0, 1)[0])
    first[reg.scalar(u64)].init(1)
    first.at(2).init(2)
    second.arrive_remote_all(3, 2)


def named_rings() -> None:
    """A ring on barriers that are declared."""
    smem.mbarrier(4, name="bars")
    rings()


CODE: list[tuple[Callable[[], None], dict[str, Any], list[str]]] = [
    (slices, {}, [
        "mov.u32 %r1, t;", "mad.lo.u32 %r2, %r0, 128, %r1;", "mov.b32 %r3, %r2;", "add.u32 %r4, %r2, 32;",
        "add.u32 %r5, %r2, 12;", "ld.shared.f32 %f0, [%r5];", "add.u32 %r6, %r2, 32;",
        "mad.lo.u32 %r7, %r0, 4, %r6;", "ld.shared.f32 %f1, [%r7];", "add.u32 %r8, %r2, 4;",
    ]),
    (narrow_and_wide_indices, {}, [
        "mov.u32 %r0, t;", "cvt.u32.u16 %r1, %rs0;", "mad.lo.u32 %r2, %r1, 4, %r0;", "mov.u32 %r3, t;",
        "cvt.s32.s16 %r4, %rs1;", "add.u32 %r5, %r3, %r4;", "mov.u32 %r6, t;", "cvt.u32.u64 %r7, %rd0;",
        "mad.lo.u32 %r8, %r7, 4, %r6;",
    ]),
    (stripes, {}, [
        "mul.lo.u32 %r1, %r0, 2;", "shr.u32 %r2, %r1, 7;", "mul.lo.u32 %r3, %r2, 8192;", "and.b32 %r4, %r1, 127;",
        "add.u32 %r5, %r3, %r4;", "mov.u32 %r6, t;", "add.u32 %r7, %r6, %r5;", "add.u32 %r8, %r7, 384;",
        "and.b32 %r9, %r8, 896;", "shr.u32 %r10, %r9, 3;", "xor.b32 %r11, %r8, %r10;", "mul.lo.u32 %r12, %r0, 128;",
        "mov.u32 %r13, t+8264;", "add.u32 %r14, %r13, %r12;", "and.b32 %r15, %r14, 896;", "shr.u32 %r16, %r15, 3;",
        "xor.b32 %r17, %r14, %r16;",
    ]),
    (managed, {"extern_smem": "mine", "smem": 4096}, [
        "mov.u32 %r0, mine+4228;", "and.b32 %r1, %r0, 896;", "shr.u32 %r2, %r1, 3;", "xor.b32 %r3, %r0, %r2;",
        "ld.shared.b16 %rs0, [%r3];", "ld.shared.b16 %rs1, [mine+5268];",
    ]),
    (low_alignment, {}, [
        "mov.u32 %r0, t+132;", "and.b32 %r1, %r0, 896;", "shr.u32 %r2, %r1, 3;", "xor.b32 %r3, %r0, %r2;",
        "ld.shared.b16 %rs0, [%r3];",
    ]),
    (named_base, {}, [
        "mov.u32 %r0, mine;", "mov.u32 %r1, mine;", "mov.u32 %r2, mine;",
    ]),
    (barriers, {}, [
        "mov.u32 %r0, bars;", "cvt.u32.u16 %r2, %rs0;", "mad.lo.u32 %r1, %r2, 8, %r0;", "mov.u32 %r3, bars;",
        "mov.u32 %r4, bars+16;", "mov.u32 %r5, %r1;", "mbarrier.inval.shared.b64 [bars];", "mov.u32 %r6, bars;",
        "mov.u32 %r7, bars+16;", "mbarrier.init.shared::cta.b64 [%r1+16], 1;",
    ]),
    (named_rings, {}, [
        "mov.u32 %r1, bars+16;", "mov.u32 %r2, %r3;", "cvt.u32.u64 %r4, %rd0;", "mov.u32 %r5, bars+8;",
        "mad.lo.u32 %r6, %r4, 8, %r5;", "mbarrier.init.shared::cta.b64 [%r6], 1;",
        "mbarrier.init.shared::cta.b64 [bars+24], 2;", "add.u32 %r7, %r0, 8;", "{",
        "mapa.shared::cluster.u32 %remAddr32, %r7, 3;", "mbarrier.arrive.shared::cluster.b64 _, [%remAddr32], 2;",
        "}", "add.u32 %r8, %r0, 16;", "{", "mapa.shared::cluster.u32 %remAddr32_1, %r8, 3;",
        "mbarrier.arrive.shared::cluster.b64 _, [%remAddr32_1], 2;", "}",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "options", "expected"), CODE, ids=[body.__name__ for body, *_ in CODE])
def test_shared_memory_becomes_exactly(body: Callable[[], None], options: dict[str, Any], expected: list[str]) -> None:
    assert code(body, **options) == expected


def test_the_start_of_a_slice_computes_nothing() -> None:
    def body() -> None:
        _ = smem.alloc(f32, (4, 4, 8))[reg.scalar(u32)][0]

    assert make_kernel(body).ptx().count("// BEGIN") == 1
