"""Arguments of a kernel as the shell spells them: `f32[1024]=randn`, `i32=7`, `u8[64]=in.npy`. Knows no simulator but
the two kinds of value that it takes: arrays, and arrays behind a tensor map."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from pyptx.sim import Tensor
from pyptx.tensormap import ElementType, Swizzle, TensorMap

Array = NDArray[Any]
Value = Array | Tensor | np.generic


class Unusable(ValueError):
    """An argument that cannot be understood; the message is for the user."""


DTYPES: dict[str, np.dtype[Any]] = {
    **{f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}")
       for letter, kind in (("i", "i"), ("s", "i"), ("u", "u"), ("b", "u")) for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}  # fmt: skip
_MOST_BYTES = 1 << 32
_SPEC = re.compile(r"(?P<type>\w+)(\[(?P<shape>[\d,x]+)\])?=(?P<value>[^\s].*?)(\s+map\((?P<map>[^)]*)\))?")
_NAMED = ("zeros", "ones", "arange", "randn", "uniform(low,high)", "randint(low,high)", "a number", "a file.npy")
_ELEMENTS = {
    "u8": ElementType.U8, "u16": ElementType.U16, "u32": ElementType.U32, "i32": ElementType.S32,
    "s32": ElementType.S32, "u64": ElementType.U64, "i64": ElementType.S64, "s64": ElementType.S64,
    "f16": ElementType.F16, "f32": ElementType.F32, "f64": ElementType.F64, "bf16": ElementType.BF16,
    "e4m3": ElementType.U8, "e5m2": ElementType.U8,
}  # fmt: skip
_SWIZZLES = {"none": Swizzle.NONE, "32B": Swizzle.B32, "64B": Swizzle.B64, "128B": Swizzle.B128}


@dataclass(frozen=True, slots=True)
class Spec:
    """One `--arg`: `shape` is None for a scalar, `map` the options of a tensor map."""

    text: str
    type: str
    shape: tuple[int, ...] | None
    value: str
    map: dict[str, str] | None


def parsed(text: str) -> Spec:
    """Return what an argument says."""
    found = _SPEC.fullmatch(text.strip())
    if found is None:
        raise Unusable(f"`{text}`: expected TYPE=VALUE or TYPE[SHAPE]=VALUE, for example f32[1024]=randn or i32=7")
    if found["type"] not in DTYPES:
        raise Unusable(f"`{text}`: `{found['type']}` is no type; {', '.join(DTYPES)} are")
    shape = None if found["shape"] is None else _numbers(text, found["shape"])
    dtype = DTYPES[found["type"]]
    if shape is not None and dtype.itemsize * int(np.prod(shape, dtype=object)) > _MOST_BYTES:
        raise Unusable(f"`{text}`: more than {_MOST_BYTES >> 30} GiB")
    options = None if found["map"] is None else _options(text, found["map"])
    if options is not None and shape is None:
        raise Unusable(f"`{text}`: a tensor map needs an array")
    return Spec(text, found["type"], shape, found["value"], options)


def made(spec: Spec, seed: tuple[int, int]) -> Value:
    """Return the value of an argument, fresh; random ones by this seed."""
    dtype = DTYPES[spec.type]
    if spec.shape is None:
        return _filled(spec, (1,), dtype, seed)[0]
    array = _filled(spec, spec.shape, dtype, seed)
    return array if spec.map is None else Tensor(array, _tensor_map(spec, array))


def array_of(value: Value) -> Array | None:
    """Return the array of an argument, None for a scalar."""
    if isinstance(value, Tensor):
        return value.array
    return None if isinstance(value, np.generic) else value


def _numbers(text: str, shape: str) -> tuple[int, ...]:
    parts = re.split("[,x]", shape)
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise Unusable(f"`{text}`: the shape [{shape}] is no list of positive numbers")
    return tuple(int(part) for part in parts)


def _options(text: str, given: str) -> dict[str, str]:
    pairs = [part.strip().partition("=") for part in given.split(",")]
    options = {name: value for name, _, value in pairs}
    if not set(options) <= {"box", "swizzle"} or "box" not in options:
        raise Unusable(f"`{text}`: a map takes box=ROWSxCOLUMNS and swizzle=128B, 64B, 32B or none")
    return options


def _filled(spec: Spec, shape: tuple[int, ...], dtype: np.dtype[Any], seed: tuple[int, int]) -> Array:
    name, _, rest = spec.value.partition("(")
    random = np.random.default_rng(seed)
    match name:
        case "zeros" | "ones" if not rest:
            return np.full(shape, int(name == "ones"), dtype)
        case "arange" if not rest:
            return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
        case "randn" | "uniform" if dtype.kind in "iu":
            raise Unusable(f"`{spec.text}`: {name} needs a type with fractions; randint(low,high) fills integers")
        case "randn" if not rest:
            return random.standard_normal(shape).astype(dtype)
        case "uniform":
            low, high = _range(spec, rest)
            return random.uniform(low, high, shape).astype(dtype)
        case "randint":
            low, high = _range(spec, rest)
            return random.integers(int(low), int(high), shape).astype(dtype)
        case _ if spec.value.endswith(".npy"):
            return _read(spec, shape, dtype)
        case _:
            return _number(spec, shape, dtype)


def _range(spec: Spec, rest: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in rest.removesuffix(")").split(","))
    except ValueError:
        raise Unusable(
            f"`{spec.text}`: two numbers expected, for example {spec.value.partition('(')[0]}(0,10)"
        ) from None
    if not low < high:
        raise Unusable(f"`{spec.text}`: {low:g} is not below {high:g}")
    return low, high


def _number(spec: Spec, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    whole = dtype.kind in "iu"
    try:
        value = int(spec.value, 0) if whole else float(spec.value)
    except ValueError:
        raise Unusable(f"`{spec.text}`: `{spec.value}` is none of {', '.join(_NAMED)}") from None
    if whole and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise Unusable(f"`{spec.text}`: {value} does not fit into {spec.type}")
    return np.full(shape, value, dtype)


def _read(spec: Spec, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    found = read_array(Path(spec.value))
    if found.dtype.kind == "V" and found.dtype.itemsize == dtype.itemsize:
        found = found.view(dtype)  # a type that NumPy does not know, such as bf16, comes back as bytes
    if found.dtype != dtype:
        raise Unusable(f"`{spec.text}`: {spec.value} holds {found.dtype}, not {spec.type}")
    if found.size != int(np.prod(shape)):
        raise Unusable(f"`{spec.text}`: {spec.value} has shape {found.shape}, not {shape}")
    return np.ascontiguousarray(found).reshape(shape)


def read_array(path: Path) -> Array:
    """Return the array of a .npy file; pickled objects are refused."""
    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise Unusable(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError) as why:
        raise Unusable(f"{path}: {why}") from None


def _tensor_map(spec: Spec, array: Array) -> TensorMap:
    """Return the map of a whole array, its dimensions innermost first as the hardware counts them."""
    assert spec.map is not None
    box = _numbers(spec.text, spec.map["box"])
    swizzle = _SWIZZLES.get(spec.map.get("swizzle", "none"))
    if len(box) != array.ndim or swizzle is None or spec.type not in _ELEMENTS:
        raise Unusable(f"`{spec.text}`: a box of {array.ndim} sizes and a swizzle of {', '.join(_SWIZZLES)} are needed")
    return TensorMap(_ELEMENTS[spec.type], 0, array.shape[::-1], array.strides[-2::-1], box[::-1], swizzle=swizzle)
