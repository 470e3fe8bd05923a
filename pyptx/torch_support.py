"""Kernels as differentiable functions of PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, cast

from pyptx.decorator import Kernel
from pyptx.diagnostics import PtxError
from pyptx.runtime.rules import GRADIENTS


def differentiable_kernel(
    forward_kernel: Kernel,
    backward_kernel: Kernel,
    *,
    save_for_backward: Sequence[int] | None = None,
    num_grad_inputs: int | None = None,
    **kwargs: Any,
) -> Callable[..., Any]:
    """Return a function of PyTorch's tensors or JAX's arrays that runs one kernel, and the other for its gradient.

    `save_for_backward` are the positions of the inputs that the gradient needs (None: all). The backward kernel takes
    these, then the gradient of each output, and returns the gradients of the first `num_grad_inputs` inputs (None: as
    many as it has outputs). Keywords of the function go to whichever kernel takes them; those given here are defaults.
    """
    inputs, outputs = len(forward_kernel.in_specs), len(forward_kernel.out_specs)
    save_indices = tuple(range(inputs) if save_for_backward is None else save_for_backward)
    count = len(backward_kernel.out_specs) if num_grad_inputs is None else num_grad_inputs
    name, takes, gives = backward_kernel.name, len(backward_kernel.in_specs), len(backward_kernel.out_specs)
    wrong = [
        f"cannot save input {index}: there are {inputs} inputs" for index in save_indices if not 0 <= index < inputs
    ]
    if not 0 < count <= inputs or count != gives:
        wrong.append(f"`{name}` has {gives} outputs, but {count} of {inputs} inputs need gradients")
    if takes != len(save_indices) + outputs:
        wrong.append(
            f"`{name}` takes {takes} inputs, but gets {len(save_indices)} saved inputs and {outputs} gradients"
        )
    if wrong:
        raise PtxError([GRADIENTS.report(None, "; ".join(wrong))])

    @cache
    def make_once() -> Any:
        return _make_autograd(forward_kernel, backward_kernel, save_indices, count)

    def function(*tensors: Any, **options: Any) -> Any:
        """Run the forward kernel; autograd runs the backward one."""
        from pyptx.runtime.arrays import find_library

        split = _split_options({**kwargs, **options}, forward_kernel, backward_kernel)
        if find_library(tensors) == "jax":
            from pyptx.runtime.jax_gradients import differentiate

            forward, backward = partial(forward_kernel, **split[0]), partial(backward_kernel, **split[1])
            return differentiate(forward, backward, save_indices)(*tensors)
        return make_once().apply(split, *tensors)

    _split_options(kwargs, forward_kernel, backward_kernel)
    function.__name__ = function.__qualname__ = forward_kernel.name
    return function


def _split_options(options: Mapping[str, Any], *kernels: Kernel) -> tuple[dict[str, Any], ...]:
    """Return the options that each kernel takes."""
    option_names = [
        {*kernel.template_params, *kernel.shape_variables, *kernel.raw_parameters, "grid"} for kernel in kernels
    ]
    unknown = [name for name in options if not any(name in names for names in option_names)]
    if unknown:
        raise PtxError([GRADIENTS.report(None, f"neither kernel takes {', '.join(unknown)}")])
    return tuple({name: value for name, value in options.items() if name in names} for names in option_names)


def _make_autograd(forward_kernel: Kernel, backward_kernel: Kernel, save_indices: tuple[int, ...], count: int) -> Any:
    """Return the autograd function, created at the first call, so that PyTorch is not loaded earlier."""
    torch: Any = import_module("torch")

    def forward(context: Any, options: tuple[dict[str, Any], ...], *tensors: Any) -> Any:
        context.save_for_backward(*(tensors[index] for index in save_indices))
        context.options, context.others = options, len(tensors) - count
        return forward_kernel(*tensors, **options[0])

    def backward(context: Any, *gradients: Any) -> tuple[Any, ...]:
        dense = [gradient.contiguous() for gradient in gradients]
        results = backward_kernel(*context.saved_tensors, *dense, **context.options[1])
        gradients = cast("tuple[Any, ...]", results) if isinstance(results, tuple) else (results,)
        return (None, *gradients, *([None] * context.others))

    once: Any = torch.autograd.function.once_differentiable
    methods = {"forward": staticmethod(forward), "backward": staticmethod(once(backward))}
    return type(forward_kernel.name, (torch.autograd.Function,), methods)
