"""The bytes of a launch's parameters: addresses, numbers, and tensor maps of tensors in device memory."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.driver import AFTER_RESTART
from pyptx.runtime.arrays import DeviceView
from pyptx.runtime.bindings import check, find_library
from pyptx.runtime.planning import MAP_SUFFIX, Plan
from pyptx.sim.launch.arguments import Buffers, encode_parameters
from pyptx.sim.state.address_space import AddressSpace
from pyptx.specs import Tile
from pyptx.tensormap import SIZE, tensor_map

_MOST_MAPS, _MAP_ALIGNMENT = 4096, 64
_SAFE_ALIGNMENT = 32
"""An address that is a multiple of this suits every map."""


def encode_plan(plan: Plan, addresses: Mapping[str, int]) -> bytes:
    """Return the parameters of a plan on tensors at these addresses; PtxError for numbers and maps that do not fit."""
    tiles = dict(plan.definition.tensors)
    dims = tuple(plan.dims.items())
    values: dict[str, Any] = {}
    params = plan.find_entry().params
    for param in params:
        tensor = param.name.removesuffix(MAP_SUFFIX)
        if param.name in addresses:
            values[param.name] = addresses[param.name]
        elif param.name in plan.scalars:
            value = plan.scalars[param.name]
            values[param.name] = value.address if isinstance(value, DeviceView) else value
        elif tensor in addresses:
            try:
                values[param.name] = find_map(tiles[tensor], dims, addresses[tensor])
            except PtxError as error:
                named = [replace(d, message=f"`{tensor}`: {d.message}") for d in error.diagnostics]
                raise PtxError(named) from None
    data, _ = encode_parameters(params, values, Buffers(AddressSpace()), None)
    return bytes(data)


@lru_cache(_MOST_MAPS)
def find_map(tile: Tile, dims: tuple[tuple[str, int], ...], address: int) -> bytes:
    """Return the tensor map of a tensor at an address, as the driver encodes it: only the driver knows all bits."""
    if address % _SAFE_ALIGNMENT:
        tensor_map(tile, dict(dims), address)
    elements, arguments = _prepare_map(tile, dims)
    # The package cuda-bindings does not align the result as the driver demands.
    memory = ctypes.create_string_buffer(2 * SIZE)
    result = -(-ctypes.addressof(memory) // _MAP_ALIGNMENT) * _MAP_ALIGNMENT
    code = find_library().cuTensorMapEncodeTiled(
        ctypes.c_void_p(result), *elements, ctypes.c_void_p(address), *arguments
    )
    check("cuTensorMapEncodeTiled", code)
    return ctypes.string_at(result, SIZE)


@lru_cache(_MOST_MAPS)
def _prepare_map(tile: Tile, dims: tuple[tuple[str, int], ...]) -> tuple[tuple[int, int], tuple[Any, ...]]:
    """Return the driver's arguments before and after the address of a tensor; PtxError for a map that it rejects."""
    tensor = tensor_map(tile, dict(dims), 0)
    longs, ints = (ctypes.c_uint64 * tensor.rank), (ctypes.c_uint32 * tensor.rank)
    arrays = longs(*tensor.dims), longs(*tensor.strides), ints(*tensor.box), ints(*tensor.element_strides)
    modes = int(tensor.interleave), tensor.swizzle.driver_value, int(tensor.l2_promotion), int(tensor.fill)
    return (tensor.dtype.driver_value, tensor.rank), (*arrays, *modes)


AFTER_RESTART.append(find_map.cache_clear)
