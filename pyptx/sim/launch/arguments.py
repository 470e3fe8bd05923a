"""Encode Python arguments as parameter bytes and global buffers, and copy the buffers back. Knows no lanes."""

from __future__ import annotations

import reprlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, cast

import numpy as np

from pyptx.diagnostics import Origin, PtxError, format_count
from pyptx.ir import Param
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.images.objects import Sampler, Surface, Texture
from pyptx.sim.images.storage import Images
from pyptx.sim.launch.overlaps import Span, has_unique_elements
from pyptx.sim.program.frames import lay_out
from pyptx.sim.program.shapes import format_number
from pyptx.sim.rules import faults
from pyptx.sim.state.address_space import AddressSpace
from pyptx.sim.state.multicasts import Multicast, Multicasts, Window
from pyptx.sim.state.regions import Region
from pyptx.tensormap import TensorMap, encode, validate

_TENSOR_MAP = 128
_STRUCTURE = "for a structure, pass sim.Struct(…) or its bytes"
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure passed by value: its size, and its fields as pairs of byte offset and value; arrays become
    addresses."""

    size: int
    fields: Sequence[tuple[int, Any]]

    def __post_init__(self) -> None:
        pairs = isinstance(self.fields, Sequence) and all(isinstance(f, Sequence) and len(f) == 2 for f in self.fields)  # pyright: ignore[reportUnnecessaryIsInstance]
        numbers = [self.size, *(offset for offset, _ in self.fields)] if pairs else [None]
        if not all(isinstance(number, int | np.integer) for number in numbers):
            text = f"sim.Struct has an invalid size or fields: {reprlib.repr(self.size)}, {reprlib.repr(self.fields)}"
            help = "give the size, and a list of byte offsets and values: sim.Struct(8, [(0, np.int32(1)), (4, array)])"
            raise faults.error(faults.ARGUMENTS, None, text, help=help)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor map of an array, passed by value. The map's address is an offset from the array's first byte."""

    array: Array
    map: TensorMap
    name: str = ""
    """What messages call it, the parameter by default."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer to data in device memory: a tensor map (`sim.Tensor`), a structure, or a table. The entries of a table
    are packed tensor maps, structures, NumPy numbers, and addresses of arrays. Each `Pointer` is placed once."""

    target: Any

    def items(self) -> list[Any]:
        """Return the entries in the order of their addresses."""
        target = cast("object", self.target)
        return list(cast("Sequence[Any]", target)) if isinstance(target, list | tuple) else [target]


@dataclass(slots=True)
class Buffers:
    """The arrays of a launch in global memory; an array that is passed several times is placed once."""

    space: AddressSpace
    arrays: list[tuple[Array, int]] = field(default_factory=list["tuple[Array, int]"])
    spans: Sequence[Span] = ()
    images: Images = field(default_factory=Images)
    multicasts: Multicasts = field(default_factory=Multicasts)
    _spans: dict[int, Region] = field(default_factory=dict[int, Region])
    _targets: dict[int, tuple[Pointer, int]] = field(default_factory=dict[int, "tuple[Pointer, int]"])
    """The address of each pointer's target, by the pointer's identity. The reference to the pointer keeps its id from
    being reused."""

    def place_target(self, value: Pointer, name: str, origin: Origin | None) -> int:
        """Return the address of a pointer's target; place the target on first use."""
        entry = self._targets.get(id(value))
        if entry is None:
            parts = [_encode_item(item, self, f"{name}[{index}]", origin) for index, item in enumerate(value.items())]
            if not parts or isinstance(value.target, np.ndarray):
                text = f"`{name}`: a sim.Pointer cannot point to {_describe_target(value)}"
                help = "for an array's address, pass the array; a sim.Pointer takes a sim.Tensor or a list of arrays"
                raise faults.error(faults.ARGUMENTS, origin, text, help=help)
            data = b"".join(parts)
            region = self.space.allocate(name, np.frombuffer(bytearray(data), np.uint8))
            entry = self._targets[id(value)] = value, region.low
        return entry[1]

    def place_multicast(self, value: Multicast, name: str) -> int:
        """Return the multimem address of a multicast object; place its arrays."""
        sizes = {array.nbytes for array in value.arrays}
        if len(sizes) != 1:
            raise faults.error(
                faults.ARGUMENTS, None, f"`{name}`: replicas of {sorted(sizes)} bytes; all must have the same size"
            )
        replicas = tuple(self.find_address(array, f"{name}[{index}]") for index, array in enumerate(value.arrays))
        (size,) = sizes
        address = self.space.reserve(size)
        self.multicasts.windows.append(Window(address, size, replicas))
        return address

    def find_address(self, array: Array, name: str) -> int:
        """Return the address of an array; place it on first use."""
        previous = self.find(array)
        if previous is not None:
            return previous
        span = next((span for span in self.spans if _holds(span, array)), None)
        address = self._place(array, name) if span is None else self._place_span(span, name) + _start(array) - span.low
        self.arrays.append((array, address))
        return address

    def _place(self, array: Array, name: str) -> int:
        """Place an array that shares no bytes with another, and return its address."""
        try:
            data = np.ascontiguousarray(array)
        except MemoryError:
            text = f"`{name}`: not enough memory for a contiguous copy of {array.nbytes} bytes"
            raise faults.error(
                faults.OUT_OF_MEMORY, None, text, help="pass a smaller array, or a contiguous one"
            ) from None
        flat = data.reshape(-1).view(np.uint8)
        lent = bool(np.shares_memory(data, array)) if data.size else False
        writable = array.flags.writeable and has_unique_elements(array)
        return self.space.allocate(name, flat, writable=writable, lent=lent).low

    def _place_span(self, span: Span, name: str) -> int:
        """Place the bytes that several arrays share, once for all of them, and return their address."""
        region = self._spans.get(span.low)
        if region is None:
            region = self.space.allocate(name, span.data, writable=span.writable, lent=True)
            self._spans[span.low] = region
        elif name not in region.name.split(" and "):
            region.name = f"{region.name} and {name}"
        return region.low

    def find(self, array: Array) -> int | None:
        """Return the address of an array, None if it is not an argument of the launch."""
        for other_array, address in self.arrays:
            if other_array is array or _same_bytes(other_array, array):
                return address
        return None

    def mark_fresh(self, array: Array) -> None:
        """Mark the bytes of an array as uninitialized until the kernel writes them."""
        address = self.find(array)
        if address is None:
            raise faults.error(faults.ARGUMENTS, None, "`fresh` names an array that is not among the arguments")
        region = self.space.find_region(address)
        if region is not None and (region.low, region.size) == (address, array.nbytes):
            region.fresh = True

    def write_back(self) -> None:
        """Copy the results of the launch back to the arrays."""
        for array, address in self.arrays:
            region = self.space.find_region(address)
            if region is not None and region.writable and not region.lent and region.size and array.flags.writeable:
                data = region.data[address - region.low :][: array.nbytes]
                array[...] = data.view(array.dtype).reshape(array.shape)


_HOST_ALIGNMENT = 16
"""What allocators of the host return multiples of: other arrays are views, as misaligned as on a device."""


def _start(array: Array) -> int:
    return array.ctypes.data


def _holds(span: Span, array: Array) -> bool:
    """Return whether an array lies in a span."""
    contiguous = bool(array.size and array.flags.c_contiguous)
    return contiguous and span.low <= _start(array) and _start(array) + array.nbytes <= span.low + span.data.nbytes


def _same_bytes(first: Array, second: Array) -> bool:
    """Return whether two arrays are views of exactly the same bytes in the same order."""
    return bool(
        first.nbytes == second.nbytes > 0
        and first.ctypes.data == second.ctypes.data
        and first.flags.c_contiguous
        and second.flags.c_contiguous
        and first.flags.writeable == second.flags.writeable
    )


def encode_parameters(
    params: Iterable[Param], args: Sequence[Any] | Mapping[str, Any], buffers: Buffers, origin: Origin | None
) -> tuple[bytearray, dict[str, Array]]:
    """Return the bytes of the parameter space, and the arrays by parameter name."""
    layout, end = lay_out(params)
    names = [param.name for param, _, _ in layout]
    if isinstance(args, Mapping):
        _check_names(names, args, origin)
        values = [args[n] for n in names]
    elif isinstance(args, Sequence) and not isinstance(args, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        values = list(args)
    else:
        text = f"args: expected a list of arguments, or a mapping from names to arguments, found {type(args).__name__}"
        raise faults.error(faults.ARGUMENTS, origin, text)
    if len(values) != len(layout):
        parameter_list = ", ".join(
            f"{name} ({param.type.ptx})" for name, (param, _, _) in zip(names, layout, strict=True)
        )
        text = f"the kernel has {format_count('parameter', len(layout))}, found {format_count('argument', len(values))}"
        text += f"; the parameters are: {parameter_list}" if layout else ""
        raise faults.error(faults.ARGUMENTS, origin, text)
    data = bytearray(end)
    arrays: dict[str, Array] = {}
    for (param, offset, size), value in zip(layout, values, strict=True):
        chunk = _encode_argument(param, size, value, buffers, origin)
        data[offset : offset + size] = chunk
        if isinstance(value, np.ndarray) and value.ndim:
            arrays[param.name] = value
    return data, arrays


def _check_names(names: Sequence[str], args: Mapping[str, Any], origin: Origin | None) -> None:
    missing, unknown = [n for n in names if n not in args], [n for n in args if n not in names]
    if not missing and not unknown:
        return
    groups = (("missing", missing), ("unknown", unknown))
    problems = [
        f"{kind} argument{'s' if len(group) > 1 else ''} {', '.join(f'`{name}`' for name in group)}"
        for kind, group in groups
        if group
    ]
    close = [match for name in unknown for match in get_close_matches(str(name), missing or names, 1)]
    mapping = ", ".join(f"{name!r}: …" for name in names)
    help = f"did you mean {', '.join(f'`{name}`' for name in close)}?" if close else f"pass args={{{mapping}}}"
    raise faults.error(faults.ARGUMENTS, origin, "; ".join(problems), help=help)


def arrays_in(value: Any) -> Iterator[Array]:
    """Yield the arrays whose addresses an argument contains."""
    if isinstance(value, np.ndarray) and value.ndim:
        yield cast("Array", value)
    elif isinstance(value, Tensor):
        yield from arrays_in(value.array)
    elif isinstance(value, Multicast):
        for array in value.arrays:
            yield from arrays_in(array)
    elif isinstance(value, Struct):
        for _, item in value.fields:
            yield from arrays_in(item)
    elif isinstance(value, Pointer):
        for item in value.items():
            yield from arrays_in(item)


def _encode_argument(param: Param, size: int, value: Value, buffers: Buffers, origin: Origin | None) -> bytes:
    if isinstance(value, Struct) and value.size != size:
        raise _make_size_error(param, size, value.size, value, origin)
    if isinstance(value, Struct):
        data = _encode_structure(value, buffers, param.name, origin)
    elif isinstance(value, int | float) and not isinstance(value, np.generic):
        data = _encode_number(param, value, size, origin)
    else:
        data = _encode_plain(value, buffers, param.name, origin)
    if len(data) != size:
        raise _make_size_error(param, size, len(data), value, origin)
    return data


def _encode_structure(value: Struct, buffers: Buffers, name: str, origin: Origin | None) -> bytes:
    """Return the bytes of a structure."""
    data = bytearray(value.size)
    for offset, item in value.fields:
        if isinstance(item, int | float) and not isinstance(item, np.generic):
            text = f"`{name}`: the field at byte {offset} is {format_number(item)}, a number without a type"
            help = f"give it a type: np.int32({format_number(item)}), np.float32({format_number(item)})"
            raise faults.error(faults.ARGUMENTS, origin, text, help=help)
        part = _encode_plain(item, buffers, name, origin)
        if not 0 <= offset <= value.size - len(part):
            text = f"`{name}`: the field at byte {offset} lies outside a structure of {value.size} bytes"
            raise faults.error(faults.ARGUMENTS, origin, text)
        data[offset : offset + len(part)] = part
    return bytes(data)


def _encode_item(value: Value, buffers: Buffers, name: str, origin: Origin | None) -> bytes:
    """Return the bytes of an entry of a table in device memory."""
    if isinstance(value, int | float) and not isinstance(value, np.generic):
        text = f"`{name}` is {format_number(value)}, a number without a type"
        help = f"give it a type: np.int32({format_number(value)}), np.float32({format_number(value)})"
        raise faults.error(faults.ARGUMENTS, origin, text, help=help)
    return (
        _encode_structure(value, buffers, name, origin)
        if isinstance(value, Struct)
        else _encode_plain(value, buffers, name, origin)
    )


def _describe_target(pointer: Pointer) -> str:
    return f"a value of type {type(pointer.items()[0]).__name__}" if pointer.items() else "nothing"


def _make_size_error(param: Param, size: int, argument_size: int, value: Value, origin: Origin | None) -> PtxError:
    declaration = f"{param.type.ptx}{f'[{param.array_size}]' if param.array_size else ''}"
    text = f"`{param.name}` is {declaration} of {size} bytes, but the argument has {format_number(argument_size)}"
    return faults.error(faults.ARGUMENTS, origin, text, help=_suggest_argument(value, size))


def _suggest_argument(value: Any, size: int) -> str | None:
    """Return what to pass instead of a value of the wrong size."""
    if isinstance(value, np.generic):
        return "a plain Python number takes the size of the parameter"
    if isinstance(value, np.ndarray) and not value.ndim:
        return (
            "an array without dimensions is a number: pass `.item()` for its value, or an array of shape (1,) for its "
            "address"
        )
    if isinstance(value, np.ndarray) and size == _TENSOR_MAP:
        return "for a tensor map, pass sim.Tensor(array, TensorMap(…)); the map describes the box of a copy"
    if isinstance(value, np.ndarray):
        return "an array is passed by its address (8 bytes); for a value, pass a number, for a structure sim.Struct(…)"
    return None


def _encode_plain(value: Value, buffers: Buffers, name: str, origin: Origin | None) -> bytes:
    for array in arrays_in(value):
        _check_array(array, name, origin)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(cast("bytes", value))
    if isinstance(value, Pointer):
        return buffers.place_target(value, name, origin).to_bytes(8, "little")
    if isinstance(value, Multicast):
        return buffers.place_multicast(value, name).to_bytes(8, "little")
    if isinstance(value, Texture | Surface | Sampler):
        return buffers.images.get_handle(value).to_bytes(8, "little")
    if isinstance(value, Tensor):
        if not isinstance(value.array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"`{name}`: sim.Tensor takes a NumPy array, found {type(value.array).__name__}"
            raise faults.error(faults.ARGUMENTS, origin, text)
        if not isinstance(value.map, TensorMap):  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"`{name}`: sim.Tensor takes a TensorMap, found {type(value.map).__name__}"
            raise faults.error(faults.ARGUMENTS, origin, text)
        address = buffers.find_address(value.array, name) + value.map.address
        host = _start(value.array) + value.map.address
        is_misaligned = value.array.flags.c_contiguous and host % _HOST_ALIGNMENT != 0
        try:
            validate(replace(value.map, address=host if is_misaligned else address))
            return encode(replace(value.map, address=address))
        except PtxError as why:
            prefix = f"`{value.name or name}`: "
            raise PtxError(replace(d.move_to(origin), message=prefix + d.message) for d in why.diagnostics) from None
    if isinstance(value, TensorMap):
        return encode(value)
    if isinstance(value, np.ndarray) and value.ndim:
        return buffers.find_address(cast("Array", value), name).to_bytes(8, "little")
    if isinstance(value, np.generic | np.ndarray):
        _check_array(np.asarray(cast("Array", value)), name, origin)
        return cast("Array", value).tobytes()
    text = f"`{name}`: a value of type {type(value).__name__} cannot be passed; pass a NumPy array or a number"
    raise faults.error(faults.ARGUMENTS, origin, text)


def _check_array(array: Array, name: str, origin: Origin | None) -> None:
    """Reject an array whose elements a GPU cannot represent."""
    dtype = array.dtype
    if isinstance(array, np.ma.MaskedArray):
        text = f"`{name}`: a masked array cannot be passed: kernels see its data but not its mask"
        help = f"pass `{name}.filled(value)`, or `{name}.data` and the mask as another array"
        raise faults.error(faults.ARGUMENTS, origin, text, help=help)
    if dtype.hasobject or dtype.kind in "SUmMT":
        text = f"`{name}`: an array of {dtype} cannot be passed; pass an array of numbers"
        raise faults.error(faults.ARGUMENTS, origin, text)
    if not dtype.isnative:
        text = f"`{name}`: {dtype.str} is big-endian, but GPUs are little-endian"
        raise faults.error(faults.ARGUMENTS, origin, text, help=f"pass `{name}.astype({name}.dtype.newbyteorder('='))`")


def _encode_number(param: Param, value: float, size: int, origin: Origin | None) -> bytes:
    kind = param.type.ptx[1:]
    if param.array_size is not None and (isinstance(value, float) or kind[0] == "f"):
        text = f"`{param.name}` is an array of .{kind}, but {format_number(value)} is one number"
        raise faults.error(faults.ARGUMENTS, origin, text, help=_STRUCTURE)
    if isinstance(value, float) and (kind[0] in "us" or size not in _FLOATS):
        help = f"pass an int; to pass the bits of a float, pass a NumPy number such as np.float32({value})"
        text = f"`{param.name}` is .{kind}, but {value} is not an integer"
        raise faults.error(faults.ARGUMENTS, origin, text, help=help)
    try:
        if size in _FLOATS and (kind[0] == "f" or isinstance(value, float)):
            data = struct.pack(_FLOATS[size], value)
            (nearest,) = struct.unpack(_FLOATS[size], data)
            if isinstance(value, int) and nearest != value:
                text = (
                    f"`{param.name}` is .{kind}, which cannot represent {format_number(value)}; the nearest value is "
                    f"{nearest:.0f}"
                )
                raise faults.error(
                    faults.ARGUMENTS, origin, text, help=f"pass float({format_number(value)}) to round it"
                )
            return data
        wide = 8 * size
        # Compilers declare signed parameters as `.u32`, so unsigned parameters also take negative numbers.
        low, high = -(1 << (wide - 1)), 1 << (wide - (kind[0] == "s"))
        if low <= value < high:
            return (int(value) & ((1 << wide) - 1)).to_bytes(size, "little")
        help = f"pass a number from {low} to {high - 1}, or declare a wider parameter" if size <= 8 else _STRUCTURE
    except (OverflowError, struct.error, ValueError):
        help = None if size <= 8 else _STRUCTURE
    raise faults.error(
        faults.ARGUMENTS, origin, f"`{param.name}` is .{kind}, but {format_number(value)} does not fit", help=help
    )
