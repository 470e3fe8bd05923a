"""SwiGLU: y = gate / (1 + exp(-gate)) * up, in bf16 with f32 arithmetic, for matrices of any size.

The idea: no value is used twice, so only bandwidth counts. Each thread issues all its 16-byte loads before it uses the
first, and `L1::no_allocate` keeps lines that nobody reads again out of L1. Threads take adjacent vectors, so that a
warp's access is 512 contiguous bytes.
"""

from __future__ import annotations

import math

import numpy as np

from examples.parts.arithmetic import power_of_two
from examples.parts.example import HALF, Array, Example, Run
from examples.parts.vectors import ONCE, load_vector, store_vector
from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg
from pyptx.types import PtxType, bf16, f32

THREADS, VECTORS = 256, 2
"""Two vectors of each input are 64 bytes in flight per thread: 128 KiB per SM with 2,048 threads."""
LOG2E = math.log2(math.e)


@intrinsic
def combine(gate: reg.Reg, up: reg.Reg) -> reg.Reg:
    """Return gate / (1 + exp(-gate)) * up. The approximate division, within 2 ulp, returns 0 for a divisor above
    2 ** 126: for gates below -87, where the quotient is less than 2 ** -119."""
    return ptx.div(f32, gate, power_of_two(gate * -LOG2E) + 1.0, approx=True) * up


def make(
    arch: str = "sm_80", dtype: PtxType = bf16, *, threads: int = THREADS, vectors: int = VECTORS,
    cache: str | None = ONCE, store_cache: str | None = None,
) -> Kernel:  # fmt: skip
    """Return the kernel for a target, of f32 or bf16."""
    width, size = 128 // dtype.bits, dtype.bits // 8
    elements = threads * vectors * width

    def grid(m: int, n: int) -> tuple[int, int, int]:
        return (-(-m * n // elements), 1, 1)

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", dtype), Tile("m", "n", dtype)), out_specs=(Tile("m", "n", dtype),),
        grid=grid, block=(threads, 1, 1),
    )  # fmt: skip
    def swiglu(gate: TensorSpec, up: TensorSpec, y: TensorSpec) -> None:
        total = gate.shape[0] * gate.shape[1]
        pg, pu, py = ptx.global_ptrs(gate, up, y)
        first = ptx.special.ctaid.x() * elements
        sources, target = (
            [ptx.mad(first, size, p, mode="wide") for p in (pg, pu)],
            ptx.mad(first, size, py, mode="wide"),
        )
        starts = [(ptx.special.tid.x() + part * threads) * width for part in range(vectors)]

        # Full CTAs: loads of all vectors, then arithmetic and stores.
        is_full = first + elements <= total
        with ptx.if_(is_full):
            operands = [
                [load_vector(dtype, ptx.addr(source, start * size), width, cache=cache) for source in sources]
                for start in starts
            ]
            for start, pair in zip(starts, operands, strict=True):
                results = [combine(*values) for values in zip(*pair, strict=True)]
                store_vector(dtype, ptx.addr(target, start * size), results, cache=store_cache)

        # The last CTA may have fewer elements, and processes them one by one.
        with ptx.else_():
            for i in ptx.range_(ptx.special.tid.x(), total - first, threads):
                (g,), (u,) = (load_vector(dtype, ptx.addr(source, i * size), 1) for source in sources)
                store_vector(dtype, ptx.addr(target, i * size), [combine(g, u)])

    return swiglu


def reference(gate: Array, up: Array) -> Array:
    """Return the expected result before rounding to bf16, in f64."""
    wide = gate.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return wide / (1 + np.exp(-wide)) * up.astype(np.float64)


SATURATED = {"PTX0993": "exp(-gate) of a gate below -88 is infinite, and what is divided by it 0"}
"""Findings of large inputs."""

EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 1, "n": 1}, HALF, 1e-38),
        Run({"m": 3, "n": 1367}, HALF, 1e-38),
        Run({"m": 4, "n": 1024}, HALF, 1e-30, 30, findings=SATURATED),
        Run({"m": 2, "n": 2100}, HALF, 1e-38, special=True),
    ),
    large={"m": 16384, "n": 14336},
    sass=("LDG.E.NA.128", "STG.E.128", "MUFU.EX2", "MUFU.RCP"),
    traffic=lambda shape: 6 * shape["m"] * shape["n"],
    peer="swiglu triton_swiglu",
)

if __name__ == "__main__":
    EXAMPLE.show()
