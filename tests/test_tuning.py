"""Tuning chooses the cheapest of the configurations that are right, explains its choice, and remembers it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyptx.driver
from pyptx import PtxError, Tile, kernel, ptx, reg
from pyptx.tuning import Tuned
from pyptx.tuning.identity import describe
from pyptx.types import f32, u32
from tests.messages import raises
from tests.runtime.device_memory import DeviceMemory

X = np.arange(256, dtype=np.float32)


def grid(n: int) -> tuple[int]:
    """Return one CTA for 64 elements."""
    return (n // 64,)


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=grid, block=(64, 1, 1))
def scale(x: Any, y: Any, *, factor: float = 2.0, step: int = 1, limit: int = 1000) -> None:
    """y = factor x; the template parameters may make it wrong"""
    if step < 1:
        raise ValueError("a step is positive")
    px, py = ptx.global_ptrs(x, y)
    i = ptx.mad(ptx.special.ctaid.x(), 64, ptx.special.tid.x())
    value = reg.scalar(f32)
    with ptx.if_(i < limit):
        ptx.ld(f32, value, ptx.addr(px, i * (4 * step)))
        ptx.st(f32, ptx.addr(py, i * 4), value * factor)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the cache. The driver's library comes from the usual one: a process loads it once."""
    pyptx.driver.activate()
    pyptx.driver.deactivate()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pyptx" / "tuning"


def twice(x: Any) -> Any:
    """Return the right result."""
    return 2 * x


class Costs:
    """A cost function that launches the kernel and records the configurations."""

    def __init__(self, cost: Callable[[dict[str, Any]], float]) -> None:
        self.cost, self.seen, self.results = cost, list[dict[str, Any]](), list[Any]()

    def __call__(self, configuration: dict[str, Any], launch: Callable[[], Any]) -> float:
        self.seen.append(configuration)
        self.results.append(launch())
        return self.cost(configuration)


def prefer_large(configuration: dict[str, Any]) -> float:
    """Return less for larger limits."""
    return 1 / configuration["limit"]


def test_the_cheapest_right_configuration_is_chosen() -> None:
    costs = Costs(prefer_large)
    tuned = scale.tune({"limit": [256, 512, 100], "step": [1, 2, 0]}, [X], cost=costs, reference=twice)
    assert tuned.best == {"limit": 512, "step": 1}
    assert costs.seen == [{"limit": 256, "step": 1}, {"limit": 512, "step": 1}]
    assert all(np.array_equal(result, 2 * X) for result in costs.results)
    assert np.array_equal(tuned(X), 2 * X)
    assert np.array_equal(tuned(X, factor=3.0), 3 * X)
    lines = str(tuned).splitlines()
    assert lines[:3] == ["scale, tried now:", "limit=512, step=1: 0.00195312", "limit=256, step=1: 0.00390625"]
    problems = {line.split(": ")[0]: line.split(": ", 1)[1] for line in lines[3:]}
    assert problems["limit=256, step=0"] == "a step is positive"
    assert "error[PTX1110]" in problems["limit=256, step=2"]
    assert problems["limit=100, step=1"].startswith("`y`: 156 of 256 elements differ from the reference")


def test_without_a_reference_the_first_result_counts() -> None:
    tuned = scale.tune({"factor": [2.0, 3.0]}, [X], cost=Costs(lambda configuration: -configuration["factor"]))
    assert tuned.best == {"factor": 2.0}
    tuned = scale.tune(
        {"factor": [2.0, 3.0]}, [X], cost=Costs(lambda configuration: -configuration["factor"]), rtol=1.0
    )
    assert tuned.best == {"factor": 3.0}


def test_smaller_arrays_serve_the_check() -> None:
    costs = Costs(prefer_large)
    tuned = scale.tune({"limit": [128, 256]}, [X[:128].copy()], check_args=[X[:64].copy()], cost=costs, factor=3.0)
    assert tuned.best == {"limit": 256}
    assert np.array_equal(costs.results[1], 3 * X[:128])
    assert np.array_equal(tuned(X[:128].copy()), 3 * X[:128])


def read_clock(configuration: dict[str, Any], launch: Callable[[], Any]) -> float:
    """Return a cost that is never the same twice."""
    return time.perf_counter()


def tune(*, x: Any = X, **options: Any) -> Tuned:
    """Tune with a cost that changes."""
    return scale.tune({"limit": [256, 512]}, [x], cost=read_clock, **options)


def test_the_choice_is_remembered(cache: Path) -> None:
    first = tune()
    again = tune()
    assert not first.from_cache
    assert again.from_cache
    assert again.best == first.best
    assert [trial.cost for trial in again.trials] == [trial.cost for trial in first.trials]
    assert str(again).startswith("scale, from the cache:")
    assert not again.obstacle
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"key": ("other",)}, {"cache": False}, {"x": X[:64].copy()}, {"factor": 4.0}, {"check": "none"}, {"rtol": 1.0},
        {"atol": 1.0},
    ],
    ids=["key", "no cache", "shape", "text", "check", "rtol", "atol"],
)  # fmt: skip
def test_other_input_is_tried_again(options: dict[str, Any]) -> None:
    tune()
    assert not tune(**options).from_cache


def multiply(factor: float) -> Callable[[Any], Any]:
    """Return a reference."""
    return lambda x: factor * x


def rank(sign: int) -> Callable[..., float]:
    """Return a cost."""

    def cost(configuration: dict[str, Any], launch: Callable[[], Any], sign: int = sign) -> float:
        return sign * configuration["limit"]

    return cost


def rank_by(configuration: dict[str, Any], launch: Callable[[], Any], *, sign: int) -> float:
    """Return a cost."""
    return sign * configuration["limit"]


def scale_by_table(table: Any) -> Callable[[Any], Any]:
    """Return a reference that calls another function and NumPy."""

    def scale_it(x: Any) -> Any:
        return np.multiply(x, table[0])

    return lambda x: scale_it(x)


def cost_one(configuration: dict[str, Any], launch: Callable[[], Any]) -> float:
    """Return a cost."""
    return 1.0


def cost_two(configuration: dict[str, Any], launch: Callable[[], Any]) -> float:
    """Return a cost."""
    return 2.0


PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "closure": ({"reference": multiply(2)}, {"reference": multiply(3)}),
    "list": ({"reference": scale_by_table([2.0])}, {"reference": scale_by_table([3.0])}),
    "array": ({"reference": scale_by_table(np.full(1, 2.0))}, {"reference": scale_by_table(np.full(1, 3.0))}),
    "default": ({"cost": rank(1)}, {"cost": rank(-1)}),
    "partial": ({"cost": partial(rank_by, sign=1)}, {"cost": partial(rank_by, sign=-1)}),
    "constant": ({"cost": cost_one}, {"cost": cost_two}),
    "check_args": ({"check_args": [X]}, {"check_args": [X[:128].copy()]}),
    "grid": ({"grid": (4,)}, {"grid": (5,)}),
}


@pytest.mark.parametrize(("options", "others"), PAIRS.values(), ids=PAIRS)
def test_a_choice_is_for_these_functions_and_arrays(options: dict[str, Any], others: dict[str, Any]) -> None:
    def choose(options: dict[str, Any]) -> Tuned:
        arguments: dict[str, Any] = {"cost": rank(1), "reference": twice, **options}
        return scale.tune({"limit": [256, 512], "factor": [2.0, 3.0]}, [X], **arguments)

    first = choose(options)
    assert choose(options).from_cache
    other = choose(others)
    assert not other.from_cache
    assert not first.obstacle
    assert choose(options).best == first.best
    assert choose(others).best == other.best


FACTOR = 2.0


def test_a_choice_depends_on_the_globals_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose() -> Tuned:
        return scale.tune({"factor": [2.0, 3.0]}, [X], cost=lambda configuration, launch: 1, reference=by_global)

    def by_global(x: Any) -> Any:
        return FACTOR * x

    assert choose().best == {"factor": 2.0}
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    assert choose().best == {"factor": 3.0}
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 2.0)
    assert choose().from_cache


def simulate_it(configuration: dict[str, Any], launch: Callable[[], Any]) -> float:
    """Return a cost that runs the kernel."""
    return scale.simulate(X, **configuration).stats.instructions


def test_a_cost_may_call_the_kernel() -> None:
    assert not scale.tune({"limit": [256]}, [X], cost=simulate_it).from_cache
    assert scale.tune({"limit": [256]}, [X], cost=simulate_it).from_cache


COSTS = Costs(prefer_large)


def cost_by_object(configuration: dict[str, Any], launch: Callable[[], Any]) -> float:
    """Return a cost."""
    return COSTS(configuration, launch)


def cost_by_class(configuration: dict[str, Any], launch: Callable[[], Any]) -> float:
    """Return a cost."""
    return Costs(prefer_large)(configuration, launch)


def cost_by_chance(generator: np.random.Generator, configuration: dict[str, Any], launch: Callable[[], Any]) -> float:
    """Return a cost."""
    return generator.random()


@pytest.mark.parametrize(
    ("cost", "reason"),
    [
        (COSTS, "an object of type `Costs`"),
        (COSTS.__call__, "an object of type `Costs`"),
        (cost_by_object, "an object of type `Costs`"),
        (cost_by_class, "the class `Costs`"),
        (partial(cost_by_chance, np.random.default_rng(0)), "an object of type `Generator`"),
    ],
    ids=["object", "method", "global", "class", "generator"],
)
def test_what_may_change_unnoticed_is_not_cached(cost: Any, reason: str, cache: Path) -> None:
    for _ in range(2):
        tuned = scale.tune({"limit": [256, 512]}, [X], cost=cost)
        assert not tuned.from_cache
        assert str(tuned).endswith(f"\nnot cached: `cost` is or reads {reason}, which may change")
    assert not list(cache.iterdir())
    assert not scale.tune({"limit": [256]}, [X], cost=cost, cache=False).obstacle


_PROGRAM = """
from tests.test_tuning import grid, rank, scale_by_table, simulate_it
from pyptx.tuning.identity import describe
print(describe([grid, rank(1), scale_by_table({"a", "b", "c"}), simulate_it]))
"""


def test_functions_are_the_same_in_other_processes() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM], cwd=Path(__file__).parents[1],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert outputs[0] == outputs[1] != ""


NAMES: list[tuple[object, str]] = [
    (np.multiply, "numpy.ufunc\nnumpy.multiply"),
    (np.float32, "builtins.type\nnumpy.float32"),
    (inspect.getsource, "builtins.function\ninspect.getsource"),
    (len, "builtins.builtin_function_or_method\nbuiltins.len"),
    (dict[str, int]().get, "builtins.builtin_function_or_method\n2\nbuiltins.str\n'get'\nbuiltins.dict\n0"),
]


@pytest.mark.parametrize(("value", "text"), NAMES)
def test_what_a_library_has_is_described_by_its_name(value: object, text: str) -> None:
    assert describe(value) == text


def test_a_function_is_not_described_by_the_name_of_another() -> None:
    def make() -> Any:
        return lambda: 1

    first, second = make(), make()
    second.__module__, second.__qualname__ = "json", "dumps"
    assert describe(second) == describe(first)
    second.__qualname__ = "missing.dumps"
    assert describe(second) == describe(first)


def test_a_choice_is_for_a_model_of_gpu() -> None:
    def choose(device: str) -> Tuned:
        pyptx.driver.activate(device)
        try:
            return scale.tune({"limit": [256, 512]}, [DeviceMemory().copy(X)], cost=read_clock)
        finally:
            pyptx.driver.deactivate()

    assert not choose("h100").from_cache
    assert not choose("b200").from_cache
    assert choose("h100").from_cache


def test_a_choice_is_for_an_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    pyptx.driver.activate()
    try:
        array = DeviceMemory().copy(X)
        assert not tune(x=array).from_cache
        assert tune(x=array).from_cache
        monkeypatch.setattr("pyptx.tuning.choice.find_tool", {"ptxas": "another version"}.__getitem__)
        assert not tune(x=array).from_cache
    finally:
        pyptx.driver.deactivate()


@kernel(out_specs=[Tile(1, u32)], grid=(1,), block=(64, 1, 1))
def write_at_once(y: Any, *, first: int) -> None:
    """y = the index of the thread that writes last, with a race"""
    (py,) = ptx.global_ptrs(y)
    thread = ptx.special.tid.x()
    with ptx.if_(thread >= first):
        ptx.st(u32, ptx.addr(py, 0), thread)


def test_hazards_drop_configurations_as_the_check_says() -> None:
    def choose(**options: Any) -> Tuned:
        return write_at_once.tune({"first": [0, 63]}, [], cost=lambda configuration, launch: 1, **options)

    assert choose().best == {"first": 63}
    assert choose(check="none").best == {"first": 0}


def test_it_fails_if_nothing_is_right() -> None:
    with raises(PtxError, match="no configuration of `scale` produces the right results"):
        scale.tune({"limit": [10, 20]}, [X], cost=Costs(prefer_large), reference=twice)


def test_an_error_of_the_call_is_raised_as_it_is() -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("expected 1 input array (x), found 2", {"args": [X, X]}),
        ("expected 1 input array (x), found 2", {"check_args": [X, X]}),
        ("`x`: expected dtype float32, found float64", {"args": [X.astype(np.float64)]}),
        ("kernel `scale`: unknown: width", {"width": 3}),
        ("check 'fast': expected one of all", {"check": "fast"}),
        ("rtol: expected a finite number of at least 0, found 'small'", {"rtol": "small"}),
    ]
    for text, options in calls:
        arguments: dict[str, Any] = {"args": [X], "cost": prefer_limit, "reference": twice, **options}
        with pytest.raises(PtxError) as caught:
            scale.tune({"limit": [256, 512]}, **arguments)
        assert [item.message[: len(text)] for item in caught.value.diagnostics] == [text]


def prefer_limit(configuration: dict[str, Any], launch: Callable[[], Any]) -> float:
    """Return less for larger limits."""
    return 1 / configuration["limit"]


def test_any_refusal_of_a_value_drops_its_configurations() -> None:
    tuned = scale.tune({"step": [1, 0, "x", 3], "limit": [256]}, [X], cost=prefer_limit)
    assert tuned.best == {"step": 1, "limit": 256}
    problems = [trial.problem for trial in tuned.trials]
    assert problems[:3] == [
        "", "a step is positive", "TypeError: '<' not supported between instances of 'str' and 'int'"
    ]  # fmt: skip
    assert "step='x', limit=256: TypeError: '<' not supported" in str(tuned)
    tuned = scale_evenly.tune({"step": [2, 1]}, [X], cost=lambda configuration, launch: 1)
    assert "step=1: AssertionError: " in str(tuned)


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=grid, block=(64, 1, 1))
def scale_evenly(x: Any, y: Any, *, step: int = 2) -> None:
    """y = step x"""
    assert step % 2 == 0
    px, py = ptx.global_ptrs(x, y)
    i = ptx.mad(ptx.special.ctaid.x(), 64, ptx.special.tid.x())
    value = reg.scalar(f32)
    ptx.ld(f32, value, ptx.addr(px, i * 4))
    ptx.st(f32, ptx.addr(py, i * 4), value * float(step))


@pytest.mark.parametrize(
    "values", [np.array([256, 512]), {256, 512}, range(256, 768, 256), (n for n in (256, 512))],
    ids=["array", "set", "range", "generator"],
)  # fmt: skip
def test_a_space_has_any_collection_of_values(values: Any) -> None:
    tuned = scale.tune({"limit": values}, [X], cost=prefer_limit)
    assert [trial.configuration for trial in tuned.trials] == [{"limit": 256}, {"limit": 512}]
    assert str(tuned).splitlines()[1] == "limit=512: 0.00195312"


def test_a_space_of_something_else_is_refused() -> None:
    with raises(PtxError, match="with their values, found unknown"):
        scale.tune({"unknown": [1]}, [X], cost=Costs(prefer_large))
    with raises(PtxError, match="found no values for limit"):
        scale.tune({"limit": []}, [X], cost=Costs(prefer_large))
    with raises(PtxError, match="with their values, found none"):
        scale.tune({}, [X], cost=Costs(prefer_large))
    with raises(PtxError, match=r"test_tuning.py:\d+: .*check 'race': expected one of all, strict"):
        scale.tune({"limit": [256]}, [X], cost=Costs(prefer_large), check="race")


def test_arguments_that_are_no_lists_are_refused() -> None:
    space: Any = {"limit": 256}
    with raises(PtxError, match="expected a list of values for limit, found 256"):
        scale.tune(space, [X], cost=Costs(prefer_large))
    with raises(PtxError, match="expected a list of values for limit, found 'abc'"):
        scale.tune({"limit": "abc"}, [X], cost=Costs(prefer_large))
    array: Any = X
    with raises(PtxError, match="args: expected a list of the arrays of `scale`, found ndarray"):
        scale.tune({"limit": [256]}, array, cost=Costs(prefer_large))


def take_one(configuration: dict[str, Any]) -> float:
    """Return a cost, and take no launch."""
    return 1.0


def return_two(x: Any) -> tuple[Any, Any]:
    """Return a result too many."""
    return x, x


def return_part(x: Any) -> Any:
    """Return fewer elements."""
    return x[1:]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cost": "fast"}, "cost: expected a function, found 'fast'"),
        ({"cost": take_one}, "cost: expected a function of 2 arguments: too many positional arguments"),
        ({"reference": X}, "reference: expected a function, found array"),
        ({"reference": lambda: X}, "reference: expected a function of 1 argument: too many positional arguments"),
        ({"reference": return_two}, "the reference of `scale` returned 2 arrays for 1 output"),
        ({"reference": return_part}, "`y`: the reference has shape (255,), expected (256,)"),
        ({"space": [1, 2]}, "space: expected template parameters of `scale` with their values, found [1, 2]"),
        ({"space": None}, "space: expected template parameters of `scale` with their values, found None"),
        ({"key": 3}, "key: expected a list of strings and integers, found 3"),
        ({"key": None}, "key: expected a list of strings and integers, found None"),
        ({"key": "H100"}, "key: expected a list of strings and integers, found 'H100'"),
        ({"limit": 3}, "`limit` is in the space of `scale` and also passed by keyword"),
    ],
)  # fmt: skip
def test_other_mistakes_in_the_call(options: dict[str, Any], text: str) -> None:
    arguments: dict[str, Any] = {"space": {"limit": [256]}, "args": [X], "cost": prefer_limit, **options}
    with raises(PtxError) as caught:
        scale.tune(**arguments)
    (finding,) = caught.value.diagnostics
    assert finding.message.startswith(text)
    assert finding.help
    assert finding.origin is not None
    lines, first = inspect.getsourcelines(test_other_mistakes_in_the_call)
    assert finding.origin.file == __file__
    assert "scale.tune(**arguments)" in lines[finding.line - first]


@pytest.mark.parametrize("value", [float("nan"), None, np.zeros(2)])
def test_a_cost_is_a_finite_number(value: Any) -> None:
    with raises(PtxError, match="cost: expected a finite number for {'limit': 256}, found"):
        scale.tune({"limit": [256]}, [X], cost=lambda configuration, launch: value)


def test_time_needs_a_gpu() -> None:
    with raises(PtxError, match="without a GPU, there is no time to minimize"):
        scale.tune({"limit": [256]}, [X])
    pyptx.driver.activate(check="none")
    try:
        with raises(PtxError, match="the simulated driver cannot time a GPU"):
            scale.tune({"limit": [256]}, [X])
    finally:
        pyptx.driver.deactivate()


def test_the_cost_is_the_time_on_the_device_of_the_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[int] = []

    def measure(launch: Callable[[], Any], *, device: int) -> Any:
        devices.append(device)
        assert np.array_equal(launch().to_numpy(), 2 * X)
        return SimpleNamespace(median=float(len(devices)), minimum=0.0)

    monkeypatch.setattr("pyptx.tuning.choice.measure", measure)
    pyptx.driver.activate(count=2)
    try:
        x = DeviceMemory(1).copy(X)
        with raises(PtxError, match="the simulated driver cannot time a GPU"):
            scale.tune({"limit": [256, 512]}, [x])
        monkeypatch.setattr("pyptx.tuning.choice.is_active", bool)
        tuned = scale.tune({"limit": [256, 512]}, [x], check_args=[X])
    finally:
        pyptx.driver.deactivate()
    assert devices == [1, 1]
    assert [(trial.configuration, trial.cost) for trial in tuned.trials] == [
        ({"limit": 256}, 1.0),
        ({"limit": 512}, 2.0),
    ]
