"""Sparsity metadata: every chunk's four bits have one place; samples from the figures; the meaning of the indices."""

from __future__ import annotations

import pytest

from pyptx.isa.fragments import mma_metadata, nonzero_columns, tmem_metadata, wgmma_metadata

# k, bits of an element, chunks of a row, which lanes of each four take part for selector 0 and for the last one.
MMA = [
    (16, 16, 4, {0}, 3, {3}), (32, 16, 8, {0, 1}, 1, {2, 3}), (8, 32, 4, {0}, 3, {3}), (16, 32, 8, {0, 1}, 1, {2, 3}),
    (32, 8, 8, {0, 1}, 1, {2, 3}), (64, 8, 16, {0, 1, 2, 3}, 0, {0, 1, 2, 3}),
    (64, 4, 8, {0, 1}, 1, {2, 3}), (128, 4, 16, {0, 1, 2, 3}, 0, {0, 1, 2, 3}),
]  # fmt: skip


@pytest.mark.parametrize(("k", "bits", "chunks", "first", "selector", "last"), MMA)
def test_metadata_of_a_warp(k: int, bits: int, chunks: int, first: set[int], selector: int, last: set[int]) -> None:
    for group_selector, lanes in ((0, first), (selector, last)):
        places = [mma_metadata(r, c, k=k, bits=bits, selector=group_selector) for r in range(16) for c in range(chunks)]
        assert len(set(places)) == 16 * chunks
        assert {place.lane % 4 for place in places} == lanes
        assert {place.lane // 4 for place in places} == set(range(8))
        assert {place.bit for place in places} == set(range(0, 32, 4))


def test_points_of_the_drawn_layouts() -> None:
    # 16 bits: lane 0 has columns 0-15 of row 0 in its low half and of row 8 in its high half, lane 1 the next columns.
    assert tuple(mma_metadata(0, 3, k=32, bits=16)) == (0, 0, 12)
    assert tuple(mma_metadata(8, 3, k=32, bits=16)) == (0, 0, 28)
    assert tuple(mma_metadata(8, 4, k=32, bits=16)) == (1, 0, 16)
    # 8 bits: lane 0 has columns 0-31 of row 0, lane 1 of row 8, lanes 2 and 3 columns 32-63.
    assert tuple(mma_metadata(0, 7, k=64, bits=8)) == (0, 0, 28)
    assert tuple(mma_metadata(8, 0, k=64, bits=8)) == (1, 0, 0)
    assert tuple(mma_metadata(9, 8, k=64, bits=8)) == (7, 0, 0)
    assert tuple(wgmma_metadata(16 + 9, 8, bits=8)) == (39, 0, 0)
    assert tuple(mma_metadata(0, 1, k=16, bits=16, selector=2)) == (2, 0, 4)
    assert tuple(wgmma_metadata(63, 7, bits=16, selector=1)) == (127, 0, 28)


@pytest.mark.parametrize(("bits", "chunks"), [(16, 8), (32, 8), (8, 16)])
def test_metadata_of_a_warpgroup(bits: int, chunks: int) -> None:
    places = {wgmma_metadata(row, chunk, bits=bits) for row in range(64) for chunk in range(chunks)}
    assert len(places) == 64 * chunks
    assert {place.lane // 32 for place in places} == {0, 1, 2, 3}


@pytest.mark.parametrize(("bits", "chunks", "columns"), [(16, 8, 1), (32, 8, 1), (8, 16, 2), (4, 16, 2)])
def test_metadata_in_tensor_memory(bits: int, chunks: int, columns: int) -> None:
    places = {tmem_metadata(row, chunk, bits=bits) for row in range(128) for chunk in range(chunks)}
    assert len(places) == 128 * chunks
    assert {place.column for place in places} == set(range(columns))
    assert {place.lane for place in places} == set(range(128))
    assert {place.bit for place in places} == set(range(0, 32, 4))
    assert tmem_metadata(130, 1, bits=bits) == tmem_metadata(2, 1, bits=bits)


def test_points_in_tensor_memory() -> None:
    assert tuple(tmem_metadata(9, 5, bits=16)) == (9, 0, 20)
    assert tuple(tmem_metadata(17, 0, bits=32)) == (17, 0, 0)
    assert tuple(tmem_metadata(25, 4, bits=16)) == (25, 0, 16)
    assert tuple(tmem_metadata(9, 9, bits=8)) == (9, 1, 4)


def test_indices_name_the_columns_of_stored_elements() -> None:
    assert nonzero_columns(0, 0b0100, 16) == (0, 1)
    assert nonzero_columns(3, 0b1110, 8) == (14, 15)
    assert nonzero_columns(1, 0b1001, 16) == (5, 6)
    assert nonzero_columns(1, 0b0110, 16) == (6, 5)
    assert nonzero_columns(2, 0b0100, 32) == (4,)
    assert nonzero_columns(2, 0b1110, 32) == (5,)
    assert nonzero_columns(1, 0b1101, 4) == (10, 11, 14, 15)


@pytest.mark.parametrize(("index", "bits"), [(0b0000, 16), (0b0101, 8), (0b1010, 4), (0b1111, 16), (0b1000, 32)])
def test_undefined_indices_are_refused(index: int, bits: int) -> None:
    with pytest.raises(ValueError, match=r"not 0b"):
        nonzero_columns(0, index, bits)
