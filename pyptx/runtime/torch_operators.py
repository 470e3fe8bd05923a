"""One operator of PyTorch's dispatcher per kernel, defined when PyTorch first compiles, transforms or differentiates a
call of it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple, Protocol

from pyptx.diagnostics import PtxError
from pyptx.dsl.run import parse_raw_parameter
from pyptx.runtime import arguments, torch_, torch_abstract
from pyptx.runtime.arrays import refuse_type
from pyptx.runtime.pairs import Paired, split_options
from pyptx.runtime.planning import Traceable, find_call, find_place, locate_errors
from pyptx.runtime.registry import KERNELS
from pyptx.runtime.rules import ARRAYS, TRANSFORMS
from pyptx.runtime.torch_options import decode
from pyptx.runtime.torch_refusals import make_backward, needs_gradient, refuse_writing

torch: Any = import_module("torch")

Signature = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], str]
"""The operator's name, the names of the inputs, outputs and raw parameters, those of the arguments that are numbers,
those of them that are floating-point, and what it returns. `torch.compile` reads it, hence no class."""


class Recorded(Paired, Traceable, Protocol):
    """A kernel as this file sees it."""

    def repeat(self, inputs: tuple[Any, ...]) -> Any:
        """Repeat an earlier call of this kind; NotImplemented if there is none."""
        ...

    def run(self, inputs: Sequence[Any], out: Any = None, *, keywords: Mapping[str, Any], **options: Any) -> Any:
        """Run the kernel on arrays in memory."""
        ...


class Gradient(NamedTuple):
    """How an operator is differentiated."""

    name: str
    """What tells it from another gradient of the same kernel."""
    kernel: Recorded
    setup_context: Callable[..., None]
    backward: Callable[..., Any]


class Operator(NamedTuple):
    """A kernel, its gradient if it has one, and the arguments of its operator."""

    kernel: Recorded
    gradient: Gradient | None
    signature: Signature

    def read(self, arguments: Mapping[str, Any], memory: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the tensors given for outputs, and the keywords of the call. `memory` is what raw parameters point
        to."""
        targets = [arguments[name] for name in self.signature[2] if name in arguments]
        keywords = self.read_keywords(arguments, memory)
        if self.gradient:
            keywords = split_options(keywords, self.kernel, self.gradient.kernel)[0]
        return targets, keywords

    def check_returns(self, recorded: str) -> None:
        """Refuse a program that was compiled when the kernel had other outputs."""
        returns = self.signature[6]
        if recorded not in ("", returns):
            text = f"the program was compiled when `{self.kernel.name}` returned {recorded}; it returns {returns}"
            raise PtxError(
                [TRANSFORMS.report(find_call(self.kernel.definition), text, help="compile or export it again")]
            )

    def read_keywords(self, arguments: Mapping[str, Any], memory: Sequence[Any] = ()) -> dict[str, Any]:
        """Return all keywords of a call."""
        names = (*self.signature[4], "grid")
        keywords = {name: arguments[name] for name in names if arguments.get(name) is not None}
        if "grid" in keywords:
            keywords["grid"] = tuple(keywords["grid"])
        return keywords | decode(arguments.get("options", ""), memory)


_LIBRARY = torch.library.Library("pyptx", "FRAGMENT")
_OPERATORS: dict[tuple[str, str, str], Operator] = {}
"""By the keys of the kernels and the gradient's name. They keep their kernels: graphs refer to these by name."""
_NAMES: dict[str, Operator] = {}
"""Every operator by its name."""
_NUMBERS = "fusb"
"""How the types of raw parameters start that are numbers of an operator."""
_OPTIONS = ("grid", "cooperative", "programmatic")
_ARGUMENTS = ("options", "memory", "returns")
_TAGS = ("pt2_compliant_tag", "needs_exact_strides", "needs_fixed_stride_order")


@torch.compiler.assume_constant_result
def define(key: str) -> Signature:
    """Return the operator of a kernel; define it if needed."""
    return find_operator(KERNELS[key], None).signature


def find_operator(kernel: Recorded, gradient: Gradient | None, name: str | None = None) -> Operator:
    """Return the operator of a kernel with a gradient; define it if needed, under a name."""
    key = kernel.key, gradient.kernel.key if gradient else "", gradient.name if gradient else ""
    operator = _OPERATORS.get(key)
    if operator is None:
        operator = _make_operator(kernel, gradient, name)
        _OPERATORS[key] = _NAMES[operator.signature[0]] = operator
        _define(operator)
    elif name is not None and operator.signature[0] != name:
        text = f"`{kernel.definition.name}` is already the operator {operator.signature[0]}"
        raise PtxError(
            [
                TRANSFORMS.report(
                    find_call(kernel.definition), text, help="name it before its first use, at module level"
                )
            ]
        )
    return operator


def _make_operator(kernel: Recorded, gradient: Gradient | None, name: str | None) -> Operator:
    name = name or _choose_name(kernel, gradient)
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or name in _NAMES:
        text = f"{name} is the name of another operator" if name in _NAMES else f"an operator cannot be named {name!r}"
        raise PtxError([TRANSFORMS.report(find_call(kernel.definition), text, help="pass another name=")])
    kernels = (kernel, gradient.kernel) if gradient else (kernel,)
    tensors, count = [tensor for tensor, _ in kernel.definition.tensors], len(kernel.in_specs)
    params = [parse_raw_parameter(*param) for each in kernels for param in each.definition.raw_params]
    sizes = chain.from_iterable(each.shape_variables for each in kernels)
    scalars = [param.name for param in params if param.array_size is None and param.type.ptx[1] in _NUMBERS]
    numbers = tuple(dict.fromkeys((*sizes, *scalars)))
    floats = tuple(param.name for param in params if param.name in numbers and param.type.ptx[1] == "f")
    conflicts = [word for word in (*tensors, *(param.name for param in params)) if word in (*_OPTIONS, *_ARGUMENTS)]
    if conflicts:
        text = f"`{conflicts[0]}` of `{kernel.name}` has the name of an argument that its PyTorch operator adds"
        raise PtxError([TRANSFORMS.report(find_place(kernel.definition), text, help="rename the parameter")])
    raw_names = tuple(dict.fromkeys(param.name for param in params))
    returns = ", ".join(f"{tile.dtype.name}[{', '.join(map(str, tile.shape))}]" for tile in kernel.out_specs)
    signature = name, tuple(tensors[:count]), tuple(tensors[count:]), raw_names, numbers, floats, returns
    return Operator(kernel, gradient, signature)


def _choose_name(kernel: Recorded, gradient: Gradient | None) -> str:
    """Return a name that the kernel has in every process that imports its module, or else one that no other process
    gives, so that a program that was saved never finds another kernel."""
    function = kernel.definition.function
    parts = f"{function.__module__}__{function.__qualname__}", *([gradient.name] if gradient else [])
    name = re.sub(r"\W+", "_", "__".join(parts), flags=re.ASCII).lstrip("_")
    kernels = (kernel, gradient.kernel) if gradient else (kernel,)
    if name in _NAMES or not all(each.is_importable for each in kernels):
        name = f"{name}_{secrets.token_hex(4)}"
    return name


def _define(operator: Operator) -> None:
    for overload, schema in _write_schemas(operator).items():
        name = f"{operator.signature[0]}.{overload}".removesuffix(".")
        _LIBRARY.define(name + schema, tags=[getattr(torch.Tag, tag) for tag in _TAGS if hasattr(torch.Tag, tag)])
        _implement(operator, name, is_functional="!" not in schema)


def _write_schemas(operator: Operator) -> dict[str, str]:
    """Return the schema of each overload: the default one writes nothing but what it returns, `out` the tensors given
    for outputs, and `memory` what raw parameters point to. A kernel without outputs writes its inputs."""
    _, inputs, outputs, raw_names, numbers, floats, _ = operator.signature
    tensors = ", ".join(f"Tensor {name}" if outputs else f"Tensor({name}!) {name}" for name in inputs)
    values = "".join(f"{'float?' if name in floats else 'SymInt?'} {name}=None, " for name in numbers)
    start = f"({tensors}{', ' if inputs else ''}*, {values}str options='', str returns='', SymInt[]? grid=None"
    returns = "Tensor" if len(outputs) == 1 else f"({', '.join('Tensor' for _ in outputs)})"
    schemas = {"": f"{start}) -> {returns}"} if inputs or outputs else {}
    if operator.gradient:
        return schemas
    if raw_names:
        schemas["memory"] = f"{start}, Tensor(memory!)[] memory) -> {returns}"
    if outputs:
        memory = ", Tensor(memory!)[] memory" if raw_names else ""
        targets = "".join(f", Tensor({name}!) {name}" for name in outputs)
        schemas["out"] = f"{start}{memory}{targets}) -> ()"
    return schemas


def _implement(operator: Operator, name: str, *, is_functional: bool) -> None:
    kernel, full_name = operator.kernel, f"pyptx::{name}"

    def run(*tensors: Any, **arguments: Any) -> Any:
        operator.check_returns(arguments.pop("returns", ""))
        results = NotImplemented if arguments else kernel.repeat(tensors)
        if results is not NotImplemented:
            return results
        targets, keywords = operator.read(arguments, arguments.get("memory", ()))
        options = {name: keywords.pop(name) for name in _OPTIONS if name in keywords}
        result = kernel.run(tensors, targets or None, **options, keywords=keywords)
        return result if operator.signature[2] and not targets else None

    def infer(*tensors: Any, **arguments: Any) -> Any:
        operator.check_returns(arguments.pop("returns", ""))
        memory = arguments.get("memory", ())
        targets, keywords = operator.read(arguments, [0 for _ in memory])
        options = {name: keywords.pop(name) for name in _OPTIONS if name in keywords}
        results = torch_abstract.infer(kernel, tensors, targets, options.get("grid"), keywords, memory)
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def refuse_view(*tensors: Any, **arguments: Any) -> None:
        # PyTorch would copy such views silently, while other calls refuse them.
        values = [*tensors, *arguments.values()]
        tensors = tuple(value for value in values if isinstance(value, torch.Tensor))
        names = [*operator.signature[1], *(key for key, value in arguments.items() if isinstance(value, torch.Tensor))]
        problems = [f"`{key}`: {problem.describe(key)}" for key, value in zip(names, tensors, strict=True)
                    if (problem := torch_.find_problem(value, needs_memory=False))]  # fmt: skip
        raise PtxError([ARRAYS.report(find_place(kernel.definition), "; ".join(problems))])

    _LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    for key in ("Conjugate", "Negative"):
        _LIBRARY.impl(name, refuse_view, key)
    torch.library.register_fake(full_name, infer, lib=_LIBRARY)
    if is_functional:
        gradient = operator.gradient
        torch.library.register_autograd(
            full_name, gradient.backward if gradient else make_backward(kernel),
            setup_context=gradient.setup_context if gradient else None, lib=_LIBRARY,
        )  # fmt: skip
        torch.library.register_vmap(full_name, _make_loop(full_name), lib=_LIBRARY)
    else:
        _LIBRARY.impl(name, _make_check(operator, full_name), "Autograd", with_keyset=True)


def _make_check(operator: Operator, full_name: str) -> Callable[..., Any]:
    """Return what autograd runs for an overload that writes tensors."""

    def check(keyset: Any, *tensors: Any, **arguments: Any) -> Any:
        values = (*tensors, *arguments.get("memory", ()), *arguments.values())
        if needs_gradient([value for value in values if isinstance(value, torch.Tensor)]):
            refuse_writing(operator.kernel)
        with torch._C._AutoDispatchBelowAutograd():
            keys = keyset & torch._C._after_autograd_keyset
            return _find_overload(full_name).redispatch(keys, *tensors, **arguments)

    return check


def _find_overload(full_name: str) -> Any:
    name, _, overload = full_name.removeprefix("pyptx::").partition(".")
    return getattr(getattr(torch.ops.pyptx, name), overload or "default")


def _make_loop(full_name: str) -> Callable[..., Any]:
    """Return what vmap runs: one launch for each element of the batch. A kernel says nothing about further dimensions
    of its tensors, so there is no grid for the whole batch."""

    def loop(info: Any, in_dims: tuple[int | None, ...], *tensors: Any, **arguments: Any) -> Any:
        overload = _find_overload(full_name)
        rows = [
            [
                tensor if dim is None else tensor.select(dim, index).contiguous()
                for tensor, dim in zip(tensors, in_dims, strict=False)
            ]
            for index in range(info.batch_size)
        ]
        if not rows:
            return _make_empty(overload(*_list_abstract(tensors, in_dims), **arguments), tensors[0].device)
        results = [overload(*row, **arguments) for row in rows]
        if isinstance(results[0], torch.Tensor):
            return torch.stack(results), 0
        stacked = tuple(torch.stack(column) for column in zip(*results, strict=True))
        return stacked, tuple(0 for _ in stacked)

    return loop


def _list_abstract(tensors: Sequence[Any], in_dims: Sequence[int | None]) -> list[Any]:
    """Return one element of a batch as tensors without data."""
    shapes = [
        tensor.shape if dim is None else (*tensor.shape[:dim], *tensor.shape[dim + 1 :])
        for tensor, dim in zip(tensors, in_dims, strict=False)
    ]
    return [tensor.new_empty(shape, device="meta") for tensor, shape in zip(tensors, shapes, strict=True)]


def _make_empty(results: Any, device: Any) -> tuple[Any, Any]:
    """Return a batch of no elements like these results, with its dimensions."""
    if isinstance(results, torch.Tensor):
        return results.new_empty((0, *results.shape), device=device), 0
    return tuple(_make_empty(result, device)[0] for result in results), tuple(0 for _ in results)


@torch.compiler.assume_constant_result
def check_arrays(name: str, inputs: Sequence[str], targets: Sequence[str]) -> None:
    """Refuse a wrong number of arrays, and what is no array: each value's type is given, nothing for an array."""
    kernel = _NAMES[name].kernel
    tensors, count = kernel.definition.tensors, len(kernel.in_specs)
    with locate_errors(kernel.definition):
        arguments.check_counts(kernel.name, tensors[:count], len(inputs), tensors[count:], len(targets))
        problems = [
            f"`{word}`: {refuse_type(kind).describe(word)}"
            for (word, _), kind in zip(tensors, (*inputs, *targets), strict=False)
            if kind
        ]
        if problems:
            raise PtxError([ARRAYS.report(None, "; ".join(problems))])


@torch.compiler.assume_constant_result
def check_positional(name: str, count: int) -> None:
    """Refuse a wrong number of raw parameters."""
    kernel = _NAMES[name].kernel
    with locate_errors(kernel.definition):
        arguments.check_positional(kernel.raw_parameters, count)


@torch.compiler.assume_constant_result
def refuse_scalar(name: str, parameter: str, kind: str) -> None:
    """Refuse a tensor without dimensions for a raw parameter."""
    with locate_errors(_NAMES[name].kernel.definition):
        arguments.refuse_scalar(parameter, kind)


@torch.compiler.assume_constant_result
def check_call(name: str, count: int, has_stream: bool) -> None:
    """Refuse a call without tensors, which the dispatcher cannot place on a device, and one in a given stream."""
    with locate_errors(_NAMES[name].kernel.definition):
        if not count:
            text = f"PyTorch records the call of {name}, which has no tensor among its arguments"
            raise PtxError([TRANSFORMS.report(None, text, help="pass out=, or call it outside of torch.compile")])
        if has_stream:
            text = f"PyTorch records the call of {name}, but `stream` is a stream of now"
            help = "use torch.cuda.stream(…): calls run in the current stream"
            raise PtxError([TRANSFORMS.report(None, text, help=help)])
