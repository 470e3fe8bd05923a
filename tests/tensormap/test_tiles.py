"""Tensor maps of tiles: order of dimensions, strides, boxes, the rank-3 view; and the enumerations of the driver."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

from pyptx.diagnostics import PtxError
from pyptx.specs import Layout, Tile
from pyptx.tensormap import ElementType, Fill, Interleave, L2Promotion, Swizzle, TensorMap, element_type, tensor_map
from pyptx.types import bf16, e4m3, f32, pred, s16, tf32
from tests.messages import raises

BF16, U8 = ElementType.BF16, ElementType.U8
ENV = {"M": 512, "K": 256, "tile": 128}
TILES = [
    (Tile("M", "K", bf16, Layout.TMA_128B, tma_box=("tile", 64)),
     TensorMap(BF16, 64, (256, 512), (512,), (64, 128), swizzle=Swizzle.B128)),
    (Tile("M", "K", e4m3, Layout.TMA_64B, tma_box=(8, 64)),
     TensorMap(U8, 64, (256, 512), (256,), (64, 8), swizzle=Swizzle.B64)),
    (Tile("M", "K", bf16, Layout.COL, tma_box=(64, 8)), TensorMap(BF16, 64, (512, 256), (1024,), (64, 8))),
    (Tile("K", f32), TensorMap(ElementType.F32, 64, (256,), (), (256,))),
    (Tile(3, "M", 8, tf32, tma_box=(1, 16, 8)), TensorMap(ElementType.TF32, 64, (8, 512, 3), (32, 16384), (8, 16, 1))),
    (
        Tile("M", "K", bf16, Layout.TMA_128B, tma_box=(128, 128), tma_rank=3),
        TensorMap(BF16, 64, (64, 512, 4), (512, 128), (64, 128, 2), swizzle=Swizzle.B128),
    ),
    (
        Tile("M", "K", bf16, tma_box=(128, 64), tma_rank=3, tma_padding=True),
        TensorMap(BF16, 64, (64, 512, 4), (512, 128), (72, 128, 1)),
    ),
    (Tile.wgmma_b("K", "M", bf16, tile_k=64, tile_n=32),
     TensorMap(BF16, 64, (512, 256), (1024,), (32, 64), swizzle=Swizzle.B64)),
    (Tile(3, 4, "K", 8, bf16, Layout.INTERLEAVED, tma_box=(2, 1, 16, 8)),
     TensorMap(BF16, 64, (256, 4, 3), (4096, 16384), (16, 1, 2), interleave=Interleave.B16)),
    (Tile(2, 3, 4, 8, 8, f32, Layout.INTERLEAVED, tma_box=(2, 1, 4, 8, 8)),
     TensorMap(ElementType.F32, 64, (8, 4, 3, 2), (256, 1024, 3072), (8, 4, 1, 2), interleave=Interleave.B32,
               swizzle=Swizzle.B32)),
]  # fmt: skip


@pytest.mark.parametrize(("tile", "expected"), TILES, ids=[repr(t) for t, _ in TILES])
def test_the_map_of_a_tile(tile: Tile, expected: TensorMap) -> None:
    assert tensor_map(tile, ENV, 64) == expected


def test_l2_promotion_is_the_callers_choice() -> None:
    tile = Tile("K", f32)
    assert tensor_map(tile, ENV, 64, l2_promotion=L2Promotion.B256).l2_promotion is L2Promotion.B256


def test_a_tile_that_tma_cannot_load_is_an_error_with_a_remedy() -> None:
    with pytest.raises(
        PtxError, match=r"a row of the box is 512 bytes, but swizzle B128 spans 128\n.*help: copy boxes 64 elem"
    ):
        tensor_map(Tile(8, "K", bf16, Layout.TMA_128B), ENV, 0)
    with raises(PtxError, match=r"the stride of dimension 1 must be a multiple of 16 bytes.* got 10\n"):
        tensor_map(Tile(8, 5, bf16, tma_box=(8, 8)), {}, 0)
    with raises(PtxError, match=r"96 is not a multiple of 64\n.*pad the columns, or use tma_rank=2"):
        tensor_map(Tile("M", "K", bf16, tma_rank=3, tma_box=(8, 64)), {"M": 64, "K": 96}, 0)


@pytest.mark.parametrize(
    ("tile", "code", "words", "remedy"),
    [
        (Tile(8, 16, 64, bf16, Layout.INTERLEAVED), "PTX1207", "it is 128 bytes", "slices of 8 or 16 elements"),
        (Tile(8, 8, 8, bf16, Layout.INTERLEAVED), "PTX1201", "3 to 5 dimensions", "add dimensions of size 1"),
        (Tile(8, 8, 8, 8, bf16, Layout.INTERLEAVED), "PTX1207", "one slice of each position, got 8", "slice by slice"),
        (Tile(8, 8, 16, bf16, Layout.INTERLEAVED, tma_box=(8, 8, 8)), "PTX1207", "whole slices of 32 bytes, got 16",
         "end tma_box"),
        (Tile(64, 64, bf16, Layout.INTERLEAVED, tma_rank=3), "PTX1207", "it is 128 bytes", "reshape the channels"),
    ],
)  # fmt: skip
def test_what_cannot_be_interleaved_is_an_error(tile: Tile, code: str, words: str, remedy: str) -> None:
    with raises(PtxError, match=words) as excinfo:
        tensor_map(tile, {}, 64)
    (finding,) = excinfo.value.diagnostics
    assert finding.code == code
    assert finding.help is not None
    assert remedy in finding.help


def test_the_boxs_columns_are_whole_too() -> None:
    with raises(PtxError, match="32 is not a multiple of 64"):
        tensor_map(Tile("M", "K", bf16, tma_rank=3, tma_box=(8, "tile")), {"M": 64, "K": 128, "tile": 32}, 0)


# Width in global and in shared memory; span, atom, and boundary of the pattern.
WIDTHS = {
    "U8": (8, 8), "U16": (16, 16), "U32": (32, 32), "S32": (32, 32), "U64": (64, 64), "S64": (64, 64), "F16": (16, 16),
    "F32": (32, 32), "F32_FTZ": (32, 32), "F64": (64, 64), "BF16": (16, 16), "TF32": (32, 32), "TF32_FTZ": (32, 32),
    "B4X16": (4, 4), "B4X16_P64": (4, 8), "B6X16_P32": (6, 8),
}  # fmt: skip
SPANS = {
    "NONE": (0, 0, 16), "B32": (32, 16, 256), "B64": (64, 16, 512), "B96": (96, 16, 256), "B128": (128, 16, 1024),
    "B128_ATOM_32B": (128, 32, 1024), "B128_ATOM_32B_FLIP_8B": (128, 32, 1024), "B128_ATOM_64B": (128, 64, 1024),
}  # fmt: skip


def test_widths_and_spans_are_the_manuals() -> None:
    assert {e.name: (e.bits, e.shared_bits) for e in ElementType} == WIDTHS
    assert {s.name: (s.span, s.atom, s.origin_alignment) for s in Swizzle} == SPANS


def test_types_that_tma_has_no_element_for() -> None:
    assert element_type(s16) is ElementType.U16
    with pytest.raises(ValueError, match=r"no element type for pred; the types are b8, b16"):
        element_type(pred)


DRIVER_NAMES = {
    ElementType.U8: "UINT8", ElementType.U16: "UINT16", ElementType.U32: "UINT32", ElementType.S32: "INT32",
    ElementType.U64: "UINT64", ElementType.S64: "INT64", ElementType.F16: "FLOAT16", ElementType.F32: "FLOAT32",
    ElementType.F64: "FLOAT64", ElementType.BF16: "BFLOAT16", ElementType.F32_FTZ: "FLOAT32_FTZ",
    ElementType.TF32: "TFLOAT32", ElementType.TF32_FTZ: "TFLOAT32_FTZ", ElementType.B4X16: "16U4_ALIGN8B",
    ElementType.B4X16_P64: "16U4_ALIGN16B", ElementType.B6X16_P32: "16U6_ALIGN16B",
}  # fmt: skip


def test_numbers_are_the_drivers() -> None:
    driver: Any = import_module("cuda.bindings.driver")
    assert {name: e.driver_value for e, name in DRIVER_NAMES.items()} == {
        member.name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_"): member.value for member in driver.CUtensorMapDataType
    }
    assert {re.sub(r"^B(\d+)", r"\1B", s.name): s.driver_value for s in Swizzle if s is not Swizzle.B96} == {
        member.name.removeprefix("CU_TENSOR_MAP_SWIZZLE_"): member.value for member in driver.CUtensorMapSwizzle
    }
    assert Swizzle.B96.driver_value is None
    for ours, theirs in (
        (L2Promotion, driver.CUtensorMapL2promotion),
        (Interleave, driver.CUtensorMapInterleave),
        (Fill, driver.CUtensorMapFloatOOBfill),
    ):
        assert [int(member) for member in ours] == [int(member) for member in theirs]
