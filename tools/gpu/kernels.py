"""Checks of the example kernels: results on the device against their references."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import numpy as np

from examples.parts.runs import DTYPES, RUNS, Run, make_input
from pyptx import Kernel
from pyptx.decorator import RESERVED
from pyptx.isa.targets import find_target
from pyptx.runtime.arrays import Array, Described
from pyptx.runtime.bindings import call, in_context
from pyptx.runtime.launching import launch
from pyptx.runtime.planning import make_plan
from tools.gpu.checks import Machine, check

Dim3 = tuple[int, ...]


@check("every example kernel that the device can run, at the shapes of its tests, against its reference")
def example_kernels(machine: Machine) -> str:
    """Compare the example kernels with their references."""
    runs = machine.choose(list_runs(machine))
    for run in runs:
        inputs = draw_inputs(run)
        found, expected = _run(run, inputs), find_example(run).reference(*inputs)
        np.testing.assert_allclose(
            found.astype(np.float64), expected.astype(np.float64), run.rtol, run.atol, err_msg=f"{run.name} {run.shape}"
        )
    return f"{len({run.name for run in runs})} kernels, {len(runs)} runs"


@check("the same runs: the same bits as the simulator's precision='hardware', except after approximations", "a GPU")
def example_kernels_bit_for_bit(machine: Machine) -> str:
    """Compare the example kernels on the GPU with the simulator, bit for bit."""
    runs, differing = machine.choose(list_runs(machine)), list[str]()
    for run in runs:
        kernel, inputs = find_example(run).make(), draw_inputs(run)
        unbound = {name for tile in kernel.out_specs for name in tile.symbolic_dims}
        unbound -= {name for tile in kernel.in_specs for name in tile.symbolic_dims}
        result = kernel.simulate(*inputs, precision="hardware", **{name: run.shape[name] for name in unbound})
        (simulated,) = (result.outputs[name] for name, _ in kernel.definition.tensors[len(inputs) :])
        if not result.stats.approximate and _run(run, inputs).tobytes() != simulated.tobytes():
            differing.append(f"{run.name} {run.shape}")
    if differing:
        raise AssertionError(f"differ: {', '.join(differing)}")
    return f"{len(runs)} runs"


def list_runs(machine: Machine) -> list[Run]:
    """Return the runs of kernels whose instructions the machine's target has."""
    own = find_target(machine.target)
    return [run for run in RUNS if own.provides(find_target(find_example(run).make().arch))]


def find_example(run: Run) -> ModuleType:
    """Return the module of a run's kernel."""
    return import_module(f"examples.kernels.{run.name}")


def draw_inputs(run: Run) -> list[Array]:
    """Return random inputs."""
    tiles = find_example(run).make().in_specs
    return [make_input(tile, run.shape, run.scale, seed) for seed, tile in enumerate(tiles)]


def _run(run: Run, inputs: list[Array]) -> Array:
    """Return the output of a run on the device."""
    example = find_example(run)
    (output,) = run_on_device(example.make(), inputs, grid=example.grid(**run.shape), **run.shape)
    return output


def run_on_device(kernel: Kernel, inputs: list[Array], *, grid: Dim3, **shape: int) -> list[Array]:
    """Return the outputs of a kernel on copies of arrays in device memory. Outputs of types that have a NaN are filled
    with it, others with zeros."""
    descriptions = [Described(array.shape, array.dtype.name) for array in inputs]
    plan = make_plan(kernel, descriptions, [], grid=grid, positional=None, keywords=shape, options=RESERVED)
    outputs = [
        np.full(tile.resolve_shape(plan.dims), np.nan if tile.dtype.kind == "f" else 0, DTYPES[tile.dtype.name])
        for tile in kernel.out_specs
    ]
    arrays = [*inputs, *outputs]
    with in_context(0):
        addresses = [int(call("cuMemAlloc", array.nbytes)) for array in arrays]
        try:
            for address, array in zip(addresses, arrays, strict=True):
                call("cuMemcpyHtoD", address, np.ascontiguousarray(array).ctypes.data, array.nbytes)
            launch(plan, dict(zip((name for name, _ in plan.definition.tensors), addresses, strict=True)))
            call("cuCtxSynchronize")
            for address, array in zip(addresses[len(inputs) :], outputs, strict=True):
                call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)
        finally:
            for address in addresses:
                call("cuMemFree", address)
    return outputs
