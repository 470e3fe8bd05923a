"""Moving the bytes of a copy between arrays: loads with fill, stores that skip what is outside, reductions.

Manual: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor. Memories are byte arrays that begin at some address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyptx.sim.base.formats import dtype_of
from pyptx.sim.engines.copies.plans import CHUNK, I64, U8, Copy
from pyptx.sim.numerics import arithmetic, extremes
from pyptx.tensormap import ElementType

Array = NDArray[Any]

_FTZ_TYPES = (ElementType.F32_FTZ, ElementType.TF32_FTZ)


def view_units(memory: U8, base: int, unit: int) -> tuple[Array, int]:
    """Return a view of memory in units and the address of the first; drop bytes before the first aligned one."""
    cut = -base % unit
    count = (len(memory) - cut) // unit
    return memory[cut : cut + count * unit].view(f"V{unit}"), base + cut


def read_units(memory: U8, base: int, address: I64, unit: int) -> Array:
    """Return the units at these addresses."""
    view, first = view_units(memory, base, unit)
    return view[(address - first) // unit]


def write_units(memory: U8, base: int, address: I64, values: Array, unit: int) -> None:
    """Write units to these addresses."""
    view, first = view_units(memory, base, unit)
    view[(address - first) // unit] = values


def load(copy: Copy, memory: U8, base: int, shared: U8, shared_base: int = 0) -> None:
    """Write the box to shared memory, with the map's fill outside the tensor. Padding keeps its contents."""
    unit = copy.unit
    if copy.inside is None:
        write_units(shared, shared_base, copy.shared, read_units(memory, base, copy.address, unit), unit)
        return
    values = np.full(len(copy.shared), np.void(copy.fill))
    values[copy.inside] = read_units(memory, base, copy.address[copy.inside], unit)
    write_units(shared, shared_base, copy.shared, values, unit)


def store(copy: Copy, memory: U8, base: int, shared: U8, shared_base: int = 0) -> None:
    """Write the elements of the box inside the tensor to it; 6-bit elements lose their padding."""
    if copy.element is ElementType.B6X16_P32:
        _store_six_bits(copy, memory, base, shared, shared_base)
        return
    source, target = _clip(copy)
    write_units(memory, base, target, read_units(shared, shared_base, source, copy.unit), copy.unit)


def _clip(copy: Copy) -> tuple[I64, I64]:
    if copy.inside is None:
        return copy.shared, copy.address
    return copy.shared[copy.inside], copy.address[copy.inside]


def _store_six_bits(copy: Copy, memory: U8, base: int, shared: U8, shared_base: int) -> None:
    """Pack 16 bytes with six bits each into 12."""
    source, target = (x.reshape(-1, 3) for x in _clip(copy))
    chunks = (
        read_units(shared, shared_base, source[:, 0], CHUNK).view(np.uint8).reshape(-1, 4, 4).astype(np.uint32) & 63
    )
    packed = chunks[..., 0] | chunks[..., 1] << 6 | chunks[..., 2] << 12 | chunks[..., 3] << 18
    data = np.stack([packed & 255, packed >> 8 & 255, packed >> 16], axis=-1).astype(np.uint8)
    write_units(memory, base, target.ravel(), np.ascontiguousarray(data.reshape(-1)).view("V4"), 4)


def reduce(
    copy: Copy, operation: str, memory: U8, base: int, shared: U8, shared_base: int = 0
) -> tuple[Array, Array, Array]:
    """Combine the box in shared memory with the tensor, in place; return the old elements, the operands and the
    results."""
    source, target = _clip(copy)
    number = dtype_of(find_reduction_type(copy.element))
    old = read_units(memory, base, target, copy.unit).view(number)
    new = read_units(shared, shared_base, source, copy.unit).view(number)
    result = combine(operation, old, new, copy.element)
    write_units(memory, base, target, result.view(f"V{copy.unit}"), copy.unit)
    return old, new, result


def find_reduction_type(element: ElementType) -> str:
    """Return the type in which elements are reduced: f32 for tf32."""
    form = element.format
    assert form is not None, element
    return "f32" if form.name == "tf32" else form.name


def combine(operation: str, old: Array, new: Array, element: ElementType) -> Array:
    """Return `old` with `new` reduced into it, element by element."""
    name = find_reduction_type(element) if element.is_float else None
    match operation:
        case "add" if name is None or name == "f64":
            with np.errstate(all="ignore"):
                total: Array = old + new
            return total
        case "add":
            return arithmetic.add(old, new, name or "f32", ftz=element in _FTZ_TYPES)
        case "min" | "max" if name is not None:
            return (extremes.minimum if operation == "min" else extremes.maximum)(old, new, name=name)
        case "min":
            return np.minimum(old, new)
        case "max":
            return np.maximum(old, new)
        case "inc":
            return np.where(old >= new, np.zeros_like(old), old + old.dtype.type(1))
        case "dec":
            return np.where((old == 0) | (old > new), new, old - old.dtype.type(1))
        case "and":
            return old & new
        case "or":
            return old | new
        case "xor":
            return old ^ new
        case _:
            raise ValueError(f"reduction `.{operation}`: expected add, min, max, inc, dec, and, or, xor")
