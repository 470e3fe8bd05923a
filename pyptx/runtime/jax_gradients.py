"""A forward and a backward kernel as one function that JAX differentiates once, in reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.runtime.jax_arrays import find_axes, jax, vary
from pyptx.runtime.pairs import Pair, Paired
from pyptx.runtime.planning import find_call
from pyptx.runtime.rules import GRADIENTS


def differentiate(pair: Pair, options: Sequence[Mapping[str, Any]]) -> Callable[..., Any]:
    """Return a function of arrays. The backward kernel takes the saved inputs and the gradient of each output, and
    returns the gradients of the first inputs; the others have none. `options` are those of both kernels."""
    forward, backward = partial(pair.forward, **options[0]), partial(pair.backward, **options[1])

    @jax.custom_vjp
    def function(*arrays: Any) -> Any:
        return forward(*arrays)

    def run_forward(*arrays: Any) -> Any:
        saved = [arrays[index] for index in pair.save_indices]
        return _refuse_gradients(pair.backward, forward)(*arrays), (saved, [None] * len(arrays))

    def run_backward(saved: Any, gradients: Any) -> Any:
        inputs, nothing = saved
        results = _refuse_gradients(pair.backward, backward)(*inputs, *jax.tree.leaves(gradients))
        leaves = jax.tree.leaves(results)
        return (*leaves, *nothing[len(leaves) :])

    function.defvjp(run_forward, run_backward)

    def call(*arrays: Any) -> Any:
        """Call the function. Inside `jax.shard_map`, gradients vary along the same axes as the arrays, which JAX
        requires: what all devices share becomes theirs here, so JAX adds up its gradients."""
        axes = find_axes(arrays)
        try:
            return function(*(vary(value, axes) for value in arrays))
        except TypeError as error:
            # JAX has no other way to tell that a function with a gradient is asked for its forward-mode derivative.
            if _NO_FORWARD_MODE not in str(error):
                raise
        text = f"the kernel `{pair.forward.name}` has a gradient, but no forward-mode derivative"
        help = "use reverse mode: jax.grad, jax.vjp, or jax.jacrev instead of jax.jvp and jax.jacfwd"
        raise PtxError([GRADIENTS.report(find_call(pair.forward.definition), text, help=help)])

    return call


_NO_FORWARD_MODE = "can't apply forward-mode autodiff (jvp) to a custom_vjp function"


def _refuse_gradients(kernel: Paired, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function, which JAX runs for a gradient, such that differentiating it again is an error: that the kernel
    of the gradient has none."""
    guarded: Any = jax.custom_jvp(function)

    @guarded.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        text = f"the kernel `{kernel.name}` has no gradient, so there is no second derivative"
        help = "define one: a jax.custom_vjp function whose backward pass calls the result of differentiable_kernel"
        raise PtxError([GRADIENTS.report(find_call(kernel.definition), text, help=help)])

    return guarded
