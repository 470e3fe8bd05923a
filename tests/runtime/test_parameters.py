"""Tensor maps that the driver encodes for launches."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from pyptx import Layout, Tile
from pyptx.diagnostics import PtxError
from pyptx.driver.codes import Code
from pyptx.driver.connection import start
from pyptx.runtime.bindings import CallError, in_context
from pyptx.runtime.parameters import find_map
from pyptx.tensormap import decode, encode, tensor_map
from pyptx.types import bf16, e4m3, f32
from tests.messages import raises
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.test_calls import tensor_copy

TILES = {
    "plain": Tile("m", "k", f32, tma_box=(16, 32)),
    "128 bytes": Tile("m", "k", bf16, layout=Layout.TMA_128B, tma_box=(64, 64)),
    "64 bytes": Tile("m", "k", bf16, layout=Layout.TMA_64B, tma_box=(64, 32)),
    "32 bytes": Tile("m", "k", e4m3, layout=Layout.TMA_32B, tma_box=(64, 32)),
    "columns first": Tile("m", "k", f32, layout=Layout.COL, tma_box=(32, 16)),
    "rank 3": Tile("m", "k", bf16, layout=Layout.TMA_128B, tma_box=(64, 128), tma_rank=3),
}
DIMS = (("m", 128), ("k", 256))


@pytest.fixture
def context(device: DeviceMemory) -> Generator[None]:
    """Make the device's primary context current: the driver encodes maps only in a context."""
    with in_context(0):
        yield


@pytest.mark.parametrize("name", TILES)
def test_the_driver_gets_every_field_of_a_tensor_map(context: None, name: str) -> None:
    tile, address = TILES[name], 0x7F00_0000_1000
    expected = tensor_map(tile, dict(DIMS), address)
    assert decode(find_map(tile, DIMS, address)) == expected
    assert find_map(tile, DIMS, address) == encode(expected)


def test_a_map_that_the_driver_refuses_is_an_error_with_its_code(encoded: list[int]) -> None:
    """Without a current context, it refuses every map."""
    with pytest.raises(CallError, match="cuTensorMapEncodeTiled") as caught:
        find_map(TILES["plain"], DIMS, 0x7F00_0000_3000)
    assert (caught.value.code, encoded) == (Code.ERROR_INVALID_CONTEXT, [0x7F00_0000_3000])


def test_a_tensor_that_is_aligned_too_little_is_refused(device: Any) -> None:
    with raises(PtxError, match="aligned to 16 bytes"):
        find_map(TILES["plain"], DIMS, 0x7F00_0000_1008)


@pytest.fixture
def encoded(device: DeviceMemory) -> list[int]:
    """Return a list that grows with the address of every tensor map that the driver encodes."""
    driver, addresses = start(), list[int]()
    number = next(at for at, entry in enumerate(driver.entries) if entry.symbol == "cuTensorMapEncodeTiled")
    entry = driver.entries[number]

    def note(*arguments: Any) -> None:
        addresses.append(arguments[5])
        entry.answer(*arguments)

    driver.entries[number] = replace(entry, answer=note)
    return addresses


def test_a_tensor_map_is_encoded_once_for_each_address_and_shape(encoded: list[int], context: None) -> None:
    tile, address, other = TILES["plain"], 0x7F00_0000_1000, 0x7F00_0000_2000
    maps = [find_map(tile, DIMS, address) for _ in range(3)]
    assert encoded == [address]
    assert maps[1:] == maps[:2]
    find_map(tile, DIMS, other)
    find_map(tile, (("m", 64), ("k", 256)), address)
    find_map(tile, (("m", 128), ("k", 512)), address)
    find_map(TILES["columns first"], DIMS, address)
    assert encoded == [address, other, address, address, address]
    assert find_map(tile, DIMS, address) == maps[0]
    assert len(encoded) == 5


def test_repeated_calls_of_a_kernel_encode_no_tensor_map(encoded: list[int], implementation: str) -> None:
    torch: Any = import_module("torch")
    copy = tensor_copy.for_arch("sm_90")
    x, y = (torch.full((16, 32), value) for value in (1.0, 2.0))
    for tensor in (x, x, x, y, x, y):
        assert torch.equal(copy(tensor), tensor)
    assert encoded == [x.data_ptr(), y.data_ptr()]
