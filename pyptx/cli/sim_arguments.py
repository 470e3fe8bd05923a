"""Parses kernel arguments from the shell: `f32[1024]=randn`, `i32=7`, `u8[64]=in.npy`. Of the simulator, it knows only
the two kinds of value that it accepts: arrays, and arrays behind a tensor map."""

from __future__ import annotations

import argparse
import math
import re
import tokenize
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyptx.numbers import FORMATS, Kind
from pyptx.runtime.arrays import get_numpy_dtype
from pyptx.sim import Tensor
from pyptx.tensormap import Swizzle, TensorMap, element_type
from pyptx.types import from_name

Array = NDArray[Any]
Value = Array | Tensor | np.generic


class Unusable(ValueError):
    """An invalid argument; the message is for the user."""


DTYPES: dict[str, np.dtype[Any]] = {
    **{f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}")
       for letter, kind in (("i", "i"), ("s", "i"), ("u", "u"), ("b", "u")) for bits in (8, 16, 32, 64)},
    **{form.name: get_numpy_dtype(form.arrays[0]) for form in FORMATS.values()
       if form.kind is Kind.FLOAT and form.arrays and form.bits == form.width >= 8},
}  # fmt: skip
_MOST_BYTES = 1 << 32
_LONGEST_SHOWN = 100
"""Characters of user input shown in a message."""
_MOST_DIMENSIONS = 64
"""The limit of NumPy."""
_SPEC = re.compile(r"(?P<type>\w+)(\[(?P<shape>[^\]]*)\])?=(?P<value>[^\s].*?)(\s+map\((?P<map>[^)]*)\))?")
_FILL = re.compile(r"(?P<name>[a-z]+)(\((?P<bounds>[^()]*)\))?")
_DIGITS = re.compile(r"[+-]?(0[xob])?[0-9a-f_.]+(e[+-]?[0-9]+)?", re.IGNORECASE | re.ASCII)
_MAGIC, _ARCHIVE = b"\x93NUMPY", b"PK"
_BAD_HEADER = (
    OSError, ValueError, EOFError, TypeError, OverflowError, SyntaxError, RecursionError, tokenize.TokenError,
)  # fmt: skip
"""What NumPy raises for invalid headers."""
_NAMED = ("zeros", "ones", "arange", "randn", "uniform(low,high)", "randint(low,high)", "a number", "a file.npy")
_ELEMENTS = {
    name: element_type(from_name(name.replace("i", "s"))) for name in DTYPES
    if (name in FORMATS and FORMATS[name].kind is Kind.FLOAT) or re.fullmatch(r"u\d+|[is](32|64)", name)
}  # fmt: skip
_SWIZZLES = {"none": Swizzle.NONE, "32B": Swizzle.B32, "64B": Swizzle.B64, "128B": Swizzle.B128}


@dataclass(frozen=True, slots=True)
class Spec:
    """One `--arg`: `shape` is None for a scalar; `map` is the options of a tensor map."""

    text: str
    type: str
    shape: tuple[int, ...] | None
    value: str
    map: dict[str, str] | None


def parse_argument(text: str) -> Spec:
    """Parse an argument."""
    array, name = _SPEC.fullmatch(text.strip()), shorten(text)
    if array is None:
        raise Unusable(f"`{name}`: expected TYPE=VALUE or TYPE[SHAPE]=VALUE, for example f32[1024]=randn or i32=7")
    if array["type"] not in DTYPES:
        raise Unusable(f"`{name}`: `{shorten(array['type'])}` is not a type; the types are {', '.join(DTYPES)}")
    shape = None if array["shape"] is None else _parse_sizes(name, array["shape"])
    if shape is not None and DTYPES[array["type"]].itemsize * math.prod(shape) > _MOST_BYTES:
        raise Unusable(f"`{name}`: more than {_MOST_BYTES >> 30} GiB")
    options = None if array["map"] is None else _parse_options(name, array["map"])
    if options is not None and shape is None:
        raise Unusable(f"`{name}`: a tensor map needs an array")
    return Spec(name, array["type"], shape, array["value"], options)


def require_room(specs: Sequence[Spec], available: int) -> None:
    """Reject arrays that do not fit into memory."""
    size = sum(DTYPES[spec.type].itemsize * math.prod(spec.shape) for spec in specs if spec.shape is not None)
    if size > available:
        raise Unusable(f"the arrays of --arg take {size >> 20} MiB, this machine has {available >> 20} MiB free")


def shorten(text: str) -> str:
    """Return text for a message, truncated if it is long."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def make_value(spec: Spec, seed: tuple[int, int]) -> Value:
    """Return a new value for an argument; random values depend on the seed."""
    dtype = DTYPES[spec.type]
    if spec.shape is None:
        return _fill(spec, (1,), dtype, seed)[0]
    array = _fill(spec, spec.shape, dtype, seed)
    return array if spec.map is None else Tensor(array, _build_tensor_map(spec, array))


def get_array(value: Value) -> Array | None:
    """Return the array of an argument, or None for a scalar."""
    if isinstance(value, Tensor):
        return value.array
    return None if isinstance(value, np.generic) else value


def is_number(text: str) -> bool:
    """Return whether text is a number in ASCII digits, of a plausible length."""
    return text.isascii() and text.isdecimal() and len(text) <= 18


def parse_whole_number(least: int, text: str) -> int:
    """Return the value of an integer option, for argparse, which names the option in errors."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _LONGEST_SHOWN) or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected an integer of at least {least}, found {shorten(text)!r}")
    return int(text)


def _parse_sizes(name: str, shape: str) -> tuple[int, ...]:
    parts = re.split("[,x]", shape)
    if not all(is_number(part) and int(part) > 0 for part in parts):
        raise Unusable(f"`{name}`: the shape [{shorten(shape)}] is not a list of positive integers")
    if len(parts) > _MOST_DIMENSIONS:
        raise Unusable(f"`{name}`: {len(parts)} dimensions; an array has at most {_MOST_DIMENSIONS}")
    return tuple(int(part) for part in parts)


def _parse_options(label: str, text: str) -> dict[str, str]:
    pairs = [part.strip().partition("=") for part in text.split(",")]
    options = {name: value for name, _, value in pairs}
    if not set(options) <= {"box", "swizzle"} or "box" not in options:
        raise Unusable(f"`{label}`: a map takes box=ROWSxCOLUMNS and swizzle=128B, 64B, 32B or none")
    return options


def _fill(spec: Spec, shape: tuple[int, ...], dtype: np.dtype[Any], seed: tuple[int, int]) -> Array:
    if spec.value.endswith(".npy"):
        return _read_file(spec, shape, dtype)
    match = _FILL.fullmatch(spec.value)
    name, bounds = (match["name"], match["bounds"]) if match else ("", None)
    random, is_integer = np.random.default_rng(seed), dtype.kind in "iu"
    match name:
        case "zeros" | "ones" if bounds is None:
            return np.full(shape, int(name == "ones"), dtype)
        case "arange" if bounds is None:
            return _store(spec, np.arange(math.prod(shape)), dtype).reshape(shape)
        case "randn" | "uniform" if is_integer:
            raise Unusable(f"`{spec.text}`: {name} needs a floating-point type; for integers, use randint(low,high)")
        case "randn" if bounds is None:
            return _store(spec, random.standard_normal(shape), dtype)
        case "uniform":
            low, high = _parse_bounds(spec, name, bounds)
            if not math.isfinite(high - low):
                raise Unusable(f"`{spec.text}`: the range from {low:g} to {high:g} is not finite")
            return _store(spec, random.uniform(low, high, shape), dtype)
        case "randint":
            low, high = _check_integers(spec, *_parse_bounds(spec, name, bounds), dtype)
            values = random.integers(low, high, shape, dtype=np.uint64 if high > 1 << 63 else np.int64)
            return _store(spec, values, dtype)
        case _:
            return _fill_with_number(spec, shape, dtype)


def _store(spec: Spec, values: Array, dtype: np.dtype[Any]) -> Array:
    """Return finite values as elements of a type; Unusable if they are too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        elements = values.astype(dtype)
    if dtype.kind not in "iu" and not np.isfinite(elements).all():
        raise Unusable(f"`{spec.text}`: values up to {float(np.abs(values).max()):g} do not fit into {spec.type}")
    return elements


def _parse_bounds(spec: Spec, name: str, bounds: str | None) -> tuple[float, float]:
    """Return two numbers; integers stay exact."""
    parts = [part.strip() for part in (bounds or "").split(",")]
    try:
        if len(parts) != 2 or not all(part.isascii() for part in parts):
            raise ValueError
        low, high = (int(p) if re.fullmatch(r"-?[0-9]{1,40}", p) else float(p) for p in parts)
    except ValueError:
        raise Unusable(f"`{spec.text}`: expected two numbers, for example {name}(0,10)") from None
    if not low < high:
        raise Unusable(f"`{spec.text}`: {low:g} is not below {high:g}")
    return low, high


def _check_integers(spec: Spec, low: float, high: float, dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the bounds of random integers; the upper one is exclusive."""
    if not (math.isfinite(low) and math.isfinite(high) and low == int(low) and high == int(high)):
        raise Unusable(f"`{spec.text}`: expected two integers, for example randint(0,10)")
    least, greatest = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (-(1 << 63), (1 << 63) - 1)
    if low < least or high - 1 > greatest:
        raise Unusable(f"`{spec.text}`: integers from {low:g} to {high - 1:g} do not fit into {spec.type}")
    return int(low), int(high)


def _fill_with_number(spec: Spec, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    value = _parse_integer(spec) if dtype.kind in "iu" else _parse_float(spec)
    if isinstance(value, int):
        fits = bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            element = float(np.array(value).astype(dtype))
        fits = math.isnan(value) or (math.isinf(value) == math.isinf(element) and not math.isnan(element))
    if not fits:
        raise Unusable(f"`{spec.text}`: {shorten(spec.value)} does not fit into {spec.type}")
    return np.full(shape, value, dtype)


def _parse_integer(spec: Spec) -> int:
    try:
        if spec.value.isascii() and len(spec.value) <= _LONGEST_SHOWN:
            return int(spec.value, 0)
    except ValueError:
        pass
    raise _complain_meaningless(spec)


def _parse_float(spec: Spec) -> float:
    try:
        value = float(spec.value) if spec.value.isascii() and len(spec.value) <= _LONGEST_SHOWN else None
    except ValueError:
        value = None
    if value is None:
        raise _complain_meaningless(spec)
    if math.isinf(value) and "inf" not in spec.value.lower():
        raise Unusable(f"`{spec.text}`: {spec.value} does not fit into {spec.type}")
    return value


def _complain_meaningless(spec: Spec) -> Unusable:
    if len(spec.value) > _LONGEST_SHOWN and _DIGITS.fullmatch(spec.value):
        return Unusable(
            f"`{spec.text}`: the number has {len(spec.value)} characters; at most {_LONGEST_SHOWN} are allowed"
        )
    return Unusable(f"`{spec.text}`: `{shorten(spec.value)}` is none of {', '.join(_NAMED)}")


def _read_file(spec: Spec, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    array = read_array(Path(spec.value))
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)  # types that NumPy does not know, such as bf16, load as bytes
    if array.dtype != dtype:
        raise Unusable(f"`{spec.text}`: {spec.value} holds {array.dtype}, not {spec.type}")
    if array.size != math.prod(shape):
        raise Unusable(f"`{spec.text}`: {spec.value} has shape {array.shape}, not {shape}")
    return np.ascontiguousarray(array).reshape(shape)


def read_array(path: Path) -> Array:
    """Return the numeric array of a .npy file whose length matches its header; never unpickle."""
    name = shorten(str(path))
    try:
        if path.exists() and not path.is_file():
            raise Unusable(f"{name}: expected a .npy file, but this is not a regular file")
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except FileNotFoundError:
        raise Unusable(f"{name}: no such file") from None
    except (OSError, ValueError) as why:
        raise Unusable(f"{name}: {why.strerror if isinstance(why, OSError) else why}") from None
    if start != _MAGIC:
        archive = (
            "an archive (.npz); save one of its arrays with numpy.save" if start[:2] == _ARCHIVE else "something else"
        )
        raise Unusable(f"{name}: expected a .npy file, but this is {archive}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers written by Python 2
            memory_map = np.lib.format.open_memmap(path, mode="r")
            if memory_map.nbytes > _MOST_BYTES:
                raise Unusable(f"{name}: more than {_MOST_BYTES >> 30} GiB")
            array = np.load(path, allow_pickle=False)
    except Unusable:
        raise
    except MemoryError:
        raise Unusable(f"{name}: not enough memory for this array") from None
    except _BAD_HEADER as why:
        short = "mmap length" in str(why) or isinstance(why, EOFError)
        text = (
            "the file is shorter than its header says" if short else "its header does not describe an array of numbers"
        )
        raise Unusable(f"{name}: {why.strerror if isinstance(why, OSError) else text}") from None
    if array.dtype.kind not in "biufV" or array.dtype.names or not array.dtype.itemsize:
        raise Unusable(f"{name}: expected an array of numbers, found {shorten(str(array.dtype))}")
    return array


def _build_tensor_map(spec: Spec, array: Array) -> TensorMap:
    """Return the tensor map of a whole array, with dimensions innermost first, as in hardware."""
    assert spec.map is not None
    box = _parse_sizes(spec.text, spec.map["box"])
    swizzle = _SWIZZLES.get(spec.map.get("swizzle", "none"))
    if len(box) != array.ndim or swizzle is None or spec.type not in _ELEMENTS:
        raise Unusable(
            f"`{spec.text}`: expected a box of {array.ndim} sizes and one of the swizzles {', '.join(_SWIZZLES)}"
        )
    return TensorMap(_ELEMENTS[spec.type], 0, array.shape[::-1], array.strides[-2::-1], box[::-1], swizzle=swizzle)
