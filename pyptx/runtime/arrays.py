"""Views arrays of NumPy, PyTorch and JAX as NumPy arrays over the same memory, and returns results in the caller's
library.

Another library is imported only if one of its arrays is passed, so it is already loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Unusable(NamedTuple):
    """Why an argument is not an array in this process's memory, worded for the message about the argument."""

    problem: str


class Described(NamedTuple):
    """An array without its values, as the checks of a call see it."""

    shape: tuple[int, ...]
    dtype: str
    """The name of NumPy's or ml_dtypes' dtype."""
    is_contiguous: bool = True
    """Whether its elements follow each other in row-major order."""
    misaligned: int = 0
    """The alignment that its elements should have, in bytes; 0 if they have it."""


def describe(array: Array | Unusable) -> Described | Unusable:
    """Return the description of a view that `adopt` made."""
    if isinstance(array, Unusable):
        return array
    misaligned = 0 if array.flags.aligned else array.itemsize
    return Described(array.shape, array.dtype.name, array.flags.c_contiguous, misaligned)


def allocate(description: Described) -> Array:
    """Return an array of NaN, or of bytes 0xCC if the type has no NaN: unwritten elements stand out, and are the same
    in every run."""
    dtype = get_numpy_dtype(description.dtype)
    array = np.full((*description.shape, dtype.itemsize), 0xCC, np.uint8).view(dtype).reshape(description.shape)
    if "float" in dtype.name and np.isnan(np.array(np.nan).astype(dtype)):
        array.fill(np.nan)
    return array


def get_numpy_dtype(name: str) -> np.dtype[Any]:
    """Return NumPy's dtype of this name; `ml_dtypes` provides the small formats."""
    return np.dtype(getattr(ml_dtypes, name, name))


def find_library(values: Iterable[object]) -> str:
    """Return the library for the results: that of the first argument that is not a NumPy array."""
    return next((name for value in values if (name := _find_library(value)) != "numpy"), "numpy")


def _find_library(value: object) -> str:
    roots = {kind.__module__.partition(".")[0] for kind in type(value).__mro__}
    return "torch" if "torch" in roots else "jax" if roots & {"jax", "jaxlib"} else "numpy"


def adopt(values: Sequence[Any], *, writable: bool = False) -> list[Array | Unusable]:
    """Return views of arrays without copying; the same array twice is one view. `written` are outputs."""
    views: dict[int, Array | Unusable] = {}
    for value in values:
        if id(value) not in views:
            views[id(value)] = _view(value, writable)
    return [views[id(value)] for value in values]


def _view(value: Any, writable: bool) -> Array | Unusable:
    library = _find_library(value)
    if library == "torch":
        from pyptx.runtime import torch_

        return torch_.view(value)
    if library == "jax":
        from pyptx.runtime import jax_arrays

        return jax_arrays.view(value, writable)
    if not isinstance(value, np.ndarray):
        return Unusable(f"expected an array, found {type(value).__name__}{_suggest(value)}")
    if isinstance(value, np.ma.MaskedArray):
        return Unusable("expected an array without a mask, which kernels ignore; use x.filled(value) or x.data")
    array = cast("Array", value)
    return (
        Unusable("expected a writable array, found a read-only one")
        if writable and not array.flags.writeable
        else array
    )


def _suggest(value: object) -> str:
    device: Any = getattr(value, "__dlpack_device__", None)
    elsewhere = device is not None and int(device()[0]) not in _CPU_OF_DLPACK
    if not elsewhere and not hasattr(value, "__cuda_array_interface__"):
        return "; use numpy.asarray(x)" if device is not None or isinstance(value, list | tuple) else ""
    return " in GPU memory; kernels run on the simulator, which takes arrays in CPU memory: copy it to the CPU"


_CPU_OF_DLPACK = frozenset((1, 3, 11))
"""DLPack's device numbers of the CPU and of memory that CUDA and ROCm have pinned for it."""


def check_results(library: str, arrays: Sequence[Array]) -> None:
    """Refuse results that the library cannot hold."""
    if library == "jax":
        from pyptx.runtime import jax_arrays

        for array in arrays:
            jax_arrays.check_result(array)


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
