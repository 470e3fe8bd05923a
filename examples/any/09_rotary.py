"""Rotary embedding: y[h, p, :] is x[h, p, :] rotated by the angles of position p, in bf16 with f32 arithmetic.

Element i of the first half and element i of the second half are a point in the plane: y1 = x1 * cos - x2 * sin and
y2 = x2 * cos + x1 * sin, for the cosine and sine [p, i] of two tables (`make_tables`). The inverse of a rotation is its
transpose, so the gradient is the same kernel with the sine negated.

The idea: a position has the same angles in all heads. A thread keeps the cosines and sines of one vector and rotates
that vector in four heads. The tables have twice the bytes of a head in bf16, so four heads per read, and L2 for the
other heads, make them cheap. Each thread issues all its loads before it uses the first.
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import HALF, Array, Example, Run, draw_array, widen
from examples.parts.vectors import ONCE, choose_width, load_vector, store_vector
from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg
from pyptx.types import PtxType, bf16, f32

THREADS, HEADS = 256, 4
"""Four heads are 128 bytes of `x` in flight per thread."""
BASE = 10000.0
"""Angles per position fall from 1 to almost 1 / BASE."""


@intrinsic
def rotate(
    first: list[reg.Reg], second: list[reg.Reg], cosines: list[reg.Reg], sines: list[reg.Reg]
) -> tuple[list[reg.Reg], list[reg.Reg]]:
    """Return both halves, rotated."""
    pairs = [*zip(first, second, cosines, sines, strict=True)]
    return (
        [ptx.fma(f32, a, cosine, -(b * sine)) for a, b, cosine, sine in pairs],
        [ptx.fma(f32, b, cosine, a * sine) for a, b, cosine, sine in pairs],
    )


def make(arch: str = "sm_80", dtype: PtxType = bf16, *, threads: int = THREADS, heads: int = HEADS) -> Kernel:
    """Return the kernel for a target, of f32 or bf16."""
    size = dtype.bits // 8

    def grid(h: int, s: int, d: int, half: int) -> tuple[int, int, int]:
        if d != 2 * half:
            raise ValueError(f"the tables must have half of the {d} columns of a head; found {half}")
        return (-(-s * half // (choose_width(dtype, half) * threads)), -(-h // heads), 1)

    @kernel(
        arch=arch, in_specs=(Tile("h", "s", "d", dtype), Tile("s", "half", f32), Tile("s", "half", f32)),
        out_specs=(Tile("h", "s", "d", dtype),), grid=grid, block=(threads, 1, 1),
    )  # fmt: skip
    def rotary(x: TensorSpec, cos: TensorSpec, sin: TensorSpec, y: TensorSpec) -> None:
        (count, length, dim), half = x.shape, cos.shape[1]
        width = choose_width(dtype, half)
        px, pcos, psin, py = ptx.global_ptrs(x, cos, sin, y)
        # Vector `item` of a table is vector item % (half / width) of the position item // (half / width).
        item = ptx.special.ctaid.x() * threads + ptx.special.tid.x()
        first_head = ptx.special.ctaid.y() * heads
        offset = (item + item // (half // width) * (half // width)) * (width * size)
        source, target = (ptx.mad(first_head, length * dim * size, p, mode="wide") + offset for p in (px, py))

        def find(base: reg.Reg, head: int | reg.Reg, part: int) -> object:
            """Return the address of the thread's vector in a half of a head, counted from the first one."""
            if isinstance(head, int):
                return ptx.addr(base, (head * length * dim + part * half) * size)
            return ptx.addr(ptx.mad(head, length * dim * size, base, mode="wide"), part * half * size)

        def load(head: int | reg.Reg) -> list[list[reg.Reg]]:
            return [load_vector(dtype, find(source, head, part), width, cache=ONCE) for part in range(2)]

        with ptx.if_(item < length * half // width):
            step = min(width, 4)  # Four f32 are 16 bytes.
            angles = [
                [value for i in range(0, width, step) for value in load_vector(f32, ptx.addr(base, i * 4), step)]
                for base in (ptx.mad(item, width * 4, p, mode="wide") for p in (pcos, psin))
            ]

            def store(head: int | reg.Reg, halves: list[list[reg.Reg]]) -> None:
                for part, values in enumerate(rotate(*halves, *angles)):
                    store_vector(dtype, find(target, head, part), values)

            # Full groups of heads: loads of all vectors, then arithmetic and stores.
            with ptx.if_(first_head + heads <= count):
                for head, halves in enumerate([load(head) for head in range(heads)]):
                    store(head, halves)

            # The last group may have fewer heads, and rotates them one by one.
            with ptx.else_():
                for head in ptx.range_(0, count - first_head):
                    store(head, load(head))

    return rotary


def make_tables(length: int, dim: int, base: float = BASE) -> tuple[Array, Array]:
    """Return the cosines and sines, (length, dim / 2) in f32, for a head dimension."""
    angles = np.outer(np.arange(length), base ** (-np.arange(0, dim, 2) / dim))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def draw(run: Run, random: np.random.Generator) -> tuple[Array, ...]:
    """Return random heads, and the tables of their length and dimension."""
    return draw_array(make().in_specs[0], run, random), *make_tables(run.shape["s"], run.shape["d"])


def reference(x: Array, cos: Array, sin: Array) -> Array:
    """Return the expected result before rounding to bf16, in f64."""
    a, b = np.split(widen(x), 2, axis=2)
    with np.errstate(invalid="ignore"):
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=2)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"h": 1, "s": 1, "d": 2, "half": 1}, HALF, 1e-6),
        Run({"h": 4, "s": 100, "d": 128, "half": 64}, HALF, 1e-6),
        Run({"h": 6, "s": 67, "d": 100, "half": 50}, HALF, 1e-6),
        Run({"h": 5, "s": 33, "d": 64, "half": 32}, HALF, 1e-6, special=True),
    ),
    large={"h": 128, "s": 4096, "d": 128, "half": 64},
    sass=("LDG.E.NA.128", "STG.E.128"),
    draw=draw,
    traffic=lambda shape: 4 * shape["s"] * (shape["h"] * shape["d"] + 2 * shape["half"]),
    peer="rotary triton_rotary",
)

if __name__ == "__main__":
    EXAMPLE.show()
