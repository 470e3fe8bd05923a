"""Calls of kernels that PyTorch compiles, transforms or differentiates: they go through an operator of its dispatcher.

`torch.compile` traces these functions, so they are plain Python: what it cannot trace is a constant from
`torch_operators`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np

from pyptx.runtime import torch_operators
from pyptx.runtime.torch_options import encode
from pyptx.runtime.torch_refusals import Defined, attach, has_tangent, needs_gradient, refuse, refuse_writing
from pyptx.specs import Tile

torch: Any = import_module("torch")

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Recordable(Defined, Protocol):
    """A kernel as this file sees it."""

    out_specs: tuple[Tile, ...]
    key: str

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """Run the kernel on arrays."""
        ...


def is_special(inputs: Sequence[Any], out: Any, positional: Sequence[Any] | None, keywords: Mapping[str, Any]) -> bool:
    """Tell whether a call is compiled, transformed or differentiated."""
    if torch.compiler.is_compiling():
        return True
    tensors = _list_tensors(inputs, out, positional, keywords)
    return bool(tensors) and (
        is_abstract(tensors)
        or needs_gradient(tensors)
        or torch._C._functorch.peek_interpreter_stack() is not None  # torch.func, such as vmap
        or has_tangent(tensors)
    )


def _list_tensors(
    inputs: Sequence[Any], out: Any, positional: Sequence[Any] | None, keywords: Mapping[str, Any]
) -> list[Any]:
    values = [*inputs, *_as_list(out), *(positional or ()), *keywords.values()]
    return [value for value in values if isinstance(value, torch.Tensor)]


def _as_list(value: Any) -> list[Any]:
    return [*cast("Any", value)] if isinstance(value, tuple | list) else [value]


def is_abstract(tensors: Sequence[Any]) -> bool:
    """Tell whether PyTorch compiles or observes what is done with tensors, or whether they are not plain ones."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        return True
    return any(type(tensor) not in _PLAIN or tensor.is_meta for tensor in tensors)


def record(
    kernel: Recordable, inputs: Sequence[Any], out: Any, options: Mapping[str, Any], keywords: Mapping[str, Any]
) -> Any:
    """Call the operator of a kernel with what a call of the kernel was given. `options` are those of the call."""
    if not torch.compiler.is_compiling():
        tensors = _list_tensors(inputs, out, options["args"], keywords)
        if has_tangent(tensors):
            refuse(kernel, "has no forward-mode derivative")
        if needs_gradient(tensors):
            if out is not None or len(tensors) > len(inputs) or not kernel.out_specs:
                refuse_writing(kernel)
            with torch.no_grad():
                results = kernel(*inputs, **options, **keywords)
            return attach(kernel, results, tensors)
    return call_operator(torch_operators.define(kernel.key), inputs, out, options, keywords)


def call_operator(
    signature: torch_operators.Signature,
    inputs: Sequence[Any],
    out: Any,
    options: Mapping[str, Any],
    keywords: Mapping[str, Any],
) -> Any:
    """Call an operator; return its outputs, or the tensors given as `out`."""
    name, _, output_names, raw_names, numbers, floats, returns = signature
    targets = [] if out is None else _as_list(out)
    torch_operators.check_arrays(name, _name_wrong_types(inputs), _name_wrong_types(targets))
    tensors, results = _convert(inputs), _convert(targets)
    # Dynamo traces annotations, but no subscripted types that are called.
    values: dict[str, Any] = {**keywords}
    typed: dict[str, Any] = {}
    memory: list[Any] = []
    texts: list[str] = []
    if options.get("args") is not None:
        torch_operators.check_positional(name, len(options["args"]))
        values |= zip(raw_names, options["args"], strict=True)
    for key, value in values.items():
        if key in raw_names and isinstance(value, torch.Tensor | np.ndarray):
            if not value.ndim:
                torch_operators.refuse_scalar(name, key, type(value).__name__)
            texts.append(f"{key}=memory[{len(memory)}]")
            memory += _convert([value])
        elif key in numbers and (_is_real(value) if key in floats else _is_integer(value)):
            typed[key] = value
        else:
            texts.append(f"{key}={encode(value)}")
    texts += [f"{key}=True" for key in ("cooperative", "programmatic") if options.get(key)]
    grid = options.get("grid")
    if grid is not None and all(map(_is_integer, _as_list(grid))):
        typed["grid"] = _as_list(grid)
    elif grid is not None:
        texts.append(f"grid={encode(grid)}")
    if texts:
        typed["options"] = ", ".join(texts)
    if memory or (results and raw_names):
        typed["memory"] = memory
    torch_operators.check_call(name, len(tensors) + len(results) + len(memory), options.get("stream") is not None)
    operator = getattr(torch.ops.pyptx, name)
    if results:
        operator.out(*tensors, **typed, **dict(zip(output_names, results, strict=True)))
        return targets[0] if len(targets) == 1 else tuple(targets)
    if output_names:
        # PyTorch caches what it compiles by the text of the graph, which must say whatever the results depend on.
        typed["returns"] = returns
    result = (operator.memory if memory else operator.default)(*tensors, **typed)
    return result if output_names else ()


def _is_real(value: Any) -> bool:
    """Tell whether an operator takes a value as a number. Those of NumPy have a type, which it would lose."""
    return isinstance(value, int | float | torch.SymInt | torch.SymFloat) and not isinstance(value, np.generic)


def _is_integer(value: Any) -> bool:
    """Tell whether an operator takes a value as an integer, which has 64 bits."""
    return isinstance(value, torch.SymInt) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 63)


def _name_wrong_types(values: Sequence[Any]) -> list[str]:
    """Return the type of each value that is no array, nothing for arrays."""
    return ["" if isinstance(value, torch.Tensor | np.ndarray) else type(value).__name__ for value in values]


def _convert(values: Sequence[Any]) -> list[Any]:
    """Return the values as tensors. Only arrays of NumPy are converted, over the same memory."""
    return [value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in values]
