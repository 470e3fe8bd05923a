"""Tensor memory: the registers of `tcgen05.ld` and `tcgen05.st`, and the row layouts of `tcgen05.mma`.

The manual shows both only as figures ("Data Movement Shape", "Data Path Layout Organization"); the order within the
shapes follows CUTLASS's copy traits, the layouts its accumulator fragments.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.isa.fragments.layout import Digit, Fragment

LANES, COLUMNS = 128, 512
_REPEATS = (1, 2, 4, 8, 16, 32, 64, 128)
_PER_REPEAT = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}


def tmem_register_count(shape: str, num: int) -> int:
    """Return how many registers per lane `.<shape>.x<num>` moves; ValueError if it does not exist."""
    if shape not in _PER_REPEAT:
        raise ValueError(f"the shape of a tensor memory access must be {', '.join(_PER_REPEAT)}, not {shape}")
    if num not in _REPEATS or num * _PER_REPEAT[shape] > 128:
        raise ValueError(f".{shape} can be repeated 1 to {128 // _PER_REPEAT[shape]} times (a power of two), not {num}")
    return num * _PER_REPEAT[shape]


def tmem_registers(shape: str, num: int, *, half_split: int = 0) -> Fragment:
    """Return the map of `.<shape>.x<num>`: rows are tensor-memory lanes and columns its columns, relative to the
    address. With `.pack::16b`, each of its columns stands for the low halves of two neighbors, 2c and 2c + 1.
    `half_split` is the immediate of `.16x32bx2`."""
    tmem_register_count(shape, num)
    match shape:
        case "32x32b":
            return Fragment((Digit(32, row=1),), (Digit(num, col=1),), 32)
        case "16x64b":
            return Fragment((Digit(2, row=8), Digit(2, col=1), Digit(8, row=1)), (Digit(num, col=2),), 32)
        case "16x128b":
            return Fragment((Digit(4, col=1), Digit(8, row=1)), (Digit(2, row=8), Digit(num, col=4)), 32)
        case "16x256b":
            elements = (Digit(2, col=1), Digit(2, row=8), Digit(num, col=8))
            return Fragment((Digit(4, col=2), Digit(8, row=1)), elements, 32)
        case _:
            return Fragment((Digit(16, row=1), Digit(2, col=half_split)), (Digit(num, col=1),), 32)


@dataclass(frozen=True, slots=True)
class Datapath:
    """A layout of accumulators: `name` is A to G; `split` parts of N are side by side in the lanes; `half` layouts use
    16 of every 32 lanes; each of `ctas` CTAs holds the same number of rows."""

    name: str
    m: int
    split: int = 1
    half: bool = False
    ctas: int = 1

    def locate(self, row: int, col: int, n: int) -> tuple[int, int, int]:
        """Return (CTA of the pair, lane, column) of an accumulator of M x n; `half` layouts may start at lane 16."""
        cta, row = divmod(row, self.m // self.ctas)
        part, column = divmod(col, n // self.split)
        if self.half:
            return cta, row // 16 * 32 + row % 16, column
        return cta, part * (LANES // self.split) + row, column

    def element(self, cta: int, lane: int, column: int, n: int) -> tuple[int, int] | None:
        """Return the (row, column) at a place, or None in lanes that the layout leaves unused."""
        first = cta * (self.m // self.ctas)
        if self.half:
            return (first + lane // 32 * 16 + lane % 32, column) if lane % 32 < 16 else None
        part, row = divmod(lane, LANES // self.split)
        return first + row, part * (n // self.split) + column


_DATAPATHS = {
    (256, 2, False, False): Datapath("A", 256, ctas=2),
    (256, 2, False, True): Datapath("A", 256, ctas=2),
    (128, 2, False, False): Datapath("B", 128, split=2, ctas=2),
    (128, 2, False, True): Datapath("C", 128, half=True, ctas=2),
    (128, 1, False, False): Datapath("D", 128),
    (128, 1, False, True): Datapath("D", 128),
    (128, 1, True, False): Datapath("D", 128),
    (128, 1, True, True): Datapath("D", 128),
    (64, 1, True, False): Datapath("E", 64, split=2),
    (64, 1, True, True): Datapath("E", 64, split=2),
    (64, 1, False, False): Datapath("F", 64, half=True),
    (64, 1, False, True): Datapath("F", 64, half=True),
    (32, 1, True, False): Datapath("G", 32, split=4),
    (32, 1, True, True): Datapath("G", 32, split=4),
}


def datapath(m: int, *, cta_group: int = 1, ws: bool = False, sparse: bool = False) -> Datapath:
    """Return the layout that a `tcgen05.mma` of this M uses for its accumulator; ValueError if there is none."""
    layout = _DATAPATHS.get((m, cta_group, ws, sparse))
    if layout is None:
        raise ValueError(f"tcgen05.mma{'.ws' if ws else ''} does not support M = {m} in cta_group {cta_group}")
    return layout
