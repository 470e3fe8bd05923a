"""A block of a transformer made of kernels: RMSNorm, products of matrices, and SwiGLU, each with its gradient. Sizes
are those of one warp."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from pyptx import Tile, differentiable_kernel, kernel, ptx, reg
from pyptx.types import f32

torch: Any = import_module("torch")

SIZE = 32
EPSILON = 1e-5
SQUARE, VECTOR = Tile(SIZE, SIZE, f32), Tile(SIZE, f32)
ONE_WARP: Any = {"grid": (1,), "block": (SIZE, 1, 1)}
WARP_PER_ROW: Any = {"grid": (SIZE,), "block": (SIZE, 1, 1)}


def locate(pointer: Any, row: Any, column: Any) -> Any:
    """Return the address of an element of a square matrix."""
    return ptx.mad(ptx.mad(row, SIZE, column), 4, pointer, mode="wide")


def read(pointer: Any, row: Any, column: Any) -> Any:
    """Return an element of a square matrix."""
    return ptx.ld(f32, ptx.addr(locate(pointer, row, column)))


def compute_scale(value: Any) -> Any:
    """Return 1 / sqrt(mean(value ** 2) + epsilon) of a warp."""
    squares, scale = value * value, reg.scalar(f32)
    ptx.warp.reduce("sum", squares)
    ptx.inst.rsqrt.approx.f32(scale, ptx.mad(squares, 1 / SIZE, EPSILON))
    return scale


@kernel(in_specs=[SQUARE, VECTOR], out_specs=[SQUARE], **ONE_WARP)
def rmsnorm(x: Any, w: Any, y: Any) -> None:
    px, pw, py = ptx.global_ptrs(x, w, y)
    weight = ptx.ld(f32, ptx.addr(ptx.mad(ptx.special.tid.x(), 4, pw, mode="wide")))
    for row in range(SIZE):
        value = read(px, row, ptx.special.tid.x())
        target = locate(py, row, ptx.special.tid.x())
        ptx.st(f32, ptx.addr(target), value * compute_scale(value) * weight)


@kernel(in_specs=[SQUARE, VECTOR, SQUARE], out_specs=[SQUARE, VECTOR], **ONE_WARP)
def rmsnorm_gradient(x: Any, w: Any, dy: Any, dx: Any, dw: Any) -> None:
    """dx = scale (w dy - x scale ** 2 mean(x w dy)), dw = sum over rows of x scale dy"""
    px, pw, pdy, pdx, pdw = ptx.global_ptrs(x, w, dy, dx, dw)
    thread = ptx.special.tid.x()
    weight, total = ptx.ld(f32, ptx.addr(ptx.mad(thread, 4, pw, mode="wide"))), reg.scalar(f32, 0)
    for row in range(SIZE):
        value, gradient = read(px, row, thread), read(pdy, row, thread)
        scale = compute_scale(value)
        ptx.mad(f32, total, value * scale, gradient, total)
        weighted = gradient * weight
        mean = value * weighted
        ptx.warp.reduce("sum", mean)
        change = value * scale * scale * mean * (1 / SIZE)
        ptx.st(f32, ptx.addr(locate(pdx, row, thread)), (weighted - change) * scale)
    ptx.st(f32, ptx.addr(ptx.mad(thread, 4, pdw, mode="wide")), total)


@kernel(in_specs=[SQUARE, SQUARE], out_specs=[SQUARE], **WARP_PER_ROW)
def gemm(a: Any, b: Any, c: Any) -> None:
    """c = a b"""
    pa, pb, pc = ptx.global_ptrs(a, b, c)
    row, column, total = ptx.special.ctaid.x(), ptx.special.tid.x(), reg.scalar(f32, 0)
    for k in range(SIZE):
        ptx.mad(f32, total, read(pa, row, k), read(pb, k, column), total)
    ptx.st(f32, ptx.addr(locate(pc, row, column)), total)


@kernel(in_specs=[SQUARE, SQUARE, SQUARE], out_specs=[SQUARE, SQUARE], **WARP_PER_ROW)
def gemm_gradient(a: Any, b: Any, dc: Any, da: Any, db: Any) -> None:
    """da = dc transpose(b), db = transpose(a) dc"""
    pa, pb, pdc, pda, pdb = ptx.global_ptrs(a, b, dc, da, db)
    row, column = ptx.special.ctaid.x(), ptx.special.tid.x()
    first, second = reg.scalar(f32, 0), reg.scalar(f32, 0)
    for k in range(SIZE):
        ptx.mad(f32, first, read(pdc, row, k), read(pb, column, k), first)
        ptx.mad(f32, second, read(pa, k, row), read(pdc, k, column), second)
    ptx.st(f32, ptx.addr(locate(pda, row, column)), first)
    ptx.st(f32, ptx.addr(locate(pdb, row, column)), second)


def sigmoid(value: Any) -> Any:
    """Return 1 / (1 + exp(-value))."""
    power, result = reg.scalar(f32), reg.scalar(f32)
    ptx.inst.ex2.approx.ftz.f32(power, value * -math.log2(math.e))
    ptx.inst.rcp.approx.f32(result, power + 1.0)
    return result


@kernel(in_specs=[SQUARE, SQUARE], out_specs=[SQUARE], **WARP_PER_ROW)
def swiglu(gate: Any, up: Any, y: Any) -> None:
    """y = gate sigmoid(gate) up"""
    pgate, pup, py = ptx.global_ptrs(gate, up, y)
    place = ptx.special.ctaid.x(), ptx.special.tid.x()
    value = read(pgate, *place)
    ptx.st(f32, ptx.addr(locate(py, *place)), value * sigmoid(value) * read(pup, *place))


@kernel(in_specs=[SQUARE, SQUARE, SQUARE], out_specs=[SQUARE, SQUARE], **WARP_PER_ROW)
def swiglu_gradient(gate: Any, up: Any, dy: Any, dgate: Any, dup: Any) -> None:
    pgate, pup, pdy, pdgate, pdup = ptx.global_ptrs(gate, up, dy, dgate, dup)
    place = ptx.special.ctaid.x(), ptx.special.tid.x()
    value, gradient = read(pgate, *place), read(pdy, *place)
    share = sigmoid(value)
    slope = share * (value * (share * -1.0 + 1.0) + 1.0)
    ptx.st(f32, ptx.addr(locate(pdgate, *place)), gradient * read(pup, *place) * slope)
    ptx.st(f32, ptx.addr(locate(pdup, *place)), gradient * value * share)


normalize = differentiable_kernel(rmsnorm, rmsnorm_gradient)
multiply_matrices = differentiable_kernel(gemm, gemm_gradient)
gate_values = differentiable_kernel(swiglu, swiglu_gradient)


class Block(torch.nn.Module):
    """x + down(swiglu(gate(rmsnorm(x)), up(rmsnorm(x)))), by kernels or by PyTorch."""

    def __init__(self, uses_kernels: bool) -> None:
        torch.nn.Module.__init__(self)
        self.uses_kernels = uses_kernels
        generator = torch.Generator().manual_seed(1)
        self.scale = torch.nn.Parameter(torch.ones(SIZE))
        for name in ("gate", "up", "down"):
            weight = torch.randn(SIZE, SIZE, generator=generator) / math.sqrt(SIZE)
            setattr(self, name, torch.nn.Parameter(weight))

    def forward(self, x: Any) -> Any:
        """Return the output of the block."""
        if not self.uses_kernels:
            y = torch.nn.functional.rms_norm(x, (SIZE,), self.scale, EPSILON)
            return x + (torch.nn.functional.silu(y @ self.gate) * (y @ self.up)) @ self.down
        y = normalize(x, self.scale)
        gated = gate_values(multiply_matrices(y, self.gate), multiply_matrices(y, self.up))
        return x + multiply_matrices(gated, self.down)
