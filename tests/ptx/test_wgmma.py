"""`ptx.wgmma`: the instruction, descriptors of allocations, and mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pyptx import ptx, reg, smem
from pyptx.isa.descriptors import WgmmaDescriptor
from pyptx.isa.swizzle import swizzle
from pyptx.types import PtxType, b1, b32, b64, bf16, bf16x2, e4m3, e5m2, f16, f16x2, f32, pred, s8, s32, tf32, u8, u32
from pyptx.wgmma_layout import GmmaLayout
from tests.dsl.tracing import assert_rejected, code, make_kernel
from tests.ptx.mistakes import assert_mistake

WG = (128, 1, 1)
DENSE: dict[str, Any] = {"shape": (64, 8, 16), "dtype_d": f32, "dtype_a": bf16, "dtype_b": bf16}


def line(*, d: str = "{%d0, %d1, %d2, %d3}", words: str = "m64n8k16.f32.bf16.bf16", suffix: str) -> str:
    return f"wgmma.mma_async.sync.aligned.{words} {d}, {suffix};"


def product(**options: Any) -> list[str]:
    """Return the statements of a kernel with one product: descriptors %rd0 and %rd1, predicate %p0, A in %a."""

    def body() -> None:
        x, y, p = reg.alloc(b64), reg.alloc(b64), reg.alloc(pred)
        kinds = {"f32": f32, "s32": s32, "f16": f16x2}
        dtype = options.get("dtype_d", f32)
        d = reg.array(kinds[dtype.name], 2 if dtype == f16 else 4, name="d")
        a = reg.array(options.pop("fragment"), 4, name="a") if "fragment" in options else x
        arguments: dict[str, Any] = {
            name: {"p": p, "~p": ~p}.get(value, value) for name, value in options.items() if value is not None
        }
        if arguments.pop("metadata", False):
            arguments["sparse_metadata"] = reg.alloc(b32)
        keywords: dict[str, Any] = {**DENSE, "d": d, "a": a, "b": y, **arguments}
        ptx.wgmma.mma_async(**keywords)

    return code(body, block=WG)


EMITTED: list[tuple[dict[str, Any], str]] = [
    ({}, line(suffix="%rd0, %rd1, 0, 1, 1, 0, 0")),
    ({"scale_d": True}, line(suffix="%rd0, %rd1, 1, 1, 1, 0, 0")),
    ({"scale_d": "p"}, line(suffix="%rd0, %rd1, %p0, 1, 1, 0, 0")),
    ({"scale_d": "~p", "pred": "p"}, "@%p0 " + line(suffix="%rd0, %rd1, !%p0, 1, 1, 0, 0")),
    ({"scale_a": -1, "trans_b": 1}, line(suffix="%rd0, %rd1, 0, -1, 1, 0, 1")),
    ({"fragment": bf16x2, "trans_b": 1}, line(suffix="{%a0, %a1, %a2, %a3}, %rd1, 0, 1, 1, 1")),
    ({"dtype_a": f16, "dtype_b": f16, "dtype_d": f16},
     line(d="{%d0, %d1}", words="m64n8k16.f16.f16.f16", suffix="%rd0, %rd1, 0, 1, 1, 0, 0")),
    ({"dtype_a": tf32, "dtype_b": tf32, "shape": (64, 8, 8)},
     line(words="m64n8k8.f32.tf32.tf32", suffix="%rd0, %rd1, 0, 1, 1")),
    ({"dtype_a": e4m3, "dtype_b": e5m2, "shape": (64, 8, 32), "fragment": b32, "scale_b": -1},
     line(words="m64n8k32.f32.e4m3.e5m2", suffix="{%a0, %a1, %a2, %a3}, %rd1, 0, 1, -1")),
    ({"dtype_a": s8, "dtype_b": u8, "dtype_d": s32, "shape": (64, 8, 32), "satfinite": True},
     line(words="m64n8k32.satfinite.s32.s8.u8", suffix="%rd0, %rd1, 0")),
    ({"dtype_a": b1, "dtype_b": b1, "dtype_d": s32, "shape": (64, 8, 256)},
     line(words="m64n8k256.s32.b1.b1.and.popc", suffix="%rd0, %rd1, 0")),
    ({"shape": (64, 8, 32), "metadata": True, "sparsity_selector": 1},
     line(words="m64n8k32.f32.bf16.bf16", suffix="%rd0, %rd1, %r0, 1, 0, 1, 1, 0, 0").replace("async", "async.sp")),
]  # fmt: skip


@pytest.mark.parametrize(("options", "expected"), EMITTED, ids=[str(sorted(options)) for options, _ in EMITTED])
def test_a_product_is_exactly_one_instruction(options: dict[str, Any], expected: str) -> None:
    assert product(**options) == [expected]


def test_fences_and_groups() -> None:
    def body() -> None:
        p = reg.alloc(pred)
        ptx.wgmma.fence()
        ptx.wgmma.commit_group(pred=p)
        ptx.wgmma.wait_group(3, pred=~p)

    assert code(body, block=WG) == [
        "wgmma.fence.sync.aligned;",
        "@%p0 wgmma.commit_group.sync.aligned;",
        "@!%p0 wgmma.wait_group.sync.aligned 3;",
    ]


def spell_descriptor(symbol: str, bits: str, first: int = 0, rd: int = 0) -> list[str]:
    """Return the statements of a descriptor whose registers start at these numbers."""
    return [
        f"mov.u32 %r{first}, {symbol};", f"and.b32 %r{first + 1}, %r{first}, 0x3fff0;",
        f"shr.u32 %r{first + 2}, %r{first + 1}, 4;", f"cvt.u64.u32 %rd{rd}, %r{first + 2};",
        f"or.b64 %rd{rd + 1}, %rd{rd}, {bits};",
    ]  # fmt: skip


def test_the_descriptor_of_an_allocation_is_made_once_at_the_start() -> None:
    def body() -> None:
        a, b = smem.wgmma_tile(bf16, (64, 64), name="a"), smem.wgmma_tile(bf16, (64, 8), "MN", name="b")
        d, p = reg.array(f32, 4, name="d"), reg.alloc(pred)
        with ptx.if_(p):
            ptx.wgmma.mma_async(**DENSE, d=d, a=a, b=b)
        ptx.wgmma.mma_async(**DENSE, d=d, a=a, b=b, trans_b=1, scale_d=True)
        ptx.wgmma.mma_async(**DENSE, d=d, a=a, b=b, a_k_offset=32, b_k_offset=256)

    assert code(body, block=WG) == [
        *spell_descriptor("a", "0x4000004000010000"),
        *spell_descriptor("b", "0x4000080000", 3, 2),
        *spell_descriptor("a+32", "0x4000004000010000", 6, 4),
        *spell_descriptor("b+256", "0x4000080000", 9, 6),
        "@!%p0 bra $if1_else;",
        line(suffix="%rd1, %rd3, 0, 1, 1, 0, 1"),
        "$if1_else:",
        line(suffix="%rd1, %rd3, 1, 1, 1, 0, 1"),
        line(suffix="%rd5, %rd7, 0, 1, 1, 0, 1"),
    ]


def test_scopes_in_the_prologue_stay_there() -> None:
    def body() -> None:
        a = smem.wgmma_tile(bf16, (64, 64), name="a")
        with ptx.scope():
            ptx.wgmma.mma_async(**DENSE, d=reg.array(f32, 4), a=a, b=a)

    text = make_kernel(body, block=WG).ptx()
    assert text.index("// BEGIN wgmma_descriptor(a)") < text.index("// END wgmma_descriptor") < text.index("\t{")
    assert text.count("BEGIN wgmma_descriptor") == 1


def test_stages_of_a_ring_have_descriptors_of_their_own() -> None:
    def body() -> None:
        a, d = smem.wgmma_tile(bf16, (3, 64, 64), name="a"), reg.array(f32, 4, name="d")
        stage = reg.alloc(u32)
        ptx.wgmma.mma_async(**DENSE, d=d, a=a[2], b=a[-1])
        ptx.wgmma.mma_async(**DENSE, d=d, a=a[stage], b=a[0], a_k_offset=96)

    statements = code(body, block=WG)
    assert statements[:5] == spell_descriptor("a+16384", "0x4000004000010000", 1)
    assert statements[10] == line(suffix="%rd1, %rd1, 0, 1, 1, 0, 0")
    assert statements[11:] == [
        "mov.u32 %r4, a;", "mad.lo.u32 %r5, %r0, 8192, %r4;", "add.s32 %r6, %r5, 96;", "and.b32 %r7, %r6, 0x3fff0;",
        "shr.u32 %r8, %r7, 4;", "cvt.u64.u32 %rd2, %r8;", "or.b64 %rd3, %rd2, 0x4000004000010000;",
        line(suffix="%rd3, %rd5, 0, 1, 1, 0, 0"),
    ]  # fmt: skip


def test_descriptors_move_with_shared_memory_that_becomes_dynamic() -> None:
    def body() -> None:
        smem.alloc(u32, 100, name="before")
        a = smem.wgmma_tile(bf16, (64, 512), name="a")
        ptx.wgmma.mma_async(**DENSE, d=reg.array(f32, 4), a=a, b=a, a_k_offset=8192)

    statements = code(body, block=WG)
    assert statements[0] == "mov.u32 %r0, smem+9216;"
    assert statements[5] == "mov.u32 %r3, smem+1024;"


def test_rows_and_the_swizzle_of_an_allocation_make_the_descriptor() -> None:
    def body() -> None:
        a, b = smem.alloc(bf16, (128, 64), "128B", name="a"), smem.wgmma_tile(bf16, (64, 64), name="b")
        d, x = reg.array(f32, 4), reg.alloc(b64)
        for left, right in ((x, a[8]), (x, b[-8]), (a[64], x)):
            ptx.wgmma.mma_async(shape=(64, 8, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=d, a=left, b=right)

    lines = code(body)
    assert [line for line in lines if line.startswith("mov.u32")] == [
        "mov.u32 %r0, a+1024;", "mov.u32 %r3, b+7168;", "mov.u32 %r6, a+8192;",
    ]  # fmt: skip
    assert [line.rpartition(", ")[2] for line in lines if line.startswith("or.b64")] == ["0x4000004000010000;"] * 3


def test_a_descriptor_in_a_register_is_moved_along_k_by_one_addition() -> None:
    assert product(a_k_offset=32) == ["add.s64 %rd2, %rd0, 2;", line(suffix="%rd2, %rd1, 0, 1, 1, 0, 0")]


def _tile(
    dtype: PtxType, shape: tuple[int, int], major: str, k: int, offset: int
) -> tuple[GmmaLayout, WgmmaDescriptor, int]:
    """Return a tile's layout, the descriptor of a product that starts at this K, and the start of the tile."""
    tiles: list[Any] = []

    def body() -> None:
        smem.alloc(u32, 256, align=1024, name="before")
        tile = smem.wgmma_tile(dtype, shape, major, name="tile")
        tiles.append(tile)
        d, wide = reg.array(f32, 4), reg.alloc(b64)
        ptx.wgmma.mma_async(
            shape=(64, 8, k),
            dtype_d=f32,
            dtype_a=dtype,
            dtype_b=dtype,
            d=d,
            a=wide,
            b=tile,
            b_k_offset=tile.k_offset(offset),
        )

    text = make_kernel(body, block=WG).ptx()
    match = re.search(r"mov\.u32 %r\d+, tile(?:\+(\d+))?;[^/]*or\.b64 %rd\d+, %rd\d+, (0x[0-9a-f]+);", text)
    assert match, text
    return tiles[0].gmma_layout, WgmmaDescriptor.decode(int(match[2], 16)), int(match[1] or 0)


TILES = [
    (bf16, (64, 64), "K", 16), (bf16, (64, 256), "K", 16), (bf16, (8, 32), "K", 16), (bf16, (16, 16), "K", 16),
    (f16, (32, 8), "MN", 16), (bf16, (64, 16), "MN", 16), (bf16, (64, 32), "MN", 16), (bf16, (64, 64), "MN", 16),
    (bf16, (64, 256), "MN", 16), (tf32, (16, 64), "K", 8), (e4m3, (8, 256), "K", 32), (e5m2, (8, 64), "K", 32),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "shape", "major", "k"), TILES, ids=[str(case) for case in TILES])
def test_the_descriptor_reads_the_tile_where_its_layout_says(
    dtype: PtxType, shape: tuple[int, int], major: str, k: int
) -> None:
    """Compare `GmmaLayout.offset` with the manual's canonical layouts, written out here, for each step along K."""
    size = dtype.bits // 8
    rows, depth = shape if major == "K" else shape[::-1]
    for offset in range(0, depth - k + 1, k):
        layout, descriptor, start = _tile(dtype, shape, major, k, offset)
        width = layout.layout_type.row_bytes
        for row in range(0, rows, 3):
            for column in range(k):
                if major == "K":
                    byte = (row % 8) * width + row // 8 * descriptor.stride_byte_offset + column * size
                    expected = layout.offset(row, (offset + column) * size)
                else:
                    across = row * size
                    byte = across % width + (column % 8) * width
                    strides = descriptor.leading_byte_offset, descriptor.stride_byte_offset
                    if width == 16:
                        strides = strides[::-1]
                    byte += across // width * strides[0] + column // 8 * strides[1]
                    expected = layout.offset(offset + column, across)
                assert swizzle(start + byte, descriptor.swizzle) == expected, (row, column)


def test_descriptors_by_hand() -> None:
    def body() -> None:
        tile, address, wide = smem.alloc(bf16, (64, 64), name="t"), reg.alloc(u32), reg.alloc(b64)
        make = ptx.wgmma.make_descriptor
        make(tile, leading_byte_offset=16, stride_byte_offset=1024, swizzle=ptx.wgmma.SWIZZLE_128B, base_offset=3)
        make(address, leading_byte_offset=256, stride_byte_offset=128, addr_byte_offset=64)
        ptx.wgmma.auto_descriptor(wide, dtype="f16", shape=(64, 32), major="MN")
        ptx.wgmma.masked_descriptor("t", byte_offset=32)

    assert code(body) == [
        *spell_descriptor("t", "0x4006004000010000", 1, 1),
        "add.s32 %r4, %r0, 64;", "and.b32 %r5, %r4, 0x3fff0;", "shr.u32 %r6, %r5, 4;", "cvt.u64.u32 %rd3, %r6;",
        "or.b64 %rd4, %rd3, 0x800100000;",
        "cvt.u32.u64 %r7, %rd0;", "and.b32 %r8, %r7, 0x3fff0;", "shr.u32 %r9, %r8, 4;", "cvt.u64.u32 %rd5, %r9;",
        "or.b64 %rd6, %rd5, 0x8000002001000000;",
        "mov.u32 %r10, t+32;", "and.b32 %r11, %r10, 0x3ff80;", "shr.u32 %r12, %r11, 4;", "cvt.u64.u32 %rd7, %r12;",
        "or.b64 %rd8, %rd7, 0x4000004000010000;",
    ]  # fmt: skip


def _wrong(**options: Any) -> Callable[[Any, Any, Any], None]:
    return lambda d, x, y: ptx.wgmma.mma_async(**{**DENSE, "d": d, "a": x, "b": y, **options})


def _make_product(dtype: PtxType, extents: tuple[int, ...], *key: int, major: str = "K", **options: Any) -> Any:
    def make(d: Any, x: Any, _y: Any) -> None:
        tile: Any = smem.wgmma_tile(dtype, extents, major, name="t")
        for index in key:
            tile = tile[index]
        ptx.wgmma.mma_async(**{**DENSE, "d": d, "a": x, "b": tile, **options})

    return make


def _by_hand(**options: Any) -> Callable[[Any, Any, Any], Any]:
    arguments: dict[str, Any] = {"leading_byte_offset": 16, "stride_byte_offset": 1024, **options}
    return lambda d, x, y: ptx.wgmma.make_descriptor(x, **arguments)


BY_HAND: list[tuple[dict[str, Any], str]] = [
    ({"stride_byte_offset": 100}, "`stride_byte_offset` must be a multiple of 16 bytes below 262,144, found 100"),
    ({"stride_byte_offset": "1024"}, "found '1024' (str)"),
    ({"stride_byte_offset": 1 << 18}, "found 262144"),
    ({"leading_byte_offset": -16}, "`leading_byte_offset` must be a multiple of 16 bytes"),
    ({"addr_byte_offset": 8}, "`addr_byte_offset` must be a multiple of 16 bytes"),
    ({"base_offset": 8}, "`base_offset` must be a number from 0 to 7, found 8"),
    ({"swizzle": [1]}, "SWIZZLE_128B"),
]
FP8: dict[str, Any] = {"shape": (64, 8, 32), "dtype_a": e4m3, "dtype_b": e4m3}
MISTAKES: list[tuple[str, Callable[[Any, Any, Any], Any], str, str]] = [
    ("shape of two", _wrong(shape=(64, 8)), "PTX0818", "(m, n, k)"),
    ("type that is none", _wrong(dtype_a="bf61"), "PTX0818", "pyptx.types"),
    ("row in a register",
     lambda d, x, _: ptx.wgmma.mma_async(
         **DENSE, d=d, a=x, b=smem.wgmma_tile(bf16, (64, 64), name="t")[reg.alloc(u32)]
     ),
     "PTX0818", "`t` starts on 128"),
    ("too few accumulators", _wrong(shape=(64, 16, 16)), "PTX0201", "8 elements"),
    ("transposed fp8", _wrong(**FP8, trans_b=1), "PTX0818", "has no `transpose_b`"),
    ("metadata missing", _wrong(sparsity_selector=1), "PTX0818", "has no `selector`"),
    ("scale_d a number", _wrong(scale_d=2), "PTX0818", "predicate"),
    ("k offset inside 16 bytes", _wrong(a_k_offset=4), "PTX0818", "must be a multiple of 16 bytes"),
    ("negative k offset", _wrong(b_k_offset=-16), "PTX0818", "a number of bytes"),
    ("tile too small", _make_product(bf16, (8, 64), b_k_offset=112), "PTX0818",
     "`t` has 64 elements along K, but 16 are read from element 56"),
    ("tile too narrow", _make_product(bf16, (8, 64), shape=(64, 16, 16)), "PTX0818", "8 elements along M or N"),
    ("next row for the next stripe", _make_product(bf16, (64, 128), b_k_offset=128), "PTX0818", "byte 0 of row 1"),
    ("k offset across stripes", _make_product(bf16, (64, 128), b_k_offset=112), "PTX0818", "byte 112 of row 0"),
    ("bytes along N of an MN-major tile", _make_product(bf16, (64, 128), major="MN", b_k_offset=32, shape=(64, 64, 16)),
     "PTX0818", "byte 32 of row 0"),
    ("k offset of no tile", lambda d, x, y: smem.alloc(bf16, (8, 64)).k_offset(16), "PTX0818", "smem.wgmma_tile"),
    ("k offset of an address", lambda d, x, y: (smem.wgmma_tile(bf16, (8, 64)) + 16).k_offset(16), "PTX0818",
     "is an address, not an allocation"),
    ("k of k offset", lambda d, x, y: smem.wgmma_tile(bf16, (8, 64)).k_offset(-1), "PTX0818", "elements along K"),
    ("too few rows left", _make_product(bf16, (64, 64), 56, shape=(64, 16, 16)), "PTX0818",
     "operand `b`: `t` has 8 elements along M or N, but 16 are read"),
    ("too few rows left from the end", _make_product(bf16, (64, 64), -8, shape=(64, 16, 16)), "PTX0818",
     "operand `b`: `t` has 8 elements along M or N, but 16 are read"),
    ("other type", _make_product(f32, (8, 32)), "PTX0818", "holds .f32"),
    ("K-major transposed", _make_product(bf16, (8, 64), trans_b=1), "PTX0818", "K-major"),
    ("fp8 MN-major", _make_product(e4m3, (32, 128), major="MN", **FP8), "PTX0818", "only of f16 and bf16"),
    ("row of stripes", _make_product(bf16, (64, 128), 8), "PTX0818", "2 stripes"),
    ("row inside a pattern", _make_product(bf16, (64, 64), 4), "PTX0818", "1024 bytes"),
    ("swizzle of its own", lambda d, x, y: _wrong(b=smem.alloc(bf16, (8, 64), name="t"))(d, x, y), "PTX0818", "128B"),
    ("one dimension", lambda d, x, y: _wrong(b=smem.alloc(bf16, 512, name="t"))(d, x, y), "PTX0818", "wgmma_tile"),
    ("address of a tile", lambda d, x, y: _wrong(b=smem.wgmma_tile(bf16, (8, 64)) + 32)(d, x, y), "PTX0818", "layout"),
    ("tile width", lambda d, x, y: smem.wgmma_tile(bf16, (64, 48)), "PTX0818", "96 bytes"),
    ("tile major", lambda d, x, y: smem.wgmma_tile(bf16, (64, 64), "N"), "PTX0818", "'K' or 'MN'"),
    ("tile of one dimension", lambda d, x, y: smem.wgmma_tile(bf16, (64,)), "PTX0818", "two dimensions"),
    ("odd stride", lambda d, x, y: ptx.wgmma.make_descriptor(x, leading_byte_offset=8, stride_byte_offset=16),
     "PTX0818", "`leading_byte_offset` must be a multiple of 16 bytes"),
    ("swizzle code",
     lambda d, x, y: ptx.wgmma.make_descriptor(x, leading_byte_offset=16, stride_byte_offset=16, swizzle=4),
     "PTX0818", "SWIZZLE_128B"),
    *((f"descriptor by hand: {options}", _by_hand(**options), "PTX0818", words) for options, words in BY_HAND),
    ("shape of a descriptor", lambda d, x, y: ptx.wgmma.auto_descriptor(x, dtype=bf16, shape=(64, 0), major="K"),
     "PTX0818", "two numbers of elements"),
    ("type of a descriptor", lambda d, x, y: ptx.wgmma.auto_descriptor(x, dtype="half", shape=(8, 8), major="K"),
     "PTX0818", "no scalar type 'half'"),
    ("major of a descriptor", lambda d, x, y: ptx.wgmma.auto_descriptor(x, dtype=bf16, shape=(8, 8), major="L"),
     "PTX0818", "use major='K' or major='MN'"),
    ("bits of a descriptor", lambda d, x, y: ptx.wgmma.masked_descriptor(x, const_bits=1 << 64), "PTX0818",
     "`const_bits`"),
    ("offset of a descriptor", lambda d, x, y: ptx.wgmma.masked_descriptor(x, byte_offset=x), "PTX0818",
     "a byte offset must be an integer"),
    ("mask of a descriptor", lambda d, x, y: ptx.wgmma.masked_descriptor(x, mask=x), "PTX0818",
     "`mask` must be an integer"),
    ("no address", lambda d, x, y: ptx.wgmma.masked_descriptor(1.5), "PTX0818", "address in shared memory"),
    ("fragments have no offset", _wrong(a_k_offset=16, trans_a=0, a=[1, 2, 3, 4]), "PTX0818", "needs an allocation"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "rule", "words"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES])
def test_a_mistake_is_an_error_at_its_line(make: Callable[[Any, Any, Any], Any], rule: str, words: str) -> None:
    assert_mistake(lambda: make(reg.array(f32, 4), reg.alloc(b64), reg.alloc(b64)), rule, words, block=WG)


def test_an_older_target_has_no_wgmma() -> None:
    def body() -> None:
        ptx.wgmma.fence()  # here

    assert_rejected(body, "PTX0302", "sm_90a", arch="sm_90")
