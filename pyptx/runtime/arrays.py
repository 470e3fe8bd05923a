"""Views arrays of NumPy, PyTorch and JAX as NumPy arrays over the same memory, and returns results in the caller's
library.

Another library is imported only if one of its arrays is passed, so it is already loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_MOST_TYPES = 64
"""Of how many types of values the library is cached, and of how many names the dtype."""


class Unusable(NamedTuple):
    """Why an argument is not an array in this process's memory, worded for the message about the argument."""

    problem: str
    remedy: str = ""
    """An expression to pass instead, with `{0}` for the argument."""

    def describe(self, name: str) -> str:
        """Return the message about an argument of this name."""
        return f"{self.problem}; use {self.remedy.format(name)}" if self.remedy else self.problem


class DeviceView(NamedTuple):
    """An array in the memory of a device."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    """The name of NumPy's or ml_dtypes' dtype."""
    is_contiguous: bool
    device: int
    owner: Any
    """What keeps the memory alive."""
    stream: int | None = None
    """The stream whose work the memory waits for, if the array says so."""
    exports_dlpack: bool = False
    """Whether `__dlpack__` of the owner makes a stream wait for the array."""


class Described(NamedTuple):
    """An array without its values, as the checks of a call see it."""

    shape: tuple[int, ...]
    dtype: str
    """The name of NumPy's or ml_dtypes' dtype."""
    is_contiguous: bool = True
    """Whether its elements follow each other in row-major order."""
    misaligned: int = 0
    """The alignment that its elements should have, in bytes; 0 if they have it."""
    library: str = ""
    """The library whose functions convert it, as `find_library` names it; empty if that is unknown."""
    misplaced: str = ""
    """What `find_misplaced` says of it, empty if it is with the others."""


def describe(array: View, library: str = "") -> Described | Unusable:
    """Return the description of a view that `adopt` made of an array of a library."""
    if isinstance(array, Unusable):
        return array
    if isinstance(array, DeviceView):
        size = get_numpy_dtype(array.dtype).itemsize
        misaligned = size if array.address % size else 0
        return Described(array.shape, array.dtype, array.is_contiguous, misaligned, library)
    misaligned = 0 if array.flags.aligned else array.itemsize
    return Described(array.shape, array.dtype.name, array.flags.c_contiguous, misaligned, library or "numpy")


View = Array | DeviceView | Unusable


def find_misplaced(places: Mapping[str, int | str | None]) -> dict[str, str]:
    """Return what is wrong with arrays that are elsewhere than the first one on a device. `places` are devices by the
    names of arrays: a number, the name of another kind of device, or None for the CPU's memory."""
    if len({*places.values()}) <= 1:
        return {}
    first, device = next((name, place) for name, place in places.items() if place is not None)
    expected = f"expected an array {_describe_place(device)}, like `{first}`"
    return {
        name: f"{expected}, found one {_describe_place(place)}; copy it there"
        for name, place in places.items()
        if place != device
    }


def _describe_place(device: int | str | None) -> str:
    if isinstance(device, str):
        return f"on the {device} device"
    return "in the CPU's memory" if device is None else f"on device {device}"


def allocate(description: Described) -> Array:
    """Return an array of NaN, or of bytes 0xCC if the type has no NaN: unwritten elements stand out, and are the same
    in every run."""
    array = np.empty(description.shape, get_numpy_dtype(description.dtype))
    fill(array)
    return array


def fill(array: Array) -> None:
    """Fill a contiguous array as `allocate` does."""
    if "float" in array.dtype.name and np.isnan(np.array(np.nan).astype(array.dtype)):
        array.fill(np.nan)
    else:
        array.reshape(-1).view(np.uint8).fill(0xCC)


@lru_cache(_MOST_TYPES)
def get_numpy_dtype(name: str) -> np.dtype[Any]:
    """Return NumPy's dtype of this name; `ml_dtypes` provides the small formats."""
    return np.dtype(getattr(ml_dtypes, name, name))


def find_library(values: Iterable[object]) -> str:
    """Return the library for the results: that of the first argument that is not a NumPy array; `device` for arrays in
    device memory whose library is none of those that this package knows."""
    return next((name for value in values if (name := _find_library(value)) != "numpy"), "numpy")


def _find_library(value: object) -> str:
    library = _find_library_of_type(type(value))
    if library is not None:
        return library
    return "numpy" if isinstance(value, np.ndarray | np.generic) or not _is_on_device(value) else "device"


@lru_cache(_MOST_TYPES)
def _find_library_of_type(kind: type) -> str | None:
    roots = {base.__module__.partition(".")[0] for base in kind.__mro__}
    if not roots & {"torch", "jax", "jaxlib", "cupy"}:
        return None
    return "torch" if "torch" in roots else "cupy" if "cupy" in roots else "jax"


def _is_on_device(value: object) -> bool:
    device: Any = getattr(value, "__dlpack_device__", None)
    return (device is not None and int(device()[0]) in _CUDA_OF_DLPACK) or hasattr(value, "__cuda_array_interface__")


def list_targets(out: Any) -> list[Any]:
    """Return the arrays that a caller passed for the outputs."""
    return [] if out is None else list(cast("Sequence[Any]", out)) if isinstance(out, tuple | list) else [out]


def are_run_by_jax(values: Iterable[object]) -> bool:
    """Tell whether a call with these values is JAX's to run: while it traces them, or in the memory of its GPUs."""
    for value in values:
        if _find_library(value) == "jax":
            from pyptx.runtime import jax_arrays

            if jax_arrays.is_run_by_jax(value):
                return True
    return False


def adopt(values: Sequence[Any], *, writable: bool = False) -> list[View]:
    """Return views of arrays without copying; the same array twice is one view. `writable` ones are outputs."""
    views: dict[int, View] = {}
    for value in values:
        if id(value) not in views:
            views[id(value)] = _view(value, writable)
    return [views[id(value)] for value in values]


def _view(value: Any, writable: bool) -> View:
    library = _find_library(value)
    if library == "torch":
        from pyptx.runtime import torch_

        return torch_.view(value)
    if library == "jax":
        from pyptx.runtime import jax_arrays

        return jax_arrays.view(value, writable)
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack_device__") or hasattr(value, "__cuda_array_interface__"):
            from pyptx.runtime import device_views

            on_device = device_views.view(value, writable)
            if on_device is not None:
                return on_device
        return _refuse(value)
    if isinstance(value, np.ma.MaskedArray):
        return Unusable("expected an array without a mask, which kernels ignore", "{0}.filled(value) or {0}.data")
    array = cast("Array", value)
    return (
        Unusable("expected a writable array, found a read-only one", "{}.copy()")
        if writable and not array.flags.writeable
        else array
    )


def _refuse(value: object) -> Unusable:
    device: Any = getattr(value, "__dlpack_device__", None)
    if device is None:
        return refuse_type(type(value).__name__)
    text = f"expected an array, found {type(value).__name__}"
    if int(device()[0]) in _CPU_OF_DLPACK:
        return Unusable(text, _CONVERSION)
    return Unusable(f"{text} in the memory of another kind of device; kernels take arrays of CUDA devices or the CPU")


def refuse_type(name: str) -> Unusable:
    """Return why a value of a type of this name is no array."""
    return Unusable(f"expected an array, found {name}", _CONVERSION if name in ("list", "tuple") else "")


_CONVERSION = "numpy.asarray({0})"


_CPU_OF_DLPACK, _CUDA_OF_DLPACK = frozenset((1, 3, 11)), frozenset((2, 13))
"""DLPack's device numbers: of the CPU, with memory that CUDA and ROCm have pinned for it; and of CUDA devices."""


def check_results(library: str, arrays: Sequence[Array]) -> None:
    """Refuse results that the library cannot hold."""
    if library == "jax":
        from pyptx.runtime import jax_arrays

        for array in arrays:
            jax_arrays.check_dtype(array.dtype.name)


def give_back(library: str, arrays: Sequence[Array]) -> list[Any]:
    """Return results as arrays of a library, over the same memory if possible."""
    if library == "torch":
        from pyptx.runtime import torch_

        return [torch_.to_torch(array) for array in arrays]
    if library == "jax":
        from pyptx.runtime import jax_arrays

        return [jax_arrays.to_jax(array) for array in arrays]
    return list(arrays)


def note_written(values: Iterable[Any]) -> None:
    """Notify the arrays' libraries that their memory has changed."""
    for value in values:
        if _find_library(value) == "torch":
            from pyptx.runtime import torch_

            torch_.note_written(value)
