"""Kernels under torch.compile: an operator in the graph for each call, no break, and the results of eager calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from pyptx import kernel, ptx
from pyptx.runtime.modules import count_loaded
from pyptx.types import f32
from tests.runtime.conftest import Activate
from tests.runtime.torch_kernels import (
    count_rows,
    double_in_place,
    load,
    multiply,
    powers,
    product,
    scale_memory,
    shift,
    store,
)

torch: Any = import_module("torch")
TorchDispatchMode: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode

X = torch.linspace(-3, 3, 32)


@pytest.fixture(autouse=True)
def _forget_graphs() -> None:  # pyright: ignore[reportUnusedFunction]
    torch._dynamo.reset()


def compile_counting(function: Callable[..., Any], **options: Any) -> tuple[Any, list[Any]]:
    """Return the function compiled as one graph without fallbacks, and a list of its graphs, which grows."""
    graphs: list[Any] = []

    def backend(graph: Any, examples: object) -> Any:
        graphs.append(graph)
        return graph

    return torch.compile(function, fullgraph=True, backend=backend, **options), graphs


def list_operators(graph: Any) -> list[str]:
    return [str(node.target) for node in graph.graph.nodes if "pyptx" in str(node.target)]


def add_one(x: Any) -> Any:
    return product(x, x, factor=3) + 1


def write(x: Any) -> Any:
    y = torch.zeros_like(x)
    assert product(x, x, out=y) is y
    return y + 1


def read_two(x: Any) -> Any:
    square, cube = powers(x.double())
    return square - cube


def pass_numbers(x: Any) -> Any:
    return shift(x.reshape(1, 32), bias=1.5, count=x.shape[0] - 2, cols_read=True)


def pass_numbers_in_order(x: Any) -> Any:
    return shift(x.reshape(1, 32), args=[1.5, 5], grid=(1, 1))


def point_to_memory(x: Any) -> Any:
    y = torch.zeros_like(x)
    scale_memory(args=[x, y, 2.0])
    return y + x


def point_to_memory_of_numpy(x: Any) -> Any:
    y = np.zeros(32, np.float32)
    scale_memory(p=x, q=y, scale=2.0)
    return x + torch.from_numpy(y)


def change_input(x: Any) -> Any:
    y = x.clone()
    double_in_place(y)
    return y + x


CALLS = [
    add_one, write, read_two, pass_numbers, pass_numbers_in_order, point_to_memory, point_to_memory_of_numpy,
    change_input, multiply,
]  # fmt: skip


@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_function_returns_what_it_returns_otherwise(function: Any, backend: str) -> None:
    arguments = (X, X + 1) if function is multiply else (X,)
    torch.testing.assert_close(
        torch.compile(function, fullgraph=True, backend=backend)(*arguments), function(*arguments), rtol=0, atol=0
    )


def test_the_graph_names_the_kernel_and_its_options() -> None:
    function, graphs = compile_counting(add_one)
    function(X)
    (node,) = [node for node in graphs[0].graph.nodes if "pyptx" in str(node.target)]
    assert str(node.target) == "pyptx.tests_runtime_torch_kernels__product.default"
    assert node.kwargs == {"options": "factor=3", "returns": "f32[n]"}


def test_a_second_call_compiles_nothing() -> None:
    function, graphs = compile_counting(pass_numbers)
    function(X)
    function(X + 1)
    assert len(graphs) == 1


def list_calls(call: Callable[[], Any]) -> list[str]:
    """Return the operators that a call uses, as PyTorch's modes see them."""
    calls: list[str] = []

    def note(self: object, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        calls.append(str(function))
        return function(*args, **(kwargs or {}))

    with type("Observer", (TorchDispatchMode,), {"__torch_dispatch__": note})():
        call()
    return calls


def test_calls_outside_of_a_compiler_use_no_operator() -> None:
    name = "pyptx.tests_runtime_torch_kernels__product.default"
    assert list_calls(lambda: product(X, X))[0] == name
    with torch.profiler.profile() as profile:
        product(X, X)
    assert not [event.name for event in profile.events() if "pyptx" in event.name]


def test_a_size_that_changes_becomes_symbolic_and_is_no_condition() -> None:
    def run(x: Any) -> Any:
        return shift(x, bias=1.0, count=x.shape[0])

    function, graphs = compile_counting(run, dynamic=True)
    for rows in (4, 2, 7):
        x = torch.randn(rows, 32)
        assert torch.equal(function(x), run(x))
    assert len(graphs) == 1


def test_a_kernel_that_reads_a_size_takes_each_size_of_one_graph() -> None:
    def run(x: Any) -> Any:
        return shift(x, bias=1.0, count=40, cols_read=True)

    function, graphs = compile_counting(run, dynamic=True)
    for rows, cols in ((4, 32), (2, 64), (3, 96)):
        x = torch.randn(rows, cols)
        assert torch.equal(function(x), run(x))
    assert len(graphs) == 1


def test_a_size_as_template_parameter_compiles_for_each() -> None:
    def run(x: Any) -> Any:
        return product(x[:32], x[:32], factor=x.shape[0])

    function, graphs = compile_counting(run, dynamic=True)
    for size in (40, 50, 50):
        assert torch.equal(function(torch.ones(size)), torch.full((32,), float(size)))
    assert len(graphs) == 2


def triple(value: Any) -> Any:
    return value * 3.0


def halve(value: Any) -> Any:
    return value * 0.5


@kernel(in_specs=product.out_specs, out_specs=product.out_specs, grid=(1,), block=(32, 1, 1))
def apply(x: Any, y: Any, *, function: Any, dtype: Any = f32) -> None:
    px, py = ptx.global_ptrs(x, y)
    store(dtype, py, function(load(dtype, px)))


def test_functions_and_types_are_template_parameters_as_well() -> None:
    def run(x: Any, function: Any) -> Any:
        return apply(x, function=function, dtype=f32)

    compiled, graphs = compile_counting(run)
    for function in (triple, halve, triple):
        assert torch.equal(compiled(X, function), function(X))
    assert len(graphs) == 2


def test_arrays_of_numpy_may_be_among_the_arguments() -> None:
    ones = X.numpy() * 0 + 1

    def run(x: Any) -> Any:
        return product(x, ones)

    assert torch.equal(compile_counting(run)[0](X), X)


def test_a_grid_may_be_a_function() -> None:
    def run(x: Any) -> Any:
        return shift(x, bias=0.0, count=32, grid=count_rows)

    x = torch.randn(3, 32)
    assert torch.equal(compile_counting(run)[0](x), x)


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "dtype": (lambda x: product(x, x.double()), "`y`: expected dtype float32, found float64"),
    "size": (lambda x: product(x, x[:16]), "`y`: dimension n is 32 in one tensor and 16 in another"),
    "layout": (lambda x: product(x[::2], x[:16]), "`x`: expected a contiguous row-major array"),
    "number of inputs": (lambda x: product(x), r"expected 2 input arrays \(x, y\), found 1"),
    "number of outputs": (lambda x: product(x, x, out=(x, x)), "expected 1 array in `out=`, found 2"),
    "no array": (lambda x: product(x, [1.0]), "`y`: expected an array, found list"),
    "option": (lambda x: product(x, x, other=2), "kernel `product`: unknown: other"),
    "text for a number": (
        lambda x: shift(x.reshape(1, 32), bias="1", count=1),
        "`bias`: a value of type str cannot be passed",
    ),
    "fraction for an integer": (
        lambda x: shift(x.reshape(1, 32), bias=1.0, count=1.5),
        "`count` is .u32, but 1.5 is not an integer",
    ),
    "tensor for a number": (
        lambda x: shift(x.reshape(1, 32), bias=x[0], count=1),
        "`bias`: expected a number, found a Tensor",
    ),
    "number of NumPy": (
        lambda x: shift(x.reshape(1, 32), bias=np.float32(1), count=1),
        "`bias`: expected a number, found a ndarray",
    ),
    "grid": (lambda x: product(x, x, grid=1.5), "the grid: expected one to three positive integers, found 1.5"),
    "raw parameters": (lambda x: shift(x, args=[1.0]), r"expected 2 values in `args=` \(bias, count\), found 1"),
    "negative view": (lambda x: product(torch.complex(x, x).conj().imag, x), "found a negative view"),
    "stream": (lambda x: product(x, x, stream=0), "`stream` is a stream of now"),
    "no tensor": (lambda x: scale_memory(args=[0, 0, 1.0]), "which has no tensor among its arguments"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_an_error_of_the_compilation(case: tuple[Callable[[Any], Any], str]) -> None:
    wrong, message = case
    with pytest.raises(RuntimeError, match=message) as excinfo:
        torch.compile(wrong, fullgraph=True, backend="eager")(X)
    assert re.search(r"tests/runtime/\w+\.py:\d+: error", str(excinfo.value))


def test_a_compiled_call_launches_on_the_device_of_its_arrays(activate: Activate) -> None:
    activate()
    compiled, graphs = compile_counting(product)
    for addend in range(3):
        x = X + addend
        assert torch.equal(compiled(x, x), x * x)
        assert torch.equal(product(x, x), x * x)
    assert count_loaded() == len(graphs) == 1


def test_a_compiled_function_may_get_kernels_as_arguments() -> None:
    def apply_twice(multiply: Any, x: Any) -> Any:
        return multiply(multiply(x, x), x)

    function, graphs = compile_counting(apply_twice)
    for argument in (product, product.for_arch("sm_80"), product.for_arch("sm_75"), product):
        assert torch.equal(function(argument, X), X * X * X)
    assert len(graphs) == 3


def test_kernels_in_a_compiled_function_may_be_local() -> None:
    @kernel(in_specs=product.in_specs, out_specs=product.out_specs, grid=(1,), block=(32, 1, 1))
    def local_sum(x: Any, y: Any, z: Any) -> None:
        px, py, pz = ptx.global_ptrs(x, y, z)
        store(f32, pz, load(f32, px) + load(f32, py))

    def run(x: Any) -> Any:
        return local_sum(x, x)

    function, graphs = compile_counting(run)
    assert torch.equal(function(X), 2 * X)
    assert list_operators(graphs[0])[0].startswith("pyptx.tests_runtime_test_torch_calls__test_kernels_in_a_compiled")


def test_mapped_calls_run_once_per_element_of_the_batch() -> None:
    x, y = torch.randn(3, 32), torch.randn(32, 3)
    assert torch.equal(torch.vmap(product, in_dims=(0, 1))(x, y), x * y.T)
    assert torch.equal(torch.vmap(product, in_dims=(0, None))(x, X), x * X)
    square, cube = torch.vmap(powers)(x.double())
    assert torch.equal(square, x.double() ** 2)
    assert torch.allclose(cube, x.double() ** 3)


def test_a_mapped_call_of_an_empty_batch_has_outputs_of_no_elements() -> None:
    assert torch.vmap(product, in_dims=(0, None))(torch.empty(0, 32), X).shape == (0, 32)
    square, cube = torch.vmap(powers)(torch.empty(0, 32, dtype=torch.float64))
    assert square.shape == cube.shape == (0, 32)
    assert square.dtype == torch.float64


def test_mapped_calls_write_no_given_tensors() -> None:
    def run(row: Any) -> Any:
        return product(row, X, out=torch.zeros(32))

    with pytest.raises(RuntimeError, match="Batching rule not implemented"):
        torch.vmap(run)(torch.ones(2, 32))


def test_a_subclass_of_tensors_stays_one() -> None:
    subclass = type("Subclass", (torch.Tensor,), {})
    x = X.as_subclass(subclass)
    y = product(x, X)
    assert type(y) is subclass
    assert torch.equal(y.as_subclass(torch.Tensor), X * X)
