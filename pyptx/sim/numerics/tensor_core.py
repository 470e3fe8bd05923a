"""Which sum each tensor core makes: fraction bits, products taken at once, rounding of the result; and of which
machine instructions ptxas 13.5 makes the products that a target's tensor cores do not have.

Facts of MMA-Sim (arXiv 2511.10909), measured there on hardware. What it does not cover takes the rule of its kin:
6-bit types, sparse and weight-stationary forms, `cta_group::2`.
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
    """How products are summed: each cut `fraction` bits below the largest exponent, `step` of them at once.

    `output` is the rounding of every step's result: "f32" and "f32_13" cut to 23 and 13 fraction bits, "f16" rounds
    to nearest even.
    """

    fraction: int
    step: int
    output: str


BLOCK_FRACTION = 35
"""Fraction bits for sums of 16 block-scaled 4-bit products."""
BLOCK_RUN = 16


def rule(instruction: str, sm: int, name: str, accumulator: str = "f32", *, sparse: bool = False) -> Rule:
    """Return the rule of `mma`, `wgmma` or `tcgen05` for operands of this format on sm_`sm`.

    A sparse A is given expanded: a step spans twice as much of K.
    """
    core = CORES[sm]
    narrow = name in BYTES and ((instruction == "mma" and sm == 89) or instruction == "wgmma")
    output = "f32_13" if narrow and accumulator == "f32" else accumulator
    step = core.operand_bits // element_bits(from_name(name))
    if instruction == "wmma":
        step = min(step, WMMA_DEPTH.get(name, 16))
    return Rule(13 if narrow else core.fraction, step * (2 if sparse else 1), output)


@dataclass(frozen=True, slots=True)
class Core:
    """The tensor core of an architecture: the fraction bits it keeps below the largest exponent, how many bits of
    operands one step takes, and whether `mma` multiplies 8-bit floats without unpacking them."""

    fraction: int
    operand_bits: int
    multiplies_bytes: bool = False


_VOLTA, _TURING, _HOPPER = Core(23, 64), Core(24, 128), Core(25, 256)
CORES = {
    70: _VOLTA, 72: _VOLTA, 75: _TURING, 80: _TURING, 86: _TURING, 87: _TURING, 88: _TURING,
    89: Core(24, 128, multiplies_bytes=True), 90: _HOPPER, 100: _HOPPER, 101: _HOPPER, 103: _HOPPER, 107: _HOPPER,
    110: _HOPPER, 120: Core(25, 256, multiplies_bytes=True), 121: Core(25, 256, multiplies_bytes=True),
}  # fmt: skip
"""Every architecture that has tensor cores."""

WMMA_DEPTH = {"tf32": 4}
"""How much of K one machine instruction of `wmma` spans where that is less than the tensor core's own step."""


class Lowering(StrEnum):
    """What ptxas 13.5 makes a matrix product of."""

    MATRIX = "matrix"
    """Matrix instructions for these very types."""
    UNPACKED = "unpacked"
    """The factors become f16. Matrix instructions sum what stands in the lower halves of registers, then add what
    stands in the upper halves; the addend comes last, rounded to nearest."""
    SCALAR = "scalar"
    """Multiplications and additions of f32 by every thread."""


def lowering(instruction: str, sm: int, name: str, depth: int) -> Lowering:
    """Return what a product of operands of this format with `depth` elements of K is made of on sm_`sm`."""
    if instruction == "mma" and name in BYTES and not CORES[sm].multiplies_bytes:
        return Lowering.UNPACKED
    if instruction == "mma" and name == "f16" and depth == 4 and sm >= 80:
        return Lowering.SCALAR
    return Lowering.MATRIX
