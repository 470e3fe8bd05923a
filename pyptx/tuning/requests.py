"""What `Kernel.tune` is asked for, and what is wrong with a request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as shorten
from typing import Any, Protocol, cast

import numpy as np

from pyptx.diagnostics import PtxError, format_count
from pyptx.dsl.run import Definition
from pyptx.dsl.trace import fail
from pyptx.runtime.agreement import check_tolerances
from pyptx.runtime.rules import TUNING
from pyptx.sim.observers.checks.choice import parse_choice

Configuration = dict[str, Any]
Cost = Callable[[Configuration, Callable[[], Any]], float]
"""Returns the cost of a configuration; the function launches the kernel with it."""
COST_HELP = "write cost=lambda configuration, launch: …, which returns a number; lower is better"


class Tunable(Protocol):
    """What tuning needs of a kernel."""

    grid: Any
    definition: Definition
    template_params: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the entry in PTX."""
        ...

    def list_outputs(self) -> list[str]:
        """Return the names of the output tensors."""
        ...

    def trace_call(self, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> str:
        """Return the PTX for a call on these arrays."""
        ...

    def simulate(self, *inputs: Any, **kwargs: Any) -> Any:
        """Run on the simulator."""
        ...

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Run on arrays."""
        ...


@dataclass(frozen=True)
class Request:
    """The arguments of `Kernel.tune`."""

    space: Mapping[str, Iterable[Any]]
    args: Sequence[Any]
    cost: Cost | None
    check_args: Sequence[Any]
    reference: Callable[..., Any] | None
    rtol: float | None
    atol: float | None
    check: str
    key: Sequence[str | int]
    cache: bool
    kwargs: Mapping[str, Any]


def check_request(kernel: Tunable, request: Request) -> None:
    """Refuse arguments that are wrong whatever the kernel does."""
    for name, values in (("args", request.args), ("check_args", request.check_args)):
        if not isinstance(values, list | tuple):
            text = f"{name}: expected a list of the arrays of `{kernel.name}`, found {type(values).__name__}"
            fail(TUNING, text, help=f"write {name}=[…]")
    key: object = request.key
    if not isinstance(key, list | tuple) or not all(isinstance(item, str | int) for item in cast("list[object]", key)):
        text = f"key: expected a list of strings and integers, found {shorten(key)}"
        fail(TUNING, text, help=f"write key=[{shorten(key)}]" if isinstance(key, str | int) else "write key=[…]")
    try:
        parse_choice(request.check, "raise")
    except PtxError as why:
        fail(TUNING, why.diagnostics[0].message, help="omit check= for all")
    check_tolerances(TUNING, request.rtol, request.atol)
    if request.cost is not None:
        check_function("cost", request.cost, ({}, lambda: None), COST_HELP)
    if request.reference is not None and not callable(request.reference):
        check_reference(kernel, request)


def check_reference(kernel: Tunable, request: Request) -> None:
    """Refuse a reference that cannot be called with the arrays of the check."""
    outputs = kernel.list_outputs()
    inputs = [name for name, _ in kernel.definition.tensors if name not in outputs]
    help = f"write reference=lambda {', '.join(inputs)}: …, which returns {', '.join(outputs)}"
    check_function("reference", request.reference, request.check_args, help)


def check_function(name: str, function: object, arguments: Sequence[Any], help: str) -> None:
    """Refuse what cannot be called with these arguments."""
    if not callable(function):
        fail(TUNING, f"{name}: expected a function, found {shorten(function)}", help=help)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a function in C that has none
    try:
        signature.bind(*arguments)
    except TypeError as why:
        fail(TUNING, f"{name}: expected a function of {format_count('argument', len(arguments))}: {why}", help=help)


def list_space(kernel: Tunable, request: Request) -> dict[str, tuple[Any, ...]]:
    """Return the values of each template parameter of the space."""
    if not isinstance(cast("object", request.space), Mapping):
        text = (
            f"space: expected template parameters of `{kernel.name}` with their values, found {shorten(request.space)}"
        )
        example = next(iter(kernel.template_params), "name")
        fail(TUNING, text, help=f'write {{"{example}": […]}}')
    unknown = [name for name in request.space if name not in kernel.template_params]
    space = {} if unknown else {name: _list_values(kernel, name, values) for name, values in request.space.items()}
    empty = [name for name, values in space.items() if not values]
    if unknown or empty or not space:
        choices = ", ".join(kernel.template_params) or "none"
        reason = f"no values for {', '.join(empty)}" if empty else ", ".join(unknown) or "none"
        text = f"the space of `{kernel.name}`: expected template parameters with their values, found {reason}"
        fail(TUNING, text, help=f"its template parameters: {choices}")
    twice = [name for name in space if name in request.kwargs]
    if twice:
        text = f"`{twice[0]}` is in the space of `{kernel.name}` and also passed by keyword"
        fail(TUNING, text, help=f"remove `{twice[0]}` from the space, or omit {twice[0]}=")
    return space


def _list_values(kernel: Tunable, name: str, values: Any) -> tuple[Any, ...]:
    """Return the values of a template parameter: those of a set in the same order in each process."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        text = shorten(cast("object", values))
        message = f"the space of `{kernel.name}`: expected a list of values for {name}, found {text}"
        fail(TUNING, message, help=f'write {{"{name}": [{text}]}}')
    items = list(cast("Iterable[Any]", values))
    return tuple(sorted(items, key=repr) if isinstance(values, set | frozenset) else items)
