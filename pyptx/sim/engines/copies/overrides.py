"""Fields of a tensor map that a copy's own operands override (manual: Overriding tensor property value)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import select_lanes
from pyptx.tensormap import TensorMap

Change = Callable[[TensorMap], TensorMap]


def read_overrides(lanes: Lanes, mask: Any, operands: Sequence[Any]) -> Callable[[int], Change | None]:
    """Return the changes that each chosen lane makes to its map; operands may contain overrides by name."""
    overrides: dict[str, Any] = {}
    for operand in operands:
        if isinstance(operand, Mapping):
            overrides = dict(cast("Mapping[str, Any]", operand))
    if not overrides:
        return lambda lane: None
    _, values = select_lanes(lanes, mask, *overrides.values())
    values_by_name = dict(zip(overrides, values, strict=True))
    return lambda lane: lambda tensor: _override_tensor(tensor, values_by_name, lane)


def _override_tensor(tensor: TensorMap, values_by_name: dict[str, Any], lane: int) -> TensorMap:
    address = int(values_by_name["address"][lane])
    if address % 16:
        raise ValueError(f"the overriding address {address:#x} is not a multiple of 16")
    if "size" not in values_by_name:
        return replace(tensor, address=address)
    # Eight bits of a size, in the lower half of a register.
    dims = tuple(int(size[lane]) & 0xFF for size in values_by_name["size"])
    strides = tensor.strides
    if "low" in values_by_name:
        upper = int(values_by_name["high"][lane])
        strides = tuple(
            (int(low[lane]) + ((upper >> 4 * dimension & 15) << 32)) << 4
            for dimension, low in enumerate(values_by_name["low"])
        )
    return replace(tensor, address=address, dims=dims, strides=strides)
