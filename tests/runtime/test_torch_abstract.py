"""Calls on tensors without memory: shapes, dtypes and devices of the results, and the checks of other calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from pyptx import PtxError, Tile, kernel
from pyptx.types import e2m1x2, f32
from tests.messages import raises
from tests.runtime.torch_kernels import double_in_place, multiply, powers, product, scale_memory, shift

torch: Any = import_module("torch")
FakeTensorMode: Any = import_module("torch._subclasses.fake_tensor").FakeTensorMode

X = torch.arange(32.0)


def make_fakes(*tensors: Any) -> list[Any]:
    mode = FakeTensorMode()
    return [mode.from_tensor(tensor) for tensor in tensors]


def test_fake_tensors_yield_fake_tensors() -> None:
    (x,) = make_fakes(torch.empty(32, dtype=torch.float64))
    for output in powers(x):
        assert type(output) is type(x)
        assert (output.shape, output.dtype, output.device) == (x.shape, x.dtype, x.device)


def test_meta_tensors_yield_meta_tensors() -> None:
    y = product(X.to("meta"), X.to("meta"))
    assert (tuple(y.shape), y.dtype, y.device.type) == ((32,), torch.float32, "meta")


def test_an_output_has_the_device_of_the_inputs() -> None:
    with FakeTensorMode():
        x = torch.empty(32, device="cuda:1")
    assert product(x, x).device == x.device


def test_an_abstract_call_runs_nothing() -> None:
    (x,) = make_fakes(torch.zeros(32))
    z = torch.empty(32, device="meta")
    assert product(z, z, out=z) is z
    double_in_place(x)
    scale_memory(args=[x, x, 2.0])
    assert type(multiply(x, x)) is type(x)


WRONG: dict[str, Callable[[Any], Any]] = {
    "dtype": lambda x: product(x, x.double()),
    "rank": lambda x: product(x, x.reshape(4, 8)),
    "sizes": lambda x: product(x, x[:16]),
    "layout": lambda x: product(x[::2], x[:16]),
    "out": lambda x: product(x, x, out=x.double()),
    "number": lambda x: product(x),
    "grid": lambda x: product(x, x, grid=(0,)),
    "option": lambda x: product(x, x, other=2),
    "number of raw parameters": lambda x: shift(x.reshape(1, 32), args=[1.0]),
    "fixed size": lambda x: double_in_place(x[:16]),
    "more inputs": lambda x: product(x, x, x),
    "more outputs": lambda x: product(x, x, out=(x, x)),
    "no array": lambda x: product(x, [1.0]),
    "text for a grid": lambda x: product(x, x, grid="1"),
    "fractions for a grid": lambda x: product(x, x, grid=(1.5,)),
    "text for a size": lambda x: product(x, x, n="32"),
    "text for a number": lambda x: shift(x.reshape(1, 32), bias="3", count=1),
    "list for a number": lambda x: shift(x.reshape(1, 32), args=[[1.0], 1]),
    "fraction for an integer": lambda x: shift(x.reshape(1, 32), bias=1.0, count=1.5),
    "too large an integer": lambda x: shift(x.reshape(1, 32), bias=1.0, count=1 << 32),
    "more than 64 bits": lambda x: shift(x.reshape(1, 32), bias=1.0, count=1 << 64),
    "number of NumPy": lambda x: shift(x.reshape(1, 32), bias=np.float64(1), count=1),
    "no raw parameter": lambda x: shift(x.reshape(1, 32), bias=None, count=1),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_messages_are_those_of_tensors_in_memory(call: Callable[[Any], Any]) -> None:
    findings: list[Any] = []
    for x in (X, *make_fakes(X), X.to("meta")):
        with raises(PtxError) as excinfo:
            call(x)
        findings.append(excinfo.value.diagnostics)
    assert findings == findings[:1] * 3
    assert findings[0][0].origin


def test_tensors_on_several_devices_are_refused() -> None:
    with raises(PtxError, match="`y`: expected an array on the meta device, like `x`, found one in the CPU's memory"):
        product(X.to("meta"), X)
    with FakeTensorMode():
        x, y = torch.empty(32, device="cuda:0"), torch.empty(32, device="cuda:1")
    with raises(PtxError, match="`y`: expected an array on device 0, like `x`, found one on device 1"):
        product(x, y)


def record_conditions(call: Callable[..., Any], *tensors: Any) -> tuple[Any, list[str]]:
    """Return the output on tensors of symbolic sizes, and the conditions on sizes."""
    symbolic: Any = import_module("torch.fx.experimental.symbolic_shapes")
    mode = FakeTensorMode(shape_env=symbolic.ShapeEnv())
    policy = symbolic.StatelessSymbolicContext
    dynamic = symbolic.DimDynamic.DYNAMIC
    source: Any = import_module("torch._dynamo.source").ConstantSource
    fakes = [
        mode.from_tensor(tensor, symbolic_context=policy([dynamic] * tensor.ndim), source=source(f"t{index}"))
        for index, tensor in enumerate(tensors)
    ]
    output = call(*fakes)
    return output, [str(guard.expr) for guard in mode.shape_env.guards]


def test_symbolic_sizes_pass_through() -> None:
    call = partial(shift, bias=1.0, count=2, cols_read=True)
    y, conditions = record_conditions(call, torch.empty(5, 32))
    assert all(isinstance(size, torch.SymInt) for size in y.shape)
    assert conditions == []


def test_dimensions_of_one_name_must_be_equal_and_fixed_ones_fixed() -> None:
    _, conditions = record_conditions(product, torch.empty(32), torch.empty(32))
    assert len(conditions) == 1
    assert conditions[0].startswith("Eq(")
    _, conditions = record_conditions(double_in_place, torch.empty(32))
    assert len(conditions) == 1
    assert conditions[0].endswith(", 32)")


def test_sizes_that_only_the_run_tells_pass_through() -> None:
    def call(x: Any, count: Any) -> Any:
        size = count.item()
        rows = x[:size]
        return shift(rows, bias=1.0, count=3) + 1

    compiled = torch.compile(call, fullgraph=True, backend="eager")
    x = torch.randn(8, 32)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for count in (3, 5):
            assert torch.equal(compiled(x, torch.tensor(count)), call(x, torch.tensor(count)))


def test_packed_types_have_their_dtype() -> None:
    @kernel(in_specs=[Tile("n", e2m1x2)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
    def widen(x: Any, y: Any) -> None: ...

    x = torch.empty(32, dtype=torch.float4_e2m1fn_x2, device="meta")
    assert widen(x).dtype == torch.float32
