"""What PyTorch's autograd finds where a kernel has no gradient: an error, when it is asked for the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn, Protocol

from pyptx.diagnostics import PtxError
from pyptx.dsl.run import Definition
from pyptx.runtime.planning import find_call
from pyptx.runtime.rules import GRADIENTS

torch: Any = import_module("torch")
forward_ad: Any = import_module("torch.autograd.forward_ad")


class Defined(Protocol):
    """A kernel as this file sees it."""

    @property
    def definition(self) -> Definition:
        """The checked arguments of `@kernel`."""
        ...


def needs_gradient(tensors: Sequence[Any]) -> bool:
    """Tell whether autograd records what is done with tensors."""
    return any(tensor.requires_grad for tensor in tensors) and torch.is_grad_enabled()


def has_tangent(tensors: Sequence[Any]) -> bool:
    """Tell whether forward-mode autograd differentiates with respect to a tensor."""
    return forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(t).tangent is not None for t in tensors)


def refuse(kernel: Defined, text: str) -> NoReturn:
    """Raise the error of a kernel that has no gradient."""
    help = "pair it with one for its gradient: differentiable_kernel(kernel, backward_kernel); or use torch.no_grad()"
    definition = kernel.definition
    raise PtxError([GRADIENTS.report(find_call(definition), f"the kernel `{definition.name}` {text}", help=help)])


def refuse_writing(kernel: Defined) -> NoReturn:
    """Raise the error of a call that writes tensors and would need a gradient: as PyTorch's functions with `out=`, it
    has none."""
    refuse(
        kernel,
        "writes to tensors passed to it, which autograd cannot differentiate, and one of them requires a gradient",
    )


def make_backward(kernel: Defined) -> Callable[..., Any]:
    """Return a backward function that says that there is none."""

    def backward(context: object, *gradients: object) -> Any:
        refuse(kernel, "has no gradient")

    return backward


def make_autograd_function(name: str, *methods: Callable[..., Any]) -> Any:
    """Return an autograd function with these static methods, which torch.func may transform."""
    members: dict[str, Any] = {method.__name__: staticmethod(method) for method in methods}
    return type(name, (torch.autograd.Function,), {**members, "generate_vmap_rule": True})


def _make_function() -> Any:
    def forward(kernel: Defined, count: int, *tensors: Any) -> tuple[Any, ...]:
        return tuple(tensor.view_as(tensor) for tensor in tensors[:count])

    def setup_context(context: Any, inputs: tuple[Any, ...], output: Any) -> None:
        context.kernel = inputs[0]

    def backward(context: Any, *gradients: Any) -> Any:
        refuse(context.kernel, "has no gradient")

    return make_autograd_function("KernelWithoutGradient", forward, setup_context, backward)


_WITHOUT_GRADIENT = _make_function()


def attach(kernel: Defined, results: Any, tensors: Sequence[Any]) -> Any:
    """Return the results of a kernel that was called on tensors, such that their gradient is an error."""
    outputs: list[Any] = [*results] if isinstance(results, tuple) else [results]
    marked = _WITHOUT_GRADIENT.apply(kernel, len(outputs), *outputs, *tensors)
    return marked if isinstance(results, tuple) else marked[0]
