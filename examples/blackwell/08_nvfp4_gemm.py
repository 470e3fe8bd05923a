"""nvfp4 Blackwell GEMM: c = alpha * (a * scales of a) @ (b * scales of b).T, where every 16 elements of 4 bits along K
share a factor.

The idea: half the bytes per element double the rate once more. A stage is still rows of 128 bytes, now 256 elements,
in 384 cycles. Their factors grow, though: e4m3 for every 16 elements are four words per row and stage, where mxfp8 has
one. They have a mantissa but little range: `alpha` takes the ranges of whole matrices.

The kernel is that of `05_block_scaled_gemm`; two things follow from the size of the factors. A stage takes 48 columns
of them, and the sums of two tiles leave 128: room for two stages, not for all five. And each stage loads 6 KiB of them
beside 28 KiB of operands: 90 bytes per cycle, 11 % more than the 81 that an SM takes in, so loads set the pace.

The protocol adds one mbarrier to that of `05_block_scaled_gemm`, used in the leader CTA only, for each of the two
places for factors: `free`, with one arrival by `tcgen05.commit` when the products that read them are complete. The MMA
issuer waits for the previous phase before it copies new factors there. `full` counts 68 KiB; it and `empty` have five
stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import numpy as np

from examples.parts.example import HALF, Array, Example, Run, count_gemm_flops, draw_array
from examples.parts.scales import NAN_CODE, decode_fp4, decode_scales
from examples.parts.tensor_memory import OUTSIDE
from pyptx import Kernel, Tile, ptx
from pyptx.types import u8

scaled = import_module("examples.blackwell.05_block_scaled_gemm")
GROUP = 16
"""Elements along K that share a factor."""


def _describe(step: int) -> tuple[int, int]:
    return step, ptx.tcgen05.make_instr_desc_mxf4nvf4(m=scaled.ROWS * scaled.CTAS, n=scaled.COLUMNS)


NVFP4 = scaled.Format(u8, "mxf4nvf4", "block16", GROUP // 2, _describe, stages=5, slots=2)


def make(arch: str = "sm_100a") -> Kernel:
    """Return the kernel for a target with tensor memory."""
    return scaled.make(arch, NVFP4)


def make_shape(m: int, n: int, k: int) -> Mapping[str, int]:
    """Return the sizes of all dimensions, of K in bytes with two elements each."""
    sizes: Mapping[str, int] = scaled.make_shape(m, n, k // 2, NVFP4)
    return sizes


def draw(run: Run, random: np.random.Generator) -> tuple[Array, ...]:
    """Return operands, two elements in a byte, and factors from 1/2 to 2, and alpha. With `special`, a factor of
    row 33 is NaN."""
    shape = run.shape
    operands = [draw_array(Tile(rows, "k", u8), run, random) for rows in "mn"]
    sizes = [(shape[f"{name}_blocks"], shape["words"], 4) for name in "ab"]
    factors = [random.integers(0x30, 0x41, size, np.uint8).view(np.uint32)[..., 0] for size in sizes]
    if run.special:
        factors[0][0, 5] |= NAN_CODE["ue4m3"]
    return (*operands, *factors, np.full(1, 0.25, np.float32))


def scale(pairs: Array, words: Array) -> Array:
    """Return values times their factors in f64."""
    values = decode_fp4(pairs)
    rows, depth = values.shape
    factors = decode_scales("ue4m3", words.view(np.uint8))
    return values * np.repeat(factors, GROUP, axis=1)[:rows, :depth]


def reference(a: Array, b: Array, a_scales: Array, b_scales: Array, alpha: Array) -> Array:
    """Return the expected result before rounding to bf16."""
    return alpha * (scale(a, a_scales) @ scale(b, b_scales).T)


def count_flops(shape: Mapping[str, int]) -> int:
    """Return the floating-point operations of a launch; K is in bytes."""
    return 2 * count_gemm_flops(shape)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_100a", "sm_103a"),
    runs=(
        Run(make_shape(256, 192, 256), HALF, 1e-2),
        Run(make_shape(136, 200, 1632), HALF, 1e-2, special=True, findings=OUTSIDE),
    ),
    large=make_shape(8192, 8192, 8192),
    sass=("UTMALDG.2D.2CTA", "UTCCP", "UTCOMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x64", "UTMASTG.2D"),
    draw=draw,
    flops=count_flops,
    order=scaled.EXAMPLE.order,
    peer="nvfp4_matmul",
)

if __name__ == "__main__":
    EXAMPLE.show()
