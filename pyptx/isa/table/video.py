"""Manual: Video Instructions, scalar and SIMD. Selectors (`a.b0`, `d.h10`) are written on the operands."""

from __future__ import annotations

from itertools import product

from pyptx.isa.model import Form
from pyptx.isa.notation import form

MEANING = {
    "vadd": "Add two bytes, halves or words.",
    "vsub": "Subtract two bytes, halves or words.",
    "vabsdiff": "Compute the absolute difference of two bytes, halves or words.",
    "vmin": "Compute the minimum of two bytes, halves or words.",
    "vmax": "Compute the maximum of two bytes, halves or words.",
    "vshl": "Shift a byte, half or word left.",
    "vshr": "Shift a byte, half or word right.",
    "vmad": "Multiply two bytes, halves or words and add a third.",
    "vset": "Compare two bytes, halves or words.",
    "vadd2": "Add two pairs of halves.",
    "vsub2": "Subtract two pairs of halves.",
    "vavrg2": "Average two pairs of halves.",
    "vabsdiff2": "Compute the absolute differences of two pairs of halves.",
    "vmin2": "Compute the minimum of two pairs of halves.",
    "vmax2": "Compute the maximum of two pairs of halves.",
    "vset2": "Compare two pairs of halves.",
    "vadd4": "Add four pairs of bytes.",
    "vsub4": "Subtract four pairs of bytes.",
    "vavrg4": "Average four pairs of bytes.",
    "vabsdiff4": "Compute the absolute differences of four pairs of bytes.",
    "vmin4": "Compute the minimum of four pairs of bytes.",
    "vmax4": "Compute the maximum of four pairs of bytes.",
    "vset4": "Compare four pairs of bytes.",
}

_T = "u32 s32"
_CMP = "eq ne lt le gt ge"
_OP2 = "add min max"
_PART = "b0 b1 b2 b3 h0 h1"
_20 = "2.0,sm_20"
_30 = "3.0,sm_30"
_MASK2 = "h0 h1 h10"
_MASK4 = "b0 b1 b10 b2 b20 b21 b210 b3 b30 b31 b310 b32 b320 b321 b3210"
_HALVES = " ".join("h" + "".join(digits) for digits in product("0123", repeat=2))
_BYTES = " ".join("b" + "".join(digits) for digits in product("01234567", repeat=4) if digits != tuple("1024"))
"""ptxas reads .b1024 as a type, so those four bytes cannot be selected."""


def _scalar(name: str) -> tuple[Form, ...]:
    """Return the rows of one of vadd, vsub, vabsdiff, vmin and vmax."""
    see = "scalar-video-instructions-vadd-vsub-vabsdiff-vmin-vmax"
    head = f"{name}.dtype.atype.btype{{.sat}}"
    return (
        form(f"{head}      d:w.dtype, a:.atype^part, b:.btype^part",
             dtype=_T, atype=_T, btype=_T, sat="sat", part=_PART, since=_20, see=see),
        form(f"{head}      d:w.dtype^part, a:.atype^part, b:.btype^part, c:.dtype",
             dtype=_T, atype=_T, btype=_T, sat="sat", part=_PART, since=_20, see=see),
        form(f"{head}.op2  d:w.dtype, a:.atype^part, b:.btype^part, c:.dtype",
             dtype=_T, atype=_T, btype=_T, sat="sat", op2=_OP2, part=_PART, since=_20, see=see),
    )  # fmt: skip


def _shift(name: str) -> tuple[Form, ...]:
    """Return the rows of vshl or vshr."""
    see = "scalar-video-instructions-vshl-vshr"
    head = f"{name}.dtype.atype.u32{{.sat}}.mode"
    mode = "clamp wrap"
    return (
        form(f"{head}      d:w.dtype, a:.atype^part, b:.u32^part",
             dtype=_T, atype=_T, sat="sat", mode=mode, part=_PART, since=_20, see=see),
        form(f"{head}      d:w.dtype^part, a:.atype^part, b:.u32^part, c:.dtype",
             dtype=_T, atype=_T, sat="sat", mode=mode, part=_PART, since=_20, see=see),
        form(f"{head}.op2  d:w.dtype, a:.atype^part, b:.u32^part, c:.dtype",
             dtype=_T, atype=_T, sat="sat", mode=mode, op2=_OP2, part=_PART, since=_20, see=see),
    )  # fmt: skip


def _simd(name: str, mask: str, part: str, see: str) -> tuple[Form, ...]:
    """Return the rows of one SIMD instruction on halves or bytes; ptxas accepts registers only."""
    operands = "d:w.dtype^mask, a:reg.atype^part, b:reg.btype^part, c:reg.dtype"
    return (
        form(f"{name}.dtype.atype.btype{{.sat}}  {operands}",
             dtype=_T, atype=_T, btype=_T, sat="sat", mask=mask, part=part, since=_30, see=see),
        form(f"{name}.dtype.atype.btype.add  {operands}",
             dtype=_T, atype=_T, btype=_T, mask=mask, part=part, since=_30, see=see),
    )  # fmt: skip


_ON_HALVES = "simd-video-instructions-vadd2-vsub2-vavrg2-vabsdiff2-vmin2-vmax2"
_ON_BYTES = "simd-video-instructions-vadd4-vsub4-vavrg4-vabsdiff4-vmin4-vmax4"
_VSET = "scalar-video-instructions-vset"

FORMS = (
    *_scalar("vadd"), *_scalar("vsub"), *_scalar("vabsdiff"), *_scalar("vmin"), *_scalar("vmax"),
    *_shift("vshl"), *_shift("vshr"),
    form("vmad.dtype.atype.btype{.sat}{.scale}     d:w.dtype, {-}a:.atype^part, {-}b:.btype^part, {-}c:.dtype",
         dtype=_T, atype=_T, btype=_T, sat="sat", scale="shr7 shr15", part=_PART, since=_20,
         see="scalar-video-instructions-vmad", quirk="the product or c may be negated, not both"),
    form("vmad.dtype.atype.btype.po{.sat}{.scale}  d:w.dtype, a:.atype^part, b:.btype^part, c:.dtype",
         dtype=_T, atype=_T, btype=_T, sat="sat", scale="shr7 shr15", part=_PART, since=_20,
         see="scalar-video-instructions-vmad"),
    form("vset.atype.btype.cmp      d:w.u32, a:.atype^part, b:.btype^part",
         atype=_T, btype=_T, cmp=_CMP, part=_PART, since=_20, see=_VSET),
    form("vset.atype.btype.cmp      d:w.u32^part, a:.atype^part, b:.btype^part, c:.u32",
         atype=_T, btype=_T, cmp=_CMP, part=_PART, since=_20, see=_VSET),
    form("vset.atype.btype.cmp.op2  d:w.u32, a:.atype^part, b:.btype^part, c:.u32",
         atype=_T, btype=_T, cmp=_CMP, op2=_OP2, part=_PART, since=_20, see=_VSET),
    *_simd("vadd2", _MASK2, _HALVES, _ON_HALVES), *_simd("vsub2", _MASK2, _HALVES, _ON_HALVES),
    *_simd("vavrg2", _MASK2, _HALVES, _ON_HALVES), *_simd("vabsdiff2", _MASK2, _HALVES, _ON_HALVES),
    *_simd("vmin2", _MASK2, _HALVES, _ON_HALVES), *_simd("vmax2", _MASK2, _HALVES, _ON_HALVES),
    form("vset2.atype.btype.cmp{.add}  d:w.u32^mask, a:reg.atype^part, b:reg.btype^part, c:reg.u32",
         atype=_T, btype=_T, cmp=_CMP, add="add", mask=_MASK2, part=_HALVES, since=_30,
         see="simd-video-instructions-vset2"),
    *_simd("vadd4", _MASK4, _BYTES, _ON_BYTES), *_simd("vsub4", _MASK4, _BYTES, _ON_BYTES),
    *_simd("vavrg4", _MASK4, _BYTES, _ON_BYTES), *_simd("vabsdiff4", _MASK4, _BYTES, _ON_BYTES),
    *_simd("vmin4", _MASK4, _BYTES, _ON_BYTES), *_simd("vmax4", _MASK4, _BYTES, _ON_BYTES),
    form("vset4.atype.btype.cmp{.add}  d:w.u32^mask, a:reg.atype^part, b:reg.btype^part, c:reg.u32",
         atype=_T, btype=_T, cmp=_CMP, add="add", mask=_MASK4, part=_BYTES, since=_30,
         see="simd-video-instructions-vset4"),
)  # fmt: skip
