"""Kernels on PyTorch's CPU tensors: shared memory, results as tensors, gradients; tensors without memory are
refused."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from pyptx import PtxError, Tile, differentiable_kernel, kernel, ptx, reg
from pyptx.types import bf16, e4m3, f32, u64
from tests.messages import raises

# Annotated as Any: PyTorch's stubs leave most types unknown.
torch: Any = import_module("torch")


def index(size: int) -> Any:
    """Return the byte offset of a thread's element."""
    offset = reg.scalar(u64)
    ptx.inst.mul.wide.u32(offset, ptx.special.tid.x(), size)
    return offset


def elementwise(dtype: Any, size: int) -> Any:
    """Return a kernel that copies 32 elements, as bits."""

    @kernel(in_specs=[Tile(32, dtype)], out_specs=[Tile(32, dtype)], grid=(1,), block=(32, 1, 1))
    def copy(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        address, value = index(size), reg.scalar(dtype)
        ptx.ld(dtype, value, ptx.addr(px, address))
        ptx.st(dtype, ptx.addr(py, address), value)

    return copy


@kernel(in_specs=[Tile("n", f32), Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def product(x: Any, y: Any, z: Any, *, factor: int = 1) -> None:
    """z = factor x y"""
    px, py, pz = ptx.global_ptrs(x, y, z)
    address, a, b = index(4), reg.scalar(f32), reg.scalar(f32)
    ptx.ld(f32, a, ptx.addr(px, address))
    ptx.ld(f32, b, ptx.addr(py, address))
    ptx.st(f32, ptx.addr(pz, address), a * b * float(factor))


@kernel(
    in_specs=[Tile("n", f32), Tile("n", f32), Tile("n", f32)], out_specs=[Tile("n", f32), Tile("n", f32)], grid=(1,),
    block=(32, 1, 1),
)  # fmt: skip
def product_gradient(x: Any, y: Any, dz: Any, dx: Any, dy: Any, *, factor: int = 1) -> None:
    """dx = factor y dz, dy = factor x dz"""
    pointers = ptx.global_ptrs(x, y, dz, dx, dy)
    address, values = index(4), [reg.scalar(f32) for _ in range(3)]
    for value, pointer in zip(values, pointers, strict=False):
        ptx.ld(f32, value, ptx.addr(pointer, address))
    a, b, d = values
    ptx.st(f32, ptx.addr(pointers[3], address), b * d * float(factor))
    ptx.st(f32, ptx.addr(pointers[4], address), a * d * float(factor))


@pytest.mark.parametrize(("dtype", "size", "name"), [(f32, 4, "float32"), (bf16, 2, "bfloat16"),
                                                     (e4m3, 1, "float8_e4m3fn")])  # fmt: skip
def test_tensors_go_in_and_come_out(dtype: Any, size: int, name: str) -> None:
    x = torch.linspace(-3, 3, 32).to(getattr(torch, name))
    y = elementwise(dtype, size)(x)
    assert isinstance(y, torch.Tensor)
    assert y.dtype == x.dtype
    assert torch.equal(y.float(), x.float())


def test_an_output_given_is_written_in_place_and_autograd_notices() -> None:
    x, y = torch.arange(32.0), torch.zeros(32)
    before = y._version
    assert product(x, x, out=y) is y
    assert torch.equal(y, x * x)
    assert y._version > before


def test_arrays_of_numpy_and_tensors_mix() -> None:
    x = torch.arange(32.0)
    assert torch.equal(product(np.full(32, 2, np.float32), x), 2 * x)
    assert isinstance(product(np.ones(32, np.float32), np.ones(32, np.float32)), np.ndarray)


X = torch.arange(32.0)
WRONG: list[tuple[Any, str]] = [
    (X.double(), "`x`: expected dtype float32, found float64"),
    (torch.arange(64.0)[::2], r"`x`: expected a contiguous row-major array.*x\.contiguous\(\)"),
    (X.to("meta"), "`y`: expected an array on the meta device, like `x`, found one in the CPU's memory"),
    (
        torch.complex(X, X).conj().imag,
        r"`x`: expected an ordinary tensor, found a negative view; use x\.resolve_neg\(\)",
    ),
    (torch.complex(X, X).conj(), r"`x`: expected an ordinary tensor, found a conjugate view; use x\.resolve_conj\(\)"),
    (X.to_sparse(), "`x`: expected a dense tensor, found layout sparse_coo"),
    (X.reshape(4, 8), "`x`: expected 1 dimension"),
    ([1.0], "`x`: expected an array, found list"),
    (torch.float32, "`x`: expected an array, found dtype"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_what_does_not_fit_is_named_before_anything_runs(wrong: Any, message: str) -> None:
    with raises(PtxError, match=rf"PTX1001.*{message}"):
        product(wrong, X)


def test_every_wrong_argument_is_in_one_message() -> None:
    with raises(PtxError) as excinfo:
        product(X.double(), X.to("meta"), out=torch.zeros(32).half())
    assert all(
        text in str(excinfo.value)
        for text in (
            "`x`: expected dtype float32",
            "`x`: expected an array on the meta",
            "`z`: expected dtype",
            "like `y`",
        )
    )


def test_abstract_tensors_cannot_be_simulated() -> None:
    mode: Any = import_module("torch._subclasses.fake_tensor").FakeTensorMode()
    with mode:
        fake = torch.zeros(32)
    with raises(PtxError, match="`x`: expected a concrete tensor, found FakeTensor"):
        product.simulate(fake, X)
    with raises(PtxError, match="`x`: expected a concrete tensor, found one on the meta device"):
        product.simulate(X.to("meta"), X)


def test_memory_that_a_kernel_may_write_counts_as_changed() -> None:
    @kernel(in_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1), raw_params=[("u64", "p")])
    def double(x: Any) -> None:
        px, p = ptx.global_ptrs(x, "p")
        value = reg.scalar(f32)
        ptx.ld(f32, value, ptx.addr(p, index(4)))
        ptx.st(f32, ptx.addr(px, index(4)), value)

    x, p = torch.zeros(32), torch.ones(32)
    double(x, p=p)
    assert (x._version, p._version) == (1, 1)
    double(x, args=[p])
    assert (x._version, p._version) == (2, 2)


def test_gradients_come_from_the_backward_kernel() -> None:
    f = differentiable_kernel(product, product_gradient, save_for_backward=[0, 1], num_grad_inputs=2, factor=5)
    x, y = (torch.randn(32, requires_grad=True) for _ in range(2))
    assert torch.equal(f(x, y).detach(), 5 * (x * y).detach())
    z = f(x, y, factor=3)
    (z * torch.arange(32.0)).sum().backward()
    assert torch.equal(z.detach(), (x * y).detach() * 3)
    assert torch.allclose(x.grad, 3 * y.detach() * torch.arange(32.0))
    assert torch.allclose(y.grad, 3 * x.detach() * torch.arange(32.0))


def test_each_kernel_takes_its_own_options() -> None:
    @kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
    def scaled(x: Any, y: Any, *, scale: int) -> None:
        px, py = ptx.global_ptrs(x, y)
        address, value = index(4), reg.scalar(f32)
        ptx.ld(f32, value, ptx.addr(px, address))
        ptx.st(f32, ptx.addr(py, address), value * float(scale))

    @kernel(in_specs=[Tile("n", f32)] * 2, out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
    def gradient(x: Any, dy: Any, dx: Any, *, slope: int) -> None:
        pdy, pdx = ptx.global_ptrs(dy, dx)
        address, value = index(4), reg.scalar(f32)
        ptx.ld(f32, value, ptx.addr(pdy, address))
        ptx.st(f32, ptx.addr(pdx, address), value * float(slope))

    x = torch.ones(32, requires_grad=True)
    y = differentiable_kernel(scaled, gradient)(x, scale=3, slope=7)
    y.sum().backward()
    assert (y.detach()[0].item(), x.grad[0].item()) == (3, 7)


def test_a_gradient_that_is_spread_out_is_made_dense() -> None:
    f = differentiable_kernel(product, product_gradient)
    x, y = (torch.randn(32, requires_grad=True) for _ in range(2))
    f(x, y).sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_an_input_changed_after_the_forward_pass_is_an_error() -> None:
    f = differentiable_kernel(product, product_gradient)
    x, y = torch.randn(32, requires_grad=True), torch.randn(32)
    z = f(x, y)
    product(X, X, out=y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_kernels_that_do_not_belong_together_are_refused() -> None:
    for options in ({"save_for_backward": [0]}, {"num_grad_inputs": 1}, {"save_for_backward": [0, 5]}):
        with raises(PtxError, match="PTX1003", file=__file__):
            differentiable_kernel(product, product_gradient, **options)  # pyright: ignore[reportArgumentType]
    with raises(PtxError, match="neither kernel takes `other`", file=__file__):
        differentiable_kernel(product, product_gradient)(X, X, other=1)


def test_torch_is_loaded_by_tensors_only() -> None:
    text = """
import sys, numpy as np
from pyptx import differentiable_kernel
from tests.runtime.test_calls import A, B, add_scaled
add_scaled(A, B, scale=1.0)
print([name for name in ("torch", "jax") if name in sys.modules])
"""
    process = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\[\]\n", process.stdout)
