"""Fragments of mma.sync and wgmma against the manual's formulas, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from pyptx.isa.fragments import (
    Fragment,
    element_bits,
    mma_a,
    mma_accumulator,
    mma_b,
    volta_a,
    volta_accumulator,
    volta_b,
    wgmma_a,
    wgmma_accumulator,
)
from pyptx.types import bf16, e2m1, e2m3, e3m2, e4m3, f16, f32, f64, s4, s32, tf32

Formula = Callable[[int, int, int], tuple[int, int]]
"""(groupID, threadID_in_group, i) -> (row, col)."""


@dataclass(frozen=True)
class Case:
    name: str
    fragment: Fragment
    shape: tuple[int, int]
    elements: int
    registers: int
    formula: Formula


def _jump(condition: bool) -> int:
    return 8 if condition else 0


A = [
    Case("m8n8k4 f64", mma_a(8, 4, 64), (8, 4), 1, 1, lambda g, t, i: (g, t)),
    Case("m8n8k16 8-bit", mma_a(8, 16, 8), (8, 16), 4, 1, lambda g, t, i: (g, t * 4 + i)),
    Case("m8n8k32 4-bit", mma_a(8, 32, 4), (8, 32), 8, 1, lambda g, t, i: (g, t * 8 + i)),
    Case("m8n8k128 1-bit", mma_a(8, 128, 1), (8, 128), 32, 1, lambda g, t, i: (g, t * 32 + i)),
    Case("m16n8k4 tf32", mma_a(16, 4, 32), (16, 4), 2, 2, lambda g, t, i: (g + _jump(i == 1), t)),
    Case("m16n8k4 f64", mma_a(16, 4, 64), (16, 4), 2, 2, lambda g, t, i: (g + _jump(i == 1), t)),
    Case("m16n8k8 f16", mma_a(16, 8, 16), (16, 8), 4, 2, lambda g, t, i: (g + _jump(i >= 2), t * 2 + (i & 1))),
    Case("m16n8k8 tf32", mma_a(16, 8, 32), (16, 8), 4, 4, lambda g, t, i: (g + _jump(i in (1, 3)), t + 4 * (i >= 2))),
    Case("m16n8k8 f64", mma_a(16, 8, 64), (16, 8), 4, 4, lambda g, t, i: (g + _jump(i in (1, 3)), t + 4 * (i >= 2))),
    Case("m16n8k16 f16", mma_a(16, 16, 16), (16, 16), 8, 4,
         lambda g, t, i: (g + _jump(not (0 <= i < 2 or 4 <= i < 6)), t * 2 + (i & 1) + _jump(i >= 4))),
    Case("m16n8k16 f64", mma_a(16, 16, 64), (16, 16), 8, 8,
         lambda g, t, i: (g, i * 2 + t) if i % 2 == 0 else (g + 8, i * 2 - 2 + t)),
    Case("m16n8k16 8-bit", mma_a(16, 16, 8), (16, 16), 8, 2, lambda g, t, i: (g + _jump(i >= 4), t * 4 + (i & 3))),
    Case("m16n8k32 4-bit", mma_a(16, 32, 4), (16, 32), 16, 2, lambda g, t, i: (g + _jump(i >= 8), t * 8 + (i & 7))),
    Case("m16n8k32 8-bit", mma_a(16, 32, 8), (16, 32), 16, 4,
         lambda g, t, i: (g + _jump(not (0 <= i < 4 or 8 <= i < 12)), t * 4 + (i & 3) + 2 * _jump(i >= 8))),
    Case("m16n8k64 4-bit", mma_a(16, 64, 4), (16, 64), 32, 4,
         lambda g, t, i: (g + _jump(not (0 <= i < 8 or 16 <= i < 24)), t * 8 + (i & 7) + 4 * _jump(i >= 16))),
    Case("m16n8k128 1-bit", mma_a(16, 128, 1), (16, 128), 64, 2,
         lambda g, t, i: (g + _jump(i >= 32), t * 32 + (i & 31))),
    Case("m16n8k256 1-bit", mma_a(16, 256, 1), (16, 256), 128, 4,
         lambda g, t, i: (g + _jump(not (0 <= i < 32 or 64 <= i < 96)), t * 32 + (i & 31) + 16 * _jump(i >= 64))),
]  # fmt: skip
B = [
    Case("m8n8k4 f64", mma_b(4, 8, 64), (4, 8), 1, 1, lambda g, t, i: (t, g)),
    Case("m8n8k16 8-bit", mma_b(16, 8, 8), (16, 8), 4, 1, lambda g, t, i: (t * 4 + i, g)),
    Case("m8n8k128 1-bit", mma_b(128, 8, 1), (128, 8), 32, 1, lambda g, t, i: (t * 32 + i, g)),
    Case("m16n8k4 tf32", mma_b(4, 8, 32), (4, 8), 1, 1, lambda g, t, i: (t, g)),
    Case("m16n8k8 f16", mma_b(8, 8, 16), (8, 8), 2, 1, lambda g, t, i: (t * 2 + i, g)),
    Case("m16n8k8 tf32", mma_b(8, 8, 32), (8, 8), 2, 2, lambda g, t, i: (t + 4 * i, g)),
    Case("m16n8k16 f16", mma_b(16, 8, 16), (16, 8), 4, 2, lambda g, t, i: (t * 2 + (i & 1) + _jump(i >= 2), g)),
    Case("m16n8k16 f64", mma_b(16, 8, 64), (16, 8), 4, 4, lambda g, t, i: (t + i * 4, g)),
    Case("m16n8k32 4-bit", mma_b(32, 8, 4), (32, 8), 8, 1, lambda g, t, i: (t * 8 + (i & 7), g)),
    Case("m16n8k32 8-bit", mma_b(32, 8, 8), (32, 8), 8, 2, lambda g, t, i: (t * 4 + (i & 3) + 2 * _jump(i >= 4), g)),
    Case("m16n8k64 4-bit", mma_b(64, 8, 4), (64, 8), 16, 2, lambda g, t, i: (t * 8 + (i & 7) + 4 * _jump(i >= 8), g)),
    Case("m16n8k256 1-bit", mma_b(256, 8, 1), (256, 8), 64, 2,
         lambda g, t, i: (t * 32 + (i & 31) + 16 * _jump(i >= 32), g)),
]  # fmt: skip
C = [
    Case("m8n8 f64", mma_accumulator(8, 8, f64), (8, 8), 2, 2, lambda g, t, i: (g, t * 2 + (i & 1))),
    Case("m8n8 s32", mma_accumulator(8, 8, s32), (8, 8), 2, 2, lambda g, t, i: (g, t * 2 + i)),
    Case("m16n8 f32", mma_accumulator(16, 8, f32), (16, 8), 4, 4, lambda g, t, i: (g + _jump(i >= 2), t * 2 + (i & 1))),
    Case("m16n8 f16", mma_accumulator(16, 8, f16), (16, 8), 4, 2, lambda g, t, i: (g + _jump(i >= 2), t * 2 + (i & 1))),
    Case("m16n8 f64", mma_accumulator(16, 8, f64), (16, 8), 4, 4, lambda g, t, i: (g + _jump(i >= 2), t * 2 + (i & 1))),
]  # fmt: skip
CASES = [*A, *B, *C]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.shape} {c.name}")
def test_positions_are_the_manuals_formulas(case: Case) -> None:
    fragment = case.fragment
    assert (fragment.shape, fragment.count, fragment.registers) == (case.shape, case.elements, case.registers)
    for lane in range(32):
        for i in range(case.elements):
            assert fragment.position(lane, i) == case.formula(lane >> 2, lane % 4, i), (lane, i)


WGMMA = [
    wgmma_a(16, 16), wgmma_a(8, 32), wgmma_a(32, 8), wgmma_a(256, 1),
    *(wgmma_accumulator(n, f32) for n in (8, 24, 120, 256)), wgmma_accumulator(96, f16),
]  # fmt: skip
EVERY = [*(case.fragment for case in CASES), *WGMMA]


@pytest.mark.parametrize("fragment", EVERY, ids=lambda f: f"{f.shape} {f.bits}")
def test_every_element_has_exactly_one_place_and_no_bits_overlap(fragment: Fragment) -> None:
    rows, cols = fragment.shape
    assert fragment.lane_count * fragment.count == rows * cols
    places_in_use: set[tuple[int, int, int]] = set()
    for row in range(rows):
        for col in range(cols):
            (place,) = fragment.places(row, col)
            assert place == fragment.place(row, col)
            element = place.register * (fragment.register_bits // fragment.bits) + place.bit // fragment.bits
            assert fragment.position(place.lane, element) == (row, col)
            places_in_use.add(place)
    assert len(places_in_use) == rows * cols
    assert {place[1] for place in places_in_use} == set(range(fragment.registers))


def test_wgmma_fragments_are_four_warps_of_16_rows() -> None:
    accumulator = wgmma_accumulator(24, f32)
    assert (accumulator.shape, accumulator.registers, accumulator.lane_count) == ((64, 24), 12, 128)
    # d0 … d3 of the first thread, the last register of the last thread, and a column past the first eight.
    assert [accumulator.position(0, i) for i in range(6)] == [(0, 0), (0, 1), (8, 0), (8, 1), (0, 8), (0, 9)]
    assert accumulator.position(127, 11) == (63, 23)
    assert accumulator.position(37, 0) == (17, 2)
    assert wgmma_a(16, 16).position(96 + 5, 4) == (49, 10)
    assert wgmma_accumulator(256, f16).registers == 64


def test_the_accumulator_of_one_product_is_the_a_of_the_next() -> None:
    """Packed to 16 bits, C of two N = 8 steps is A of K = 16; flash attention relies on this."""
    assert wgmma_accumulator(16, f16) == wgmma_a(16, 16)
    assert mma_accumulator(16, 16, bf16) == mma_a(16, 16, 16)


VOLTA: list[tuple[str, Fragment, Callable[[int, int], tuple[int, int]]]] = [
    ("A row", volta_a("row"), lambda lane, i: (lane % 4 + 4 * (lane >= 16), i)),
    ("A col", volta_a("col"), lambda lane, i: (i % 4 + 4 * (lane >= 16), lane % 4)),
    ("B row", volta_b("row"), lambda lane, i: (lane % 4, i + 4 * (lane >= 16))),
    ("B col", volta_b("col"), lambda lane, i: (i, lane % 4 + 4 * (lane >= 16))),
    ("C f16", volta_accumulator(f16), lambda lane, i: (lane % 4 + 4 * (lane >= 16), i)),
    ("C f32", volta_accumulator(f32),
     lambda lane, i: ((lane & 1) + (i & 2) + 4 * (lane >= 16), (i & 4) + (lane & 2) + (i & 1))),
]  # fmt: skip


@pytest.mark.parametrize(("fragment", "formula"), [v[1:] for v in VOLTA], ids=[v[0] for v in VOLTA])
def test_volta_has_four_products_of_eight_lanes(
    fragment: Fragment, formula: Callable[[int, int], tuple[int, int]]
) -> None:
    for lane in range(32):
        for i in range(fragment.count):
            assert fragment.position3(lane, i) == (*formula(lane, i), lane // 4 % 4)
    assert fragment.registers * 32 == fragment.count * fragment.bits
    rows, cols = fragment.shape
    places = {fragment.place(r, c, m) for r in range(rows) for c in range(cols) for m in range(4)}
    assert len(places) == rows * cols * 4 == 32 * fragment.count


def test_elements_of_narrow_floats_fill_bytes_except_in_fp4_kinds() -> None:
    assert [element_bits(t) for t in (f16, bf16, tf32, e4m3, e2m3, e3m2, e2m1, s4, f64)] == [
        16,
        16,
        32,
        8,
        8,
        8,
        8,
        4,
        64,
    ]
    assert [element_bits(e2m1, kind) for kind in ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")] == [8, 8, 4, 4]


def test_what_no_fragment_has_is_an_error() -> None:
    with pytest.raises(IndexError, match="each of 32 lanes holds 4 elements"):
        mma_accumulator(16, 8, f32).position(0, 4)
    with pytest.raises(IndexError, match="each of 32 lanes holds"):
        mma_accumulator(16, 8, f32).position(32, 0)
    with pytest.raises(IndexError, match=r"no element \(16, 0\) in a fragment of 16 x 8"):
        mma_accumulator(16, 8, f32).place(16, 0)
    with pytest.raises(ValueError, match="M of a fragment must be a multiple of 8, got 12"):
        mma_a(12, 16, 16)
    with pytest.raises(ValueError, match="K of a fragment with 2 elements per register must be a multiple of 8, got 4"):
        mma_a(16, 4, 16)
