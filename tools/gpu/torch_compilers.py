"""Checks of kernels that PyTorch compiles for a GPU: Inductor, with and without CUDA graphs, and gradients."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.parts.example import find_example
from pyptx import Tile, differentiable_kernel, kernel, ptx
from pyptx.types import f32
from tools.gpu.checks import Machine, check

VECTOR_ADD = find_example("any/vector_add")

SIZE = 4096
TORCH = "PyTorch with CUDA"
DEVICE, BACKEND = "cuda", "inductor"
Vector = Tile(SIZE, f32)
Launch: dict[str, Any] = {"arch": "sm_80", "grid": (SIZE // 128,), "block": (128, 1, 1)}


def locate(pointer: Any) -> Any:
    """Return the address of a thread's element."""
    index = ptx.special.ctaid.x() * 128 + ptx.special.tid.x()
    return ptx.addr(ptx.mad(index, 4, pointer, mode="wide"))


@kernel(in_specs=[Vector], out_specs=[Vector], **Launch)
def square(x: Any, y: Any) -> None:
    """y = x x"""
    px, py = ptx.global_ptrs(x, y)
    value = ptx.ld(f32, locate(px))
    ptx.st(f32, locate(py), value * value)


@kernel(in_specs=[Vector, Vector], out_specs=[Vector], **Launch)
def square_gradient(x: Any, dy: Any, dx: Any) -> None:
    """dx = 2 x dy"""
    px, pdy, pdx = ptx.global_ptrs(x, dy, dx)
    ptx.st(f32, locate(pdx), ptx.ld(f32, locate(px)) * ptx.ld(f32, locate(pdy)) * 2.0)


smooth = differentiable_kernel(square, square_gradient)


def run_chain(mode: str) -> None:
    """Compare a compiled chain of kernels and PyTorch's operations with PyTorch's alone, on new tensors each time."""
    torch: Any = import_module("torch")
    add, grid = VECTOR_ADD.make(), VECTOR_ADD.module.grid(SIZE)

    def chain(x: Any, y: Any) -> Any:
        for _ in range(5):
            x = add(x * 0.5, y, grid=grid) + square(y)
        return x

    def expect(x: Any, y: Any) -> Any:
        for _ in range(5):
            x = (x * 0.5 + y) + y * y
        return x

    compiled = torch.compile(chain, fullgraph=True, mode=mode)
    for seed in range(5):
        torch.manual_seed(seed)
        x, y = (torch.randn(SIZE, device=DEVICE) for _ in range(2))
        torch.testing.assert_close(compiled(x, y), expect(x, y), rtol=1e-5, atol=1e-5)


@check("kernels between operations that Inductor compiles, five calls on new tensors", TORCH)
def torch_inductor(machine: Machine) -> str:
    """Compare a compiled chain of kernels."""
    run_chain("default")
    return "5 calls"


@check("the same in CUDA graphs that PyTorch captures: mode='reduce-overhead'", TORCH)
def torch_graphs(machine: Machine) -> str:
    """Compare a captured chain of kernels."""
    run_chain("reduce-overhead")
    return "5 calls"


@check("gradients of a kernel, eager and compiled, in a stream that is not the default one", TORCH)
def torch_gradients(machine: Machine) -> str:
    """Compare gradients with those of PyTorch."""
    torch: Any = import_module("torch")
    stream: Any = torch.cuda.Stream() if DEVICE == "cuda" else None
    for function in (smooth, torch.compile(smooth, fullgraph=True, backend=BACKEND)):
        with torch.cuda.stream(stream):
            x = torch.randn(SIZE, device=DEVICE, requires_grad=True)
            (function(x).sin()).sum().backward()
            expected = (x.detach() ** 2).cos() * 2 * x.detach()
            torch.testing.assert_close(x.grad, expected, rtol=1e-5, atol=1e-5)
    return "2 functions"
