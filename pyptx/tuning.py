"""Chooses template parameters of a kernel: right on the simulator first, then the ones that cost least.

Knows kernels as functions with template parameters. What was chosen is kept in the user's cache as numbers and texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isfinite
from typing import Any, Protocol, SupportsFloat, cast

import numpy as np

from pyptx.benchmark import measure
from pyptx.cache import Store
from pyptx.diagnostics import PtxError
from pyptx.driver import is_active
from pyptx.runtime import arrays
from pyptx.runtime.agreement import compare
from pyptx.runtime.arrays import DeviceView
from pyptx.runtime.rules import TUNING

Configuration = dict[str, Any]
Cost = Callable[[Configuration, Callable[[], Any]], float]
"""Returns the cost of a configuration; the function launches the kernel with it."""
FOLDER, SUFFIX, MOST_BYTES = "tuning", ".json", 1 << 24


class Tunable(Protocol):
    """What tuning needs of a kernel."""

    @property
    def name(self) -> str:
        """The name of the entry in PTX."""
        ...

    @property
    def template_params(self) -> dict[str, Any]:
        """The template parameters with their defaults."""
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

    space: Mapping[str, Sequence[Any]]
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
    """A kernel with the configuration that costs least; calling it runs the kernel with that."""

    kernel: Tunable
    best: Configuration
    trials: tuple[Trial, ...]
    from_cache: bool = False
    _kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Run the kernel."""
        return self.kernel(*inputs, **{**self._kwargs, **self.best, **kwargs})

    def __str__(self) -> str:
        """Return a line for each configuration, the cheapest first."""
        ranked = sorted(self.trials, key=lambda trial: (trial.cost is None, trial.cost or 0.0))
        return "\n".join(
            [f"{self.kernel.name}, {'from the cache' if self.from_cache else 'tried now'}:", *map(str, ranked)]
        )


def tune(kernel: Tunable, request: Request) -> Tuned:
    """Return the kernel with its best configuration; PtxError if none is right."""
    _require_lists(kernel, request)
    configurations = list(_list_configurations(kernel, request.space))
    cost = request.cost or _choose_cost(request.args)
    texts = [_trace(kernel, request, configuration) for configuration in configurations]
    store = Store.open(FOLDER, SUFFIX, MOST_BYTES) if request.cache else None
    name = _make_key(kernel, request, configurations, texts)
    trials = _read(store, name, configurations)
    from_cache = trials is not None
    if trials is None:
        trials = _try_all(kernel, request, configurations, texts, cost)
    costs = [trial for trial in trials if trial.cost is not None]
    if not costs:
        notes = [str(trial) for trial in trials]
        text = f"no configuration of `{kernel.name}` runs with the right results"
        raise PtxError([TUNING.report(None, text, notes=notes)])
    if store is not None and not from_cache:
        store.write(name, json.dumps([[trial.cost, trial.problem] for trial in trials]).encode())
    best = min(costs, key=lambda trial: cast("float", trial.cost))
    return Tuned(kernel, best.configuration, tuple(trials), from_cache, request.kwargs)


def _require_lists(kernel: Tunable, request: Request) -> None:
    for name, values in (("args", request.args), ("check_args", request.check_args)):
        if not isinstance(values, list | tuple):
            text = f"{name}: expected a list of the arrays of `{kernel.name}`, found {type(values).__name__}"
            raise PtxError([TUNING.report(None, text, help=f"write {name}=[…]")])


def _list_configurations(kernel: Tunable, space: Mapping[str, Sequence[Any]]) -> Iterator[Configuration]:
    unknown = [name for name in space if name not in kernel.template_params]
    empty = [name for name, values in space.items() if hasattr(values, "__len__") and not len(values)]
    if unknown or empty or not space:
        choices = ", ".join(kernel.template_params) or "none"
        reason = f"{', '.join(unknown)} are none" if unknown else f"no values for {', '.join(empty) or 'any'}"
        text = f"the space of `{kernel.name}` consists of template parameters and their values: {reason}"
        raise PtxError([TUNING.report(None, text, help=f"its template parameters: {choices}")])
    for name, values in space.items():
        if isinstance(values, str) or not isinstance(values, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"the space of `{kernel.name}`: expected a list of values for {name}, found {values!r}"
            raise PtxError([TUNING.report(None, text, help=f'write {{"{name}": [{values!r}]}}')])
    for values in product(*space.values()):
        yield dict(zip(space, values, strict=True))


def _choose_cost(args: Sequence[Any]) -> Cost:
    """Return the time on the GPU as the cost. PtxError without one."""
    views = [view for view in arrays.adopt(args) if isinstance(view, DeviceView)]
    if not views or is_active():
        text = (
            "without a GPU there is no time to minimize"
            if not is_active()
            else ("the simulated driver has no times of a GPU")
        )
        raise PtxError([TUNING.report(None, text, help="pass cost=, or arrays on a CUDA device")])
    return lambda configuration, launch: measure(launch, device=views[0].device).median


def _trace(kernel: Tunable, request: Request, configuration: Configuration) -> str | None:
    """Return the PTX of a configuration, None if it cannot be traced."""
    try:
        return kernel.trace_call(request.args, {**request.kwargs, **configuration})
    except (PtxError, ValueError):
        return None


def _make_key(
    kernel: Tunable, request: Request, configurations: Sequence[Configuration], texts: Sequence[str | None]
) -> str:
    views = arrays.adopt(request.args)
    shapes = [(tuple(getattr(view, "shape", ())), str(getattr(view, "dtype", ""))) for view in views]
    devices = sorted({view.device for view in views if isinstance(view, DeviceView)})
    functions = [getattr(function, "__qualname__", "") for function in (request.reference, request.cost)]
    limits = [request.rtol, request.atol, request.check]
    key = [
        kernel.name, [repr(item) for item in configurations], texts, repr(shapes), devices, functions, limits,
        *map(str, request.key),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]


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
    texts: Sequence[str | None],
    cost: Cost,
) -> list[Trial]:
    expected = None if request.reference is None else _list_arrays(request.reference(*request.check_args))
    trials: list[Trial] = []
    for configuration, text in zip(configurations, texts, strict=True):
        try:
            if text is None:
                kernel.trace_call(request.args, {**request.kwargs, **configuration})
            result = kernel.simulate(*request.check_args, check=request.check, **{**request.kwargs, **configuration})
        except (PtxError, ValueError) as why:
            trials.append(Trial(configuration, None, str(why)))
            continue
        outputs = {name: np.array(result.outputs[name]) for name in kernel.list_outputs()}
        expected = [*outputs.values()] if expected is None else expected
        problem = "; ".join(
            text
            for (name, result), right in zip(outputs.items(), expected, strict=True)
            if (text := compare(name, result, right, request.rtol, request.atol))
        )
        trials.append(
            Trial(configuration, None, problem) if problem else _measure(kernel, request, configuration, cost)
        )
    return trials


def _list_arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    values: tuple[Any, ...] = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
    return [np.asarray(item) for item in values]


def _measure(kernel: Tunable, request: Request, configuration: Configuration, cost: Cost) -> Trial:
    def launch() -> Any:
        return kernel(*request.args, **{**request.kwargs, **configuration})

    try:
        value: Any = cost(configuration, launch)
    except PtxError as why:
        return Trial(configuration, None, str(why))
    if not isinstance(value, SupportsFloat) or not isfinite(value):
        text = f"cost: expected a finite number for {configuration}, found {value!r}"
        raise PtxError([TUNING.report(None, text)])
    return Trial(configuration, float(value))
