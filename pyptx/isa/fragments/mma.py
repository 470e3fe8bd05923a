"""Fragments of `mma.sync` ("Matrix multiply-accumulate operation using mma instruction"), dense and sparse.

A sparse A is the dense fragment of its stored half: `mma_a(m, k // 2, …)`.
"""

from __future__ import annotations

from pyptx.isa.fragments.layout import Digit, Fragment
from pyptx.types import PtxType

_QUAD, _GROUP = 4, 8
"""Lanes of a group, and groups of a warp: lane = 4 * group + lane in the group."""


def mma_a(m: int, k: int, bits: int) -> Fragment:
    """Return the M x K operand A, row-major, M 8 or 16, with elements of `bits` (see `element_bits`)."""
    packed = max(32 // bits, 1)
    return Fragment(
        lanes=(Digit(_QUAD, col=packed), Digit(_GROUP, row=1)),
        elements=(
            Digit(packed, col=1),
            Digit(_count_eights("M", m), row=8),
            Digit(_count_steps(k, packed), col=_QUAD * packed),
        ),
        bits=bits,
        register_bits=max(bits, 32),
    )


def mma_b(k: int, n: int, bits: int) -> Fragment:
    """Return the K x N operand B, column-major, N a multiple of 8 (a single `mma` has 8)."""
    packed = max(32 // bits, 1)
    return Fragment(
        lanes=(Digit(_QUAD, row=packed), Digit(_GROUP, col=1)),
        elements=(
            Digit(packed, row=1),
            Digit(_count_steps(k, packed), row=_QUAD * packed),
            Digit(_count_eights("N", n), col=8),
        ),
        bits=bits,
        register_bits=max(bits, 32),
    )


def mma_accumulator(m: int, n: int, dtype: PtxType) -> Fragment:
    """Return C or D: two neighbors per row, M 8 or 16, N a multiple of 8 (a single `mma` has 8). 16-bit elements are
    packed."""
    return Fragment(
        lanes=(Digit(_QUAD, col=2), Digit(_GROUP, row=1)),
        elements=(Digit(2, col=1), Digit(_count_eights("M", m), row=8), Digit(_count_eights("N", n), col=8)),
        bits=dtype.bits,
        register_bits=max(dtype.bits, 32),
    )


def volta_a(layout: str) -> Fragment:
    """Return A of `mma.m8n8k4` with f16 inputs: four products at once, each by lanes 4i … 4i+3 and 4i+16 … 4i+19; the
    matrix index of a position selects the product."""
    if layout == "row":
        return Fragment((Digit(4, row=1), Digit(4, matrix=1), Digit(2, row=4)), (Digit(4, col=1),), 16)
    return Fragment((Digit(4, col=1), Digit(4, matrix=1), Digit(2, row=4)), (Digit(4, row=1),), 16)


def volta_b(layout: str) -> Fragment:
    """Return B of `mma.m8n8k4` with f16 inputs."""
    if layout == "row":
        return Fragment((Digit(4, row=1), Digit(4, matrix=1), Digit(2, col=4)), (Digit(4, col=1),), 16)
    return Fragment((Digit(4, col=1), Digit(4, matrix=1), Digit(2, col=4)), (Digit(4, row=1),), 16)


def volta_accumulator(dtype: PtxType) -> Fragment:
    """Return C or D of `mma.m8n8k4` with f16 inputs, of f16 or f32."""
    if dtype.bits == 16:
        return Fragment((Digit(4, row=1), Digit(4, matrix=1), Digit(2, row=4)), (Digit(8, col=1),), 16)
    return Fragment(
        lanes=(Digit(2, row=1), Digit(2, col=2), Digit(4, matrix=1), Digit(2, row=4)),
        elements=(Digit(2, col=1), Digit(2, row=2), Digit(2, col=4)),
        bits=32,
    )


def _count_eights(dimension: str, size: int) -> int:
    if size < 8 or size % 8:
        raise ValueError(f"{dimension} of a fragment must be a multiple of 8, got {size}")
    return size // 8


def _count_steps(k: int, packed: int) -> int:
    if k < _QUAD * packed or k % (_QUAD * packed):
        raise ValueError(
            f"K of a fragment with {packed} elements per register must be a multiple of {_QUAD * packed}, got {k}"
        )
    return k // (_QUAD * packed)
