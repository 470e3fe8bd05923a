"""Arrays without elements: all checks, then outputs without elements and no launch if the grid is empty; an ordinary
launch otherwise."""

# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from pyptx import PtxError, Tile, kernel, ptx, reg
from pyptx.runtime import device_calls
from pyptx.types import f32
from tests.messages import raises
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.foreign_arrays import Exporter, Interface
from tests.runtime.test_calls import add_scaled, scale_in_place

# Annotated as Any: casts on every line would add nothing.
jax: Any = import_module("jax")
torch: Any = import_module("torch")
NONE, FIVE = np.zeros(0, np.float32), np.ones(5, np.float32)


def make_count(grid: Any, *, fails: bool = False) -> Any:
    """Return a kernel that writes the number of elements; it `fails` to be traced for none."""

    @kernel(in_specs=[Tile("n", f32)], out_specs=[Tile(1, f32)], grid=grid, block=(1, 1, 1))
    def count(x: Any, y: Any) -> None:
        (py,) = ptx.global_ptrs(y)
        assert x.shape[0] or not fails
        ptx.st(f32, ptx.addr(py), reg.scalar(f32, init=float(x.shape[0])))

    return count


count_in_one = make_count((1,))
count_in_each = make_count(lambda n: (n,), fails=True)


@kernel(
    in_specs=[Tile("m", 32, f32, tma_box=(8, 32))], out_specs=[Tile("m", 32, f32)], grid=(1,), block=(1, 1, 1)
)  # fmt: skip
def request_map(x: Any, y: Any) -> None:
    ptx.inst.prefetch.tensormap(ptx.addr(x.tma_desc()))


def place(values: Any) -> dict[str, Any]:
    """Return arrays of each library with these values, on the simulated device."""
    memory = DeviceMemory()
    return {
        "DeviceArray": memory.copy(values), "interface": Interface(memory.copy(values)),
        "DLPack": Exporter(memory.copy(values)), "torch": torch.from_numpy(values.copy()),
    }  # fmt: skip


LIBRARIES = "DeviceArray", "interface", "DLPack", "torch"


def test_a_call_of_an_empty_grid_returns_outputs_without_elements() -> None:
    result = add_scaled(NONE, NONE, scale=1.0)
    assert (result.shape, result.dtype) == ((0,), np.float32)
    out = NONE.copy()
    assert add_scaled(NONE, NONE, scale=1.0, out=out) is out
    assert add_scaled(NONE, NONE, scale=1.0, grid=(0, 3)).shape == (0,)
    assert add_scaled.simulate(NONE, NONE, scale=1.0).stats.lanes == 0


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_device_launches_no_empty_grid(
    library: str, device: DeviceMemory, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(device_calls, "launch", None)
    empty = place(NONE)[library]
    for _ in range(2):
        assert tuple(add_scaled(empty, empty, scale=1.0).shape) == (0,)
        out = place(FIVE[:1])[library]
        assert count_in_each(empty, out=out) is out
        scale_in_place(args=[empty, 2.0], grid=(0,))


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_grid_that_is_not_empty_is_launched_for_an_empty_array(library: str, device: DeviceMemory) -> None:
    empty = place(NONE)[library]
    for _ in range(2):
        result = count_in_one(empty)
        assert np.asarray(result).tolist() == [0]


def test_the_simulator_runs_a_kernel_on_empty_arrays() -> None:
    assert count_in_one(NONE).tolist() == [0]
    assert add_scaled(NONE, NONE, scale=1.0, grid=(2,)).shape == (0,)


def test_outputs_with_elements_are_not_left_undefined() -> None:
    out = FIVE[:1].copy()
    assert count_in_each(NONE, out=out).tolist() == [1]
    with raises(PtxError, match="the grid 0 is empty, so nothing would write `y`"):
        count_in_each(NONE)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "an empty grid for elements": (lambda: add_scaled(FIVE, FIVE, scale=1.0, grid=(0,)), "positive integers"),
    "a negative grid": (lambda: add_scaled(NONE, NONE, scale=1.0, grid=(-1,)), "expected one to three"),
    "sizes": (lambda: add_scaled(NONE, FIVE, scale=1.0), "dimension n is 0 in one tensor and 5 in another"),
    "an unknown keyword": (lambda: add_scaled(NONE, NONE, scale=1.0, other=1), "unknown: other"),
    "a missing parameter": (lambda: add_scaled(NONE, NONE), "`scale` has no value"),
    "a parameter": (lambda: add_scaled(NONE, NONE, scale="x"), "`scale`: a value of type str cannot be passed"),
    "a stream launch": (lambda: add_scaled.stream_launch(NONE, NONE, scale=1.0), "is empty: there is no launch"),
    "a tensor map": (lambda: request_map(np.zeros((0, 32), np.float32)), "must have 1 to 2^32 elements, got 0"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_an_empty_call_is_checked_like_others(case: tuple[Callable[[], Any], str]) -> None:
    call, message = case
    with raises(PtxError) as excinfo:
        call()
    assert message in str(excinfo.value)


def test_a_device_refuses_the_tensor_map_of_an_empty_array(device: DeviceMemory) -> None:
    with raises(PtxError, match=r"`x`: dimension 1 must have 1 to 2\^32 elements, got 0"):
        request_map(torch.zeros(0, 32))


def test_abstract_tensors_may_be_empty() -> None:
    empty = torch.zeros(0, device="meta")
    assert add_scaled(empty, empty, scale=1.0).shape == (0,)
    scale_in_place(args=[empty, 2.0], grid=(0,))


@pytest.mark.usefixtures("device")
def test_a_compiled_function_takes_empty_tensors() -> None:
    def run(x: Any) -> Any:
        scale_in_place(args=[x, 2.0], grid=(x.shape[0],))
        return add_scaled(x, x, scale=1.0), count_in_one(x)

    results = torch.compile(run, fullgraph=True, backend="aot_eager")(torch.from_numpy(NONE))
    assert [result.tolist() for result in results] == [[], [0]]


def test_jax_takes_empty_arrays() -> None:
    def run(x: Any, y: Any) -> Any:
        return add_scaled(x, x, scale=1.0), count_in_one(x), count_in_each(x, out=y)

    results = jax.jit(run)(NONE, FIVE[:1])
    assert [result.tolist() for result in results] == [[], [0], [1]]
    assert jax.vmap(lambda x: add_scaled(x, x, scale=1.0))(jax.numpy.zeros((3, 0))).shape == (3, 0)
