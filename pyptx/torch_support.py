"""Kernels as differentiable functions of PyTorch and JAX."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, cast
from weakref import WeakKeyDictionary

from pyptx.decorator import Kernel
from pyptx.diagnostics import PtxError
from pyptx.dsl.origin import find_caller
from pyptx.runtime.pairs import Pair, split_options
from pyptx.runtime.rules import GRADIENTS, TRANSFORMS
from pyptx.specs import Tile


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
        raise PtxError([GRADIENTS.report(find_caller(), "; ".join(wrong))])

    pair = Pair(forward_kernel, backward_kernel, save_indices, count)

    @cache
    def make_once() -> Any:
        from pyptx.runtime import torch_gradients

        return torch_gradients.make_function(pair)

    def function(*tensors: Any, **options: Any) -> Any:
        """Run the forward kernel; autograd runs the backward one."""
        merged = {**kwargs, **options}
        if "torch" in sys.modules:
            from pyptx.runtime import torch_gradients

            if torch_gradients.is_recorded(tensors):
                return torch_gradients.record(pair, tensors, merged)
        from pyptx.runtime.arrays import find_library

        split = split_options(merged, forward_kernel, backward_kernel)
        if find_library(tensors) == "jax":
            from pyptx.runtime.jax_gradients import differentiate

            return differentiate(pair, split)(*tensors)
        return make_once().apply(split, *tensors)

    split_options(kwargs, forward_kernel, backward_kernel)
    function.__name__ = function.__qualname__ = forward_kernel.name
    _PAIRS[function] = pair
    return function


_PAIRS: WeakKeyDictionary[Callable[..., Any], Pair] = WeakKeyDictionary()
"""What `differentiable_kernel` returned, with its kernels."""


def operator(kernel: Callable[..., Any], name: str | None = None) -> Any:
    """Return the PyTorch operator of a kernel, or of what `differentiable_kernel` returned: `torch.ops.pyptx.<name>`.

    It is otherwise defined when PyTorch first compiles a call. Define it where the kernel is defined to load exported
    programs that contain it, and to name it. Only kernels at module level have names that other processes know, unless
    you pass one.
    """
    torch: Any = import_module("torch")
    if kernel in _PAIRS:
        definition = import_module("pyptx.runtime.torch_gradients").find_pair_operator(_PAIRS[kernel], name)
    else:
        definition = import_module("pyptx.runtime.torch_operators").find_operator(kernel, None, name)
    return getattr(torch.ops.pyptx, definition.signature[0])


def declare_sharding(kernel: Callable[..., Any], *dims: str) -> None:
    """Let a kernel run on DTensors that are replicated, or sharded along one of these named dimensions: the kernel must
    compute each slice along them on its own, for any number of slices."""
    placement: Any = import_module("torch.distributed.tensor")
    experimental: Any = import_module("torch.distributed.tensor.experimental")
    pair = _PAIRS.get(kernel)
    plain: Kernel = pair.forward if pair else cast("Kernel", kernel)
    unknown = [dim for dim in dims if dim not in plain.shape_variables]
    if unknown:
        text = f"`{plain.name}` has no dimension {', '.join(unknown)}"
        help = f"choose from {', '.join(plain.shape_variables) or 'none'}"
        raise PtxError([TRANSFORMS.report(find_caller(), text, help=help)])
    tiles = (plain.out_specs, plain.in_specs)

    def place(tile: Tile, dim: str) -> Any:
        return placement.Shard(tile.shape.index(dim)) if dim in tile.shape else placement.Replicate()

    def choose(*tensors: Any, **options: Any) -> Any:
        """Return the placements of the outputs and the inputs that the kernel takes."""
        replicated = tuple([placement.Replicate() for _ in group] for group in tiles)
        return [replicated, *(tuple([place(tile, dim) for tile in group] for group in tiles) for dim in dims)]

    experimental.register_sharding(operator(kernel).default)(choose)
