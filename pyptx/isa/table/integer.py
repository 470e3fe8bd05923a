"""Manual: Integer Arithmetic Instructions."""

from __future__ import annotations

from pyptx.isa.choices import INT16_64
from pyptx.isa.notation import form

MEANING = {
    "add": "Add two values.",
    "sub": "Subtract one value from another.",
    "mul": "Multiply two values.",
    "mad": "Multiply two values and add a third.",
    "clmad": "Multiply without carries and add a third value without carries.",
    "mul24": "Multiply two 24-bit integers.",
    "mad24": "Multiply two 24-bit integers and add a third value.",
    "sad": "Add the absolute difference of two values to a third.",
    "div": "Divide one value by another.",
    "rem": "Compute the remainder of an integer division.",
    "abs": "Compute the absolute value.",
    "neg": "Negate a value.",
    "min": "Compute the minimum of two or three values.",
    "max": "Compute the maximum of two or three values.",
    "popc": "Count the bits that are set.",
    "clz": "Count the leading zero bits.",
    "bfind": "Find the most significant bit that is not a sign bit.",
    "fns": "Find a set bit of a mask by counting set bits from a base position.",
    "brev": "Reverse the bits.",
    "bfe": "Extract a bit field.",
    "bfi": "Insert a bit field into a copy of a value.",
    "szext": "Sign- or zero-extend the low N bits.",
    "bmsk": "Create a bit mask from a position and a width.",
    "dp4a": "Accumulate the dot product of four pairs of bytes.",
    "dp2a": "Accumulate the dot product of two 16-bit halves with two bytes.",
}
TRAITS = {
    "add": "computes:offset",
    "sub": "computes:offset",
    "mad": "computes:offset",
    "brev": "computes:pattern",
    "bfe": "computes:part",
    "bfi": "computes:pattern",
}

_SEE = "integer-arithmetic-instructions-"
_INT32_64 = "u32 u64 s32 s64"
_UNLIKE = "u32.s32 s32.u32 s32.s32"
_BYTES = "9.2,sm_107f|sm_120f"
_HALVES = "8.0,sm_90"
_20 = "2.0,sm_20"
_70 = "7.6,sm_70"
_DOT = "5.0,sm_61"

FORMS = (
    # Packed operands are registers; ptxas accepts no immediate there.
    form("add.type             d, a, b", type=INT16_64, see=_SEE + "add"),
    form("add.sat.s32          d, a, b", see=_SEE + "add"),
    form("add.type             d, a:reg, b:reg", type="u16x2 s16x2", since=_HALVES, see=_SEE + "add"),
    form("add{.sat}.type       d, a:reg, b:reg", sat="sat", type="u8x4 s8x4", since=_BYTES, see=_SEE + "add"),
    form("add.sat.u32          d, a, b", since=_BYTES, see=_SEE + "add"),
    form("add.sat.type         d, a:reg, b:reg", type="u16x2 s16x2", since=_BYTES, see=_SEE + "add"),
    form("sub.type             d, a, b", type=INT16_64, see=_SEE + "sub"),
    form("sub.sat.s32          d, a, b", see=_SEE + "sub"),
    form("sub{.sat}.type       d, a:reg, b:reg", sat="sat", type="u8x4 s8x4", since=_BYTES, see=_SEE + "sub"),
    form("mul.mode.type        d, a, b", mode="hi lo", type=INT16_64, see=_SEE + "mul"),
    form("mul.wide.u16         d:w.u32, a, b", see=_SEE + "mul"),
    form("mul.wide.s16         d:w.s32, a, b", see=_SEE + "mul"),
    form("mul.wide.u32         d:w.u64, a, b", see=_SEE + "mul"),
    form("mul.wide.s32         d:w.s64, a, b", see=_SEE + "mul"),
    form("mad.mode.type        d, a, b, c", mode="hi lo", type=INT16_64, see=_SEE + "mad"),
    form("mad.hi.sat.s32       d, a, b, c", see=_SEE + "mad"),
    form("mad.wide.u16         d:w.u32, a, b, c:.u32", see=_SEE + "mad"),
    form("mad.wide.s16         d:w.s32, a, b, c:.s32", see=_SEE + "mad"),
    form("mad.wide.u32         d:w.u64, a, b, c:.u64", see=_SEE + "mad"),
    form("mad.wide.s32         d:w.s64, a, b, c:.s64", see=_SEE + "mad"),
    # The manual names .u64 alone; ptxas also accepts .s64.
    form("clmad.mode.type      d, a, b, c", mode="hi lo", type="u64 s64", ptx=(9, 3), sm="sm_80", see=_SEE + "clmad"),
    form("mul24.mode.type      d, a, b", mode="hi lo", type="u32 s32", see=_SEE + "mul24"),
    form("mad24.mode.type      d, a, b, c", mode="hi lo", type="u32 s32", see=_SEE + "mad24"),
    form("mad24.hi.sat.s32     d, a, b, c", see=_SEE + "mad24"),
    form("sad.type             d, a, b, c", type=INT16_64, see=_SEE + "sad"),
    form("div.type             d, a, b", type=INT16_64, see=_SEE + "div"),
    form("rem.type             d, a, b", type=INT16_64, see=_SEE + "rem"),
    form("abs.type             d, a", type="s16 s32 s64", see=_SEE + "abs"),
    form("neg.type             d, a", type="s16 s32 s64", see=_SEE + "neg"),
    form("neg.s8x4             d, a:reg", since=_BYTES, see=_SEE + "neg"),
    form("min.type             d, a, b", type=INT16_64, see=_SEE + "min"),
    form("min.u16x2            d, a:reg, b:reg", since=_HALVES, see=_SEE + "min"),
    form("min{.relu}.s16x2     d, a:reg, b:reg", relu="relu", since=_HALVES, see=_SEE + "min"),
    form("min.relu.s32         d, a, b", since=_HALVES, see=_SEE + "min"),
    form("min.u8x4             d, a:reg, b:reg", since=_BYTES, see=_SEE + "min"),
    form("min{.relu}.s8x4      d, a:reg, b:reg", relu="relu", since=_BYTES, see=_SEE + "min"),
    form("max.type             d, a, b", type=INT16_64, see=_SEE + "max"),
    form("max.u16x2            d, a:reg, b:reg", since=_HALVES, see=_SEE + "max"),
    form("max{.relu}.s16x2     d, a:reg, b:reg", relu="relu", since=_HALVES, see=_SEE + "max"),
    form("max.relu.s32         d, a, b", since=_HALVES, see=_SEE + "max"),
    form("max.u8x4             d, a:reg, b:reg", since=_BYTES, see=_SEE + "max"),
    form("max{.relu}.s8x4      d, a:reg, b:reg", relu="relu", since=_BYTES, see=_SEE + "max"),
    form("popc.type            d:w.u32, a", type="b32 b64", since=_20, see=_SEE + "popc"),
    form("clz.type             d:w.u32, a", type="b32 b64", since=_20, see=_SEE + "clz"),
    form("bfind{.shiftamt}.type d:w.u32, a", shiftamt="shiftamt", type=_INT32_64, since=_20, see=_SEE + "bfind"),
    # The manual says PTX 6.0; ptxas accepts it since 5.1.
    form("fns.b32              d, mask, base, offset", ptx=(5, 1), sm="sm_30", see=_SEE + "fns"),
    form("brev.type            d, a", type="b32 b64", since=_20, see=_SEE + "brev"),
    form(
        "bfe.type             d, a, b:val[0..255].u32, c:val[0..255].u32", type=_INT32_64, since=_20, see=_SEE + "bfe"
    ),
    form(
        "bfi.type             f:w, a, b, c:val[0..255].u32, d:rval[0..255].u32",
        type="b32 b64",
        since=_20,
        see=_SEE + "bfi",
    ),
    form("szext.mode.type      d, a, b:.u32", mode="clamp wrap", type="u32 s32", since=_70, see=_SEE + "szext"),
    form("bmsk.mode.b32        d:w.u32, a:.u32, b:.u32", mode="clamp wrap", since=_70, see=_SEE + "bmsk"),
    form("dp4a.u32.u32         d, a:.u32, b:.u32, c", since=_DOT, see=_SEE + "dp4a"),
    form("dp4a.types           d:w.s32, a:.u32, b:.u32, c:.s32", types=_UNLIKE, since=_DOT, see=_SEE + "dp4a"),
    form("dp2a.mode.u32.u32    d, a:.u32, b:.u32, c", mode="lo hi", since=_DOT, see=_SEE + "dp2a"),
    form(
        "dp2a.mode.types      d:w.s32, a:.u32, b:.u32, c:.s32",
        mode="lo hi",
        types=_UNLIKE,
        since=_DOT,
        see=_SEE + "dp2a",
    ),
)
