"""A launch as the attributes of an XLA custom call, and back: its PTX, its shape, and the bytes of its parameters.

The attributes hold everything that a run needs besides the buffers, so that a compiled or exported program runs without
the kernel that it was traced from. They name no file and no line, and are the same in every process: kernels with
equal PTX have different digests if their functions have different modules or qualified names. Of those with the same
name, errors in this process show the lines of the one that was traced last. Knows neither JAX nor XLA.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyptx.emitter import emit
from pyptx.ir import Function, Module
from pyptx.parser import parse
from pyptx.runtime.arrays import Array
from pyptx.runtime.planning import MAP_SUFFIX, Plan
from pyptx.sim import Launch, Tensor
from pyptx.sim.launch.arguments import Buffers, encode_parameters
from pyptx.sim.program.frames import lay_out
from pyptx.sim.state.address_space import AddressSpace
from pyptx.tensormap import MAX_RANK, SIZE, TensorMap, decode, tensor_map

Attributes = dict[str, Any]
"""Strings, and NumPy arrays of one dimension."""
KEY = "digest"
"""The attribute that identifies the others and the kernel; XLA sorts attributes by name, so it comes first."""
NO_TENSOR = -1
_MOST_MODULES = 1024
_TRACED: dict[bytes, Module] = {}
"""Modules as they were traced, by digest: unlike parsed ones, they know the lines of the kernel."""


@dataclass(frozen=True, slots=True)
class CustomCall:
    """What a custom call runs."""

    module: Module
    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...]
    shared: int
    is_cooperative: bool
    parts: dict[str, int]
    dtypes: tuple[str, ...]
    """Of the tensors: inputs, then outputs."""
    outputs: int
    params: tuple[tuple[str, int, bytes], ...]
    """Each parameter's name, the index of its tensor or `NO_TENSOR`, and its bytes."""


def write_attributes(plan: Plan, dtypes: Sequence[str], *, cooperative: bool, programmatic: bool) -> Attributes:
    """Return the attributes of a plan whose tensors have these dtypes."""
    tiles, maps = dict(plan.definition.tensors), list[tuple[int, int, TensorMap]]()
    names, params = list(tiles), plan.find_entry().params
    values: dict[str, Any] = {}
    rows: list[tuple[int, int, int]] = []
    for param, offset, size in lay_out(params)[0]:
        tensor = param.name.removesuffix(MAP_SUFFIX)
        index = NO_TENSOR
        if param.name in tiles:
            index, values[param.name] = names.index(param.name), 0
        elif param.name in plan.scalars:
            values[param.name] = plan.scalars[param.name]
        elif tensor in tiles:
            index, values[param.name] = names.index(tensor), tensor_map(tiles[tensor], dict(plan.dims), 0)
            maps.append((offset, index, values[param.name]))
        rows.append((offset, size, index))
    data, _ = encode_parameters(params, values, Buffers(AddressSpace()), None)
    shape = (*plan.grid, 1, 1)[:3], plan.definition.block, plan.definition.cluster
    further = plan.kernel_trace.dynamic_shared, len(tiles), len(plan.outputs), cooperative, programmatic
    attributes: Attributes = {
        "entry": plan.definition.name,
        "maps": np.array([_describe_map(*row) for row in maps], np.uint64).reshape(-1),
        "module": emit(plan.module),
        "names": json.dumps({"dtypes": list(dtypes), "parts": dict(plan.kernel_trace.parts)}),
        "params": np.array(rows, np.int64).reshape(-1),
        "shape": np.array([*sum(shape, ()), *further], np.int64),
        "values": np.frombuffer(bytes(data), np.uint8),
    }  # fmt: skip
    function = plan.definition.function
    digest = _compute_digest({"function": f"{function.__module__}.{function.__qualname__}", **attributes})
    while len(_TRACED) >= _MOST_MODULES and digest not in _TRACED:
        _TRACED.pop(next(iter(_TRACED)), None)
    _TRACED[digest] = plan.module
    return {KEY: np.frombuffer(digest, np.uint8), **attributes}


def _describe_map(offset: int, index: int, tensor: TensorMap) -> list[int]:
    """Return the arguments of cuTensorMapEncodeTiled, after the parameter's offset and the index of the tensor."""
    fill = [0] * MAX_RANK
    sizes = [
        (*values, *fill)[:MAX_RANK] for values in (tensor.dims, tensor.strides, tensor.box, tensor.element_strides)
    ]
    swizzle = tensor.swizzle.driver_value
    if swizzle is None:
        raise ValueError(f"the driver does not encode {tensor.swizzle}")
    modes = tensor.interleave, swizzle, tensor.l2_promotion, tensor.fill
    return [offset, index, tensor.dtype.driver_value, tensor.rank, *sum(sizes, ()), *map(int, modes)]


def _compute_digest(attributes: Mapping[str, Any]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, value in attributes.items():
        data = value.encode() if isinstance(value, str) else value.tobytes()
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.digest()


def is_outdated(module: Module, digest: bytes) -> bool:
    """Tell whether this process has traced another module since for the same digest: its lines may be others."""
    return _TRACED.get(digest, module) is not module


def read_attributes(attributes: Mapping[str, Any]) -> CustomCall:
    """Return what attributes describe. The module is the traced one where this process has traced it."""
    digest = attributes[KEY].tobytes()
    module = _TRACED.get(digest) or parse(attributes["module"])
    names = json.loads(attributes["names"])
    values, shape = attributes["values"].tobytes(), [int(size) for size in attributes["shape"]]
    name = attributes["entry"]
    entry = next(f for f in module.directives if isinstance(f, Function) and f.name == name)
    rows = attributes["params"].reshape(-1, 3).tolist()
    params = [
        (param.name, index, values[offset : offset + size])
        for param, (offset, size, index) in zip(entry.params, rows, strict=True)
    ]
    return CustomCall(
        module, entry.name, tuple(shape[:3]), tuple(shape[3:6]), tuple(shape[6:9]), shape[9], bool(shape[12]),
        names["parts"], tuple(names["dtypes"]), shape[11], tuple(params),
    )  # fmt: skip


def create_launch(call: CustomCall, tensors: Sequence[Array], fresh: Sequence[Array]) -> Launch:
    """Return a launch on arrays for the tensors, of which those in `fresh` are uninitialized."""
    args: dict[str, Any] = {}
    for name, index, data in call.params:
        if index == NO_TENSOR:
            args[name] = data
        else:
            tensor = tensors[index]
            args[name] = tensor if len(data) != SIZE else Tensor(tensor, decode(data), name.removesuffix(MAP_SUFFIX))
    return Launch(
        call.module, call.entry, args=args, grid=call.grid, block=call.block, cluster=call.cluster,
        shared=call.shared, parts=call.parts, fresh=fresh,
    )  # fmt: skip
