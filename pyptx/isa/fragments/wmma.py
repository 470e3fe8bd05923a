"""Fragments of `wmma`: the manual leaves them unspecified, only the numbers of registers are fixed.

The layout here is the simulator's own: a lane holds consecutive elements of the row-major matrix; where registers have
room for more, every element is held twice. A program that depends on it is wrong on hardware.
"""

from __future__ import annotations

from math import prod

from pyptx.isa.fragments.layout import Digit, Fragment

_LANES = 32


def wmma_fragment(rows: int, cols: int, bits: int, registers: int) -> Fragment:
    """Return the layout of a rows x cols matrix over `registers` registers per lane."""
    register_bits = max(bits, 32)
    held, per_lane = registers * register_bits // bits, rows * cols // _LANES
    if held % per_lane:
        raise ValueError(f"{registers} registers hold {held} elements, a lane has {per_lane} of {rows} x {cols}")
    elements, rest = _take(rows, cols, per_lane)
    copies = (Digit(held // per_lane),) if held > per_lane else ()
    return Fragment(tuple(rest), (*elements, *copies), bits, register_bits)


def _take(rows: int, cols: int, count: int) -> tuple[list[Digit], list[Digit]]:
    """Cut the row-major order of a matrix into the first `count` elements and the steps between such runs."""
    inner = min(count, cols)
    elements = [Digit(inner, col=1), *([Digit(count // cols, row=1)] if count > cols else [])]
    lanes = [Digit(cols // inner, col=inner)] if inner < cols else []
    step = max(count // cols, 1)
    lanes.append(Digit(rows // step, row=step))
    assert prod(digit.size for digit in lanes) * count == rows * cols
    return elements, lanes
