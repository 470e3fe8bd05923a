"""Operators of kernels: PyTorch's own checks, names, exported programs, and sharded tensors."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import pytest

from pyptx import PtxError, Tile, differentiable_kernel, kernel, ptx
from pyptx.runtime import torch_operators
from pyptx.runtime.planning import find_place
from pyptx.torch_support import declare_sharding, operator
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
    shift,
    store,
)

torch: Any = import_module("torch")

X = torch.linspace(-3, 3, 32)


@pytest.mark.parametrize(("call", "overload", "arguments", "keywords"), [
    (product, "default", (X, X), {"options": "factor=3"}),
    (product, "out", (X, X), {"z": X.clone()}),
    (powers, "default", (X.double(),), {"grid": [1]}),
    (powers, "out", (X.double(),), {"square": X.double(), "cube": X.double()}),
    (shift, "default", (X.reshape(1, 32),), {"bias": 1.0, "count": 3}),
    (double_in_place, "default", (X.clone(),), {}),
    (scale_memory, "memory", (), {"memory": [X, X.clone()], "options": "p=memory[0], q=memory[1]", "scale": 2.0}),
    (multiply, "default", (X.clone().requires_grad_(), X.clone().requires_grad_()), {}),
    (raise_powers, "default", (X.double().requires_grad_(),), {}),
])  # fmt: skip
def test_operators_pass_the_checks_of_pytorch(call: Any, overload: str, arguments: Any, keywords: Any) -> None:
    torch.library.opcheck(getattr(operator(call), overload), arguments, keywords)


def test_a_schema_has_the_tensors_and_numbers_of_the_kernel() -> None:
    name = "pyptx::tests_runtime_torch_kernels__shift"
    start = "(Tensor x, *, SymInt? rows=None, SymInt? cols=None, float? bias=None, SymInt? count=None, "
    options = 'str options="", str returns="", SymInt[]? grid=None'
    schemas = operator(shift)
    assert str(schemas.default._schema) == f"{name}{start}{options}) -> Tensor"
    assert str(schemas.out._schema) == f"{name}.out{start}{options}, Tensor(memory!)[] memory, Tensor(y!) y) -> ()"
    assert str(schemas.memory._schema) == f"{name}.memory{start}{options}, Tensor(memory!)[] memory) -> Tensor"


def make_local() -> Any:
    @kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
    def local(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        store(f32, py, load(f32, px) + 1.0)

    return local


def get_name(call: Any, name: str | None = None) -> str:
    return str(operator(call, name)).removeprefix("pyptx.")


def test_names_are_stable_for_kernels_that_a_module_has() -> None:
    prefix = "tests_runtime_torch_kernels__product"
    assert get_name(product) == get_name(product) == prefix
    assert get_name(multiply) == f"{prefix}__{prefix}_gradient__0__1__2"
    again = differentiable_kernel(product, product_gradient, factor=2)
    assert get_name(again) == get_name(multiply)


def test_other_kernels_never_share_a_name() -> None:
    first, second = make_local(), make_local()
    names = {get_name(first), get_name(second), get_name(product.for_arch("sm_80"))}
    assert len(names) == 3
    assert all(len(name.rpartition("_")[2]) == 8 for name in names)


def test_the_operator_of_a_backward_kernel_is_defined_with_the_function() -> None:
    backward = product_gradient.for_arch("sm_80")
    operator(differentiable_kernel(product, backward))
    assert (backward.key, "", "") in torch_operators._OPERATORS  # pyright: ignore[reportPrivateUsage]


def test_a_name_may_be_given() -> None:
    local = make_local()
    assert get_name(local, "add_one") == "add_one"
    assert get_name(local) == "add_one"
    with raises(PtxError, match="`local` is already the operator add_one", file=__file__):
        operator(local, "add_two")
    with raises(PtxError, match="add_one is the name of another operator", file=__file__):
        operator(make_local(), "add_one")
    with raises(PtxError, match="an operator cannot be named 'add one'", file=__file__):
        operator(make_local(), "add one")


def test_arguments_of_the_operator_are_no_names_of_parameters() -> None:
    @kernel(grid=(1,), raw_params=[("u64", "grid")])
    def confusing() -> None: ...

    with raises(PtxError, match="`grid` of `confusing` has the name of an argument", file=__file__):
        operator(confusing)


class Model(torch.nn.Module):
    """A product, a sum of powers, and a kernel that writes a given tensor."""

    def forward(self, x: Any, y: Any) -> Any:
        out = torch.zeros_like(x)
        product(x, y, factor=2, out=out)
        square, cube = powers(multiply(x, y, factor=3).double())
        return out + square + cube


class Shift(torch.nn.Module):
    """A kernel with numbers that depend on a size."""

    def forward(self, x: Any) -> Any:
        return shift(x, bias=1.0, count=x.shape[0])


@pytest.mark.parametrize("strict", [False, True], ids=["traced", "compiled"])
def test_exported_programs_run_after_they_are_saved_and_loaded(strict: bool) -> None:
    model, arguments = Model(), (X, X + 1)
    program = torch.export.export(model, arguments, strict=strict)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    assert torch.equal(loaded(X + 2, X), model(X + 2, X))


def test_exported_programs_may_have_a_dynamic_size() -> None:
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(Shift(), (torch.zeros(4, 32),), dynamic_shapes={"x": {0: rows}})
    x = torch.randn(7, 32)
    assert torch.equal(program.module()(x), Shift()(x))


def test_a_program_of_a_kernel_with_other_outputs_is_refused() -> None:
    for x in (X, X.to("meta")):
        with raises(PtxError, match=r"compiled when `product` returned f64\[n\]; it returns f32\[n\]", file=__file__):
            operator(product).default(x, x, returns="f64[n]")
    assert torch.equal(operator(product).default(X, X, returns="f32[n]"), X * X)


def conjugate(x: Any) -> Any:
    return torch.complex(x, x).conj()


@pytest.mark.parametrize(
    ("make_view", "kind", "method"),
    [(torch._neg_view, "negative", "resolve_neg"), (conjugate, "conjugate", "resolve_conj")],
)
def test_an_operator_refuses_views_that_pytorch_would_copy(make_view: Any, kind: str, method: str) -> None:
    def describe(name: str) -> str:
        return f"`{name}`: expected an ordinary tensor, found a {kind} view; use {name}.{method}()"

    view = make_view(X)
    for overload, tensors, outputs, names in (
        ("default", (X, view), {}, "y"), ("default", (view, view), {}, "xy"), ("out", (X, X), {"z": view}, "z"),
        ("out", (view, X), {"z": view}, "xz"),
    ):  # fmt: skip
        with pytest.raises(PtxError) as caught:
            getattr(operator(product), overload)(*tensors, options="factor=3", **outputs)
        (finding,) = caught.value.diagnostics
        assert finding.message == "; ".join(map(describe, names))
        assert str(finding.origin) == str(find_place(product.definition))


def test_objects_of_another_process_are_refused() -> None:
    wrong = "function=object(0, 'another', 'function')"
    with raises(PtxError, match="this program refers to `function`, an object of type function in another process"):
        operator(product).default(X, X, options=wrong)


@pytest.fixture
def mesh() -> Any:
    """Return a mesh of two processes, of which this is the first and the other does not exist: nothing is sent."""
    distributed: Any = import_module("torch.distributed")
    store: Any = import_module("torch.testing._internal.distributed.fake_pg").FakeStore()
    distributed.init_process_group("fake", store=store, rank=0, world_size=2)
    yield import_module("torch.distributed.tensor").init_device_mesh("cpu", (2,))
    distributed.destroy_process_group()


def test_sharded_tensors_follow_the_declaration(mesh: Any) -> None:
    tensors: Any = import_module("torch.distributed.tensor")
    declare_sharding(product, "n")
    sharded = tensors.DTensor.from_local(X, mesh, [tensors.Shard(0)])
    whole = tensors.DTensor.from_local(torch.cat([X, X]), mesh, [tensors.Replicate()])
    y = product(sharded, whole)
    assert (y.placements, tuple(y.shape)) == ((tensors.Shard(0),), (64,))
    assert torch.equal(y.to_local(), X * X)
    with raises(PtxError, match="`product` has no dimension q", file=__file__):
        declare_sharding(product, "q")


def test_sharded_tensors_without_a_declaration_are_an_error_of_pytorch(mesh: Any) -> None:
    tensors: Any = import_module("torch.distributed.tensor")
    sharded = tensors.DTensor.from_local(X.double(), mesh, [tensors.Shard(0)])
    with pytest.raises(NotImplementedError, match="does not have a sharding strategy"):
        powers(sharded)
