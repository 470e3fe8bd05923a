"""Manual: Integer Arithmetic Instructions."""

from __future__ import annotations

from pyptx.isa.choices import INT16_64
from pyptx.isa.notation import form

MEANING = {
    "add": "Add two values.",
    "mul": "Multiply two values.",
}

FORMS = (
    form("add.type            d, a, b", type=INT16_64, see="integer-arithmetic-instructions-add"),
    form("add{.sat}.s32       d, a, b", sat="sat", see="integer-arithmetic-instructions-add"),
    form("mul.mode.type       d, a, b", mode="hi lo", type=INT16_64, see="integer-arithmetic-instructions-mul"),
    form("mul.wide.type       d:w.u32, a, b", type="u16", see="integer-arithmetic-instructions-mul"),
)
