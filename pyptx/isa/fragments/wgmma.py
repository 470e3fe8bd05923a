"""Fragments of `wgmma.mma_async` ("Register Fragments"): warp w of the warpgroup holds rows 16w … 16w+15."""

from __future__ import annotations

from dataclasses import replace

from pyptx.isa.fragments.layout import Digit, Fragment
from pyptx.isa.fragments.mma import mma_a, mma_accumulator
from pyptx.types import PtxType

_WARPS = Digit(4, row=16)


def wgmma_a(k: int, bits: int) -> Fragment:
    """Return the 64 x K operand A in registers. A sparse A is the fragment of its stored half, `wgmma_a(k // 2, …)`."""
    return _repeat_for_warps(mma_a(16, k, bits))


def wgmma_accumulator(n: int, dtype: PtxType) -> Fragment:
    """Return the 64 x N accumulator D; 16-bit elements are packed two to a register."""
    return _repeat_for_warps(mma_accumulator(16, n, dtype))


def _repeat_for_warps(warp: Fragment) -> Fragment:
    return replace(warp, lanes=(*warp.lanes, _WARPS))
