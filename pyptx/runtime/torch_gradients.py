"""A kernel with another for its gradient: an autograd function for plain tensors, which calls the kernels directly, and
an operator for what PyTorch compiles or transforms. Both share the backward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

from pyptx.diagnostics import PtxError
from pyptx.runtime import torch_calls
from pyptx.runtime.pairs import Pair, split_options
from pyptx.runtime.planning import find_call
from pyptx.runtime.registry import KERNELS
from pyptx.runtime.rules import GRADIENTS
from pyptx.runtime.torch_operators import Gradient, Operator, Signature, find_operator
from pyptx.runtime.torch_refusals import make_autograd_function

torch: Any = import_module("torch")


def is_recorded(tensors: Sequence[Any]) -> bool:
    """Tell whether a call must be an operator. Transformations of torch.func differentiate only autograd functions."""
    plain = [tensor for tensor in tensors if isinstance(tensor, torch.Tensor)]
    return torch.compiler.is_compiling() or (bool(plain) and torch_calls.is_abstract(plain))


def record(pair: Pair, tensors: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Call the operator of a pair with the options of both kernels."""
    signature = define(pair.key)
    keywords = {name: value for name, value in options.items() if name != "grid"}
    return torch_calls.call_operator(signature, tensors, None, {"grid": options.get("grid")}, keywords)


@torch.compiler.assume_constant_result
def define(key: str) -> Signature:
    """Return the operator of a pair; define it if needed."""
    return find_pair_operator(KERNELS[key]).signature


def find_pair_operator(pair: Pair, name: str | None = None) -> Operator:
    """Return the operator of a pair; define it if needed, under a name."""

    def setup_context(ctx: Any, inputs: Any, keyword_only_inputs: Mapping[str, Any], output: Any) -> None:
        ctx.save_for_backward(*(inputs[index] for index in pair.save_indices))
        ctx.arguments = keyword_only_inputs

    def backward(context: Any, *gradients: Any) -> tuple[Any, ...]:
        options = split_options(operator.read_keywords(context.arguments), pair.forward, pair.backward)[1]
        return differentiate(pair, context.saved_tensors, context.needs_input_grad, gradients, options)

    function = pair.backward.definition.function
    parts = function.__module__, function.__qualname__, *map(str, (*pair.save_indices, pair.gradients))
    operator = find_operator(pair.forward, Gradient("__".join(parts), pair.backward, setup_context, backward), name)
    # PyTorch caches backward passes on disk: another process runs one that it has never traced.
    find_operator(pair.backward, None)
    return operator


def make_function(pair: Pair) -> Any:
    """Return the autograd function of a pair. It takes the options of both kernels, then the tensors."""

    def forward(options: tuple[dict[str, Any], dict[str, Any]], *tensors: Any) -> Any:
        return pair.forward(*tensors, **options[0])

    def setup_context(context: Any, inputs: tuple[Any, ...], output: Any) -> None:
        options, *tensors = inputs
        context.save_for_backward(*(tensors[index] for index in pair.save_indices))
        context.options = options[1]

    def backward(context: Any, *gradients: Any) -> tuple[Any, ...]:
        needs = context.needs_input_grad[1:]
        return (None, *differentiate(pair, context.saved_tensors, needs, gradients, context.options))

    def jvp(context: Any, *tangents: Any) -> Any:
        text = f"the kernel `{pair.forward.name}` has a gradient, but no forward-mode derivative"
        help = "use reverse mode: backward(), torch.func.grad or torch.func.jacrev instead of jvp and jacfwd"
        raise PtxError([GRADIENTS.report(find_call(pair.forward.definition), text, help=help)])

    return make_autograd_function(pair.forward.definition.name, forward, setup_context, backward, jvp)


def differentiate(
    pair: Pair, saved: Sequence[Any], needs: Sequence[bool], gradients: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the gradient of each input, None for those that need none."""
    names = [name for name, _ in pair.forward.definition.tensors]
    late = [name for name, is_needed in [*zip(names, needs, strict=False)][pair.gradients :] if is_needed]
    if late:
        text = (
            f"`{pair.backward.name}` has no output for the gradient of `{late[0]}`, input {names.index(late[0])} of "
            f"`{pair.forward.name}`"
        )
        help = f"pass {late[0]}.detach(), or compute its gradient"
        raise PtxError([GRADIENTS.report(find_call(pair.forward.definition), text, help=help)])
    dense = [gradient.resolve_conj().resolve_neg().contiguous() for gradient in gradients]
    results = pair.backward(*saved, *dense, **options)
    results = cast("tuple[Any, ...]", results) if isinstance(results, tuple) else (results,)
    gradients = [result if is_needed else None for result, is_needed in zip(results, needs, strict=False)]
    return (*gradients, *(None for _ in needs[pair.gradients :]))
