"""Manual: Floating-Point Instructions (single and double precision)."""

from __future__ import annotations

from pyptx.isa.choices import FTZ, RND
from pyptx.isa.notation import form

MEANING = {
    "testp": "Test a floating-point value's properties.",
    "copysign": "Copy the sign of one value to another.",
    "fma": "Multiply two values and add a third, rounding once.",
    "rcp": "Compute the reciprocal.",
    "sqrt": "Compute the square root.",
    "rsqrt": "Compute the reciprocal of the square root.",
    "sin": "Compute the sine.",
    "cos": "Compute the cosine.",
    "lg2": "Compute the base-2 logarithm.",
    "ex2": "Raise 2 to a power.",
    "tanh": "Compute the hyperbolic tangent.",
}

_SEE = "floating-point-instructions-"
_KINDS = "finite infinite number notanumber normal subnormal"
_PAIR = "8.6,sm_100"
_20 = "2.0,sm_20"
_F32_RND = "rn rz rm@2.0,sm_20 rp@2.0,sm_20"
"""Rounding of f32 sums and products: up and down came with sm_20."""
_DIRECTED = "rn rz@2.0,sm_20 rm@2.0,sm_20 rp@2.0,sm_20"
"""Rounding of f64 division and roots: all but the nearest came with sm_20. The manual says PTX 1.4 for the nearest of
division and square roots; ptxas accepts it in every version."""
_UNMARKED = ((1, 4), "")
"""Before PTX 1.4 these had no .approx or rounding modifier; ptxas still reads such modules."""

FORMS = (
    form("testp.op.type                 p:w.pred, a", op=_KINDS, type="f32 f64", since=_20, see=_SEE + "testp"),
    form("copysign.type                 d, a, b", type="f32 f64", since=_20, see=_SEE + "copysign"),
    form("add{.rnd}{.ftz}{.sat}.f32     d, a, b", rnd=_F32_RND, ftz=FTZ, sat="sat", see=_SEE + "add"),
    form("add{.rnd}{.ftz}.f32x2         d, a:reg, b:reg", rnd=RND, ftz=FTZ, since=_PAIR, see=_SEE + "add"),
    form("add{.rnd}.f64                 d, a, b", rnd=RND, sm="sm_13", see=_SEE + "add"),
    form("sub{.rnd}{.ftz}{.sat}.f32     d, a, b", rnd=_F32_RND, ftz=FTZ, sat="sat", see=_SEE + "sub"),
    form("sub{.rnd}{.ftz}.f32x2         d, a:reg, b:reg", rnd=RND, ftz=FTZ, since=_PAIR, see=_SEE + "sub"),
    form("sub{.rnd}.f64                 d, a, b", rnd=RND, sm="sm_13", see=_SEE + "sub"),
    form("mul{.rnd}{.ftz}{.sat}.f32     d, a, b", rnd=_F32_RND, ftz=FTZ, sat="sat", see=_SEE + "mul"),
    form("mul{.rnd}{.ftz}.f32x2         d, a:reg, b:reg", rnd=RND, ftz=FTZ, since=_PAIR, see=_SEE + "mul"),
    form("mul{.rnd}.f64                 d, a, b", rnd=RND, sm="sm_13", see=_SEE + "mul"),
    form("fma.rnd{.ftz}{.sat}.f32       d, a, b, c", rnd=RND, ftz="ftz", sat="sat", since=_20, see=_SEE + "fma"),
    form("fma.rnd{.ftz}.f32x2           d, a:reg, b:reg, c:reg", rnd=RND, ftz="ftz", since=_PAIR, see=_SEE + "fma"),
    form("fma.rnd.f64                   d, a, b, c", rnd=RND, since="1.4,sm_13", see=_SEE + "fma"),
    # ptxas accepts mad.f32 without rounding through PTX 3.1, and on targets before sm_20 in every version.
    form("mad{.ftz}{.sat}.f32           d, a, b, c", ftz=FTZ, sat="sat", removed=((3, 2), "sm_20"), see=_SEE + "mad"),
    form("mad.f64                       d, a, b, c", removed=_UNMARKED, see=_SEE + "mad"),
    form("mad.rnd{.ftz}{.sat}.f32       d, a, b, c", rnd=RND, ftz="ftz", sat="sat", since=_20, see=_SEE + "mad"),
    form("mad.rnd.f64                   d, a, b, c", rnd=RND, sm="sm_13", see=_SEE + "mad"),
    form("div.type                      d, a, b", type="f32 f64", removed=_UNMARKED, see=_SEE + "div"),
    form("div.approx{.ftz}.f32          d, a, b", ftz="ftz", ptx=(1, 4), see=_SEE + "div"),
    form("div.full{.ftz}.f32            d, a, b", ftz="ftz", ptx=(1, 4), see=_SEE + "div"),
    form("div.rnd{.ftz}.f32             d, a, b", rnd=RND, ftz="ftz", since=_20, see=_SEE + "div"),
    form("div.rnd.f64                   d, a, b", rnd=_DIRECTED, sm="sm_13", see=_SEE + "div"),
    form("abs{.ftz}.f32                 d, a", ftz=FTZ, see=_SEE + "abs"),
    form("abs.f64                       d, a", sm="sm_13", see=_SEE + "abs"),
    form("neg{.ftz}.f32                 d, a", ftz=FTZ, see=_SEE + "neg"),
    form("neg.f64                       d, a", sm="sm_13", see=_SEE + "neg"),
    form("min{.ftz}.f32                 d, a, b", ftz=FTZ, see=_SEE + "min"),
    form("min{.ftz}.NaN.f32             d, a, b", ftz="ftz", since="7.0,sm_80", see=_SEE + "min"),
    form("min{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", ftz="ftz", NaN="NaN", since="7.2,sm_86", see=_SEE + "min"),
    form("min{.ftz}{.NaN}{.abs}.f32     d, a, b, c",
         ftz="ftz", NaN="NaN", abs="abs", since="8.8,sm_100", see=_SEE + "min"),
    form("min.f64                       d, a, b", sm="sm_13", see=_SEE + "min"),
    form("max{.ftz}.f32                 d, a, b", ftz=FTZ, see=_SEE + "max"),
    form("max{.ftz}.NaN.f32             d, a, b", ftz="ftz", since="7.0,sm_80", see=_SEE + "max"),
    form("max{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", ftz="ftz", NaN="NaN", since="7.2,sm_86", see=_SEE + "max"),
    form("max{.ftz}{.NaN}{.abs}.f32     d, a, b, c",
         ftz="ftz", NaN="NaN", abs="abs", since="8.8,sm_100", see=_SEE + "max"),
    form("max.f64                       d, a, b", sm="sm_13", see=_SEE + "max"),
    form("rcp.f32                       d, a", removed=_UNMARKED, see=_SEE + "rcp"),
    form("rcp.approx{.ftz}.f32          d, a", ftz="ftz", ptx=(1, 4), see=_SEE + "rcp"),
    form("rcp.rnd{.ftz}.f32             d, a", rnd=RND, ftz="ftz", since=_20, see=_SEE + "rcp"),
    form("rcp.rnd.f64                   d, a", rnd=_DIRECTED, since="1.4,sm_13", see=_SEE + "rcp"),
    # Not in the manual; ptxas accepts .ftz with every rounding of f64.
    form("rcp.rnd.ftz.f64               d, a", rnd=_DIRECTED, since="1.4,sm_13", see=_SEE + "rcp"),
    form("rcp.approx.ftz.f64            d, a", since="2.1,sm_20", see=_SEE + "rcp-approx-ftz-f64"),
    form("sqrt.type                     d, a", type="f32 f64", removed=_UNMARKED, see=_SEE + "sqrt"),
    form("sqrt.approx{.ftz}.f32         d, a", ftz="ftz", ptx=(1, 4), see=_SEE + "sqrt"),
    form("sqrt.rnd{.ftz}.f32            d, a", rnd=RND, ftz="ftz", since=_20, see=_SEE + "sqrt"),
    form("sqrt.rnd.f64                  d, a", rnd=_DIRECTED, sm="sm_13", see=_SEE + "sqrt"),
    form("rsqrt.type                    d, a", type="f32 f64", removed=_UNMARKED, see=_SEE + "rsqrt"),
    form("rsqrt.approx{.ftz}.f32        d, a", ftz="ftz", ptx=(1, 4), see=_SEE + "rsqrt"),
    form("rsqrt.approx.f64              d, a", since="1.4,sm_13", see=_SEE + "rsqrt"),
    form("rsqrt.approx.ftz.f64          d, a", since="4.0,sm_20", see=_SEE + "rsqrt-approx-ftz-f64"),
    form("sin.f32                       d, a", removed=_UNMARKED, see=_SEE + "sin"),
    form("sin.approx{.ftz}.f32          d, a", ftz="ftz", ptx=(1, 4), see=_SEE + "sin"),
    form("cos.f32                       d, a", removed=_UNMARKED, see=_SEE + "cos"),
    form("cos.approx{.ftz}.f32          d, a", ftz="ftz", ptx=(1, 4), see=_SEE + "cos"),
    form("lg2.f32                       d, a", removed=_UNMARKED, see=_SEE + "lg2"),
    form("lg2.approx{.ftz}.f32          d, a", ftz="ftz", ptx=(1, 4), see=_SEE + "lg2"),
    form("ex2.f32                       d, a", removed=_UNMARKED, see=_SEE + "ex2"),
    form("ex2.approx{.ftz}.f32          d, a", ftz="ftz", ptx=(1, 4), see=_SEE + "ex2"),
    form("tanh.approx.f32               d, a", since="7.0,sm_75", see=_SEE + "tanh"),
)  # fmt: skip
