"""Sweeps: one function under every order."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import pyptx
from pyptx import Tile, ptx, sim
from pyptx.parser import parse
from pyptx.types import u32
from tests.sim.kernels import kernel

EXCHANGE = parse(
    kernel(
        "shl.b32 %r1, %t, 2; mov.u32 %r2, cells; add.u32 %r3, %r2, %r1; st.shared.u32 [%r3], %t;\n"
        "xor.b32 %r1, %r1, 128; add.u32 %r3, %r2, %r1; ld.shared.u32 %r4, [%r3]; st.global.u32 [%o], %r4;",
        module=".shared .u32 cells[64];",
    )
)


def exchange_values(check: str, **order: Any) -> sim.Result:
    out = np.zeros(64, np.uint32)
    result = sim.run(EXCHANGE, block=64, args=[out], check=check, on_hazard="report", **order)
    assert out.tolist() == [thread ^ 32 for thread in range(64)], "not exchanged"
    return result


def test_wrong_results_are_found_in_the_orders_that_show_them() -> None:
    trials = sim.sweep(partial(exchange_values, "none"), seeds=4)
    assert [(trial.schedule, trial.seed) for trial in trials[:3]] == [("eager", 0), ("lazy", 0), ("random", 0)]
    assert len(trials) == 10
    assert trials[0].ok
    assert str(trials[0]) == "schedule='eager', seed=0: ok"
    failures = [trial for trial in trials if not trial.ok]
    assert {trial.schedule for trial in failures} == {"random", "adversarial"}
    assert str(failures[0]).startswith(f"schedule='random', seed={failures[0].seed}: not exchanged")


def test_reported_and_raised_hazards_are_failures() -> None:
    first = sim.sweep(partial(exchange_values, "all"), seeds=1)[0]
    assert first.result is not None
    assert not first.ok
    assert "PTX0901: data race" in str(first)
    trials_of_error = sim.sweep(partial(sim.run, EXCHANGE, block=64, args=[np.zeros(64, np.uint32)]), seeds=1)
    assert [trial.ok for trial in trials_of_error] == [False] * 4
    assert all("PTX0901: data race" in str(trial) for trial in trials_of_error)


def test_other_errors_are_not_of_the_kernel() -> None:
    with pytest.raises(TypeError):
        sim.sweep(lambda: None)


@pyptx.kernel(out_specs=[Tile(32, u32)], grid=(1,), block=(32, 1, 1))
def write_beyond(out: Any) -> None:
    """Write one element past the end."""
    (pointer,) = ptx.global_ptrs(out)
    ptx.st(u32, ptx.addr(pointer, ptx.special.tid.x() * 4 + 4), 1)


def test_an_executor_finds_the_same() -> None:
    functions = [partial(exchange_values, "all"), partial(exchange_values, "none"), write_beyond.simulate]
    trials: list[sim.Trial] = []
    with ProcessPoolExecutor(1, get_context("spawn")) as workers:
        for function in functions:
            here, trials = sim.sweep(function, seeds=3), sim.sweep(function, 3, workers)
            assert [str(trial) for trial in trials] == [str(trial) for trial in here]
            assert [str(trial.result) for trial in trials] == [str(trial.result) for trial in here]
        with pytest.raises(TypeError):
            sim.sweep(partial(print, 1), 1, workers)
    here = sim.sweep(write_beyond.simulate, 1)[0].error
    assert "ptx.st(u32, ptx.addr(pointer" in str(here)
    assert str(trials[0].error) == str(here)
