"""PyTorch's CPU tensors as NumPy arrays and back, over the same memory."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes

from pyptx.driver import is_active
from pyptx.numbers import FORMATS
from pyptx.runtime import device_views
from pyptx.runtime.arrays import Array, Unusable, View, get_numpy_dtype, refuse_type

# PyTorch's stubs are as large as this package, and nothing here needs them.
torch: Any = import_module("torch")

_BITS = {1: "uint8", 2: "int16"}
_WITHOUT_VALUES = frozenset(("FakeTensor", "FunctionalTensor"))


def view(tensor: Any) -> View:
    """Return a tensor's memory as an array, or why it cannot be used."""
    problem = find_problem(tensor)
    if problem is not None:
        return problem
    if tensor.device.type == "cuda" or is_active():
        return device_views.view_tensor(tensor)
    plain, name = tensor.detach(), str(tensor.dtype).removeprefix("torch.")
    try:
        if not _is_unknown_to_numpy(name):
            return plain.numpy()
        bits = plain.view(getattr(torch, _BITS[tensor.element_size()])).numpy()
    except (RuntimeError, TypeError) as error:
        return Unusable(f"PyTorch does not expose its memory: {error}")
    return bits if name == _PACKED else bits.view(get_numpy_dtype(name))


_PACKED = FORMATS["e2m1"].pair


def _is_unknown_to_numpy(name: str) -> bool:
    """Tell whether a floating-point dtype is PyTorch's and ml_dtypes' only."""
    return name == _PACKED or ("float" in name and hasattr(ml_dtypes, name))


def find_problem(tensor: Any, *, needs_memory: bool = True) -> Unusable | None:
    """Return why a tensor cannot be an argument of a kernel."""
    if not isinstance(tensor, torch.Tensor):
        return refuse_type(type(tensor).__name__)
    problem = _find_missing_memory(tensor) if needs_memory else None
    if problem is not None:
        return problem
    if tensor.is_nested:
        return Unusable("expected a dense tensor, found a nested one", "torch.nested.to_padded_tensor({0}, 0)")
    if tensor.layout != torch.strided:
        layout = str(tensor.layout).removeprefix("torch.")
        return Unusable(f"expected a dense tensor, found layout {layout}", "{0}.to_dense()")
    if tensor.is_conj():
        return Unusable("expected an ordinary tensor, found a conjugate view", "{0}.resolve_conj()")
    if tensor.is_neg():
        return Unusable("expected an ordinary tensor, found a negative view", "{0}.resolve_neg()")
    return None


def _find_missing_memory(tensor: Any) -> Unusable | None:
    if type(tensor).__name__ in _WITHOUT_VALUES:
        return Unusable(f"expected a concrete tensor, found {type(tensor).__name__}: PyTorch is tracing the call")
    if tensor.device.type == "meta":
        return Unusable("expected a concrete tensor, found one on the meta device")
    if tensor.device.type not in ("cpu", "cuda"):
        return Unusable(f"expected a tensor on a CUDA device or the CPU, found one on {tensor.device}")
    return None


def name_dtype(tensor: Any) -> str:
    """Return the dtype of the array that `view` returns for a tensor."""
    name = str(tensor.dtype).removeprefix("torch.")
    return _BITS[1] if name == _PACKED else name


def get_dtype(name: str) -> Any:
    """Return PyTorch's dtype of the tensors that `to_torch` returns for arrays of this dtype."""
    return getattr(torch, name)


def to_torch(array: Array) -> Any:
    """Return an array as a tensor over its memory."""
    name = array.dtype.name
    if not _is_unknown_to_numpy(name):
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(_BITS[array.itemsize])).view(getattr(torch, name))


def note_written(tensor: Any) -> None:
    """Record a change of a tensor, so that autograd detects that a saved value was overwritten."""
    torch.autograd.graph.increment_version(tensor)
