"""Vector add: c = a + b, for any length.

The idea: a memory-bound kernel needs wide loads. Each thread reads four adjacent floats of each input with one 16-byte
load; the last thread, which may have fewer, processes them one by one.
"""

from __future__ import annotations

from examples.parts.example import Array, Example, Run
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import f32

THREADS, WIDTH = 256, 4
"""Eight CTAs fill an SM with 2,048 threads, which have 64 KiB of loads in flight. A B200 needs 23 KiB on each of its
148 SMs: the latency of memory, about 470 ns, times 7.26 TB/s."""


def grid(n: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    return (-(-n // (THREADS * WIDTH)), 1, 1)


def make(arch: str = "sm_80", *, cache: str | None = None, store_cache: str | None = None) -> Kernel:
    """Return the kernel for a target, with cache operators for its loads and stores."""

    @kernel(
        arch=arch, in_specs=(Tile("n", f32), Tile("n", f32)), out_specs=(Tile("n", f32),),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def vector_add(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> None:
        n = a.shape[0]
        pa, pb, pc = ptx.global_ptrs(a, b, c)
        first = (ptx.special.ctaid.x() * THREADS + ptx.special.tid.x()) * WIDTH

        # Full vectors: every tensor is 16-byte aligned, so the first element of each vector is, too.
        with ptx.if_(first + WIDTH <= n):
            x, y, z = (reg.array(f32, WIDTH) for _ in range(3))
            ptx.ld(f32, x, ptx.addr(pa, first * 4), cache=cache)
            ptx.ld(f32, y, ptx.addr(pb, first * 4), cache=cache)
            for i in range(WIDTH):
                ptx.add(f32, z[i], x[i], y[i])
            ptx.st(f32, ptx.addr(pc, first * 4), z, cache=store_cache)

        # The last n mod 4 elements.
        with ptx.else_():
            for i in ptx.range_(first, n):
                u, v = reg.scalar(f32), reg.scalar(f32)
                ptx.ld(f32, u, ptx.addr(pa, i * 4))
                ptx.ld(f32, v, ptx.addr(pb, i * 4))
                ptx.st(f32, ptx.addr(pc, i * 4), u + v)

    return vector_add


def reference(a: Array, b: Array) -> Array:
    """Return the expected result."""
    return a + b


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(Run({"n": 1}), Run({"n": 1023}), Run({"n": 1024}), Run({"n": 2050}, special=True)),
    large={"n": 1 << 26},
    sass=("LDG.E.128", "STG.E.128"),
    traffic=lambda shape: 12 * shape["n"],
    peer="add triton_add",
)

if __name__ == "__main__":
    EXAMPLE.show()
