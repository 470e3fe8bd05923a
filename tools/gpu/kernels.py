"""Checks of the example kernels: results on the device against their references."""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run, find_dtype, list_keywords, load_examples, verify
from pyptx import Kernel
from pyptx.decorator import RESERVED
from pyptx.isa.targets import find_target
from pyptx.runtime.arrays import Described
from pyptx.runtime.bindings import call, in_context
from pyptx.runtime.launching import launch
from pyptx.runtime.planning import make_plan
from tools.gpu.checks import Machine, check


@check("every example kernel that the device can run, at the shapes of its tests, against its reference")
def example_kernels(machine: Machine) -> str:
    """Compare the example kernels with their references."""
    runs = machine.choose(list_runs(machine))
    for example, run in runs:
        inputs = example.draw_inputs(run)
        try:
            verify(run, run_example(example, run, inputs, machine.target), example.compute(run, inputs))
        except AssertionError as error:
            raise AssertionError(f"{example.name}: {error}") from error
    return f"{len({example.name for example, _ in runs})} kernels, {len(runs)} runs"


@check("the same runs: the same bits as the simulator's precision='hardware', except after approximations", "a GPU")
def example_kernels_bit_for_bit(machine: Machine) -> str:
    """Compare the example kernels on the GPU with the simulator, bit for bit."""
    runs, differing = machine.choose(list_runs(machine)), list[str]()
    for example, run in runs:
        outcome = example.simulate(run, choose_target(example, machine.target), precision="hardware")
        if outcome.report.stats.approximate:
            continue
        outputs = run_example(example, run, example.draw_inputs(run), machine.target)
        compared = zip(outputs, outcome.outputs, outcome.expected, strict=True)
        if any(ours.tobytes() != simulated.tobytes() for ours, simulated, desired in compared if desired is not None):
            differing.append(f"{example.name} {run}")
    if differing:
        raise AssertionError(f"differ: {', '.join(differing)}")
    return f"{len(runs)} runs"


def list_runs(machine: Machine) -> list[tuple[Example, Run]]:
    """Return the runs of kernels whose instructions the machine's target has."""
    return [
        (example, run) for example in load_examples() if choose_target(example, machine.target) for run in example.runs
    ]


def choose_target(example: Example, target: str) -> str | None:
    """Return the example's target that a device runs: its own, or else the last whose instructions it has."""
    own = find_target(target)
    return next((name for name in reversed(example.targets) if own.provides(find_target(name))), None)


def run_example(example: Example, run: Run, inputs: tuple[Array, ...], target: str) -> list[Array]:
    """Return the outputs of a run on the device."""
    kernel = example.make(choose_target(example, target))
    keywords = list_keywords(kernel, run)
    outputs = None if example.outputs is None else list(example.outputs(run.shape))
    return run_on_device(kernel, list(inputs), outputs, **keywords)


def run_on_device(
    kernel: Kernel, inputs: list[Array], outputs: list[Array] | None = None, *, grid: tuple[int, ...] | None = None,
    **keywords: int,
) -> list[Array]:  # fmt: skip
    """Return the outputs of a kernel on copies of arrays in device memory. Outputs that are not passed start as NaN, or
    as zeros if their type has none."""
    descriptions = [Described(array.shape, array.dtype.name) for array in inputs]
    plan = make_plan(kernel, descriptions, [], grid=grid, positional=None, keywords=keywords, options=RESERVED)
    outputs = outputs or [
        np.full(tile.resolve_shape(plan.dims), np.nan if tile.dtype.kind == "f" else 0, find_dtype(tile))
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
