"""Gradients of kernels: from the backward kernel, the same when compiled, and an error where there is none."""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable
from importlib import import_module
from queue import Queue
from typing import Any

import pytest

from pyptx import PtxError, Tile, differentiable_kernel, kernel, ptx
from pyptx.runtime.planning import find_place
from pyptx.runtime.torch_refusals import make_backward
from pyptx.types import f32
from tests.messages import raises
from tests.runtime.torch_kernels import (
    double_in_place,
    load,
    multiply,
    powers,
    product,
    product_gradient,
    raise_powers,
    scale_memory,
    store,
)

torch: Any = import_module("torch")
forward_ad: Any = import_module("torch.autograd.forward_ad")

X = torch.linspace(-2, 2, 32)


@pytest.fixture(autouse=True)
def _forget_graphs() -> None:  # pyright: ignore[reportUnusedFunction]
    torch._dynamo.reset()


def compile_with(backend: str) -> Callable[[Any], Any]:
    return lambda function: torch.compile(function, fullgraph=True, backend=backend)


def leave(function: Any) -> Any:
    return function


WAYS = {"eager": leave, "compiled": compile_with("eager"), "traced": compile_with("aot_eager")}
in_every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@in_every_way
def test_gradients_are_those_of_finite_differences(way: Any) -> None:
    x = torch.linspace(-1, 1, 32, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(way(raise_powers), (x,))


@in_every_way
def test_an_output_that_is_not_used_has_a_gradient_of_zero(way: Any) -> None:
    def cube(x: Any) -> Any:
        return raise_powers(x)[1]

    x = X.double().requires_grad_()
    way(cube)(x).sum().backward()
    assert torch.allclose(x.grad, 3 * X.double() ** 2)


@in_every_way
def test_gradients_may_be_spread_out_or_negative_views(way: Any) -> None:
    def loss(x: Any, y: Any) -> Any:
        z = multiply(x, y)
        return (z.reshape(4, 8).T * torch.arange(32.0).reshape(8, 4)).sum() + z.sum()

    x, y = X.clone().requires_grad_(), X.flip(0).requires_grad_()
    way(loss)(x, y).backward()
    weights = torch.arange(32.0).reshape(8, 4).T.reshape(32) + 1
    assert torch.allclose(x.grad, y.detach() * weights)
    assert torch.allclose(y.grad, x.detach() * weights)


def test_a_gradient_that_is_a_negative_view_is_resolved() -> None:
    x = X.clone().requires_grad_()
    y = multiply(x, X)
    y.backward(torch.complex(X, X).conj().imag)
    assert torch.allclose(x.grad, -X * X)


@in_every_way
def test_only_inputs_that_require_a_gradient_get_one(way: Any) -> None:
    x, y = X.clone().requires_grad_(), X.clone()
    way(multiply)(x, y).sum().backward()
    assert y.grad is None
    assert torch.equal(x.grad, y)


@kernel(in_specs=[Tile("n", f32)] * 2, out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def first_gradient(y: Any, dz: Any, dx: Any) -> None:
    py, pdz, pdx = ptx.global_ptrs(y, dz, dx)
    store(f32, pdx, load(f32, py) * load(f32, pdz))


multiply_constant = differentiable_kernel(product, first_gradient, save_for_backward=[1])


@in_every_way
def test_the_backward_kernel_may_need_some_inputs_and_return_gradients_of_the_first(way: Any) -> None:
    x = X.clone().requires_grad_()
    way(multiply_constant)(x, X + 1).sum().backward()
    assert torch.equal(x.grad, X + 1)


@in_every_way
def test_an_input_without_gradient_that_requires_one_is_an_error(way: Any) -> None:
    with pytest.raises((PtxError, RuntimeError), match="`first_gradient` has no output for the gradient of `y`"):
        way(multiply_constant)(X, X.clone().requires_grad_()).sum().backward()


def test_the_message_names_the_input_without_gradient() -> None:
    y = multiply_constant(X, X.clone().requires_grad_())
    with raises(PtxError, match="`y`, input 1 of `product`", file=__file__):
        y.sum().backward()


def test_a_backward_pass_in_a_thread_without_callers_names_the_definition() -> None:
    ends: Queue[PtxError] = Queue()
    names = {"__name__": "torch.thread", "backward": make_backward(product), "ends": ends, "PtxError": PtxError}
    # The only frame of the thread is one of PyTorch's, as on a GPU.
    start_new_thread(exec, ("try:\n    backward(None)\nexcept PtxError as error:\n    ends.put(error)", names))
    (finding,) = ends.get().diagnostics
    assert str(finding.origin) == str(find_place(product.definition))


@in_every_way
def test_an_input_changed_after_the_forward_pass_is_an_error(way: Any) -> None:
    x, y = X.clone().requires_grad_(), X.clone()
    z = way(multiply)(x, y)
    product(X, X, out=y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_kernel_without_gradient_is_an_error_at_the_backward_pass() -> None:
    x = X.clone().requires_grad_()
    y = product(x, X)
    assert torch.equal(y.detach(), X * X)
    with raises(PtxError, match="the kernel `product` has no gradient", file=__file__):
        y.sum().backward()
    square, cube = powers(x.double())
    assert square.requires_grad
    with raises(PtxError, match="the kernel `powers` has no gradient", file=__file__):
        cube.sum().backward()


WRITES: dict[str, Callable[[Any], Any]] = {
    "input": lambda x: product(x, X, out=torch.zeros(32)),
    "out": lambda x: product(X, X, out=x * 1),
    "in place": lambda x: double_in_place(x * 1),
    "memory": lambda x: scale_memory(args=[x, torch.zeros(32), 1.0]),
}


@pytest.mark.parametrize("call", WRITES.values(), ids=WRITES)
def test_a_call_that_writes_tensors_has_no_gradient(call: Any) -> None:
    with raises(PtxError, match="writes to tensors passed to it", file=__file__):
        call(X.clone().requires_grad_())
    with pytest.raises(RuntimeError, match="writes to tensors passed to it"):
        torch.compile(call, fullgraph=True, backend="aot_eager")(X.clone().requires_grad_())


@in_every_way
def test_without_gradients_nothing_is_an_error(way: Any) -> None:
    x = X.clone().requires_grad_()
    with torch.no_grad():
        assert torch.equal(way(product)(x, x), X * X)
    assert torch.equal(way(product)(x.detach(), X), X * X)


def test_a_gradient_is_missing_when_the_forward_pass_is_compiled() -> None:
    with pytest.raises(RuntimeError, match="the kernel `product` has no gradient"):
        torch.compile(product, fullgraph=True, backend="aot_eager")(X.clone().requires_grad_(), X)


def test_a_second_derivative_is_an_error() -> None:
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(multiply(x, x).sum(), x, create_graph=True)
    assert torch.allclose(gradient, 2 * x)
    with raises(PtxError, match="the kernel `product_gradient` has no gradient", file=__file__):
        gradient.sum().backward()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("derive", [torch.func.hessian, torch.func.jacfwd])
def test_a_pair_has_no_forward_mode_derivative(derive: Any) -> None:
    def sum_squares(x: Any) -> Any:
        return multiply(x, x).sum()

    with raises(PtxError, match="`product` has a gradient, but no forward-mode derivative", file=__file__):
        derive(sum_squares)(X)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_forward_mode_is_an_error() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, X)
        with raises(PtxError, match="the kernel `product` has no forward-mode derivative", file=__file__):
            product(dual, X)
        assert torch.equal(product(X, X), X * X)


def test_transformations_of_functions_differentiate() -> None:
    def loss(x: Any) -> Any:
        return multiply(x, X).sum()

    assert torch.equal(torch.func.grad(loss)(X), X)
    assert torch.equal(torch.vmap(torch.func.grad(loss))(X.expand(3, 32)), X.expand(3, 32))


def test_options_reach_both_kernels_when_compiled() -> None:
    def call(x: Any) -> Any:
        return multiply(x, X, factor=3).sum()

    x = X.clone().requires_grad_()
    torch.compile(call, fullgraph=True, backend="aot_eager")(x).backward()
    assert torch.equal(x.grad, 3 * X)
    with pytest.raises(RuntimeError, match="neither kernel takes `other`"):
        torch.compile(multiply, fullgraph=True, backend="eager")(X, X, other=1)


@kernel(in_specs=[Tile("n", f32)] * 2, out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def weighted_gradient(y: Any, dz: Any, dx: Any, *, weight: float = 1) -> None:
    """dx = weight y dz"""
    py, pdz, pdx = ptx.global_ptrs(y, dz, dx)
    store(f32, pdx, load(f32, py) * load(f32, pdz) * float(weight))


multiply_weighted = differentiable_kernel(product, weighted_gradient, save_for_backward=[1])


@in_every_way
def test_each_kernel_gets_its_own_options(way: Any) -> None:
    def call(x: Any) -> Any:
        return multiply_weighted(x, X, factor=3, weight=5)

    x = X.clone().requires_grad_()
    z = way(call)(x)
    z.sum().backward()
    assert torch.equal(z.detach(), X * X * 3)
    assert torch.equal(x.grad, 5 * X)


def test_kernels_live_as_long_as_a_graph_needs_them() -> None:
    def make() -> Any:
        backward = product_gradient.for_arch("sm_80")
        return differentiable_kernel(product.for_arch("sm_80"), backward)

    x = X.clone().requires_grad_()
    for way in WAYS.values():
        x.grad = None
        y = way(make())(x, X)
        y.sum().backward()
        assert torch.equal(x.grad, X)
