"""A forward and a backward call of kernels as one function that JAX differentiates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyptx.runtime.jax_arrays import find_axes, jax, vary


def differentiate(
    forward: Callable[..., Any], backward: Callable[..., Any], save_indices: Sequence[int]
) -> Callable[..., Any]:
    """Return a function of arrays. `backward` takes the saved inputs and the gradient of each output, and returns the
    gradients of the first inputs; the others have none."""

    @jax.custom_vjp
    def function(*arrays: Any) -> Any:
        return forward(*arrays)

    def run_forward(*arrays: Any) -> Any:
        return forward(*arrays), ([arrays[index] for index in save_indices], [None] * len(arrays))

    def run_backward(saved: Any, gradients: Any) -> Any:
        inputs, nothing = saved
        results = backward(*inputs, *jax.tree.leaves(gradients))
        leaves = jax.tree.leaves(results)
        return (*leaves, *nothing[len(leaves) :])

    function.defvjp(run_forward, run_backward)

    def call(*arrays: Any) -> Any:
        """Call the function. Inside `jax.shard_map`, gradients vary along the same axes as the arrays, which JAX
        requires: what all devices share becomes theirs here, so JAX adds up its gradients."""
        axes = find_axes(arrays)
        return function(*(vary(value, axes) for value in arrays))

    return call
