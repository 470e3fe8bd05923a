"""Views JAX's CPU arrays as NumPy arrays over the same memory, and returns results as JAX arrays."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError
from pyptx.runtime.arrays import Array, Unusable, get_numpy_dtype, refuse_type
from pyptx.runtime.rules import ARRAYS

# With its stubs, every line here would need a cast.
jax: Any = import_module("jax")


def view(value: Any, writable: bool) -> Array | Unusable:
    """Return an array's memory, or why it cannot be used."""
    if isinstance(value, jax.core.Tracer):
        return Unusable("expected a concrete array, found a tracer: JAX is tracing the call; call it outside jax.jit")
    if not isinstance(value, jax.Array):
        # JAX's transformations hand NumPy's arrays over as constants of their own.
        if hasattr(value, "__array__") and not writable:
            return np.asarray(value)
        return refuse_type(type(value).__name__)
    if writable:
        return Unusable(
            "expected a writable array, but JAX arrays are immutable; omit out= and use the result, or "
            "pass initial values under jax.jit"
        )
    if value.is_deleted():
        return Unusable("expected a concrete array, found one that was donated or deleted")
    devices = sorted(map(str, value.devices()))
    if len(devices) > 1 or next(iter(value.devices())).platform != "cpu":
        return Unusable(f"expected an array in CPU memory, found one on {', '.join(devices)}")
    return np.asarray(value)


def check_dtype(name: str, noun: str = "a result") -> None:
    """Refuse a dtype that JAX would narrow, which it does with 64-bit types by default."""
    canonical = jax.dtypes.canonicalize_dtype(get_numpy_dtype(name))
    if canonical.name != name:
        raise PtxError([ARRAYS.report(
            None, f"{noun} is {name}, but JAX converts it to {canonical.name}",
            help='jax.config.update("jax_enable_x64", True), or call the kernel with NumPy arrays',
        )])  # fmt: skip


def is_run_by_jax(value: Any) -> bool:
    """Tell whether JAX is tracing a call with this value, or it is in the memory of a GPU of JAX."""
    if isinstance(value, jax.core.Tracer):
        return True
    if not isinstance(value, jax.Array) or value.is_deleted():
        return False
    return any(device.platform == _GPU for device in value.devices())


_GPU = "gpu"


def to_jax(result: Array) -> Any:
    """Return a result as a JAX array."""
    return jax.numpy.asarray(result)


def vary(value: Any, axes: frozenset[Any]) -> Any:
    """Return a value that varies along axes of the mesh, inside `jax.shard_map`."""
    missing = tuple(axes - find_axes([value]))
    if not missing:
        return value
    return jax.lax.pcast(value, missing, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(value, missing)


def find_axes(values: Iterable[Any]) -> frozenset[Any]:
    """Return the axes of the mesh along which any of some values varies."""
    return frozenset[Any]().union(*(_list_axes(jax.typeof(value)) for value in values))


def _list_axes(kind: Any) -> frozenset[Any]:
    if hasattr(kind, "manual_axis_type"):
        return kind.manual_axis_type.varying if kind.manual_axis_type is not None else frozenset()
    return getattr(kind, "vma", frozenset[Any]())  # before JAX 0.10
