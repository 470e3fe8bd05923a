"""ldmatrix, stmatrix, movmatrix: fragments match those of mma; every element moves exactly once."""

from __future__ import annotations

import pytest

from pyptx.isa.fragments import (
    Fragment,
    ldmatrix,
    ldmatrix_row_lane,
    mma_a,
    mma_accumulator,
    mma_b,
    movmatrix_source,
    stmatrix,
    stmatrix_row_lane,
)
from pyptx.types import e4m3, f16

WORDS = [("m8n8", n, t) for n in (1, 2, 4) for t in (False, True)]
LOADS = [*WORDS, *(("m8n16", n, False) for n in (1, 2, 4)), *(("m16n16", n, True) for n in (1, 2))]
STORES = [*WORDS, *(("m16n8", n, True) for n in (1, 2, 4))]
EVERY = [ldmatrix(s, n, trans=t) for s, n, t in LOADS] + [stmatrix(s, n, trans=t) for s, n, t in STORES]


@pytest.mark.parametrize("fragment", EVERY, ids=lambda f: f"{f.shape} {f.count}")
def test_every_element_moves_once(fragment: Fragment) -> None:
    places = {fragment.position3(lane, i) for lane in range(32) for i in range(fragment.count)}
    assert len(places) == 32 * fragment.count
    matrices = {m for _, _, m in places}
    assert {(r, c) for r, c, _ in places} == {
        (r, c) for r in range(fragment.shape[0]) for c in range(fragment.shape[1])
    }
    assert matrices == set(range(len(matrices)))


def test_registers_are_the_ones_the_instruction_names() -> None:
    assert [ldmatrix("m8n8", n).registers for n in (1, 2, 4)] == [1, 2, 4]
    assert [ldmatrix("m16n16", n, trans=True).registers for n in (1, 2)] == [2, 4]
    assert [ldmatrix("m8n16", n).registers for n in (1, 2, 4)] == [1, 2, 4]
    assert [stmatrix("m16n8", n, trans=True).registers for n in (1, 2, 4)] == [1, 2, 4]


def test_four_matrices_are_a_and_two_are_b() -> None:
    four, a = ldmatrix("m8n8", 4), mma_a(16, 16, 16)
    two, transpose, b = ldmatrix("m8n8", 2), ldmatrix("m8n8", 2, trans=True), mma_b(16, 8, 16)
    for lane in range(32):
        for i in range(8):
            row, col, matrix = four.position3(lane, i)
            assert a.position(lane, i) == (row + matrix % 2 * 8, col + matrix // 2 * 8)
        for i in range(4):
            row, col, matrix = two.position3(lane, i)
            assert b.position(lane, i) == (col + 8 * matrix, row)
            row, col, matrix = transpose.position3(lane, i)
            assert b.position(lane, i) == (row + 8 * matrix, col)


def test_stores_take_accumulators() -> None:
    words, accumulator = stmatrix("m8n8", 2), mma_accumulator(16, 8, f16)
    transpose, narrow = stmatrix("m16n8", 1, trans=True), mma_accumulator(16, 8, e4m3)
    for lane in range(32):
        for i in range(4):
            row, col, matrix = words.position3(lane, i)
            assert accumulator.position(lane, i) == (row + 8 * matrix, col)
            assert narrow.position(lane, i) == transpose.position(lane, i)[::-1]


def test_the_first_lanes_of_a_matrix_give_its_rows() -> None:
    assert [ldmatrix_row_lane("m8n8", matrix, 3) for matrix in range(4)] == [3, 11, 19, 27]
    assert [ldmatrix_row_lane("m16n16", matrix, 15) for matrix in range(2)] == [15, 31]
    assert [stmatrix_row_lane(matrix, 7) for matrix in range(4)] == [7, 15, 23, 31]
    assert ldmatrix("m8n8", 1).position(13, 1) == (3, 3)


def test_movmatrix_transposes() -> None:
    fragment = ldmatrix("m8n8", 1)
    for lane in range(32):
        for i in range(2):
            row, col = fragment.position(lane, i)
            assert fragment.position(*movmatrix_source(lane, i)) == (col, row)


@pytest.mark.parametrize(
    ("shape", "count", "trans"), [("m16n16", 1, False), ("m16n16", 4, True), ("m8n16", 1, True), ("m8n4", 1, False)]
)
def test_forms_that_do_not_exist(shape: str, count: int, trans: bool) -> None:
    with pytest.raises(ValueError, match=f"no ldmatrix.{shape}.x{count}"):
        ldmatrix(shape, count, trans=trans)


def test_stores_and_counts_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match=r"no stmatrix\.m16n8\.x1"):
        stmatrix("m16n8", 1)
    with pytest.raises(ValueError, match="x1, x2 or x4, not x3"):
        ldmatrix("m8n8", 3)
