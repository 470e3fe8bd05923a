"""Maps that the driver refuses, case by case, with the remedy; and the examples of the rules themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyptx import tensormap
from pyptx.diagnostics import PtxError, Rule, render
from pyptx.tensormap import (
    RULES,
    ElementType,
    Fill,
    Im2col,
    Im2colMode,
    Interleave,
    Swizzle,
    TensorMap,
    problems,
    validate,
)
from tests.messages import assert_message, raises

GOOD = TensorMap(ElementType.BF16, 0x10000, (1024, 512), (2048,), (64, 128), swizzle=Swizzle.B128)
SPREAD = TensorMap(ElementType.B4X16_P64, 0x20, (256, 8), (128,), (128, 8), swizzle=Swizzle.B128)
IMAGE = TensorMap(ElementType.F16, 0, (64, 14, 9, 64), (128, 1792, 16128), im2col=Im2col((-1, -1), (-1, -1), 8, 64))
SLICES = TensorMap(
    ElementType.F16, 0, (16, 8, 8), (32, 256), (16, 8, 8), interleave=Interleave.B32, swizzle=Swizzle.B32
)
WIDE = replace(IMAGE, im2col=Im2col((-1,), (0,), 32, 128, Im2colMode.W), swizzle=Swizzle.B64)


@pytest.mark.parametrize("tensor", [GOOD, SPREAD, IMAGE, SLICES, WIDE], ids=["tile", "padded", "im2col", "slices", "w"])
def test_good_maps_have_no_problems(tensor: TensorMap) -> None:
    assert [d.message for d in problems(tensor)] == []
    assert validate(tensor) is tensor


def fields_of(dims: tuple[int, ...], strides: tuple[int, ...], box: tuple[int, ...]) -> dict[str, Any]:
    return {"dims": dims, "strides": strides, "box": box, "element_strides": (1,) * len(dims)}


CASES: list[tuple[TensorMap, dict[str, Any], str, str]] = [
    (GOOD, fields_of((8,) * 6, (16,) * 5, (8,) * 6), "PTX1201", "1 to 5 dimensions, got 6"),
    (GOOD, fields_of((), (), ()), "PTX1201", "got 0"),
    (GOOD, {"strides": (2048, 16)}, "PTX1201", "`strides` needs 1 number for a tensor of rank 2, got 2"),
    (GOOD, {"box": (64,)}, "PTX1201", "`box` needs 2 numbers"),
    (GOOD, {"element_strides": (1,)}, "PTX1201", "`element_strides` needs 2"),
    (GOOD, {"interleave": Interleave.B16}, "PTX1201", "expected 3 to 5 dimensions with im2col or an interleave, got 2"),
    (IMAGE, {"im2col": Im2col((-1,), (-1, -1), 8, 64)}, "PTX1201", "`im2col.lower` needs 2 numbers"),
    (IMAGE, {"box": (8, 8, 8, 8)}, "PTX1201", "`box` needs 0 numbers"),
    (GOOD, {"address": 0x10008}, "PTX1202", "the tensor must be aligned to 16 bytes, but its address is 0x10008"),
    (SLICES, {"address": 0x10010}, "PTX1202", "must be aligned to 32 bytes (a 32-byte interleave)"),
    (SPREAD, {"address": 0x10010}, "PTX1202", "must be aligned to 32 bytes (B4X16_P64)"),
    (GOOD, {"address": -16}, "PTX1202", "-0x10"),
    (GOOD, {"dims": (1024, 0)}, "PTX1203", "dimension 1 must have 1 to 2^32 elements, got 0"),
    (GOOD, {"dims": (1024, 2**32 + 1)}, "PTX1203", "got 4294967297"),
    (SPREAD, {"dims": (192, 8)}, "PTX1203", "a multiple of 128, got 192"),
    (SPREAD, {"dtype": ElementType.B4X16, "dims": (255, 8), "box": (128, 8)}, "PTX1203", "a multiple of 2, got 255"),
    (GOOD, {"strides": (2040,)}, "PTX1204",
     "the stride of dimension 1 must be a multiple of 16 bytes below 2^40, got 2040"),
    (GOOD, {"strides": (1 << 40,)}, "PTX1204", "got 1099511627776"),
    (GOOD, {"strides": (-16,)}, "PTX1204", "got -16"),
    (SLICES, {"strides": (48, 256)}, "PTX1204", "a multiple of 32 bytes below 2^40 (a 32-byte interleave), got 48"),
    (GOOD, {"box": (64, 257)}, "PTX1205", "1 to 256 elements along dimension 1, got 257"),
    (GOOD, {"box": (64, 0)}, "PTX1205", "got 0"),
    (GOOD, {"box": (60, 8)}, "PTX1205", "a multiple of 16 bytes, got 60 times 16 bits"),
    (SPREAD, {"box": (64, 8)}, "PTX1205", "must be 128 elements wide, got 64"),
    (GOOD, {"element_strides": (1, 9)}, "PTX1206", "traversal stride of dimension 1 must be 1 to 8, got 9"),
    (GOOD, {"element_strides": (0, 1)}, "PTX1206", "the traversal stride of dimension 0 must be 1 to 8, got 0"),
    (SLICES, {"swizzle": Swizzle.NONE}, "PTX1207", "needs swizzle B32, got NONE"),
    (WIDE, {"interleave": Interleave.B16}, "PTX1207", "the W modes of im2col cannot be interleaved"),
    (
        SPREAD,
        {"dtype": ElementType.B6X16_P32, "interleave": Interleave.B16} | fields_of((128, 8, 8), (96, 768), (128, 8, 8)),
        "PTX1207",
        "B6X16_P32 cannot be interleaved",
    ),
    (GOOD, {"swizzle": Swizzle.B64}, "PTX1208", "a row of the box is 128 bytes, but swizzle B64 spans 64"),
    (GOOD, {"box": (72, 8)}, "PTX1208", "144 bytes, but swizzle B128 spans 128"),
    (SPREAD, {"swizzle": Swizzle.B64}, "PTX1208", "swizzle B64 cannot be combined with B4X16_P64; allowed: NONE, B128, "
     "B128_ATOM_32B"),
    (WIDE, {"swizzle": Swizzle.NONE}, "PTX1208", "the W modes of im2col; allowed: B64, B128, B128_ATOM_32B"),
    (WIDE, {"im2col": Im2col((-1,), (0,), 64, 128, Im2colMode.W)}, "PTX1208", "128 bytes, but swizzle B64 spans 64"),
    (GOOD, {"dtype": ElementType.U16, "fill": Fill.NAN}, "PTX1209", "not U16"),
    (IMAGE, {"im2col": Im2col((-129, 0), (0, 0), 8, 64)}, "PTX1210", "1 must be in [-128, 127], got -129 and 0"),
    (IMAGE, {"im2col": Im2col((0, 0), (0, -9), 8, 64)}, "PTX1210", "the box [0, -1] along dimension 2 is empty"),
    (IMAGE, {"im2col": Im2col((0, 0), (0, 0), 257, 64)}, "PTX1210", "1 to 256 channels per pixel, got 257"),
    (IMAGE, {"im2col": Im2col((0, 0), (0, 0), 8, 1025)}, "PTX1210", "1 to 1024 pixels, got 1025"),
    (
        SPREAD,
        {"im2col": Im2col((0,), (0,), 64, 8)} | fields_of((128, 8, 8), (64, 512), ()),
        "PTX1210",
        "copies 128 channels of B4X16_P64 per pixel, got 64",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("tensor", "changes", "code", "message"), CASES, ids=lambda x: str(x)[:40])
def test_a_bad_map_is_refused_for_one_reason(
    tensor: TensorMap, changes: dict[str, Any], code: str, message: str
) -> None:
    diagnostics = problems(replace(tensor, **changes))
    assert [d.code for d in diagnostics] == [code]
    assert message in diagnostics[0].message
    with raises(PtxError):
        validate(replace(tensor, **changes))


def test_limits_themselves_are_allowed() -> None:
    for changes in (
        {"dims": (2**32, 1), "strides": ((1 << 40) - 16,)},
        {"box": (64, 256), "element_strides": (8, 8)},
        {"address": 2**64 - 16},
        {"strides": (0,)},
        {"dims": (1023, 1)},
    ):
        assert problems(replace(GOOD, **changes)) == []
    assert problems(replace(IMAGE, im2col=Im2col((-128, 127), (-8, 127), 8, 1))) == []
    corner = Im2col((-16, 15, 0), (15, 15, -7), 256, 1024)
    assert problems(TensorMap(ElementType.U8, 0, (256, 8, 8, 8, 2), (256, 2048, 16384, 131072), im2col=corner)) == []


def test_a_box_fits_into_shared_memory() -> None:
    def report(rows: int) -> list[str]:
        box = TensorMap(ElementType.U8, 0, (256, 256, 4), (256, 65536), (256, rows, 4))
        return [str(finding.message) for finding in problems(box)]

    assert report(227) == []
    assert report(228) == ["the box has 233472 bytes, but shared memory has at most 232448"]


def test_all_problems_are_reported_at_once() -> None:
    diagnostics = problems(replace(GOOD, address=1, strides=(3,), box=(0, 999)))
    assert [d.code for d in diagnostics] == ["PTX1202", "PTX1204", "PTX1205", "PTX1205"]


def test_the_remedy_names_what_fits() -> None:
    assert problems(replace(GOOD, swizzle=Swizzle.B64))[0].help == "copy boxes 32 elements wide, or use B128"
    assert problems(replace(GOOD, box=(60, 8)))[0].help == "make the box a multiple of 8 elements wide"


NAMES = {name: getattr(tensormap, name) for name in tensormap.__all__}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_wrong_example_is_reported_and_the_right_one_is_clean(rule: Rule) -> None:
    found = problems(eval(rule.wrong, NAMES))
    assert [d.code for d in found] == [rule.code]
    assert_message("tensormap", rule.code, render(found))
    assert problems(eval(rule.right, NAMES)) == []


def test_codes_are_unique_and_sorted() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))


def test_copies_count_elements_outside_the_tensor_padding_and_steps() -> None:
    assert (GOOD.steps, GOOD.inner_bytes, GOOD.box_bytes) == ((64, 128), 128, 16384)
    assert replace(GOOD, dims=(1, 1), strides=(16,)).box_bytes == 16384
    assert replace(GOOD, element_strides=(3, 3), box=(64, 128)).steps == (64, 43)
    assert replace(SLICES, element_strides=(3, 1, 1)).steps == (6, 1, 8)
    assert (SPREAD.inner_bytes, SPREAD.box_bytes) == (128, 1024)
    assert (IMAGE.steps, IMAGE.box_bytes) == ((8, 64), 1024)
    assert replace(IMAGE, im2col=Im2col((0,), (0,), 8, 7, Im2colMode.W128)).steps == (8, 128)
