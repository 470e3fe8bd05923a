"""Tensor maps that the driver encodes for launches."""

from __future__ import annotations

from typing import Any

import pytest

from pyptx import Layout, Tile
from pyptx.diagnostics import PtxError
from pyptx.runtime.parameters import find_map
from pyptx.tensormap import decode, encode, tensor_map
from pyptx.types import bf16, e4m3, f32
from tests.messages import raises
from tests.runtime.device_memory import DeviceMemory

TILES = {
    "plain": Tile("m", "k", f32, tma_box=(16, 32)),
    "128 bytes": Tile("m", "k", bf16, layout=Layout.TMA_128B, tma_box=(64, 64)),
    "64 bytes": Tile("m", "k", bf16, layout=Layout.TMA_64B, tma_box=(64, 32)),
    "32 bytes": Tile("m", "k", e4m3, layout=Layout.TMA_32B, tma_box=(64, 32)),
    "columns first": Tile("m", "k", f32, layout=Layout.COL, tma_box=(32, 16)),
    "rank 3": Tile("m", "k", bf16, layout=Layout.TMA_128B, tma_box=(64, 128), tma_rank=3),
}
DIMS = (("m", 128), ("k", 256))


@pytest.mark.parametrize("name", TILES)
def test_the_driver_gets_every_field_of_a_tensor_map(device: DeviceMemory, name: str) -> None:
    tile, address = TILES[name], 0x7F00_0000_1000
    expected = tensor_map(tile, dict(DIMS), address)
    assert decode(find_map(tile, DIMS, address)) == expected
    assert find_map(tile, DIMS, address) == encode(expected)


def test_a_tensor_that_is_aligned_too_little_is_refused(device: Any) -> None:
    with raises(PtxError, match="aligned to 16 bytes"):
        find_map(TILES["plain"], DIMS, 0x7F00_0000_1008)
