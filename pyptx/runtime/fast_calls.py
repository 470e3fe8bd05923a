"""Calls of a kernel that are repeated without binding them: same shapes, dtypes, device, keywords and options. The C
extension repeats those on PyTorch's tensors; for other arrays, and without it, Python does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from pyptx.dsl.guards import Guard, are_kept, list_guards
from pyptx.dsl.trace import CURRENT
from pyptx.runtime import arrays, bindings, device_calls, device_views, dlpack, extension, streams
from pyptx.runtime.arrays import DeviceView, get_numpy_dtype
from pyptx.runtime.bindings import identify, in_context
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


def make_call(
    kernel: Traceable, inputs: Sequence[Any], bound: Bound, device: int, *, cooperative: bool, programmatic: bool
) -> Callable[..., Any] | None:  # fmt: skip
    """Return what repeats a call that has just run, None for one that must be checked each time. It takes the arrays;
    and for a call in a stream that was passed, its handle and the caller's object."""
    plan, tensors = bound.plan, [*inputs, *bound.targets]
    if plan.kernel_trace.warnings or not tensors:
        return None
    if not all(type(value) in _NUMBERS for value in plan.scalars.values()):
        return None
    views = cast("list[DeviceView]", [*bound.views.values()])
    guards = _list_guards(kernel, views)
    if guards is None:
        return None
    flags = {"cooperative": cooperative, "programmatic": programmatic}
    with explain_failures(plan), in_context(device) as context:
        identity = identify(context)
        launcher = _make_launcher(bound, context, identity, device, **flags)
    if launcher is None or bound.library != "torch" or not _are_plain(plan, tensors):
        return Repetition(bound, tensors, device, identity, guards, launcher, flags).run
    return _make_call_of_tensors(bound, device, guards, launcher)


def _make_launcher(
    bound: Bound, context: int, identity: int, device: int, *, cooperative: bool, programmatic: bool
) -> Any:  # fmt: skip
    """Return a launcher of the extension for the addresses of the tensors, None without the extension."""
    module, plan = extension.load(), bound.plan
    loaded = find_loaded(plan, context, device)
    if module is None or not is_small(loaded, bound.parameters):
        return None
    attributes = list_attributes(plan, cooperative=cooperative, programmatic=programmatic)
    return make_launcher(
        module, plan, loaded, identity, bound.parameters, attributes, _list_slots(plan, loaded),
        len(plan.definition.tensors), _make_encoder(plan),
    )  # fmt: skip


def _make_call_of_tensors(bound: Bound, device: int, guards: tuple[Guard, ...], launcher: Any) -> Any:
    """Return a call of the extension, which reads PyTorch's tensors itself."""
    plan = bound.plan
    views = cast("list[DeviceView]", [*bound.views.values()])
    is_simulated = device_views.is_torch_simulated(views[0])
    kind = dlpack.CPU if is_simulated else dlpack.CUDA
    before, after = HOOKS if is_simulated else (None, None)
    torch: Any = sys.modules["torch"]
    outputs = () if bound.targets else plan.outputs

    def enter(inputs: Sequence[Any], outputs: Sequence[Any], stream: int) -> None:
        with explain_failures(plan):
            streams.order_after(stream, device_calls.list_streams([], streams.find_current("torch", device)))

    def leave(inputs: Sequence[Any], outputs: Sequence[Any], stream: int) -> None:
        device_calls.lend([*inputs, *outputs], stream)

    return extension.load().Call(
        launcher, (kind, 0 if is_simulated else device), [describe(view.shape, view.dtype, plan) for view in views],
        [describe(output.shape, output.dtype, plan) for output in outputs],
        (torch.Tensor, torch.nn.Parameter), _list_checks(torch), _list_states(torch), guards, CURRENT, before, after,
        enter, leave if not is_simulated else None,
    ).run  # fmt: skip


class Repetition:
    """A call on arrays of any library, which has just run, and runs again if it is the same but for addresses."""

    def __init__(
        self, bound: Bound, tensors: Sequence[Any], device: int, identity: int, guards: tuple[Guard, ...],
        launcher: Any, flags: dict[str, bool],
    ) -> None:  # fmt: skip
        self.plan, self.library, self.device = bound.plan, bound.library, device
        self.kinds, self.inputs = tuple(map(type, tensors)), len(tensors) - len(bound.targets)
        self.descriptions = {
            name: (view.shape, view.dtype, True, view.device)
            for name, view in cast("dict[str, DeviceView]", bound.views).items()
        }
        self.identity, self.guards, self.launcher, self.flags = identity, guards, launcher, flags
        self.has_tensors = any(arrays.find_library([tensor]) == "torch" for tensor in tensors)
        module = extension.load()
        self.check_guards: Callable[[tuple[Guard, ...]], bool] = are_kept if module is None else module.check_guards

    def run(self, values: tuple[Any, ...], handle: int | None = None, stream: Any = None) -> Any:
        """Run the call on arrays; NotImplemented if they, or anything else, are unusual."""
        if tuple(map(type, values)) != self.kinds or CURRENT.get() is not None or not self.check_guards(self.guards):
            return NotImplemented
        if self.has_tensors and _is_special(values):
            return NotImplemented
        views = [*arrays.adopt(values[: self.inputs]), *arrays.adopt(values[self.inputs :], writable=True)]
        if not all(map(_fits, views, self.descriptions.values())):
            return NotImplemented
        named = cast("dict[str, DeviceView]", dict(zip(self.descriptions, views, strict=True)))
        with explain_failures(self.plan), in_context(self.device) as context:
            if identify(context) != self.identity:
                return NotImplemented
            results, _ = device_calls.run(
                self.plan, named, self.library, self.device, stream, launcher=self.launcher, **self.flags
            )
        return results[0] if len(results) == 1 else tuple(results)


def _fits(view: Any, description: tuple[Any, ...]) -> bool:
    """Tell whether a view is that of an aligned array of a description."""
    return (
        isinstance(view, DeviceView)
        and view[1:5] == description
        and view.address % get_numpy_dtype(view.dtype).itemsize == 0
    )


def _is_special(values: Sequence[Any]) -> bool:
    from pyptx.runtime import torch_calls

    return torch_calls.is_special(values, None, None, {})


def _list_guards(kernel: Traceable, views: Sequence[DeviceView]) -> tuple[Guard, ...] | None:
    """Return what a kernel and its grid depend on besides the arrays; None if that can change in place."""
    guards = [list_guards(kernel.definition.function)]
    if callable(kernel.grid):
        guards.append(list_guards(kernel.grid))
    if kernel.definition.arch == "auto" or None in guards:
        return None
    variables, name = vars(os.environ)["_data"], os.fsencode(SIMULATE)
    entries: list[Guard] = [
        (vars(kernel), "grid", kernel.grid), *bindings.list_guards(), (variables, name, variables.get(name, ...))
    ]  # fmt: skip
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        entries.append((torch.autograd.forward_ad.__dict__, "_current_level", -1))
    if any(map(device_views.is_torch_simulated, views)):
        entries += device_views.list_guards()
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
    places = {name: index for index, (name, _) in enumerate(plan.definition.tensors)}
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
