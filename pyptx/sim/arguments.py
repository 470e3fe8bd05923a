"""Turns Python arguments into parameter bytes and global buffers, and copies the buffers back. Knows no lanes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from pyptx.diagnostics import Origin
from pyptx.ir import Param
from pyptx.sim import rules
from pyptx.sim.formats import Array, Value
from pyptx.sim.frames import aligned, laid_out
from pyptx.sim.images.objects import Sampler, Surface, Texture
from pyptx.sim.images.storage import Images
from pyptx.sim.memory import Region
from pyptx.sim.multicasts import Multicast, Multicasts
from pyptx.sim.variables import GUARD, Allocation
from pyptx.tensormap import TensorMap, encode, validate


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure passed by value: its size and what stands at which byte offset; arrays become addresses."""

    size: int
    fields: Sequence[tuple[int, Any]]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor map of an array, passed by value. The map's address counts from the array's first byte."""

    array: Array
    map: TensorMap


@dataclass(slots=True)
class Buffers:
    """The arrays of a launch in global memory, each once however often it is passed."""

    next: int
    allocations: list[Allocation] = field(default_factory=list[Allocation])
    arrays: list[tuple[Array, int]] = field(default_factory=list["tuple[Array, int]"])
    images: Images = field(default_factory=Images)
    multicasts: Multicasts = field(default_factory=Multicasts)

    def multicast(self, value: Multicast, name: str) -> int:
        """Return the multimem address of an object, placing its arrays."""
        sizes = {array.nbytes for array in value.arrays}
        if len(sizes) != 1:
            raise rules.error(rules.ARGUMENTS, None, f"`{name}`: replicas of {sorted(sizes)} bytes, one size is needed")
        replicas = tuple(self.address(array, f"{name}[{at}]") for at, array in enumerate(value.arrays))
        address, (size,) = aligned(self.next, 256), sizes
        self.multicasts.windows.append((address, size, replicas))
        self.next = address + size + GUARD
        return address

    def address(self, array: Array, name: str) -> int:
        """Return where an array lies, placing it on first sight."""
        found = self.known(array)
        if found is not None:
            return found
        address = aligned(self.next, 256)
        data = np.ascontiguousarray(array)
        flat = data.reshape(-1).view(np.uint8)
        lent = bool(np.shares_memory(data, array)) if data.size else False
        self.allocations.append(Allocation(address, data.nbytes, name, flat, writable=array.flags.writeable, lent=lent))
        self.next = address + data.nbytes + GUARD
        self.arrays.append((array, address))
        return address

    def known(self, array: Array) -> int | None:
        """Return where an array lies, None for one that the launch was not given."""
        for known, address in self.arrays:
            if known is array or _same_bytes(known, array):
                return address
        return None

    def reserve(self, size: int, name: str) -> int:
        """Return the address of fresh zeroed memory."""
        address = aligned(self.next, 256)
        self.allocations.append(Allocation(address, size, name, np.zeros(size, np.uint8)))
        self.next = address + size + GUARD
        return address

    def write_back(self, regions: list[Region]) -> None:
        """Copy what the launch wrote back to the arrays."""
        written = {region.low: region for region in regions if region.writable and not region.lent}
        for array, address in self.arrays:
            region = written.get(address)
            if region is not None and array.flags.writeable:
                array[...] = region.data[: array.nbytes].view(array.dtype).reshape(array.shape)


def _same_bytes(one: Array, other: Array) -> bool:
    """Say whether two arrays are views of the same bytes, whole and in order."""
    return bool(
        one.nbytes == other.nbytes > 0
        and one.ctypes.data == other.ctypes.data
        and one.flags.c_contiguous
        and other.flags.c_contiguous
        and one.flags.writeable == other.flags.writeable
    )


def parameter_bytes(
    params: Iterable[Param], args: Sequence[Any] | Mapping[str, Any], buffers: Buffers, origin: Origin | None
) -> tuple[bytearray, dict[str, Array]]:
    """Return the bytes of the parameter space, and the arrays by their parameter's name."""
    placed, end = laid_out(params)
    names = [param.name for param, _, _ in placed]
    if isinstance(args, Mapping):
        missing = [n for n in names if n not in args]
        unknown = [n for n in args if n not in names]
        if missing or unknown:
            text = f"missing {missing}, unknown {unknown}; the parameters are {names}"
            raise rules.error(rules.ARGUMENTS, origin, text)
        values = [args[n] for n in names]
    else:
        values = list(args)
    if len(values) != len(placed):
        text = f"the kernel has {len(placed)} parameters, found {len(values)} arguments"
        raise rules.error(rules.ARGUMENTS, origin, text)
    data = bytearray(end)
    arrays: dict[str, Array] = {}
    for (param, offset, size), value in zip(placed, values, strict=True):
        made = _bytes(param, size, value, buffers, origin)
        data[offset : offset + size] = made
        if isinstance(value, np.ndarray) and value.ndim:
            arrays[param.name] = value
    return data, arrays


def _bytes(param: Param, size: int, value: Value, buffers: Buffers, origin: Origin | None) -> bytes:
    if isinstance(value, Struct):
        made = bytearray(value.size)
        for offset, item in value.fields:
            part = _plain(item, buffers, param.name)
            made[offset : offset + len(part)] = part
        data = bytes(made)
    elif isinstance(value, int | float) and not isinstance(value, np.generic):
        data = _number(param, value, size)
    else:
        data = _plain(value, buffers, param.name)
    if len(data) != size:
        text = f"`{param.name}` is {param.type.ptx} of {size} bytes, the argument has {len(data)}"
        raise rules.error(rules.ARGUMENTS, origin, text)
    return data


def _plain(value: Value, buffers: Buffers, name: str) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(cast("bytes", value))
    if isinstance(value, Multicast):
        return buffers.multicast(value, name).to_bytes(8, "little")
    if isinstance(value, Texture | Surface | Sampler):
        return buffers.images.handle(value).to_bytes(8, "little")
    if isinstance(value, Tensor):
        address = buffers.address(value.array, name) + value.map.address
        return encode(validate(replace(value.map, address=address)))
    if isinstance(value, TensorMap):
        return encode(value)
    if isinstance(value, np.ndarray) and value.ndim:
        return buffers.address(cast("Array", value), name).to_bytes(8, "little")
    if isinstance(value, np.generic | np.ndarray):
        return cast("Array", value).tobytes()
    text = f"`{name}`: a {type(value).__name__} cannot be passed; arrays of NumPy and numbers can"
    raise rules.error(rules.ARGUMENTS, None, text)


def _number(param: Param, value: float, size: int) -> bytes:
    kind = param.type.ptx[1:]
    if kind in ("f32", "f64") or (isinstance(value, float) and size in (4, 8)):
        return struct.pack("<f" if size == 4 else "<d", value)
    if isinstance(value, float) and size == 2:
        return struct.pack("<e", value)
    wide = 8 * size
    if not -(1 << (wide - 1)) <= value < 1 << wide:
        raise rules.error(rules.ARGUMENTS, None, f"`{param.name}` is {param.type.ptx}, {value} does not fit")
    return (int(value) & ((1 << wide) - 1)).to_bytes(size, "little")
