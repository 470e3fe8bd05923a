"""Small kernels as users write them, compiled to machine code without spills."""

from __future__ import annotations

import pytest

from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg, smem
from pyptx.types import f32, s32, u32

TARGETS = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")


def vector_add(arch: str) -> Kernel:
    @kernel(arch=arch, in_specs=(Tile("N", f32), Tile("N", f32)), out_specs=(Tile("N", f32),), block=(256, 1, 1))
    def add(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        pa, pb, pc = ptx.global_ptrs(a, b, c)
        i = ptx.special.ctaid.x() * 256 + ptx.special.tid.x()
        with ptx.if_(i < a.shape[0]):
            x, y = reg.scalar(f32), reg.scalar(f32)
            ptx.ld(f32, x, ptx.addr(pa, i * 4))
            ptx.ld(f32, y, ptx.addr(pb, i * 4))
            ptx.st(f32, ptx.addr(pc, i * 4), x + y)

    return add


@intrinsic
def warp_sum(x: reg.Reg) -> reg.Reg:
    for distance in (16, 8, 4, 2, 1):
        neighbor = reg.scalar(f32)
        ptx.inst.shfl.sync.bfly.b32(neighbor, x, distance, 31, 0xFFFFFFFF)
        x = x + neighbor
    return x


def reduction(arch: str) -> Kernel:
    @kernel(arch=arch, in_specs=(Tile("N", f32),), out_specs=(Tile(1, f32),), block=(128, 1, 1))
    def reduce(a: TensorSpec, out: TensorSpec) -> None:
        pa, po = ptx.global_ptrs(a, out)
        thread, lane = ptx.special.tid.x(), ptx.special.laneid()
        total = reg.scalar(f32, 0)
        for i in ptx.range_(thread, a.shape[0], 128):
            x = reg.scalar(f32)
            ptx.ld(f32, x, ptx.addr(pa, i * 4))
            ptx.add(f32, total, total, x)
        parts = smem.alloc(f32, 4)
        mine = warp_sum(total)
        with ptx.if_(lane == 0):
            parts[thread >> 5] = mine
        ptx.named_barrier(0).sync()
        with ptx.if_(thread == 0):
            result = reg.array(f32, 4)
            ptx.inst.ld.shared.v4.f32(result, parts)
            whole = result[0] + result[1] + result[2] + result[3]
            ptx.st(f32, po, whole)

    return reduce


def transpose(arch: str) -> Kernel:
    @kernel(arch=arch, in_specs=(Tile("M", "N", s32),), out_specs=(Tile("N", "M", s32),), block=(32, 32, 1))
    def turn(a: TensorSpec, out: TensorSpec) -> None:
        rows, columns = a.shape
        pa, po = ptx.global_ptrs(a, out)
        tile = smem.alloc(s32, (32, 33))
        x, y = ptx.special.tid.x(), ptx.special.tid.y()
        left, top = ptx.ctaid_x() * 32, ptx.ctaid_y() * 32
        value = reg.scalar(s32)
        ptx.ld(s32, value, ptx.addr(pa, ((top + y) * columns + left + x) * 4))
        tile[y, x] = value
        ptx.named_barrier(0).sync()
        ptx.st(s32, ptx.addr(po, ((left + y) * rows + top + x) * 4), tile[x, y])

    return turn


def collatz(arch: str) -> Kernel:
    @kernel(arch=arch, raw_params=[("u64", "out"), ("u32", "start")])
    def steps() -> None:
        n, count = ptx.param(u32, "start"), reg.scalar(u32, 0, name="count")
        with ptx.while_(lambda: n != 1):
            with ptx.if_(n & 1 == 0):
                ptx.shr(u32, n, n, 1)
            with ptx.else_():
                ptx.mad(u32, n, n, 3, 1)
            ptx.add(u32, count, count, 1)
            ptx.break_(pred=count > 1000)
        (pointer,) = ptx.global_ptrs("out")
        ptx.st(u32, pointer, count)

    return steps


@pytest.mark.parametrize("arch", TARGETS)
@pytest.mark.parametrize(
    ("make", "shape"),
    [(vector_add, {"N": 1000}), (reduction, {"N": 999}), (transpose, {"M": 64, "N": 96}), (collatz, {})],
    ids=["vector_add", "reduction", "transpose", "collatz"],
)
def test_a_small_kernel_is_clean_and_assembles(make: object, shape: dict[str, int], arch: str) -> None:
    assert callable(make)
    kernel_object = make(arch)
    assert isinstance(kernel_object, Kernel)
    assert kernel_object.check(**shape) == []
    needs = kernel_object.resources(**shape)
    assert (needs.spill_stores, needs.spill_loads) == (0, 0)
