"""Kernels with one planted bug each, with what `assert_matches` must find: the tests run them in this process, and
tools/audit_executors.py in several, which import them from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyptx import Kernel, Tile, kernel, ptx, reg, smem
from pyptx.testing import Match, assert_matches
from pyptx.types import f16, f32, s32, u32

THREADS = 64
Array = np.ndarray[Any, Any]


def blocks(n: int) -> tuple[int]:
    """Return a grid of one CTA for 64 elements."""
    return (-(-n // THREADS),)


def index() -> reg.Reg:
    """Return the index of a thread in the grid."""
    return ptx.mad(ptx.special.ctaid.x(), THREADS, ptx.special.tid.x())


def make_kernel(dtype: Any = f32) -> Callable[[Callable[..., None]], Kernel]:
    """Return the decorator of kernels of one input and one output with `n` elements."""
    tile = Tile("n", dtype)
    return kernel(in_specs=[tile], out_specs=[tile], grid=blocks, block=(THREADS, 1, 1))


def load(array: reg.Reg, i: reg.Reg, dtype: Any = f32) -> reg.Reg:
    """Return an element."""
    value = reg.scalar(dtype)
    ptx.ld(dtype, value, ptx.addr(array, i * 4))
    return value


@make_kernel()
def double(x: Any, y: Any) -> None:
    """y = 2 x, without a bug"""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i) * 2.0)


def twice(x: Array) -> Array:
    """Return the expected result of most kernels."""
    return x * np.float32(2)


@make_kernel()
def skip_last(x: Any, y: Any) -> None:
    """The bound excludes the last element."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i + 1 < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i) * 2.0)


@make_kernel()
def read_beyond(x: Any, y: Any) -> None:
    """The bound includes one element too many."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i <= x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i) * 2.0)


@make_kernel()
def forget_later_blocks(x: Any, y: Any) -> None:
    """The index has no term for the CTA."""
    px, py = ptx.global_ptrs(x, y)
    i = ptx.special.tid.x()
    with ptx.if_(i < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i) * 2.0)


@make_kernel()
def wrap_index(x: Any, y: Any) -> None:
    """The index has six bits."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), load(px, i & 63) * 2.0)


@make_kernel()
def change_second_warp(x: Any, y: Any) -> None:
    """The second warp multiplies twice."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i < x.shape[0]):
        value = load(px, i) * 2.0
        with ptx.if_(ptx.special.tid.x() >= 32):
            ptx.mul(f32, value, value, 2.0)
        ptx.st(f32, ptx.addr(py, i * 4), value)


@make_kernel(s32)
def shift_unsigned(x: Any, y: Any) -> None:
    """Signed numbers are divided as unsigned ones."""
    px, py = ptx.global_ptrs(x, y)
    i = index()
    with ptx.if_(i < x.shape[0]):
        ptx.st(u32, ptx.addr(py, i * 4), load(px, i, u32) >> 1)


@make_kernel()
def exchange(x: Any, y: Any) -> None:
    """The two warps exchange elements without a barrier in between."""
    px, py = ptx.global_ptrs(x, y)
    i, thread = index(), ptx.special.tid.x()
    cells = smem.alloc(f32, (THREADS,))
    ptx.inst.st.shared.f32(ptx.addr(reg.from_(cells.name, u32) + thread * 4), load(px, i))
    value = reg.scalar(f32)
    ptx.inst.ld.shared.f32(value, ptx.addr(reg.from_(cells.name, u32) + (thread ^ 32) * 4))
    ptx.st(f32, ptx.addr(py, i * 4), value)


@make_kernel()
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


@make_kernel()
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


@make_kernel()
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

    kernel: Kernel
    first: int
    smallest: int
    codes: tuple[str, ...] = ()
    reference: Callable[[Array], Array] = twice
    multiple: int = 1
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    schedule: str = "eager"

    def match(self, **place: Any) -> Match:
        """Compare the kernel with its reference, from the first shape down."""
        options: dict[str, Any] = {"multiple_of": {"n": self.multiple}, **self.options, **place}
        return assert_matches(self.kernel, self.reference, shapes=[{"n": self.first}], **options)


PLANTED = [
    Planted(skip_last, 200, 1),
    Planted(read_beyond, 100, 1, ("PTX1110",)),
    Planted(forget_later_blocks, 200, 65),
    Planted(wrap_index, 300, 65),
    Planted(change_second_warp, 200, 33),
    Planted(shift_unsigned, 100, 1, (), halve, options={"inputs": negative}),
    Planted(exchange, 256, 64, ("PTX0901",), swap_warps, multiple=64),
    Planted(exchange, 128, 64, (), swap_warps, multiple=64, options={"check": "none"}, schedule="random"),
    Planted(arrive_partly, 100, 1, ("PTX0990",)),
    Planted(round_to_half, 100, 1),
    Planted(read_unwritten, 100, 33, ("PTX0910",)),
]
