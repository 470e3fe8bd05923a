"""Kernels on JAX's CPU arrays: read in place, results as JAX arrays; outputs are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np

from pyptx import PtxError, Tile, kernel
from pyptx.types import bf16, f32, u64
from tests.messages import raises

from .test_torch import elementwise, product

# Annotated as Any: casts on every line would add nothing.
jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
X = jnp.arange(32.0)


def test_arrays_go_in_and_come_out() -> None:
    z = product(X, X)
    assert isinstance(z, jax.Array)
    assert jnp.array_equal(z, X * X)
    halves = X.astype(jnp.bfloat16)
    assert jnp.array_equal(elementwise(bf16, 2)(halves), halves)


def test_an_array_is_read_where_it_lies() -> None:
    from pyptx.runtime.arrays import adopt

    (view,) = adopt([X])
    assert isinstance(view, np.ndarray)
    assert view.ctypes.data == X.unsafe_buffer_pointer()


def test_arrays_do_not_change() -> None:
    with raises(PtxError, match="`z`: expected a writable array, but JAX arrays are immutable"):
        product(X, X, out=X)


def test_a_simulation_is_not_traced() -> None:
    def square(x: Any) -> Any:
        return product.simulate(x, x)

    with raises(PtxError, match=r"`x`: .*found a tracer.*outside jax\.jit"):
        jax.jit(square)(X)


def test_a_description_of_an_array_is_none() -> None:
    with raises(PtxError, match="`x`: expected an array, found ShapeDtypeStruct"):
        product(jax.ShapeDtypeStruct((32,), jnp.float32), X)


_TWO_DEVICES = """
import jax
from pyptx.runtime.arrays import adopt
mesh = jax.sharding.Mesh(jax.devices(), "n")
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("n"))
print(adopt([jax.device_put(jax.numpy.zeros(32), sharding)])[0].problem)
print("expected an array in CPU memory, found one on", ", ".join(map(str, jax.devices())))
"""


def test_an_array_on_two_devices_is_refused() -> None:
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    process = subprocess.run(
        [sys.executable, "-c", _TWO_DEVICES], capture_output=True, text=True, check=True, env=environment
    )
    problem, expected = process.stdout.splitlines()
    assert problem == expected
    assert problem.count("0") == problem.count("1") == 1


def test_a_deleted_array_is_refused() -> None:
    deleted_array = jnp.arange(32.0) + 1
    deleted_array.delete()
    with raises(PtxError, match=r"`y`: .*donated or deleted"):
        product(X, deleted_array)


def test_wide_types_need_their_switch() -> None:
    @kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(4, u64)], grid=(1,), block=(1, 1, 1))
    def do_nothing(x: Any, y: Any) -> None: ...

    with raises(PtxError, match="a result is uint64, but JAX converts it to uint32"):
        do_nothing(X)
