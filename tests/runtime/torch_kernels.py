"""Kernels for the tests with PyTorch. They are at module level, so their operators have stable names."""

from __future__ import annotations

from typing import Any

from pyptx import Tile, differentiable_kernel, kernel, ptx, reg
from pyptx.types import PtxType, f32, f64, u32, u64


def index(size: int) -> Any:
    """Return the byte offset of a thread's element."""
    offset = reg.scalar(u64)
    ptx.inst.mul.wide.u32(offset, ptx.special.tid.x(), size)
    return offset


def load(dtype: PtxType, pointer: Any) -> Any:
    """Return a thread's element."""
    value = reg.scalar(dtype)
    ptx.ld(dtype, value, ptx.addr(pointer, index(dtype.bits // 8)))
    return value


def store(dtype: PtxType, pointer: Any, value: Any) -> None:
    """Write a thread's element."""
    ptx.st(dtype, ptx.addr(pointer, index(dtype.bits // 8)), value)


@kernel(in_specs=[Tile("n", f32), Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def product(x: Any, y: Any, z: Any, *, factor: float = 1) -> None:
    """z = factor x y"""
    px, py, pz = ptx.global_ptrs(x, y, z)
    store(f32, pz, load(f32, px) * load(f32, py) * float(factor))


@kernel(in_specs=[Tile("n", f32)] * 3, out_specs=[Tile("n", f32)] * 2, grid=(1,), block=(32, 1, 1))
def product_gradient(x: Any, y: Any, dz: Any, dx: Any, dy: Any, *, factor: float = 1) -> None:
    """dx = factor y dz, dy = factor x dz"""
    px, py, pdz, pdx, pdy = ptx.global_ptrs(x, y, dz, dx, dy)
    gradient = load(f32, pdz) * float(factor)
    store(f32, pdx, load(f32, py) * gradient)
    store(f32, pdy, load(f32, px) * gradient)


def count_rows(rows: int, cols: int) -> tuple[int]:
    """Return a grid of one CTA for each row."""
    return (rows,)


multiply = differentiable_kernel(product, product_gradient)


@kernel(
    in_specs=[Tile("rows", "cols", f32)], out_specs=[Tile("rows", "cols", f32)], grid=count_rows,
    block=(32, 1, 1), raw_params=[("f32", "bias"), ("u32", "count")],
)  # fmt: skip
def shift(x: Any, y: Any, *, cols_read: bool = False) -> None:
    """y = x + bias in the first `count` columns, 0 in the others. Without `cols_read` there are 32 columns."""
    px, py = ptx.global_ptrs(x, y)
    width = x.shape[1] if cols_read else 32
    for column in range(0, width, 32):
        thread = ptx.special.tid.x() + column
        element = ptx.special.ctaid.x() * width + thread
        source, target = (ptx.mad(element, 4, pointer, mode="wide") for pointer in (px, py))
        ptx.st(f32, ptx.addr(target), 0.0)
        shifted = ptx.ld(f32, ptx.addr(source)) + ptx.param(f32, "bias")
        ptx.st(f32, ptx.addr(target), shifted, pred=thread < ptx.param(u32, "count"))


@kernel(grid=(1,), block=(32, 1, 1), raw_params=[("u64", "p"), ("u64", "q"), ("f32", "scale")])
def scale_memory() -> None:
    """q = scale p"""
    p, q = ptx.global_ptrs("p", "q")
    store(f32, q, load(f32, p) * ptx.param(f32, "scale"))


@kernel(in_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
def double_in_place(x: Any) -> None:
    """x = 2 x"""
    (px,) = ptx.global_ptrs(x)
    store(f32, px, load(f32, px) * 2.0)


@kernel(in_specs=[Tile("n", f64)], out_specs=[Tile("n", f64), Tile("n", f64)], grid=(1,), block=(32, 1, 1))
def powers(x: Any, square: Any, cube: Any) -> None:
    """square = x x, cube = x x x"""
    px, psquare, pcube = ptx.global_ptrs(x, square, cube)
    value = load(f64, px)
    store(f64, psquare, value * value)
    store(f64, pcube, value * value * value)


@kernel(in_specs=[Tile("n", f64)] * 3, out_specs=[Tile("n", f64)], grid=(1,), block=(32, 1, 1))
def powers_gradient(x: Any, dsquare: Any, dcube: Any, dx: Any) -> None:
    """dx = 2 x dsquare + 3 x x dcube"""
    px, pdsquare, pdcube, pdx = ptx.global_ptrs(x, dsquare, dcube, dx)
    value = load(f64, px)
    store(f64, pdx, value * load(f64, pdsquare) * 2.0 + value * value * load(f64, pdcube) * 3.0)


raise_powers = differentiable_kernel(powers, powers_gradient)
