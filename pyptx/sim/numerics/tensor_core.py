"""How each tensor core sums: fraction bits, products per step, rounding of the result. Also how ptxas 13.5 lowers
products that a target's tensor cores do not support.

The facts are from MMA-Sim (arXiv 2511.10909), which measured them on hardware. Forms that it does not cover use the
rule of a related form: 6-bit types, sparse and weight-stationary forms, `cta_group::2`. `mma` and `wgmma`, dense
and sparse, are compared with an H200 (`tools.conformance` and its `engines`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pyptx.isa.fragments import element_bits
from pyptx.numbers import FORMATS, Kind
from pyptx.types import from_name

BYTES = tuple(form.name for form in FORMATS.values() if form.kind is Kind.FLOAT and form.bits == 8)


@dataclass(frozen=True, slots=True)
class Rule:
    """How products are summed: `step` at once, each truncated `fraction` bits below the largest exponent.

    `output` is the rounding after each step: "f32" and "f32_13" truncate to 23 and 13 fraction bits, "f16" rounds to
    nearest even.
    """

    fraction: int
    step: int
    output: str
    counts_zeros: bool = True
    """Whether zero factors bound the exponents of other products. A zero factor or addend then has the exponent of the
    smallest normal f32; otherwise a zero addend has a smaller one."""


BLOCK_FRACTION = 35
"""Fraction bits for sums of 16 block-scaled 4-bit products."""
BLOCK_RUN = 16


def select_rule(instruction: str, sm: int, name: str, accumulator: str = "f32", *, sparse: bool = False) -> Rule:
    """Return the rule of `mma`, `wmma`, `wgmma` or `tcgen05` for operands of a format on sm_`sm`.

    The elements of a sparse A are already expanded, so that a step spans twice as much of K.
    """
    core = CORES[sm]
    narrow = name in BYTES and ((instruction == "mma" and sm == 89) or instruction == "wgmma")
    output = "f32_13" if narrow and accumulator == "f32" else accumulator
    step = core.operand_bits // element_bits(from_name(name))
    if instruction == "wmma":
        step = min(step, WMMA_DEPTH.get(name, 16))
    return Rule(
        13 if narrow else core.fraction, step * (2 if sparse else 1), output, instruction != "wgmma" and not sparse
    )


@dataclass(frozen=True, slots=True)
class Core:
    """The tensor core of an architecture: its fraction bits below the largest exponent, the operand bits per step, and
    whether `mma` multiplies 8-bit floats without unpacking them."""

    fraction: int
    operand_bits: int
    multiplies_bytes: bool = False


_VOLTA, _TURING, _HOPPER = Core(23, 64), Core(24, 128), Core(25, 256)
CORES = {
    70: _VOLTA, 72: _VOLTA, 75: _TURING, 80: _TURING, 86: _TURING, 87: _TURING, 88: _TURING,
    89: Core(24, 128, multiplies_bytes=True), 90: _HOPPER, 100: _HOPPER, 101: _HOPPER, 103: _HOPPER, 107: _HOPPER,
    110: _HOPPER, 120: Core(25, 256, multiplies_bytes=True), 121: Core(25, 256, multiplies_bytes=True),
}  # fmt: skip
"""The tensor cores by architecture."""

WMMA_DEPTH = {"tf32": 4}
"""The extent along K of one machine instruction of `wmma`, if less than the tensor core's step."""


class Lowering(StrEnum):
    """How ptxas 13.5 lowers a matrix product."""

    MATRIX = "matrix"
    """To matrix instructions for the same types."""
    UNPACKED = "unpacked"
    """To matrix instructions on factors unpacked to f16. They sum the products of the registers' lower halves, then
    those of the upper halves; the addend comes last, rounded to nearest."""
    SCALAR = "scalar"
    """To f32 multiplications and additions in each thread."""


def select_lowering(instruction: str, sm: int, name: str, depth: int) -> Lowering:
    """Return how a product of operands of a format, with `depth` elements along K, is lowered on sm_`sm`."""
    if instruction == "mma" and name in BYTES and not CORES[sm].multiplies_bytes:
        return Lowering.UNPACKED
    if instruction == "mma" and name == "f16" and depth == 4 and sm >= 80:
        return Lowering.SCALAR
    return Lowering.MATRIX
