"""Calls of a kernel on PyTorch's tensors that the C extension repeats: same shapes, dtypes and device, no keywords."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from pyptx.dsl.guards import Guard, list_guards
from pyptx.dsl.trace import CURRENT
from pyptx.runtime import bindings, device_calls, device_views, dlpack, extension
from pyptx.runtime.arrays import DeviceView, get_numpy_dtype
from pyptx.runtime.bindings import in_context
from pyptx.runtime.calls import Bound
from pyptx.runtime.failures import explain_failures
from pyptx.runtime.launching import is_small, list_attributes, make_launcher
from pyptx.runtime.modules import Loaded, find_loaded
from pyptx.runtime.parameters import find_map
from pyptx.runtime.planning import MAP_SUFFIX, Plan, Traceable
from pyptx.runtime.simulation import SIMULATE
from pyptx.tensormap import SIZE

_ALIGNMENT = 16
"""Tensors with a tensor map need at least this; the driver checks what a map needs beyond it."""
_MOST_DIMS = 8
_NUMBERS = (bool, int, float)


def make_call(kernel: Traceable, inputs: Sequence[Any], bound: Bound, device: int) -> Any:
    """Return what repeats a call that has just run, None for one that must be checked each time."""
    module, plan = extension.load(), bound.plan
    if module is None or bound.library != "torch" or plan.kernel_trace.warnings:
        return None
    if not all(type(value) in _NUMBERS for value in plan.scalars.values()):
        return None
    guards, tensors = _list_guards(kernel), [*inputs, *bound.targets]
    if guards is None or not tensors or not _are_plain(plan, tensors):
        return None
    outputs = () if bound.targets else plan.outputs
    views = cast("list[DeviceView]", [*bound.views.values()])
    names = [name for name, _ in plan.definition.tensors]
    is_simulated = device_views.is_torch_simulated(views[0])
    with explain_failures(plan), in_context(device) as context:
        loaded = find_loaded(plan, context, device)
        if not is_small(loaded, bound.parameters):
            return None
        attributes = list_attributes(plan, cooperative=False, programmatic=False)
        launcher = make_launcher(
            module, plan, loaded, context, bound.parameters, attributes, _list_slots(plan, loaded), len(names),
            _make_encoder(plan),
        )  # fmt: skip
    if is_simulated:
        guards += device_views.list_guards()
    kind = dlpack.CPU if is_simulated else dlpack.CUDA
    before, after = HOOKS if is_simulated else (None, None)
    torch: Any = sys.modules["torch"]
    described = [describe(view.shape, view.dtype, plan) for view in views]
    return module.Call(
        launcher, (kind, 0 if is_simulated else device), described,
        [describe(output.shape, output.dtype, plan) for output in outputs],
        (torch.Tensor, torch.nn.Parameter), _list_checks(torch), _list_states(torch), guards, CURRENT, before, after,
    )  # fmt: skip


def _list_guards(kernel: Traceable) -> tuple[Guard, ...] | None:
    """Return what a kernel and its grid depend on besides the arrays; None if that can change in place."""
    guards = [list_guards(kernel.definition.function)]
    if callable(kernel.grid):
        guards.append(list_guards(kernel.grid))
    if kernel.definition.arch == "auto" or None in guards:
        return None
    torch: Any = sys.modules["torch"]
    forward_ad: Any = torch.autograd.forward_ad.__dict__
    variables, name = vars(os.environ)["_data"], os.fsencode(SIMULATE)
    entries: list[Guard] = [
        (vars(kernel), "grid", kernel.grid), (forward_ad, "_current_level", -1), *bindings.list_guards(),
        (variables, name, variables.get(name, ...)),
    ]  # fmt: skip
    return tuple(entry for group in (*guards, entries) for entry in group or ())


def _are_plain(plan: Plan, inputs: Sequence[Any]) -> bool:
    """Return whether nothing about the arrays must be checked besides what DLPack says, and that they are no negative
    views, which it does not say."""
    torch: Any = sys.modules["torch"]
    return all(type(value) in (torch.Tensor, torch.nn.Parameter) for value in inputs) and all(
        len(output.shape) <= _MOST_DIMS for output in plan.outputs
    )


def describe(shape: tuple[int, ...], dtype: str, plan: Plan) -> tuple[int, int, int, tuple[int, ...], int]:
    """Return an array as the extension compares it: DLPack's type, the shape, and the alignment of its address."""
    kind = get_numpy_dtype(dtype)
    alignment = _ALIGNMENT if plan.kernel_trace.tensor_maps else kind.itemsize
    return (*dlpack.describe_dtype(kind), shape, alignment)


def _list_checks(torch: Any) -> tuple[tuple[Any, Any], ...]:
    """Return what makes a tensor unusual: a negative view, or a part of what autograd records."""
    return (torch.Tensor.is_neg, None), (torch.Tensor.requires_grad.__get__, torch.is_grad_enabled)


def _list_states(torch: Any) -> tuple[tuple[Any, Any], ...]:
    """Return what tells that PyTorch observes or transforms calls."""
    return (torch._C._functorch.peek_interpreter_stack, None), (torch._C._len_torch_dispatch_stack, 0)


def _list_slots(plan: Plan, loaded: Loaded) -> list[tuple[str, int, int, int]]:
    """Return where the addresses and tensor maps of tensors go."""
    places = {name: at for at, (name, _) in enumerate(plan.definition.tensors)}
    slots: list[tuple[str, int, int, int]] = []
    for param, offset, size in loaded.layout:
        if param.name in places:
            slots.append(("p", offset, size, places[param.name]))
        elif param.name not in plan.scalars:
            slots.append(("m", offset, SIZE, places[param.name.removesuffix(MAP_SUFFIX)]))
    return slots


def _make_encoder(plan: Plan) -> Callable[[int, int], bytes]:
    tensors, dims = plan.definition.tensors, tuple(plan.dims.items())

    def encode(source: int, address: int) -> bytes:
        with explain_failures(plan):
            return find_map(tensors[source][1], dims, address)

    return encode


def _register(inputs: Sequence[Any], outputs: Sequence[Any], stream: int) -> None:
    for tensor in (*inputs, *outputs):
        device_views.register(tensor)


def _keep(inputs: Sequence[Any], outputs: Sequence[Any], stream: int) -> None:
    device_calls.keep_until_done([*inputs, *outputs], stream)


HOOKS: tuple[Callable[..., None] | None, Callable[..., None] | None] = _register, _keep
"""What the simulated driver must know of CPU tensors, before and after a launch."""
