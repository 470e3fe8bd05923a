"""Fragments of `wmma`: the manual leaves them unspecified; only the numbers of registers are fixed.

This layout is the simulator's own: a lane holds consecutive elements of the row-major matrix; if registers have room
for more, every element is held twice. A program that depends on it is wrong on hardware.
"""

from __future__ import annotations

from pyptx.isa.fragments.layout import Digit, Fragment

_LANES = 32


def wmma_fragment(rows: int, cols: int, bits: int, registers: int) -> Fragment:
    """Return the layout of a rows x cols matrix over `registers` registers per lane."""
    register_bits = max(bits, 32)
    elements, per_lane = registers * register_bits // bits, rows * cols // _LANES
    if cols % per_lane:
        raise ValueError(f"the {per_lane} elements that a lane holds of {rows} x {cols} are not all in one row")
    if elements % per_lane:
        raise ValueError(
            f"{registers} registers hold {elements} elements, but a lane has {per_lane} elements of {rows} x {cols}"
        )
    copies = (Digit(elements // per_lane),) if elements > per_lane else ()
    lanes = (Digit(cols // per_lane, col=per_lane), Digit(rows, row=1))
    return Fragment(lanes, (Digit(per_lane, col=1), *copies), bits, register_bits)
