"""Tries configurations of a kernel and chooses one. The choice is kept in the user's cache as numbers and texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isfinite, nan
from typing import Any, SupportsFloat, cast

import numpy as np

from pyptx.benchmark import measure
from pyptx.cache import Store
from pyptx.diagnostics import PtxError, format_count
from pyptx.driver import is_active
from pyptx.dsl.trace import fail
from pyptx.runtime import arrays
from pyptx.runtime.agreement import compare
from pyptx.runtime.arrays import Array, DeviceView, Unusable
from pyptx.runtime.bindings import call, get_capability
from pyptx.runtime.rules import TUNING
from pyptx.toolchain import ToolMissing, find_tool
from pyptx.tuning.identity import Unknown, describe
from pyptx.tuning.requests import (
    COST_HELP,
    Configuration,
    Cost,
    Request,
    Tunable,
    check_reference,
    check_request,
    list_space,
)

FOLDER, SUFFIX, MOST_BYTES = "tuning", ".json", 1 << 24
_NAME_SIZE = 128
_REFUSALS = (PtxError, ValueError, TypeError, ArithmeticError, LookupError, AssertionError)
"""What a kernel raises for values of template parameters that it does not support."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration: its cost, or why it has none."""

    configuration: Configuration
    cost: float | None
    problem: str = ""

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.configuration.items())
        return f"{values}: {self.problem.splitlines()[0] if self.cost is None else f'{self.cost:.6g}'}"


@dataclass(frozen=True)
class Tuned:
    """A kernel with the configuration that costs least; calling it runs the kernel with that. `obstacle`: why the
    choice can be neither read from the cache nor kept there."""

    kernel: Tunable
    best: Configuration
    trials: tuple[Trial, ...]
    from_cache: bool = False
    obstacle: str = ""
    _kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Run the kernel."""
        return self.kernel(*inputs, **{**self._kwargs, **self.best, **kwargs})

    def __str__(self) -> str:
        """Return a line for each configuration, the cheapest first."""
        ranked = sorted(self.trials, key=lambda trial: (trial.cost is None, trial.cost or 0.0))
        head = f"{self.kernel.name}, {'from the cache' if self.from_cache else 'tried now'}:"
        return "\n".join([head, *map(str, ranked), *([f"not cached: {self.obstacle}"] if self.obstacle else [])])


def tune(kernel: Tunable, request: Request) -> Tuned:
    """Return the kernel with its best configuration; PtxError if none is right."""
    check_request(kernel, request)
    space = list_space(kernel, request)
    configurations = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    cost = request.cost or _choose_cost(request.args)
    traces = [_trace(kernel, request, configuration) for configuration in configurations]
    store = Store.open(FOLDER, SUFFIX, MOST_BYTES) if request.cache else None
    name = obstacle = ""
    if store is not None:
        try:
            name = _make_key(kernel, request, configurations, traces)
        except Unknown as why:
            store, obstacle = None, str(why)
    trials = _read(store, name, configurations)
    from_cache = trials is not None
    if trials is None:
        trials = _try_all(kernel, request, configurations, traces, cost)
    costs = [trial for trial in trials if trial.cost is not None]
    if not costs:
        text = f"no configuration of `{kernel.name}` produces the right results"
        fail(TUNING, text, notes=[str(trial) for trial in trials])
    if store is not None and not from_cache:
        store.write(name, json.dumps([[trial.cost, trial.problem] for trial in trials]).encode())
    best = min(costs, key=lambda trial: cast("float", trial.cost))
    return Tuned(kernel, best.configuration, tuple(trials), from_cache, obstacle, request.kwargs)


def _choose_cost(args: Sequence[Any]) -> Cost:
    """Return the time on the GPU as the cost. PtxError without one."""
    views = [view for view in arrays.adopt(args) if isinstance(view, DeviceView)]
    if not views or is_active():
        text = (
            "without a GPU, there is no time to minimize"
            if not is_active()
            else ("the simulated driver cannot time a GPU")
        )
        fail(TUNING, text, help="pass cost=, or arrays on a CUDA device")
    return lambda configuration, launch: measure(launch, device=views[0].device).median


def _trace(kernel: Tunable, request: Request, configuration: Configuration) -> str | Exception:
    """Return the PTX of a configuration, or why it cannot be traced."""
    keywords = {**request.kwargs, **configuration}
    try:
        text = kernel.trace_call(request.args, keywords)
        kernel.trace_call(request.check_args, keywords)
    except _REFUSALS as why:
        return why
    return text


def _make_key(
    kernel: Tunable, request: Request, configurations: Sequence[Configuration], traces: Sequence[str | Exception]
) -> str:
    """Return the name of a choice in the cache. Raise Unknown if it depends on what cannot be described."""
    parts = {"reference": request.reference, "cost": request.cost, "grid": kernel.grid, **request.kwargs}
    descriptions: dict[str, str] = {}
    for name, value in parts.items():
        try:
            descriptions[name] = describe(_outline(value))
        except Unknown as why:
            raise Unknown(f"`{name}` is or reads {why}, which may change") from None
    texts = [trace if isinstance(trace, str) else None for trace in traces]
    views = arrays.adopt(request.args)
    devices = sorted({view.device for view in views if isinstance(view, DeviceView)})
    key = [
        kernel.name, [repr(item) for item in configurations], texts, descriptions,
        repr([_outline(request.args), _outline(request.check_args)]),
        [_identify_device(device) for device in devices], [request.rtol, request.atol, request.check],
        *map(str, request.key),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]


def _outline(value: Any) -> Any:
    """Return a value with a description for each array, which other contents share."""
    if isinstance(value, list | tuple):
        return [_outline(item) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        return {name: _outline(item) for name, item in cast("Mapping[str, Any]", value).items()}
    (view,) = arrays.adopt([value])
    return arrays.describe(view) if not isinstance(view, Unusable) and view.shape else value


def _identify_device(device: int) -> list[Any]:
    """Return what times on a device depend on besides the kernel."""
    try:
        assembler = str(find_tool("ptxas"))
    except ToolMissing:
        assembler = "the driver's"
    name = bytes(call("cuDeviceGetName", _NAME_SIZE, device)).rstrip(b"\0 ").decode()
    return [name, get_capability(device), call("cuDriverGetVersion"), is_active(), assembler]


def _read(store: Store | None, name: str, configurations: Sequence[Configuration]) -> list[Trial] | None:
    body = None if store is None else store.read(name)
    if body is None:
        return None
    return [
        Trial(configuration, cost, problem)
        for configuration, (cost, problem) in zip(configurations, json.loads(body), strict=True)
    ]


def _try_all(
    kernel: Tunable,
    request: Request,
    configurations: Sequence[Configuration],
    traces: Sequence[str | Exception],
    cost: Cost,
) -> list[Trial]:
    """Return a trial of each configuration. Raise the error that all have in common, which is one of the call."""
    is_traced = any(isinstance(trace, str) for trace in traces)
    expected = _call_reference(kernel, request) if request.reference is not None and is_traced else None
    trials: list[Trial] = []
    errors: list[Exception] = []
    for configuration, trace in zip(configurations, traces, strict=True):
        try:
            outputs = _simulate(kernel, request, configuration, trace)
        except _REFUSALS as why:
            errors.append(why)
            trials.append(Trial(configuration, None, _explain(why)))
            continue
        expected = outputs if expected is None else expected
        problem = "; ".join(_list_differences(kernel, request, outputs, expected))
        if problem:
            trials.append(Trial(configuration, None, problem))
            continue
        try:
            value: Any = cost(configuration, _make_launch(kernel, request, configuration))
        except PtxError as why:
            errors.append(why)
            trials.append(Trial(configuration, None, str(why)))
            continue
        number = _read_number(value)
        if not isfinite(number):
            fail(TUNING, f"cost: expected a finite number for {configuration}, found {value!r}", help=COST_HELP)
        trials.append(Trial(configuration, number))
    if len(errors) == len(trials) and len({*map(_explain, errors)}) == 1:
        raise errors[0]
    return trials


def _read_number(value: Any) -> float:
    """Return what a cost function returned as a number, NaN for anything else, such as several numbers."""
    try:
        return float(value) if isinstance(value, SupportsFloat) else nan
    except (TypeError, ValueError, RuntimeError):
        return nan


def _simulate(kernel: Tunable, request: Request, configuration: Configuration, trace: str | Exception) -> list[Array]:
    """Return the outputs of a configuration that can be traced."""
    if isinstance(trace, Exception):
        raise trace
    result = kernel.simulate(*request.check_args, check=request.check, **{**request.kwargs, **configuration})
    return [np.array(result.outputs[name]) for name in kernel.list_outputs()]


def _explain(error: Exception) -> str:
    text = str(error)
    return text if text and isinstance(error, PtxError | ValueError) else f"{type(error).__name__}: {text}"


def _call_reference(kernel: Tunable, request: Request) -> list[Array]:
    """Return the right outputs."""
    check_reference(kernel, request)
    reference = cast("Callable[..., Any]", request.reference)
    results: Any = reference(*request.check_args)
    values: tuple[Any, ...] = cast("tuple[Any, ...]", results) if isinstance(results, tuple) else (results,)
    names = kernel.list_outputs()
    if len(values) != len(names):
        count = format_count("array", len(values))
        text = f"the reference of `{kernel.name}` returned {count} for {format_count('output', len(names))}"
        fail(TUNING, text, help=f"return the outputs in this order: {', '.join(names)}")
    return [np.asarray(value) for value in values]


def _list_differences(
    kernel: Tunable, request: Request, outputs: Sequence[Array], expected: Sequence[Array]
) -> list[str]:
    names = kernel.list_outputs()
    try:
        texts = [
            compare(name, result, right, request.rtol, request.atol)
            for name, result, right in zip(names, outputs, expected, strict=True)
        ]
    except TypeError as why:
        fail(TUNING, str(why), help=f"return the outputs in this order: {', '.join(names)}")
    return list(filter(None, texts))


def _make_launch(kernel: Tunable, request: Request, configuration: Configuration) -> Callable[[], Any]:
    def launch() -> Any:
        return kernel(*request.args, **{**request.kwargs, **configuration})

    return launch
