"""Inputs that are drawn for the tiles of a kernel."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike

from pyptx import Tile
from pyptx.testing.trials import draw_inputs
from pyptx.types import PtxType, bf16, e2m1, e5m2, f16, f32, s8, s32, u8, u16, ue8m0

INTEGERS: list[tuple[PtxType, int, int]] = [(s8, -100, 100), (u8, 0, 100), (u16, 0, 100), (s32, -100, 100)]
FRACTIONS: list[tuple[PtxType, DTypeLike, bool]] = [
    (f32, np.float32, True), (f16, np.float16, True), (bf16, ml_dtypes.bfloat16, True),
    (e5m2, ml_dtypes.float8_e5m2, True), (e2m1, ml_dtypes.float4_e2m1fn, True),
    (ue8m0, ml_dtypes.float8_e8m0fnu, False),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "low", "high"), INTEGERS)
def test_integers_reach_both_ends_of_their_range(dtype: PtxType, low: int, high: int) -> None:
    (array,) = draw_inputs([Tile("n", 4, dtype)], np.random.default_rng(0), {"n": 1000})
    assert array.shape == (1000, 4)
    assert (int(array.min()), int(array.max())) == (low, high)
    assert len(np.unique(array)) == high - low + 1


@pytest.mark.parametrize(("dtype", "expected", "is_signed"), FRACTIONS)
def test_fractions_have_a_sign_if_their_type_has(dtype: PtxType, expected: DTypeLike, is_signed: bool) -> None:
    arrays = draw_inputs([Tile(64, dtype), Tile("n", dtype)], np.random.default_rng(0), {"n": 3})
    assert [(array.shape, array.dtype) for array in arrays] == [((64,), expected), ((3,), expected)]
    values = np.random.default_rng(0).standard_normal(64)
    np.testing.assert_array_equal(arrays[0], (values if is_signed else abs(values)).astype(expected))
