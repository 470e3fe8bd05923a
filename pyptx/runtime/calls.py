"""What a call of a kernel does: binds its arrays, finds out where they are, and runs there."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack, cast

from pyptx import sim
from pyptx.diagnostics import HazardWarning, PtxError
from pyptx.runtime import arguments, arrays, device_calls, simulation
from pyptx.runtime.arrays import Array, Described, DeviceView, Unusable, View
from pyptx.runtime.failures import explain_failures
from pyptx.runtime.planning import Call, Plan, Traceable, locate_errors, make_plan
from pyptx.runtime.rules import ARRAYS
from pyptx.runtime.simulation import list_warnings

__all__ = [
    "Bound", "bind", "choose_device", "create_stream_launch", "execute", "find_device", "list_warnings", "run",
    "simulate",
]  # fmt: skip


@dataclass(slots=True)
class Bound:
    """A call: its plan, views of the arrays that the caller passed, by tensor name, and the device whose memory they
    are in, None for the CPU's."""

    plan: Plan
    views: dict[str, Array | DeviceView]
    targets: list[Any]
    """The caller's own objects for the outputs, if any."""
    library: str
    """The library of the results."""
    device: int | None
    written: list[Any]
    """What the call may write: also arrays that raw parameters point to, and the inputs of a kernel without outputs."""
    copies: list[tuple[DeviceView, Array]] = field(default_factory=list["tuple[DeviceView, Array]"])
    """Copies of arrays in device memory, for the simulator."""
    parameters: bytes = b""
    """The bytes of the parameters of the launch on a device."""


def bind(kernel: Traceable, inputs: Sequence[Any], out: Any, **call: Unpack[Call]) -> Bound:
    """Bind a call; PtxError with everything that does not fit. `out` are arrays for the outputs, None to allocate
    them."""
    targets = arrays.list_targets(out)
    views, into = arrays.adopt(inputs), arrays.adopt(targets, writable=True)
    names, first = [name for name, _ in kernel.definition.tensors], len(views)
    described = _describe(names, [*views, *into], [*inputs, *targets])
    plan = make_plan(kernel, described[:first], described[first:], **call)
    bound = dict(zip(names[:first], views, strict=True)) | dict(zip(names[first:], into, strict=False))
    known = cast("dict[str, Array | DeviceView]", bound)
    with locate_errors(kernel.definition):
        arguments.check_complete(plan.definition.raw_params, plan.scalars)
        device = find_device({**known, **arguments.list_arrays(plan.scalars)})
    values = (*call["keywords"].values(), *(call["positional"] or ()))
    library = arrays.find_library([*inputs, *targets, *values])
    memory = [value for value in values if getattr(value, "shape", ())]
    written = [*targets, *memory, *(() if kernel.out_specs else inputs)]
    return Bound(plan, known, targets, library, device, written)


def _describe(names: Sequence[str], views: Sequence[View], values: Sequence[Any]) -> list[Described | Unusable]:
    """Return descriptions of the arrays of a call, with what is wrong with those that are not on the same device."""
    wrong = arrays.find_misplaced(
        {name: _find_place(view) for name, view in zip(names, views, strict=False) if not isinstance(view, Unusable)}
    )
    described = [arrays.describe(view, arrays.find_library([value])) for view, value in zip(views, values, strict=True)]
    for index, name in enumerate(names[: len(described)]) if wrong else ():
        array = described[index]
        described[index] = array._replace(misplaced=wrong.get(name, "")) if isinstance(array, Described) else array
    return described


def _find_place(view: View) -> int | None:
    return view.device if isinstance(view, DeviceView) else None


def find_device(views: Mapping[str, View]) -> int | None:
    """Return the device whose memory all arrays are in, None for the CPU's. PtxError if they are not together."""
    places = {name: _find_place(view) for name, view in views.items()}
    wrong = arrays.find_misplaced(places)
    if wrong:
        text = "; ".join(f"`{name}`: {problem}" for name, problem in wrong.items())
        raise PtxError([ARRAYS.report(None, text)])
    return next(iter(places.values()), None)


def create_launch(bound: Bound) -> tuple[sim.Launch, list[Array]]:
    """Return a launch for the simulator, on copies of what is in device memory, and the arrays of the outputs."""
    views = {name: _fetch(bound, view) for name, view in bound.views.items()}
    scalars = {name: _fetch(bound, value) for name, value in bound.plan.scalars.items()}
    names = [name for name, _ in bound.plan.definition.tensors]
    inputs = len(names) - len(bound.plan.outputs)
    results = [views[name] for name in names[inputs:]] if bound.targets else []
    fresh = [] if bound.targets else list(map(arrays.allocate, bound.plan.outputs))
    memory = {**views, **dict(zip(names[inputs:], results or fresh, strict=True))}
    if bound.device is None:
        arrays.check_results(bound.library, fresh)
    return simulation.create_launch(replace(bound.plan, scalars=scalars), memory, fresh=fresh), results or fresh


def _fetch(bound: Bound, value: Any) -> Any:
    """Return a value, or a copy of an array in device memory, the same copy for the same memory."""
    if not isinstance(value, DeviceView):
        return value
    for view, array in bound.copies:
        if (view.address, view.shape, view.dtype) == (value.address, value.shape, value.dtype):
            return array
    with explain_failures(bound.plan):
        array = device_calls.fetch(value)
    bound.copies.append((value, array))
    return array


def simulate(bound: Bound, **options: Any) -> tuple[sim.Result, list[Any]]:
    """Run a call on the simulator; return its result, and the outputs as arrays of the caller's library."""
    if bound.plan.is_empty:
        return _skip(bound)
    launch, results = create_launch(bound)
    before = [array.copy() for _, array in bound.copies]
    result = simulation.simulate(launch, outputs=results, **options)
    for (view, array), old in zip(bound.copies, before, strict=True):
        if array.tobytes() != old.tobytes():
            device_calls.store(view, array)
    arrays.note_written(bound.written)
    return result, bound.targets or _give_back(bound, results)


def _skip(bound: Bound) -> tuple[sim.Result, list[Any]]:
    """Return what a launch of no CTAs would: outputs without elements, unless the caller passed arrays for them."""
    results = [] if bound.targets else list(map(arrays.allocate, bound.plan.outputs))
    if bound.device is None:
        arrays.check_results(bound.library, results)
    views = {name: _fetch(bound, view) for name, view in bound.views.items()}
    names = [name for name, _ in bound.plan.definition.tensors]
    memory = views | dict(zip(names[len(names) - len(results) :], results, strict=True))
    return sim.Result(memory, sim.Stats()), bound.targets or _give_back(bound, results)


def _give_back(bound: Bound, results: Sequence[Array]) -> list[Any]:
    """Return the outputs of a call on the simulator as arrays of the caller's library, where its arrays are."""
    if bound.device is None:
        return arrays.give_back(bound.library, results)
    allocations = device_calls.allocate(bound.plan.outputs, bound.library, bound.device, 0)
    for (view, _), array in zip(allocations, results, strict=True):
        device_calls.store(view, array)
    return [value for _, value in allocations]


def run(bound: Bound, device: int, stream: Any, *, cooperative: bool = False, programmatic: bool = False) -> list[Any]:
    """Run a call on a device, and return the outputs as arrays of the caller's library."""
    library = "device" if bound.library == "numpy" else bound.library
    results, bound.parameters = device_calls.run(
        bound.plan, cast("dict[str, DeviceView]", bound.views), library, device, stream,
        cooperative=cooperative, programmatic=programmatic,
    )  # fmt: skip
    arrays.note_written(bound.written)
    return bound.targets or results


def execute(
    bound: Bound, stream: Any, *, cooperative: bool, programmatic: bool, depth: int
) -> tuple[int | None, Any]:  # fmt: skip
    """Run a call where its arrays are. Return the device, None for the simulator, and what the caller gets. `depth`:
    how many calls away the caller is to whom warnings are shown."""
    with locate_errors(bound.plan.definition):
        device = choose_device(bound, stream)
    if device is None:
        result, outputs = simulate(bound, cooperative=cooperative)
        for text in list_warnings(result):
            warnings.warn(text, HazardWarning, stacklevel=depth + 1)
    else:
        outputs = run(bound, device, stream, cooperative=cooperative, programmatic=programmatic)
    return device, outputs[0] if len(outputs) == 1 else tuple(outputs)


def choose_device(bound: Bound, stream: Any) -> int | None:
    """Return the device that runs a call, None for the simulator. PtxError for a stream without a device."""
    if simulation.is_rerouted():
        return None
    if stream is not None and bound.device is None:
        if bound.views or arguments.list_arrays(bound.plan.scalars):
            message = "`stream`: the arrays are in the CPU's memory, and kernels on the simulator have no streams"
            raise PtxError([ARRAYS.report(None, message, help="omit it, or pass arrays on a CUDA device")])
        return device_calls.choose_device(stream)
    return bound.device


def create_stream_launch(bound: Bound) -> sim.Launch:
    """Return a launch for `sim.stream`."""
    if bound.device is not None:
        message = f"sim.stream takes arrays in the CPU's memory, found arrays on device {bound.device}"
        raise PtxError([ARRAYS.report(None, message, help="pass NumPy arrays")])
    return create_launch(bound)[0]
