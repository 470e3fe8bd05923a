"""Checks of the example kernels: results on the device against their references."""

from __future__ import annotations

from pathlib import Path

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


def list_names(machine: Machine) -> list[str]:
    """Return the names of the examples of `list_runs`, of which each is a part of a check."""
    return list(dict.fromkeys(example.name for example, _ in list_runs(machine)))


@check(
    "every example kernel that the device can run, at the shapes of its tests, against its reference",
    parts=list_names,
)
def example_kernels(machine: Machine) -> str:
    """Compare the example kernels with their references, and store their outputs."""
    runs, failures = list_runs(machine), list[str]()
    for example, run in runs:
        inputs = example.draw_inputs(run)
        outputs = run_example(example, run, inputs, machine.target)
        if machine.folder:
            np.savez_compressed(find_file(machine.folder, example, run), *map(view_bytes, outputs))
        try:
            verify(run, outputs, example.compute(run, inputs))
        except AssertionError as error:
            failures.append(f"{example.name}: {error}")
    if failures:
        raise AssertionError("\n".join(failures))
    return f"{len({example.name for example, _ in runs})} kernels, {len(runs)} runs"


@check(
    "the same runs: the same bits as the simulator's precision='hardware', except after approximations",
    "a GPU",
    parts=list_names,
)
def example_kernels_bit_for_bit(machine: Machine) -> str:
    """Compare the outputs of a GPU, of now or stored ones, with those of the simulator, bit for bit."""
    differing, approximate = list[str](), 0
    runs = list_runs(machine)
    for example, run in runs:
        outcome = example.simulate(run, choose_code(example, machine.target), precision="hardware")
        if outcome.report.stats.approximate:
            approximate += 1
            continue
        compared = zip(find_outputs(machine, example, run), outcome.outputs, outcome.expected, strict=True)
        counts = [count_differences(ours, simulated) for ours, simulated, desired in compared if desired is not None]
        if any(counts):
            differing.append(f"{example.name} {run}: {max(counts)} elements")
    if differing:
        raise AssertionError(f"differ: {', '.join(differing)}")
    return f"{len(runs) - approximate} runs are equal, {approximate} approximate"


def find_outputs(machine: Machine, example: Example, run: Run) -> list[Array]:
    """Return the outputs of a run as bytes: the stored ones, or those of a run now."""
    if machine.is_recorded:
        assert machine.folder
        with np.load(find_file(machine.folder, example, run)) as stored:
            return [stored[name] for name in stored.files]
    return [*map(view_bytes, run_example(example, run, example.draw_inputs(run), machine.target))]


def find_file(folder: Path, example: Example, run: Run) -> Path:
    """Return the path of a run's stored outputs."""
    return folder / f"{example.name.replace('/', '-')}-{example.runs.index(run)}.npz"


def view_bytes(array: Array) -> Array:
    """Return an array's bytes, with one more dimension; NumPy cannot store every type."""
    return np.ascontiguousarray(array).reshape(*array.shape, 1).view(np.uint8)


def count_differences(stored: Array, simulated: Array) -> int:
    """Return how many elements differ in a bit; NaNs count as equal."""
    differs = (stored != view_bytes(simulated)).any(axis=-1)
    if simulated.dtype.kind not in "iub":
        there, here = (
            array.reshape(simulated.shape).astype(np.float64) for array in (stored.view(simulated.dtype), simulated)
        )
        differs &= ~(np.isnan(there) & np.isnan(here))
    return int(differs.sum())


def list_runs(machine: Machine) -> list[tuple[Example, Run]]:
    """Return the runs of kernels whose instructions the machine's target has: the chosen ones of a part."""
    examples = [example for example in load_examples() if choose_target(example, machine.target)]
    runs = machine.choose([(example, run) for example in examples for run in example.runs])
    return [(example, run) for example, run in runs if machine.part in ("", example.name)]


def choose_target(example: Example, target: str) -> str | None:
    """Return the example's target that a device runs: its own, or else the last whose instructions it has."""
    own = find_target(target)
    return next((name for name in reversed(example.targets) if own.provides(find_target(name))), None)


def choose_code(example: Example, target: str) -> str | None:
    """Return the target whose code of an example runs, which decides how products are summed: the device's, unless the
    kernel is for one architecture only."""
    name, own = choose_target(example, target), find_target(target)
    return name if name is None or find_target(name).suffix else f"sm_{own.arch}"


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
