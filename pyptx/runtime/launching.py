"""Runs a plan on device memory: loads the module, packs the parameters, and submits the launch to a stream."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from pyptx.runtime import extension
from pyptx.runtime.bindings import CallError, call, check, in_context, load_api
from pyptx.runtime.failures import explain_failures, make_error
from pyptx.runtime.launch_limits import check_limits
from pyptx.runtime.modules import Loaded, find_loaded
from pyptx.runtime.parameters import encode_plan
from pyptx.runtime.planning import Plan
from pyptx.runtime.streams import is_capturing


def launch(
    plan: Plan,
    arrays: Mapping[str, int],
    *,
    device: int = 0,
    stream: int = 0,
    cooperative: bool = False,
    programmatic: bool = False,
) -> bytes:
    """Submit a launch to a stream, given by its handle, of a device; return the parameters. `arrays` are the addresses
    of the tensors by name; the memory must live until the launch has ended. A `cooperative` launch runs all CTAs at the
    same time; a `programmatic` one may overlap with the preceding one of its stream."""
    with explain_failures(plan), in_context(device) as context:
        check_limits(plan, device)
        data = encode_plan(plan, arrays)
        is_captured = is_capturing(stream)
        loaded = find_loaded(plan, context, device, unloads=not is_captured)
        # A graph may contain it from now on.
        loaded.is_captured = loaded.is_captured or is_captured
        attributes = list_attributes(plan, cooperative=cooperative, programmatic=programmatic)
        _submit(plan, loaded, data, stream, attributes)
        return data


def list_attributes(plan: Plan, *, cooperative: bool, programmatic: bool) -> list[tuple[int, bytes]]:
    """Return the attributes of a launch, each its number and the bytes of its value."""
    names = load_api().CUlaunchAttributeID
    attributes: list[tuple[int, bytes]] = []
    if plan.definition.cluster != (1, 1, 1):
        extents = struct.pack("<3I", *plan.definition.cluster)
        attributes.append((int(names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION), extents))
    if cooperative:
        attributes.append((int(names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE), _TRUE))
    if programmatic:
        attributes.append((int(names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION), _TRUE))
    return attributes


_TRUE = struct.pack("<I", 1)


def _submit(plan: Plan, loaded: Loaded, data: bytes, stream: int, attributes: list[tuple[int, bytes]]) -> None:
    module = extension.load()
    if module is not None and is_small(loaded, data):
        make_launcher(module, plan, loaded, 0, data, attributes, [], 0, None)(stream=stream)
        return
    buffer = ctypes.create_string_buffer(data, len(data))
    start, offsets = ctypes.addressof(buffer), [offset for _, offset, _ in loaded.layout]
    pointers = (ctypes.c_void_p * len(offsets))(*(start + offset for offset in offsets))
    config = _configure(plan, stream, attributes)
    try:
        call("cuLaunchKernelEx", config, loaded.function, ctypes.addressof(pointers) if offsets else 0, 0)
    except CallError as why:
        raise make_error(plan, why, loaded.function) from None


def is_small(loaded: Loaded, data: bytes) -> bool:
    """Return whether the extension can hold the parameters."""
    return len(data) <= _MOST_BYTES and len(loaded.layout) <= _MOST_PARAMETERS


_MOST_BYTES, _MOST_PARAMETERS = 4096, 64


def make_launcher(
    module: Any, plan: Plan, loaded: Loaded, identity: int, data: bytes, attributes: list[tuple[int, bytes]],
    slots: list[tuple[str, int, int, int]], values: int, encode: Callable[[int, int], bytes] | None,
) -> Any:  # fmt: skip
    """Return a launcher of the extension for the context of an identity; the `slots` of its parameters come from the
    values of a call."""

    def fail(code: int) -> NoReturn:
        try:
            check("cuLaunchKernelEx", code)
        except CallError as why:
            raise make_error(plan, why, loaded.function) from None
        raise AssertionError

    grid = (*plan.grid, 1, 1)[:3]
    return module.Launcher(
        loaded.function, identity, grid, plan.definition.block, plan.kernel_trace.dynamic_shared, attributes, data,
        [offset for _, offset, _ in loaded.layout], slots, values, encode, fail,
    )  # fmt: skip


def _configure(plan: Plan, stream: int, attributes: list[tuple[int, bytes]]) -> Any:
    api = load_api()
    config: Any = api.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = (*plan.grid, 1, 1)[:3]
    config.blockDimX, config.blockDimY, config.blockDimZ = plan.definition.block
    config.sharedMemBytes = plan.kernel_trace.dynamic_shared
    config.hStream = stream
    config.attrs, config.numAttrs = [_make_attribute(api, *item) for item in attributes], len(attributes)
    return config


def _make_attribute(api: Any, name: int, value: bytes) -> Any:
    attribute: Any = api.CUlaunchAttribute()
    attribute.id = api.CUlaunchAttributeID(name)
    attribute.value.pad = value.ljust(64, b"\0")
    return attribute
