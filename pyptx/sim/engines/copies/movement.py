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

_T = ElementType
_WORDS = frozenset((_T.U32, _T.S32, _T.U64))
_ORDERED = _WORDS | {_T.S64, _T.F16, _T.BF16}
REDUCIBLE = {
    "add": _WORDS | {_T.F16, _T.BF16, _T.F32, _T.F32_FTZ, _T.F64, _T.TF32, _T.TF32_FTZ},
    "min": _ORDERED, "max": _ORDERED, "inc": frozenset((_T.U32,)), "dec": frozenset((_T.U32,)),
    "and": _WORDS, "or": _WORDS, "xor": _WORDS,
}  # fmt: skip
"""The elements that each operation reduces. An H200 faults with others, except with bits of TF32."""
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
    values = read_units(memory, base, _clip(copy)[1], unit)
    if copy.element.is_rounded:
        values = _round_to_tf32(values.view(np.uint32)).view(f"V{unit}")
    if copy.inside is not None:
        box = np.full(len(copy.shared), np.void(copy.fill))
        box[copy.inside] = values
        values = box
    write_units(shared, shared_base, copy.shared, values, unit)


def _round_to_tf32(words: Array) -> Array:
    """Return f32 codes rounded to the nearest tf32, ties to even; NaNs lose their payload (measured on an H200)."""
    rounded = (words + np.uint32(0xFFF) + (words >> np.uint32(13) & np.uint32(1))) & np.uint32(0xFFFFE000)
    is_nan = (words & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, np.uint32(0x7FFFE000), rounded)


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
        case "add" if name == "f64":
            with np.errstate(all="ignore"):
                total = old + new
            # A NaN stays as it is, without becoming quiet (measured on an H200).
            return np.where(np.isnan(old), old, np.where(np.isnan(new), new, total))
        case "add" if name is None:
            with np.errstate(all="ignore"):
                return old + new
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
