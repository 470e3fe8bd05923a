"""`assert_matches` finds planted bugs at the smallest shape and in the simplest order that show them."""

from __future__ import annotations

from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import Kernel, PtxError, Tile, kernel, ptx, reg
from pyptx.testing import assert_matches
from pyptx.testing.matching import MismatchError, keep_timelines
from pyptx.types import PtxType, b8, e2m1, e4m3, f32, s4, u4, u8, ue8m0
from tests.messages import raises
from tools.planted_bugs import (
    PLANTED,
    Array,
    Planted,
    arrive_partly,
    change_second_warp,
    double,
    round_to_half,
    skip_last,
    twice,
)


def test_a_right_kernel_matches_in_every_order() -> None:
    match = assert_matches(double, twice, shapes={"n": [64, 100]}, seeds=2)
    assert str(match) == "double: equal to the reference at 2 shapes in 6 orders, 12 runs"


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: f"{bug.kernel.name}-{bug.schedule}")
def test_a_planted_bug_is_found_at_the_smallest_shape(bug: Planted) -> None:
    with pytest.raises(MismatchError) as caught:
        bug.match()
    assert dict(caught.value.trial.shape) == {"n": bug.smallest}
    assert caught.value.trial.schedule == bug.schedule
    assert set(caught.value.failure.codes) >= set(bug.codes)
    assert bool(caught.value.failure.codes) == bool(bug.codes)


def test_the_message_says_what_differs_and_how_to_repeat_it() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_matches(
            change_second_warp, twice, shapes=[{"n": 64}], data_seed=3,
            inputs=lambda generator, shape: [np.ones(64, np.float32)],
        )  # fmt: skip
    assert str(caught.value) == (
        "change_second_warp at n=64, schedule='eager', seed=0:\n"
        "`y`: 32 of 64 elements differ from the reference, compared within rtol=2.38419e-07, atol=0: "
        "[32] is 4.0, expected 2.0; [33] is 4.0, expected 2.0; [34] is 4.0, expected 2.0\n"
        "to repeat: assert_matches(change_second_warp, …, shapes=[{'n': 64}], schedules=['eager'], seeds=[0], "
        "data_seed=3)"
    )


def test_a_shape_shrinks_only_as_allowed() -> None:
    with pytest.raises(MismatchError) as caught:
        assert_matches(skip_last, twice, shapes=[{"n": 100}, {"n": 40}])
    assert dict(caught.value.trial.shape) == {"n": 40}


def test_a_shape_shrinks_to_the_largest_multiple_below_it() -> None:
    with pytest.raises(MismatchError) as caught:
        assert_matches(change_second_warp, twice, shapes=[{"n": 39}], multiple_of={"n": 12}, seeds=1)
    assert dict(caught.value.trial.shape) == {"n": 36}


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def fail_in_two_ways(x: Any, y: Any) -> None:
    """Write 0, or beyond y if that has 20 elements."""
    _, py = ptx.global_ptrs(x, y)
    i, count = ptx.special.tid.x(), x.shape[0]
    with ptx.if_(i < count):
        ptx.st(f32, ptx.addr(py, (i + (count if count >= 20 else 0)) * 4), 0.0)


def test_a_shape_shrinks_to_one_with_the_same_failure() -> None:
    with pytest.raises(MismatchError) as caught:
        assert_matches(fail_in_two_ways, twice, shapes=[{"n": 30}], multiple_of={"n": 1}, seeds=1)
    assert dict(caught.value.trial.shape) == {"n": 20}
    assert "PTX1110" in caught.value.failure.codes


def test_tolerances_are_those_of_the_caller() -> None:
    assert_matches(round_to_half, twice, shapes=[{"n": 64}], schedules=["eager"], rtol=2**-11)
    with pytest.raises(MismatchError, match=r"within rtol=0\.0002, atol=0"):
        assert_matches(round_to_half, twice, shapes=[{"n": 64}], schedules=["eager"], rtol=2e-4)


def copy_or_clear(dtype: PtxType, *, copies: bool) -> Kernel:
    """Return a kernel that copies 32 elements of one byte, or writes bytes of 0."""

    @kernel(in_specs=[Tile(32, dtype)], out_specs=[Tile(32, dtype)], grid=(1,), block=(32, 1, 1))
    def copy(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        i = ptx.special.tid.x()
        ptx.st(b8, ptx.addr(py, i), ptx.ld(b8, ptx.addr(px, i)) if copies else reg.scalar(b8, 0))

    return copy


@pytest.mark.parametrize("dtype", [s4, u4, u8, ue8m0, e2m1, e4m3], ids=repr)
def test_small_types_have_inputs_and_tolerances(dtype: PtxType) -> None:
    inputs: list[Array] = []

    def note(x: Array) -> Array:
        inputs.append(x)
        return x

    assert assert_matches(copy_or_clear(dtype, copies=True), note, schedules="eager").runs == 1
    values: set[float] = {*inputs[0].astype(np.float64).tolist()}
    assert all(abs(value) <= 100 for value in values)
    assert len(values) >= 5
    assert not np.isnan([*values]).any()
    with pytest.raises(MismatchError, match=r"`y`: (2|3)\d of 32 elements differ"):
        assert_matches(copy_or_clear(dtype, copies=False), note, schedules="eager")


def wrong_count(x: Array) -> tuple[Array, Array]:
    """Return an array too many."""
    return x, x


def wrong_shape(x: Array) -> Array:
    """Return fewer elements."""
    return x[1:]


def test_a_wrong_reference_is_not_the_kernels_fault() -> None:
    with pytest.raises(TypeError, match="the reference of `double` returned 2 arrays for 1 output"):
        assert_matches(double, wrong_count, shapes=[{"n": 4}])
    with pytest.raises(TypeError, match=r"`y`: the reference has shape \(3,\), expected \(4,\)"):
        assert_matches(double, wrong_shape, shapes=[{"n": 4}])


def test_a_reference_may_change_its_inputs() -> None:
    def double_in_place(x: Array) -> Array:
        x *= 2
        return x

    assert assert_matches(double, double_in_place, shapes=[{"n": 64}], schedules="eager").runs == 1


def test_inputs_depend_on_the_seed_of_the_data() -> None:
    inputs: list[Array] = []

    def note(x: Array) -> Array:
        inputs.append(x)
        return twice(x)

    for seed in (0, 0, 1):
        assert_matches(double, note, shapes=[{"n": 64}], schedules="eager", data_seed=seed)
    assert [np.array_equal(inputs[0], other) for other in inputs[1:]] == [True, False]


def test_one_schedule_may_be_a_text() -> None:
    assert assert_matches(double, twice, shapes=[{"n": 64}], schedules="random", seeds=3).orders == 3


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"schedules": ["eager", "fast"]}, "no schedule 'fast'; the schedules are eager, lazy, random, adversarial"),
    ({"multiple_of": {"k": 1}}, "multiple_of: expected variables of the shapes, found 'k'"),
    ({"multiple_of": {"n": 0}}, "multiple_of: expected a positive integer for n, found 0"),
    ({"multiple_of": {"n": "1"}}, "multiple_of: expected a positive integer for n, found '1'"),
    ({"shapes": {"n": 64}}, "shapes: expected the extents of n, found 64"),
    ({"shapes": [64]}, "shapes: expected mappings of variables to extents, found 64"),
    ({"shapes": {"m": [64]}}, "shapes: {'m': 64} does not fit `skip_last`: missing n; unknown m"),
    ({"shapes": ({},)}, "shapes: {} does not fit `skip_last`: missing n"),
    ({"shapes": {"n": [0]}}, "shapes: expected a positive integer for n, found 0"),
    ({"shapes": ()}, "shapes: expected at least one shape, found none"),
    ({"schedules": ()}, "schedules: expected at least one to compare, found none"),
    ({"seeds": 0}, "seeds: expected at least one to compare, found 0"),
    ({"seeds": 1.5}, "seeds: expected a number of seeds, or a list of integers of at least 0, found 1.5"),
    ({"seeds": ["a"]}, "seeds: expected a number of seeds, or a list of integers of at least 0, found ['a']"),
    ({"seeds": [0, -1]}, "seeds: expected a number of seeds, or a list of integers of at least 0, found [0, -1]"),
    ({"rtol": "1e-3"}, "rtol: expected a finite number of at least 0, found '1e-3'"),
    ({"rtol": float("nan")}, "rtol: expected a finite number of at least 0, found nan"),
    ({"atol": float("inf")}, "atol: expected a finite number of at least 0, found inf"),
    ({"atol": -1}, "atol: expected a finite number of at least 0, found -1"),
    ({"check": "race"}, (
        "check 'race': expected one of all, strict, none, races, uninitialised, proxies, async, tensor, mbarriers, "
        "convergence, barriers, lifetimes, layouts, bounds, hangs, numerics, outputs, unused, dependents"
    )),
    ({"schedule": "eager"}, "neither assert_matches nor `skip_last` takes `schedule=`"),
    ({"factor": 2}, "neither assert_matches nor `skip_last` takes `factor=`"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "text"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_mistakes_in_the_call_are_not_the_kernels_fault(options: dict[str, Any], text: str) -> None:
    arguments: dict[str, Any] = {"shapes": [{"n": 64}], **options}
    with raises(PtxError) as caught:
        assert_matches(skip_last, twice, **arguments)
    (finding,) = caught.value.diagnostics
    assert finding.message == text
    assert finding.origin is not None
    assert finding.origin.file == __file__


def test_inputs_that_do_not_fit_are_not_the_kernels_fault() -> None:
    with raises(PtxError, match="`x`: expected dtype float32, found float64"):
        assert_matches(double, twice, shapes=[{"n": 4}], inputs=lambda generator, shape: [np.zeros(4)])


def test_inputs_are_a_list_and_results_real_numbers() -> None:
    inputs: Any = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match="inputs= returned ndarray, expected a list of the arrays of one call"):
        assert_matches(double, twice, shapes=[{"n": 4}], inputs=lambda generator, shape: inputs)
    with pytest.raises(TypeError, match="`y`: the reference has complex numbers, expected float32"):
        assert_matches(double, np.emath.sqrt, shapes=[{"n": 4}])


def test_a_shape_may_have_other_parameters() -> None:
    shapes: Any = {"factor": [3.0, 2.0], "n": [4], "kind": ["plain"]}
    with pytest.raises(MismatchError) as caught:
        assert_matches(scale, twice, shapes=shapes, multiple_of={"n": 1}, seeds=1)
    assert dict(caught.value.trial.shape) == {"factor": 3.0, "n": 1, "kind": "plain"}
    del shapes["factor"][0]
    assert assert_matches(scale, twice, shapes=shapes, seeds=1).runs == 4


def test_inputs_may_bind_a_variable() -> None:
    assert assert_matches(double, twice, inputs=lambda generator, shape: [np.ones(5, np.float32)], seeds=1).shapes == 1


LINE, TABLE = Tile("n", f32), Tile("m", "n", f32)


@kernel(in_specs=[LINE], out_specs=[LINE], grid=(1,), block=(32, 1, 1), raw_params=[("f32", "factor")])
def scale(x: Any, y: Any, *, kind: str) -> None:
    """y = factor x, for at most 32 elements"""
    assert kind == "plain"
    px, py = ptx.global_ptrs(x, y)
    i = ptx.special.tid.x()
    with ptx.if_(i < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), ptx.ld(f32, ptx.addr(px, i * 4)) * ptx.param(f32, "factor"))


def take_rows(m: int, n: int) -> tuple[int]:
    """Return a CTA for each row."""
    return (m,)


@kernel(in_specs=[TABLE], out_specs=[TABLE], grid=take_rows, block=(128, 1, 1))
def double_table(x: Any, y: Any) -> None:
    """y = 2 x, but wrong from row 5 on in the columns from 20 on"""
    px, py = ptx.global_ptrs(x, y)
    row, column, columns = ptx.special.ctaid.x(), ptx.special.tid.x(), x.shape[1]
    with ptx.if_(column < columns):
        i = ptx.mad(row, columns, column)
        value = reg.scalar(f32)
        ptx.ld(f32, value, ptx.addr(px, i * 4))
        ptx.mul(f32, value, value, 2.0)
        with ptx.if_(row >= 5), ptx.if_(column >= 20):
            ptx.add(f32, value, value, 1.0)
        ptx.st(f32, ptx.addr(py, i * 4), value)


@pytest.mark.parametrize(
    ("steps", "smallest"), [({"m": 1, "n": 1}, {"m": 6, "n": 21}), ({"n": 8, "m": 4}, {"m": 8, "n": 24})]
)
def test_a_shape_shrinks_in_each_variable(steps: dict[str, int], smallest: dict[str, int]) -> None:
    with pytest.raises(MismatchError) as caught:
        assert_matches(double_table, twice, shapes={"m": [4, 40], "n": [16, 96]}, multiple_of=steps, seeds=1)
    assert dict(caught.value.trial.shape) == smallest


@pytest.mark.parametrize(
    "workers", [ThreadPoolExecutor(2), ProcessPoolExecutor(1, get_context("spawn"))], ids=["threads", "processes"]
)
def test_an_executor_finds_the_same(workers: Executor) -> None:
    with workers:
        assert assert_matches(double, twice, shapes={"n": [64, 100]}, seeds=1, executor=workers).runs == 8
        with pytest.raises(MismatchError) as caught:
            assert_matches(skip_last, twice, shapes={"n": [100, 64]}, seeds=1, executor=workers)
    assert str(caught.value.trial) == "n=64, schedule='eager', seed=0"


def test_timelines_of_failures_are_kept(tmp_path: Path) -> None:
    with keep_timelines(tmp_path), pytest.raises(MismatchError) as caught:
        assert_matches(arrive_partly, twice, shapes=[{"n": 33}])
    file = tmp_path / "arrive_partly-n33-eager-0.html"
    assert str(caught.value).endswith(f"timeline: {file}")
    assert "arrive_partly" in file.read_text("utf-8")
