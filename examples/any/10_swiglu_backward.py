"""SwiGLU backward: the gradients of gate / (1 + exp(-gate)) * up for both inputs, in bf16 with f32 arithmetic.

With s = 1 / (1 + exp(-gate)), the gradient of `up` is dy * gate * s, and that of `gate` is
dy * up * s * (1 + gate * (1 - s)).

The idea: as in 08_swiglu.py, only bandwidth counts. Both gradients share one exponential and one division. Nothing of
the forward pass is stored: computing `s` again is cheaper than loading it.
"""

from __future__ import annotations

import math

import numpy as np

from examples.parts.arithmetic import power_of_two
from examples.parts.example import HALF, Array, Example, Run, widen
from examples.parts.vectors import ONCE, load_vector, store_vector
from pyptx import Kernel, TensorSpec, Tile, intrinsic, kernel, ptx, reg
from pyptx.types import PtxType, bf16, f32

THREADS, VECTORS = 256, 2
"""Two vectors of each input are 96 bytes in flight per thread."""
LOG2E = math.log2(math.e)


@intrinsic
def differentiate(gate: reg.Reg, up: reg.Reg, dy: reg.Reg) -> tuple[reg.Reg, reg.Reg]:
    """Return the gradients of `gate` and `up`. The approximate division, within 2 ulp, returns 0 for a divisor above
    2 ** 126: for gates below -87, where `s` is less than 2 ** -125."""
    share = ptx.div(f32, 1.0, power_of_two(gate * -LOG2E) + 1.0, approx=True)
    weighted = dy * share
    slope = ptx.fma(f32, gate, 1.0 - share, 1.0)
    return weighted * up * slope, weighted * gate


def make(
    arch: str = "sm_80", dtype: PtxType = bf16, *, threads: int = THREADS, vectors: int = VECTORS,
) -> Kernel:  # fmt: skip
    """Return the kernel for a target, of f32 or bf16."""
    width, size = 128 // dtype.bits, dtype.bits // 8
    elements = threads * vectors * width

    def grid(m: int, n: int) -> tuple[int, int, int]:
        return (-(-m * n // elements), 1, 1)

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", dtype),) * 3, out_specs=(Tile("m", "n", dtype),) * 2,
        grid=grid, block=(threads, 1, 1),
    )  # fmt: skip
    def swiglu_backward(
        gate: TensorSpec, up: TensorSpec, dy: TensorSpec, dgate: TensorSpec, dup: TensorSpec
    ) -> None:  # fmt: skip
        total = gate.shape[0] * gate.shape[1]
        first = ptx.special.ctaid.x() * elements
        *sources, target_gate, target_up = (
            ptx.mad(first, size, p, mode="wide") for p in ptx.global_ptrs(gate, up, dy, dgate, dup)
        )
        starts = [(ptx.special.tid.x() + part * threads) * width for part in range(vectors)]

        def load(start: reg.Reg, count: int, cache: str | None = None) -> list[list[reg.Reg]]:
            return [load_vector(dtype, ptx.addr(source, start * size), count, cache=cache) for source in sources]

        def store(start: reg.Reg, operands: list[list[reg.Reg]]) -> None:
            results = [differentiate(*values) for values in zip(*operands, strict=True)]
            for target, values in zip((target_gate, target_up), zip(*results, strict=True), strict=True):
                store_vector(dtype, ptx.addr(target, start * size), list(values))

        # Full CTAs: loads of all vectors, then arithmetic and stores.
        with ptx.if_(first + elements <= total):
            for start, operands in [(start, load(start, width, ONCE)) for start in starts]:
                store(start, operands)

        # The last CTA may have fewer elements, and processes them one by one.
        with ptx.else_():
            for i in ptx.range_(ptx.special.tid.x(), total - first, threads):
                store(i, load(i, 1))

    return swiglu_backward


def reference(gate: Array, up: Array, dy: Array) -> tuple[Array, Array]:
    """Return the expected gradients before rounding to bf16, in f64."""
    gate, up, dy = (widen(x) for x in (gate, up, dy))
    with np.errstate(invalid="ignore"):
        share = 1 / (1 + np.exp(-gate))
        return dy * share * up * (1 + gate * (1 - share)), dy * share * gate


SATURATED = {"PTX0993": "exp(-gate) of a gate below -88 is infinite, and what is divided by it 0"}
"""Findings of large inputs."""

EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 1, "n": 1}, HALF, 1e-6),
        Run({"m": 3, "n": 1367}, HALF, 1e-6),
        Run({"m": 4, "n": 1024}, HALF, 1e-4, 30, findings=SATURATED),
        Run({"m": 2, "n": 2100}, HALF, 1e-6, special=True),
    ),
    large={"m": 16384, "n": 14336},
    sass=("LDG.E.NA.128", "STG.E.128", "MUFU.EX2", "MUFU.RCP"),
    traffic=lambda shape: 10 * shape["m"] * shape["n"],
    peer="swiglu_backward triton_swiglu_backward",
)

if __name__ == "__main__":
    EXAMPLE.show()
