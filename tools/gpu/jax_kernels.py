"""Checks of kernels in JAX programs: what only a JAX with CUDA can show. They use JAX's default device."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import numpy as np

from examples.parts.example import Example, Run, find_example, list_keywords, list_tiles, verify
from pyptx import Kernel, Tile, kernel, ptx, reg
from pyptx.types import f32, u64
from tools.gpu.checks import Machine, check
from tools.gpu.kernels import choose_target, list_runs

VECTOR_ADD = find_example("any/vector_add")

JAX = "JAX with CUDA"
SIZE = 1024


def list_jax_runs(machine: Machine) -> list[tuple[Example, Run]]:
    """Return runs of kernels that do not update their outputs, since those cannot write to JAX's arrays, nor have
    elements of 64 bits, which JAX converts by default."""
    return [
        (example, run)
        for example, run in list_runs(machine)
        if example.outputs is None and all(tile.dtype.bits < 64 for tile in list_tiles(example.make()))
    ]


def list_jax_names(machine: Machine) -> list[str]:
    """Return the names of the examples of these runs."""
    return list(dict.fromkeys(example.name for example, _ in list_jax_runs(machine)))


@check(
    "every example kernel in a function compiled by JAX, run three times, against its reference",
    JAX,
    parts=list_jax_names,
)
def jax_example_kernels(machine: Machine) -> str:
    """Compare the example kernels in compiled functions with their references."""
    jax: Any = import_module("jax")
    runs = list_jax_runs(machine)
    for example, run in runs:
        inputs, member = example.draw_inputs(run), example.make(choose_target(example, machine.target))
        keywords = list_keywords(member, run)

        def call(*arrays: Any, member: Kernel = member, keywords: dict[str, Any] = keywords) -> Any:
            return member(*arrays, **keywords)

        compiled = jax.jit(call)
        for _ in range(3):
            outputs = jax.tree.leaves(compiled(*map(jax.numpy.asarray, inputs)))
            verify(run, [*map(np.asarray, outputs)], example.compute(run, inputs))
    return f"{len({example.name for example, _ in runs})} kernels, {len(runs)} runs"


@check("a kernel between operations of XLA, 20 in a row, mapped, in a loop, and on its own outside of jax.jit", JAX)
def jax_transformations(machine: Machine) -> str:
    """Compare a kernel in JAX's transformations with additions."""
    jax: Any = import_module("jax")
    jnp = jax.numpy
    add, x = VECTOR_ADD.make(), jnp.arange(float(SIZE))

    def chain(x: Any) -> Any:
        for _ in range(20):
            x = add(x * 0.5, x * 0.5)
        return x

    def loop(x: Any) -> Any:
        def step(_: Any, value: Any) -> Any:
            return add(value, x)

        return jax.lax.fori_loop(0, 5, step, x)

    compiled = jax.jit(chain)
    for start in range(3):
        np.testing.assert_array_equal(np.asarray(compiled(x + start)), np.asarray(x + start))
    np.testing.assert_array_equal(np.asarray(jax.jit(loop)(x)), np.asarray(6 * x))
    rows = jnp.arange(4.0 * SIZE).reshape(4, SIZE)
    np.testing.assert_array_equal(np.asarray(jax.vmap(add, (0, None))(rows, x)), np.asarray(rows + x))
    np.testing.assert_array_equal(np.asarray(add(x, x)), np.asarray(2 * x))
    return "4 programs"


@kernel(arch="sm_80", in_specs=[Tile(SIZE, f32)], out_specs=[Tile(SIZE, f32)], grid=(SIZE // 128,), block=(128, 1, 1))
def accumulate(x: Any, y: Any) -> None:
    """y += x"""
    px, py = ptx.global_ptrs(x, y)
    offset, a, b = reg.scalar(u64), reg.scalar(f32), reg.scalar(f32)
    ptx.inst.mul.wide.u32(offset, ptx.special.tid.x() + ptx.special.ctaid.x() * 128, 4)
    ptx.ld(f32, a, ptx.addr(px, offset))
    ptx.ld(f32, b, ptx.addr(py, offset))
    ptx.st(f32, ptx.addr(py, offset), a + b)


@check("out= with an array that is donated, whose memory the result takes, and with one that is not", JAX)
def jax_initial_values(machine: Machine) -> str:
    """Compare results that start with given values."""
    jax: Any = import_module("jax")
    jnp = jax.numpy
    x, initial, donated = jnp.arange(float(SIZE)), jnp.ones(SIZE), jnp.ones(SIZE)

    def call(x: Any, y: Any) -> Any:
        return accumulate(x, out=y)

    np.testing.assert_array_equal(np.asarray(jax.jit(call)(x, initial)), np.asarray(x + 1))
    np.testing.assert_array_equal(np.asarray(initial), 1)
    address = donated.unsafe_buffer_pointer()
    result = jax.jit(call, donate_argnums=1)(x, donated)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(x + 1))
    if result.unsafe_buffer_pointer() != address:
        raise AssertionError("the result is not in the memory of the donated array")
    return "2 programs"


@check("jax.shard_map over all devices, and an exported program", JAX)
def jax_devices(machine: Machine) -> str:
    """Compare a kernel on shards, and after a round trip through `jax.export`."""
    jax: Any = import_module("jax")
    export: Any = import_module("jax.export")
    support: Any = import_module("pyptx.jax_support")
    add, devices = VECTOR_ADD.make(), jax.devices()
    x = jax.numpy.arange(float(SIZE * len(devices)))
    mesh, parts = jax.sharding.Mesh(devices, "i"), jax.sharding.PartitionSpec("i")
    sharded = jax.jit(jax.shard_map(add, mesh=mesh, in_specs=(parts, parts), out_specs=parts))
    np.testing.assert_array_equal(np.asarray(sharded(x, x)), np.asarray(2 * x))
    allowed = export.DisabledSafetyCheck.custom_call(support.CUSTOM_CALL)
    program = export.export(jax.jit(add), disabled_checks=[allowed])(x, x).serialize()
    np.testing.assert_array_equal(np.asarray(export.deserialize(program).call(x, x)), np.asarray(2 * x))
    return f"{len(devices)} devices"


@check("the time of 100 kernels in a compiled function, per kernel: nothing is compared", JAX, alone=True)
def jax_host_time(machine: Machine) -> str:
    """Measure what a kernel adds to a compiled function."""
    jax: Any = import_module("jax")
    add, x = VECTOR_ADD.make(), jax.numpy.ones(SIZE)
    seconds: list[float] = []
    for count in (1, 101):

        def chain(x: Any, count: int = count) -> Any:
            for _ in range(count):
                x = add(x, x)
            return x

        compiled = jax.jit(chain)
        compiled(x).block_until_ready()
        start = time.perf_counter()
        for _ in range(5):
            compiled(x).block_until_ready()
        seconds.append((time.perf_counter() - start) / 5)
    return f"{(seconds[1] - seconds[0]) * 1e4:.2f} µs per kernel"
