"""Manual: Logic and Shift Instructions."""

from __future__ import annotations

from pyptx.isa.choices import BITS16_64
from pyptx.isa.notation import form

MEANING = {
    "and": "Bitwise AND of two values, or AND of two predicates.",
    "or": "Bitwise OR of two values, or OR of two predicates.",
    "xor": "Bitwise exclusive OR of two values, or of two predicates.",
    "not": "Bitwise complement, or the negation of a predicate.",
    "cnot": "One if the value is zero, else zero.",
    "lop3": "Compute any bitwise function of three values, specified by its truth table.",
    "shf": "Shift two concatenated words and keep one word.",
    "shl": "Shift left, filling with zeros.",
    "shr": "Shift right, filling with the sign bit or zeros.",
}
TRAITS = {
    "and": "computes:bitwise",
    "or": "computes:bitwise",
    "xor": "computes:bitwise",
    "not": "computes:bitwise",
    "lop3": "computes:bitwise",
    "shf": "computes:pattern",
    "shr": "computes:part",
}

_SEE = "logic-and-shift-instructions-"
_SHIFT_RIGHT = "b16 b32 b64 u16 u32 u64 s16 s32 s64"

FORMS = (
    form("and.pred          d, {!}a, {!}b", see=_SEE + "and"),
    form("and.type          d, a, b", type=BITS16_64, see=_SEE + "and"),
    form("or.pred           d, {!}a, {!}b", see=_SEE + "or"),
    form("or.type           d, a, b", type=BITS16_64, see=_SEE + "or"),
    form("xor.pred          d, {!}a, {!}b", see=_SEE + "xor"),
    form("xor.type          d, a, b", type=BITS16_64, see=_SEE + "xor"),
    form("not.pred          d, {!}a", see=_SEE + "not"),
    form("not.type          d, a", type=BITS16_64, see=_SEE + "not"),
    form("cnot.type         d, a", type=BITS16_64, see=_SEE + "cnot"),
    form("lop3.b32          d:w_, a, b, c, immLut:imm", since="4.3,sm_50", see=_SEE + "lop3"),
    form("lop3.bool.b32     d:w_|p:w.pred, a, b, c, immLut:imm, {!}q:.pred",
         bool="or and", since="8.2,sm_70", see=_SEE + "lop3"),
    form("shf.dir.mode.b32  d, a, b, c:.u32", dir="l r", mode="clamp wrap", since="3.1,sm_32", see=_SEE + "shf"),
    form("shl.type          d, a, b:.u32", type=BITS16_64, see=_SEE + "shl"),
    form("shr.type          d, a, b:.u32", type=_SHIFT_RIGHT, see=_SEE + "shr"),
)  # fmt: skip
