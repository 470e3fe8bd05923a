"""Vector accesses to global memory of f32 and bf16 values, which registers hold as f32.

Sixteen bytes per thread is the widest access on every target, and memory-bound kernels need it.
"""

from __future__ import annotations

import math

from pyptx import intrinsic, ptx, reg
from pyptx.types import PtxType, b16, b32, bf16, bf16x2, f32

VECTOR_BYTES = 16
ONCE = "L1::no_allocate"
"""The cache operator for data that the kernel reads once: lines of other data stay in L1."""


def choose_width(dtype: PtxType, length: int) -> int:
    """Return how many values one access moves so that rows of `length` values begin on its boundary."""
    return math.gcd(length, VECTOR_BYTES * 8 // dtype.bits)


@intrinsic
def load_vector(dtype: PtxType, address: object, width: int, *, cache: str | None = None) -> list[reg.Reg]:
    """Load `width` adjacent values and return them as f32."""
    if dtype == f32:
        return ptx.ld(f32, address, vec=width, cache=cache) if width > 1 else [ptx.ld(f32, address, cache=cache)]
    if width == 1:
        return [widen_half(ptx.ld(b16, address, cache=cache))]
    pairs = ptx.ld(b32, address, vec=width // 2, cache=cache) if width > 2 else [ptx.ld(b32, address, cache=cache)]
    return [value for pair in pairs for value in widen_pair(pair)]


@intrinsic
def store_vector(
    dtype: PtxType, address: object, values: list[reg.Reg], *, cache: str | None = None
) -> None:  # fmt: skip
    """Store adjacent values, rounded to `dtype`."""
    if dtype == f32:
        words = values
    elif len(values) == 1:
        words = [ptx.cvt(bf16, f32, values[0], rounding="rn")]
    else:
        words = [pack(low, high) for low, high in zip(values[::2], values[1::2], strict=True)]
    stored = f32 if dtype == f32 else b16 if len(values) == 1 else b32
    ptx.st(stored, address, words if len(words) > 1 else words[0], cache=cache)


def pack(low: reg.Reg, high: reg.Reg) -> reg.Reg:
    """Return two f32 values rounded to bf16 in one register, `low` in its lower half."""
    return ptx.cvt(bf16x2, f32, reg.alloc(bf16x2), [high, low], rounding="rn")


def widen_half(half: reg.Reg) -> reg.Reg:
    """Return a bf16 value as f32: bf16 is the upper half of f32."""
    return ptx.mov(b32, reg.alloc(f32), [reg.scalar(b16, 0), half])


def widen_pair(pair: reg.Reg) -> tuple[reg.Reg, reg.Reg]:
    """Return the two bf16 values of a register as f32."""
    low, high = reg.alloc(f32), reg.alloc(f32)
    ptx.shl("b32", low, pair, 16)
    ptx.and_("b32", high, pair, 0xFFFF0000)
    return low, high
