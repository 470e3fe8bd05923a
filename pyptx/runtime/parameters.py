"""The bytes of a launch's parameters: addresses, numbers, and tensor maps of tensors in device memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pyptx.runtime.arrays import DeviceView
from pyptx.runtime.planning import MAP_SUFFIX, Plan
from pyptx.sim.launch.arguments import Buffers, encode_parameters
from pyptx.sim.state.address_space import AddressSpace
from pyptx.specs import Tile
from pyptx.tensormap import TensorMap, tensor_map

_MOST_MAPS = 4096


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
            values[param.name] = find_map(tiles[tensor], dims, addresses[tensor])
    data, _ = encode_parameters(params, values, Buffers(AddressSpace()), None)
    return bytes(data)


@lru_cache(_MOST_MAPS)
def find_map(tile: Tile, dims: tuple[tuple[str, int], ...], address: int) -> TensorMap:
    """Return the tensor map of a tensor at an address."""
    return tensor_map(tile, dict(dims), address)
