"""`assert_matches` finds planted bugs at the smallest shape and in the simplest order that show them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import Kernel, Tile, kernel, ptx, reg, smem
from pyptx.testing import assert_matches
from pyptx.testing.matching import MismatchError, keep_timelines
from pyptx.types import f16, f32, s32, u32

THREADS = 64
Array = np.ndarray[Any, Any]


def blocks(n: int) -> tuple[int]:
    """Return a grid of one CTA for 64 elements."""
    return (-(-n // THREADS),)


def index() -> reg.Reg:
    """Return the index of a thread in the grid."""
    return ptx.mad(ptx.special.ctaid.x(), THREADS, ptx.special.tid.x())


def make(body: Callable[..., None], dtype: Any = f32, grid: Any = blocks) -> Kernel:
    """Return a kernel of one input and one output with `n` elements."""
    tile = Tile("n", dtype)
    return kernel(in_specs=[tile], out_specs=[tile], grid=grid, block=(THREADS, 1, 1))(body)


def load(array: reg.Reg, i: reg.Reg, dtype: Any = f32) -> reg.Reg:
    """Return an element."""
    value = reg.scalar(dtype)
    ptx.ld(dtype, value, ptx.addr(array, i * 4))
    return value


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=blocks, block=(THREADS, 1, 1))
def double(x: Any, y: Any) -> None:
    """y = 2 x"""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i) * 2.0)


def twice(x: Array) -> Array:
    """Return the expected result of `double`."""
    return x * np.float32(2)


def test_a_right_kernel_matches_in_every_order() -> None:
    match = assert_matches(double, twice, shapes={"n": [64, 100]}, seeds=2)
    assert str(match) == "double: equal to the reference at 2 shapes in 6 orders, 12 runs"


# Kernels with one bug each.


def skip_last(x: Any, y: Any) -> None:
    """The bound excludes the last element."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i + 1 < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i) * 2.0)


def read_beyond(x: Any, y: Any) -> None:
    """The bound includes one element too many."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i <= x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i) * 2.0)


def forget_later_blocks(x: Any, y: Any) -> None:
    """The index has no term for the CTA."""
    px, py = ptx.global_ptrs(x, y)
    i = ptx.special.tid.x()
    with ptx.if_(i < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i) * 2.0)


def wrap_index(x: Any, y: Any) -> None:
    """The index has six bits."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i & 63) * 2.0)


def change_second_warp(x: Any, y: Any) -> None:
    """The second warp multiplies twice."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i < x.shape[0]):
        value = load(px, i) * 2.0
        with ptx.if_(ptx.special.tid.x() >= 32):
            ptx.mul(f32, value, value, 2.0)
        ptx.st(f32, ptx.addr(py, i * 4), value)


def shift_unsigned(x: Any, y: Any) -> None:
    """Signed numbers are divided as unsigned ones."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i < x.shape[0]):
        ptx.st(u32, ptx.addr(py, i * 4), load(px, i, u32) >> 1)


def exchange(x: Any, y: Any) -> None:
    """The two warps exchange elements without a barrier in between."""
    px, py = ptx.global_ptrs(x, y)
    i, thread = index(), ptx.special.tid.x()
    cells = smem.alloc(f32, (THREADS,))
    ptx.inst.st.shared.f32(ptx.addr(reg.from_(cells.name, u32) + thread * 4), load(px, i))
    value = reg.scalar(f32)
    ptx.inst.ld.shared.f32(value, ptx.addr(reg.from_(cells.name, u32) + (thread ^ 32) * 4))
    ptx.st(f32, ptx.addr(py, i * 4), value)


def arrive_partly(x: Any, y: Any) -> None:
    """Only threads with an element arrive at a barrier for all."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    ready = smem.mbarrier(1, name="ready")[0]
    with ptx.if_(ptx.special.tid.x() == 0):
        ready.init(THREADS)
    ptx.bar.sync(0)
    with ptx.if_(i < x.shape[0]):
        ready.arrive()
        ready.wait(0)
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i) * 2.0)


def read_unwritten(x: Any, y: Any) -> None:
    """Only the first warp's cells are written."""
    px, py = ptx.global_ptrs(x, y)
    i, thread = index(), ptx.special.tid.x()
    cells = smem.alloc(f32, (THREADS,))
    with ptx.if_(i < x.shape[0]):
        with ptx.if_(thread < 32):
            ptx.inst.st.shared.f32(ptx.addr(reg.from_(cells.name, u32) + thread * 4), load(px, i) * 2.0)
        value = reg.scalar(f32)
        ptx.inst.ld.shared.f32(value, ptx.addr(reg.from_(cells.name, u32) + thread * 4))
        ptx.st(f32, ptx.addr(py, i * 4), value)


def round_to_half(x: Any, y: Any) -> None:
    """Products pass through 16 bits."""
    px, py = ptx.global_ptrs(x, y)
    i, half = index(), reg.scalar(f16)
    with ptx.if_(i < x.shape[0]):
        value = load(px, i) * 2.0
        ptx.inst.cvt.rn.f16.f32(half, value)
        ptx.inst.cvt.f32.f16(value, half)
        ptx.st(f32, ptx.addr(py, i * 4), value)


def halve(x: Array) -> Array:
    """Return the expected result of `shift_unsigned`."""
    return x >> 1


def swap_warps(x: Array) -> Array:
    """Return the expected result of `exchange`."""
    return x.reshape(-1, 2, 32)[:, ::-1].reshape(-1)


def negative(generator: np.random.Generator, shape: Any) -> list[Array]:
    """Return numbers that are all negative."""
    return [-generator.integers(1, 100, shape["n"], dtype=np.int32)]


@dataclass(frozen=True)
class Planted:
    """A bug: its kernel, the shape to start from, the smallest one that shows it, and the codes among those reported;
    none for wrong values."""

    body: Callable[..., None]
    first: int
    smallest: int
    codes: tuple[str, ...] = ()
    reference: Callable[[Array], Array] = twice
    dtype: Any = f32
    multiple: int = 1
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    schedule: str = "eager"


PLANTED = [
    Planted(skip_last, 200, 1),
    Planted(read_beyond, 100, 1, ("PTX1110",)),
    Planted(forget_later_blocks, 200, 65),
    Planted(wrap_index, 300, 65),
    Planted(change_second_warp, 200, 33),
    Planted(shift_unsigned, 100, 1, (), halve, s32, options={"inputs": negative}),
    Planted(exchange, 256, 64, ("PTX0901",), swap_warps, multiple=64),
    Planted(exchange, 128, 64, (), swap_warps, multiple=64, options={"check": "none"}, schedule="random"),
    Planted(arrive_partly, 100, 1, ("PTX0990",)),
    Planted(round_to_half, 100, 1),
    Planted(read_unwritten, 100, 33, ("PTX0910",)),
]


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: f"{bug.body.__name__}-{bug.schedule}")
def test_a_planted_bug_is_found_at_the_smallest_shape(bug: Planted) -> None:
    with pytest.raises(MismatchError) as caught:
        assert_matches(
            make(bug.body, bug.dtype), bug.reference, shapes=[{"n": bug.first}], multiple_of={"n": bug.multiple},
            **bug.options,
        )  # fmt: skip
    assert dict(caught.value.trial.shape) == {"n": bug.smallest}
    assert caught.value.trial.schedule == bug.schedule
    assert set(caught.value.failure.codes) >= set(bug.codes)
    assert bool(caught.value.failure.codes) == bool(bug.codes)


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=blocks, block=(THREADS, 1, 1))
def broken(x: Any, y: Any) -> None:
    """A kernel with a bug that other processes can import."""
    skip_last(x, y)


def test_the_message_says_what_differs_and_how_to_repeat_it() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_matches(
            make(change_second_warp), twice, shapes=[{"n": 64}], data_seed=3,
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
        assert_matches(make(skip_last), twice, shapes=[{"n": 100}, {"n": 40}])
    assert dict(caught.value.trial.shape) == {"n": 40}


def test_tolerances_are_those_of_the_caller() -> None:
    assert_matches(make(round_to_half), twice, shapes=[{"n": 64}], schedules=["eager"], rtol=2**-11)
    with pytest.raises(MismatchError, match=r"within rtol=0\.0002, atol=0"):
        assert_matches(make(round_to_half), twice, shapes=[{"n": 64}], schedules=["eager"], rtol=2e-4)


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


def test_nothing_to_compare_is_an_error() -> None:
    options: list[dict[str, Any]] = [{"shapes": ()}, {"schedules": ()}, {"seeds": ()}]
    for option in options:
        with pytest.raises(ValueError, match="nothing to compare"):
            assert_matches(double, twice, **option)


@pytest.mark.parametrize(
    "workers", [ThreadPoolExecutor(2), ProcessPoolExecutor(1, get_context("spawn"))], ids=["threads", "processes"]
)
def test_an_executor_finds_the_same(workers: Executor) -> None:
    with workers:
        assert assert_matches(double, twice, shapes={"n": [64, 100]}, seeds=1, executor=workers).runs == 8
        with pytest.raises(MismatchError) as caught:
            assert_matches(broken, twice, shapes={"n": [100, 64]}, seeds=1, executor=workers)
    assert str(caught.value.trial) == "n=64, schedule='eager', seed=0"


def test_timelines_of_failures_are_kept(tmp_path: Path) -> None:
    with keep_timelines(tmp_path), pytest.raises(MismatchError) as caught:
        assert_matches(make(arrive_partly), twice, shapes=[{"n": 33}])
    file = tmp_path / "arrive_partly-n33-eager-0.html"
    assert str(caught.value).endswith(f"timeline: {file}")
    assert "arrive_partly" in file.read_text("utf-8")
