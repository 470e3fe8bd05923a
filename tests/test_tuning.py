"""Tuning chooses the cheapest of the configurations that are right, explains its choice, and remembers it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyptx.driver
from pyptx import PtxError, Tile, kernel, ptx, reg
from pyptx.tuning import Tuned
from pyptx.types import f32
from tests.messages import raises

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
    """Return the folder of the cache."""
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


def tune(key: tuple[str, ...] = (), *, cache: bool = True, x: Any = X, factor: float = 2.0) -> Tuned:
    """Tune with a cost that changes."""
    STATE.append(None)
    sign = 1 if len(STATE) % 2 else -1
    return scale.tune(
        {"limit": [256, 512]}, [x], cost=lambda configuration, launch: sign * configuration["limit"], key=key,
        cache=cache, factor=factor,
    )  # fmt: skip


STATE: list[None] = []


def test_the_choice_is_remembered(cache: Path) -> None:
    first = tune()
    again = tune()
    assert not first.from_cache
    assert again.from_cache
    assert again.best == first.best
    assert [trial.cost for trial in again.trials] == [trial.cost for trial in first.trials]
    assert str(again).startswith("scale, from the cache:")
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    "options", [{"key": ("other",)}, {"cache": False}, {"x": X[:64].copy()}, {"factor": 4.0}],
    ids=["key", "no cache", "shape", "text"],
)  # fmt: skip
def test_other_input_is_tried_again(options: dict[str, Any]) -> None:
    tune()
    assert not tune(**options).from_cache


def test_it_fails_if_nothing_is_right() -> None:
    with raises(PtxError, match="no configuration of `scale` runs with the right results"):
        scale.tune({"limit": [10, 20]}, [X], cost=Costs(prefer_large), reference=twice)


def test_a_space_of_something_else_is_refused() -> None:
    with raises(PtxError, match="unknown are none"):
        scale.tune({"unknown": [1]}, [X], cost=Costs(prefer_large))
    with raises(PtxError, match="no values for limit"):
        scale.tune({"limit": []}, [X], cost=Costs(prefer_large))
    with raises(PtxError, match="no values for any"):
        scale.tune({}, [X], cost=Costs(prefer_large))


def test_arguments_that_are_no_lists_are_refused() -> None:
    space: Any = {"limit": 256}
    with raises(PtxError, match="expected a list of values for limit, found 256"):
        scale.tune(space, [X], cost=Costs(prefer_large))
    with raises(PtxError, match="expected a list of values for limit, found 'abc'"):
        scale.tune({"limit": "abc"}, [X], cost=Costs(prefer_large))
    array: Any = X
    with raises(PtxError, match="args: expected a list of the arrays of `scale`, found ndarray"):
        scale.tune({"limit": [256]}, array, cost=Costs(prefer_large))


@pytest.mark.parametrize("value", [float("nan"), None])
def test_a_cost_is_a_finite_number(value: Any) -> None:
    with raises(PtxError, match="cost: expected a finite number for {'limit': 256}, found"):
        scale.tune({"limit": [256]}, [X], cost=lambda configuration, launch: value)


def test_time_needs_a_gpu() -> None:
    with raises(PtxError, match="without a GPU there is no time to minimize"):
        scale.tune({"limit": [256]}, [X])
    pyptx.driver.activate(check="none")
    try:
        with raises(PtxError, match="the simulated driver has no times of a GPU"):
            scale.tune({"limit": [256]}, [X])
    finally:
        pyptx.driver.deactivate()
