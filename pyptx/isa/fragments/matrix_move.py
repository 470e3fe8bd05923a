"""Fragments that `ldmatrix`, `stmatrix` and `movmatrix` move, and which lane supplies the address of each row.

Rows and columns are those in shared memory: a row is at one address. The manual has figures only for the 8-bit forms;
there the order within a lane follows CUTLASS's copy traits.
"""

from __future__ import annotations

from pyptx.isa.fragments.layout import Digit, Fragment

_WORDS = (Digit(4, col=2), Digit(8, row=1)), (Digit(2, col=1),)
_WORDS_TRANSPOSED = (Digit(4, row=2), Digit(8, col=1)), (Digit(2, row=1),)


def ldmatrix(shape: str, count: int, *, trans: bool = False) -> Fragment:
    """Return the registers that `ldmatrix.<shape>.x<count>` loads: `m8n8` of 16 bits, `m16n16` (always transposed) and
    `m8n16` of bytes. The matrix index of a position counts the loaded matrices; narrower elements fill a byte's low
    bits."""
    match shape:
        case "m8n8":
            return _make_fragment(count, trans)
        case "m8n16" if not trans:
            return Fragment((Digit(4, col=4), Digit(8, row=1)), (Digit(4, col=1), _make_matrix_digit(count)), 8)
        case "m16n16" if trans and count in (1, 2):
            elements = (Digit(2, row=1), Digit(2, col=8), Digit(2, row=2), _make_matrix_digit(count))
            return Fragment((Digit(4, row=4), Digit(8, col=1)), elements, 8)
        case _:
            raise ValueError(f"there is no ldmatrix.{shape}.x{count}{'.trans' if trans else ''}")


def stmatrix(shape: str, count: int, *, trans: bool = False) -> Fragment:
    """Return the registers that `stmatrix.<shape>.x<count>` stores: `m8n8` of 16 bits; `m16n8` of bytes, always
    transposed, so that memory has 8 rows of 16 bytes."""
    match shape:
        case "m8n8":
            return _make_fragment(count, trans)
        case "m16n8" if trans:
            elements = (Digit(2, row=1), Digit(2, col=8), _make_matrix_digit(count))
            return Fragment((Digit(4, row=2), Digit(8, col=1)), elements, 8)
        case _:
            raise ValueError(f"there is no stmatrix.{shape}.x{count}{'.trans' if trans else ''}")


def ldmatrix_row_lane(shape: str, matrix: int, row: int) -> int:
    """Return the lane with the address of this row of this matrix."""
    return matrix * (16 if shape == "m16n16" else 8) + row


def stmatrix_row_lane(matrix: int, row: int) -> int:
    """Return the lane with the address of this row of this matrix."""
    return matrix * 8 + row


def movmatrix_source(lane: int, element: int) -> tuple[int, int]:
    """Return the (lane, element) whose 16 bits `movmatrix.trans` moves into this lane's element."""
    group, quad = lane // 4, lane % 4
    return (2 * quad + element) * 4 + group // 2, group % 2


def _make_fragment(count: int, trans: bool) -> Fragment:
    lanes, elements = _WORDS_TRANSPOSED if trans else _WORDS
    return Fragment(lanes, (*elements, _make_matrix_digit(count)), 16)


def _make_matrix_digit(count: int) -> Digit:
    if count not in (1, 2, 4):
        raise ValueError(f"the number of matrices must be x1, x2 or x4, not x{count}")
    return Digit(count, matrix=1)
