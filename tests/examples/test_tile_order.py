"""The orders of tiles visit each tile once, and tiles that are in flight together share operands."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from examples.parts.tile_order import TileOrder, find_grouped_tile
from pyptx import TensorSpec, Tile, kernel, ptx
from pyptx.types import u32


def list_tiles(rows: int, columns: int, height: int) -> list[tuple[int, int]]:
    """Return the row and column of each tile, in order, as the simulator computes them."""

    @kernel(
        arch="sm_90a", out_specs=[Tile(rows * columns, 2, u32)], grid=(-(-rows * columns // 128),), block=(128, 1, 1)
    )
    def write_tiles(out: TensorSpec) -> None:
        (target,) = ptx.global_ptrs(out)
        index = ptx.special.ctaid.x() * 128 + ptx.special.tid.x()
        with ptx.if_(index < rows * columns):
            row, column = find_grouped_tile(index, rows, columns, height)
            ptx.st(u32, ptx.addr(target, index * 8), [row, column])

    return [(int(row), int(column)) for row, column in np.asarray(write_tiles())]


@pytest.mark.parametrize(("rows", "columns", "height"), [(1, 1, 8), (16, 5, 8), (13, 7, 4), (3, 40, 8), (9, 1, 2)])
def test_each_tile_comes_once_and_bands_follow_each_other(rows: int, columns: int, height: int) -> None:
    tiles = list_tiles(rows, columns, height)
    assert tiles == list(TileOrder(1, 1, height).list_tiles(rows, columns))
    assert sorted(tiles) == [(row, column) for row in range(rows) for column in range(columns)]
    bands = [row // height for row, _ in tiles]
    assert bands == sorted(bands)
    assert all(a[1] <= b[1] for a, b in pairwise(tiles) if a[0] // height == b[0] // height)


def test_the_tiles_of_66_clusters_need_half_of_the_operands_that_rows_need() -> None:
    def count_operands(tiles: list[tuple[int, int]]) -> int:
        return len({row for row, _ in tiles}) + len({column for _, column in tiles})

    assert count_operands(list_tiles(32, 32, 8)[:66]) == 8 + 9
    assert count_operands(list_tiles(32, 32, 1)[:66]) == 3 + 32
