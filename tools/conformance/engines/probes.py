"""Copies that break one rule each, or might: which of them the device refuses with a fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random

from pyptx.tensormap import ElementType, Im2col, Interleave, Swizzle, TensorMap
from tools.conformance.engines.cases import Case, Inputs
from tools.conformance.engines.tensor_copies import make_load, make_store, make_table
from tools.conformance.engines.text import BOX

_T = ElementType
_PLAIN = TensorMap(_T.U32, 0, (24, 10, 6), (96, 960), (8, 3, 2))
_SLICES = replace(_PLAIN, dims=(4, 10, 6), strides=(16, 160), box=(4, 3, 2), interleave=Interleave.B16)
_PIXELS = TensorMap(_T.U32, 0, (24, 10, 4), (96, 960), (), im2col=Im2col((-1,), (1,), 8, 12))
_SIZE = 5888


def list_cases() -> Iterator[Case]:
    """Yield the cases."""
    load, store = make_load("probe_load", 3, "tile"), make_store("probe_store", 3, "tile", "")
    corners = {
        "inside": (4, 2, 1), "misaligned": (2, 2, 1), "below_0": (-4, 2, 1), "below_1": (4, -1, 1),
        "below_2": (4, 2, -1), "above_0": (20, 2, 1), "above_1": (4, 9, 1), "above_2": (4, 2, 5),
        "beyond_0": (24, 2, 1), "beyond_1": (4, 10, 1), "far_below": (-(2**20), 2, 1), "all_below": (-8, -3, -2),
    }  # fmt: skip
    for name, corner in corners.items():
        yield Case(f"probe/load/{name}", load, partial(_draw, _PLAIN, corner, (), False))
        yield Case(f"probe/store/{name}", store, partial(_draw, _PLAIN, corner, (), True))
        yield Case(f"probe/slices/load_{name}", load, partial(_draw, _SLICES, corner, (), False))
        yield Case(f"probe/slices/store_{name}", store, partial(_draw, _SLICES, corner, (), True))
    for operation in ("add", "and", "min"):
        entry = make_store(f"probe_{operation}", 3, "tile", operation)
        for name in ("inside", "misaligned", "below_1", "above_1"):
            yield Case(f"probe/{operation}/{name}", entry, partial(_draw, _PLAIN, corners[name], (), True))
        for dtype in (_T.U8, _T.U16, _T.S32, _T.U64, _T.S64, _T.F16, _T.F32, _T.F64, _T.TF32):
            draw = partial(_draw, _change_type(dtype), (0, 2, 1), (), True)
            yield Case(f"probe/{operation}/{dtype.name.lower()}", entry, draw)
    for steps in ((2, 1, 1), (1, 2, 1), (3, 2, 2)):
        tensor = replace(_PLAIN, element_strides=steps)
        name = "".join(map(str, steps))
        yield Case(f"probe/steps/load_{name}", load, partial(_draw, tensor, (4, 2, 1), (), False))
        yield Case(f"probe/steps/store_{name}", store, partial(_draw, tensor, (4, 2, 1), (), True))
    for dtype in (_T.TF32, _T.TF32_FTZ, _T.F32_FTZ):
        yield Case(f"probe/types/{dtype.name.lower()}", store, partial(_draw, _change_type(dtype), (0, 2, 1), (), True))
    yield from _list_pixels()
    yield from _list_layouts()


def _list_pixels() -> Iterator[Case]:
    load = make_load("probe_im2col", 3, "im2col")
    store = make_store("probe_im2col_store", 3, "im2col_no_offs", "")
    places = {"inside": (4, 2, 1), "misaligned": (2, 2, 1), "below_0": (-4, 2, 1), "at_lower": (4, -1, 1),
              "below_lower": (4, -2, 1), "at_upper": (4, 10, 1), "above_upper": (4, 11, 1),
              "image": (4, 2, -1)}  # fmt: skip
    for name, place in places.items():
        yield Case(f"probe/im2col/load_{name}", load, partial(_draw, _PIXELS, place, (1,), False))
        yield Case(f"probe/im2col/store_{name}", store, partial(_draw, _PIXELS, place, (), True))


def _list_layouts() -> Iterator[Case]:
    """Yield loads with strides that overlap, and with destinations that are aligned to 128 bytes only."""
    load = make_load("probe_layout", 3, "tile")
    for strides in ((96, 0), (32, 960), (960, 96), (16, 32)):
        tensor = replace(_PLAIN, strides=strides)
        yield Case(f"probe/strides/{strides[0]}_{strides[1]}", load, partial(_draw, tensor, (4, 2, 1), (), False))
    wide = replace(_PLAIN, dims=(8, 10, 6), strides=(32, 320), box=(8, 3, 2), interleave=Interleave.B32,
                   swizzle=Swizzle.B32)  # fmt: skip
    for place in (128, 256, 384):
        yield Case(f"probe/place/{place}", load, partial(_draw, wide, (0, 2, 1), (), False, place=place))


def _change_type(dtype: ElementType) -> TensorMap:
    count = 96 * 8 // dtype.bits
    return replace(_PLAIN, dtype=dtype, dims=(count, 10, 6), box=(32 * 8 // dtype.bits, 3, 2))


def _draw(
    tensor: TensorMap, corner: tuple[int, ...], taps: tuple[int, ...], stores: bool, random: Random, place: int = 0
) -> Inputs:  # fmt: skip
    table = make_table(tensor, place, corner, taps)
    if stores:
        return Inputs(table, random.randbytes(BOX), random.randbytes(_SIZE), tensor, True)
    return Inputs(table, random.randbytes(_SIZE), bytes(BOX + 16), tensor)
