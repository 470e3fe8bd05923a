"""How NumPy arrays hold PTX types: the register class and the dtype of each. Knows no instruction."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyptx.numbers import FORMATS
from pyptx.types import from_name

Array = NDArray[Any]
Value = Any
"""An operand in generated code: an array, a tuple of arrays (a vector) or a number (a constant address)."""

CLASSES = {"p": "?", "h": "u2", "r": "u4", "d": "u8"}
"""The register classes by letter: predicates, 16, 32 and 64 bits. A 128-bit register takes two rows of 64 bits."""

VIEWS = {"p": "?", "h": "u2", "hi": "i2", "r": "u4", "ri": "i4", "rf": "f4", "d": "u8", "di": "i8", "df": "f8"}
"""The views of a register: the letter of its class and a suffix."""

_CLASS_OF_BITS = {8: "h", 16: "h", 32: "r", 64: "d", 128: "d"}


def register_class(type_name: str) -> str:
    """Return the class of a register declared with this type."""
    return "p" if type_name == "pred" else _CLASS_OF_BITS[container_bits(type_name)]


@cache
def container_bits(type_name: str) -> int:
    """Return the width of the smallest unsigned integer that holds a type."""
    bits = from_name(type_name).bits
    return next(width for width in (8, 16, 32, 64, 128) if width >= bits)


@cache
def dtype_of(type_name: str) -> np.dtype[Any]:
    """Return the dtype in which a type is computed: NumPy's own for integers, f32, f64 and predicates, else the
    unsigned integer that holds its bits."""
    kind = from_name(type_name).kind
    if kind == "pred":
        return np.dtype(np.bool_)
    if type_name in ("f32", "f64"):
        return np.dtype(type_name.replace("f32", "f4").replace("f64", "f8"))
    bits = container_bits(type_name)
    scalar = type_name[1:].isdigit()
    return np.dtype(f"{'i' if kind == 's' and scalar else 'u'}{bits // 8}")


@cache
def numpy_code(type_name: str) -> str:
    """Return NumPy's type code of a format that NumPy has, such as `f2` for f16."""
    return np.dtype(FORMATS[type_name].arrays[0]).str[1:]


def suffix_of(dtype: np.dtype[Any]) -> str:
    """Return the suffix of the register view with this dtype."""
    return {"i": "i", "f": "f"}.get(dtype.kind, "")


def make_constant(value: int | float, type_name: str) -> Array:
    """Return an immediate as a 0-d array. Integers wrap; a float for an untyped operand keeps its bits."""
    dtype = dtype_of(type_name)
    if dtype.kind == "b":
        return np.array(bool(value))
    if dtype.kind == "f":
        return np.array(float(value), dtype)
    if isinstance(value, float):
        return np.array(value, f"f{max(4, dtype.itemsize)}").view(f"u{max(4, dtype.itemsize)}").astype(dtype)
    bits = value & ((1 << 8 * dtype.itemsize) - 1)
    return np.array(bits, f"u{dtype.itemsize}").view(dtype)
