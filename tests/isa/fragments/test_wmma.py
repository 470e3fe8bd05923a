"""wmma fragments: the manual's register counts, and the same number of copies of every element."""

from __future__ import annotations

import pytest

from pyptx.isa.fragments import wmma_fragment

# rows, columns, bits, registers, copies of each element: "Matrix Fragments for WMMA".
FRAGMENTS = [
    (16, 16, 16, 8, 2), (8, 16, 16, 8, 4), (16, 32, 16, 8, 1), (16, 16, 32, 8, 1), (32, 8, 32, 8, 1),
    (16, 16, 8, 2, 1), (8, 16, 8, 1, 1), (16, 32, 8, 4, 1), (32, 16, 8, 4, 1), (16, 8, 8, 1, 1),
    (16, 16, 16, 4, 1), (8, 16, 16, 2, 1), (16, 8, 32, 4, 1), (8, 4, 64, 1, 1), (8, 8, 64, 2, 1),
    (8, 32, 4, 1, 1), (8, 128, 1, 1, 1), (8, 8, 32, 2, 1),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "cols", "bits", "registers", "copies"), FRAGMENTS)
def test_every_element_is_held_equally_often(rows: int, cols: int, bits: int, registers: int, copies: int) -> None:
    fragment = wmma_fragment(rows, cols, bits, registers)
    assert (fragment.shape, fragment.registers, fragment.lane_count) == ((rows, cols), registers, 32)
    places = [fragment.places(row, col) for row in range(rows) for col in range(cols)]
    assert {len(lane_elements) for lane_elements in places} == {copies}
    assert len({place for lane_elements in places for place in lane_elements}) == 32 * fragment.count


def test_a_lane_holds_a_run_of_one_row_then_its_copy() -> None:
    fragment = wmma_fragment(16, 16, 16, 8)
    assert [fragment.position(1, i) for i in (0, 7, 8, 15)] == [(0, 8), (0, 15), (0, 8), (0, 15)]
    assert fragment.position(2, 0) == (1, 0)
    with pytest.raises(ValueError, match="the 32 elements that a lane holds of 128 x 8 are not all in one row"):
        wmma_fragment(128, 8, 8, 8)


def test_registers_that_do_not_hold_whole_copies_are_refused() -> None:
    with pytest.raises(ValueError, match="3 registers hold 6 elements, but a lane has 8 elements of 16 x 16"):
        wmma_fragment(16, 16, 16, 3)
