"""Manual: Extended-Precision Integer Arithmetic Instructions. The carry flag is implicit and no operand."""

from __future__ import annotations

from pyptx.isa.choices import INT16_64
from pyptx.isa.notation import form

MEANING = {
    "add.cc": "Add two values and write the carry-out.",
    "addc": "Add two values and the carry-in, and optionally write the carry-out.",
    "sub.cc": "Subtract one value from another and write the borrow-out.",
    "subc": "Subtract one value and the borrow-in from another, and optionally write the borrow-out.",
    "mad.cc": "Multiply two values, take the high or low half, add a third and write the carry-out.",
    "madc": "Multiply two values, take the high or low half, add a third and the carry-in.",
}

_SEE = "extended-precision-arithmetic-instructions-"
_TYPES = "u32 s32 u64@4.3,sm_20 s64@4.3,sm_20"

# ptxas accepts the instructions that only read the carry for 16-bit types too, and for 64-bit ones before PTX 4.3.
FORMS = (
    form("add.cc.type          d, a, b", type=_TYPES, ptx=(1, 2), see=_SEE + "add-cc"),
    form("addc.type            d, a, b", type=INT16_64, ptx=(1, 2), see=_SEE + "addc"),
    form("addc.cc.type         d, a, b", type=_TYPES, ptx=(1, 2), see=_SEE + "addc"),
    # The manual says PTX 1.2; ptxas accepts subtraction since 1.3.
    form("sub.cc.type          d, a, b", type=_TYPES, ptx=(1, 3), see=_SEE + "sub-cc"),
    form("subc.type            d, a, b", type=INT16_64, ptx=(1, 3), see=_SEE + "subc"),
    form("subc.cc.type         d, a, b", type=_TYPES, ptx=(1, 3), see=_SEE + "subc"),
    form("mad.half.cc.type     d, a, b, c", half="hi lo", type=_TYPES, ptx=(3, 0), sm="sm_20", see=_SEE + "mad-cc"),
    form("madc.half.type       d, a, b, c", half="hi lo", type=INT16_64, ptx=(3, 0), sm="sm_20", see=_SEE + "madc"),
    form("madc.half.cc.type    d, a, b, c", half="hi lo", type=_TYPES, ptx=(3, 0), sm="sm_20", see=_SEE + "madc"),
    # Not in the manual; ptxas accepts both.
    form("addc.sat.s32         d, a, b", ptx=(1, 2), see=_SEE + "addc"),
    form("madc.hi.sat.s32      d, a, b, c", ptx=(3, 0), sm="sm_20", see=_SEE + "madc"),
)
