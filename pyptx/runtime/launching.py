"""Runs a plan on device memory: loads the module, packs the parameters, and submits the launch to a stream."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from math import prod
from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.driver import AFTER_RESTART
from pyptx.dsl.origin import find_definition
from pyptx.runtime.bindings import call, in_context, load_api
from pyptx.runtime.failures import explained, write_extents
from pyptx.runtime.modules import Loaded, find_loaded
from pyptx.runtime.parameters import encode_plan
from pyptx.runtime.planning import Plan
from pyptx.runtime.rules import DRIVER
from pyptx.runtime.streams import is_capturing
from pyptx.sim.program.frames import lay_out


def launch(
    plan: Plan,
    arrays: Mapping[str, int],
    *,
    device: int = 0,
    stream: int = 0,
    cooperative: bool = False,
    programmatic: bool = False,
) -> None:
    """Submit a launch to a stream, given by its handle, of a device. `arrays` are the addresses of the tensors by name;
    the memory must live until the launch has ended. A `cooperative` launch runs all CTAs at the same time; a
    `programmatic` one may overlap with the preceding one of its stream."""
    with explained(plan), in_context(device) as context:
        check_limits(plan, device)
        data = encode_plan(plan, arrays)
        loaded = find_loaded(plan, context, device)
        _note_capture(loaded, stream)
        config = _configure(plan, stream, cooperative, programmatic)
        buffer = ctypes.create_string_buffer(data, len(data))
        layout, _ = lay_out(plan.find_entry().params)
        start = ctypes.addressof(buffer)
        pointers = (ctypes.c_void_p * len(layout))(*(start + offset for _, offset, _ in layout))
        call("cuLaunchKernelEx", config, loaded.function, ctypes.addressof(pointers) if layout else 0, 0)


def check_limits(plan: Plan, device: int) -> None:
    """Raise PtxError if a launch exceeds what a device can run."""
    names = load_api().CUdevice_attribute
    grid, shared = (*plan.grid, 1, 1)[:3], plan.kernel_trace.dynamic_shared
    checks = [
        ("the grid's x", grid[0], names.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
        ("the grid's y", grid[1], names.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
        ("the grid's z", grid[2], names.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
        ("threads of a block", prod(plan.definition.block), names.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        ("bytes of dynamic shared memory", shared, names.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    ]
    problems = [
        f"{what} must not exceed {limit}, found {value}"
        for what, value, name in checks
        if value > (limit := find_limit(name, device))
    ]
    cluster = (*plan.definition.cluster, 1, 1)[:3]
    problems += [
        f"the grid {write_extents(plan.grid)} must be a multiple of the cluster {write_extents(cluster)}"
    ] * any(size % part for size, part in zip(grid, cluster, strict=True))
    if problems:
        message = f"`{plan.definition.name}` on device {device}: {'; '.join(problems)}"
        raise PtxError([DRIVER.report(find_definition(plan.definition.function), message)])


_LIMITS: dict[tuple[int, int], int] = {}
AFTER_RESTART.append(_LIMITS.clear)


def find_limit(name: Any, device: int) -> int:
    """Return an attribute of a device."""
    key = int(name), device
    if key not in _LIMITS:
        _LIMITS[key] = call("cuDeviceGetAttribute", name, device)
    return _LIMITS[key]


def _note_capture(loaded: Loaded, stream: int) -> None:
    """Keep a kernel loaded that a graph is going to contain."""
    loaded.is_captured = loaded.is_captured or is_capturing(stream)


def _configure(plan: Plan, stream: int, cooperative: bool, programmatic: bool) -> Any:
    api = load_api()
    config: Any = api.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = (*plan.grid, 1, 1)[:3]
    config.blockDimX, config.blockDimY, config.blockDimZ = plan.definition.block
    config.sharedMemBytes = plan.kernel_trace.dynamic_shared
    config.hStream = stream
    attributes: list[Any] = []
    names = api.CUlaunchAttributeID
    if plan.definition.cluster != (1, 1, 1):
        dims = _add_attribute(attributes, names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim
        dims.x, dims.y, dims.z = plan.definition.cluster
    if cooperative:
        _add_attribute(attributes, names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1
    if programmatic:
        value = _add_attribute(attributes, names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        value.programmaticStreamSerializationAllowed = 1
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


def _add_attribute(attributes: list[Any], name: Any) -> Any:
    """Add an attribute of the launch, and return its value."""
    attribute: Any = load_api().CUlaunchAttribute()
    attribute.id = name
    attributes.append(attribute)
    return attribute.value
