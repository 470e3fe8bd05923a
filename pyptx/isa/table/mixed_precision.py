"""Manual: Mixed Precision Floating-Point Instructions, and Alternate Floating-Point Instructions (FP8, FP6, FP4)."""

from __future__ import annotations

from pyptx.isa.choices import RND
from pyptx.isa.notation import form

MEANING: dict[str, str] = {}
"""The instructions share their names, and so their meanings, with those of single precision."""

_MIXED = "mixed-precision-floating-point-instructions-"
_ALT = "alternate-floating-point-instructions-"
_HALF = "f16 bf16"
_100 = "8.6,sm_100"
_FP8X4 = "e5m2x4 e4m3x4"
_ANYX4 = "e5m2x4 e4m3x4 e3m2x4 e2m3x4 e2m1x4 e2m1p4x4 ue8m0x4"
_100A = "9.4,sm_100a|sm_103a"

FORMS = (
    form("add{.rnd}{.sat}.f32.atype   d:w.f32, a:reg.atype, c:.f32",
         rnd=RND, sat="sat", atype=_HALF, since=_100, see=_MIXED + "add"),
    form("sub{.rnd}{.sat}.f32.atype   d:w.f32, a:reg.atype, c:.f32",
         rnd=RND, sat="sat", atype=_HALF, since=_100, see=_MIXED + "sub"),
    form("fma.rnd{.sat}.f32.abtype    d:w.f32, a:reg.abtype, b:reg.abtype, c:.f32",
         rnd=RND, sat="sat", abtype=_HALF, since=_100, see=_MIXED + "fma"),
    form("add{.rnd}{.satfinite}.cdtype.atype        d:w.cdtype~, a:reg.atype~, c:reg.cdtype~",
         rnd="rn", satfinite="satfinite", cdtype=_FP8X4, atype=_ANYX4, since=_100A, see=_ALT + "add"),
    form("sub{.rnd}{.satfinite}.cdtype.atype        d:w.cdtype~, a:reg.atype~, c:reg.cdtype~",
         rnd="rn", satfinite="satfinite", cdtype=_FP8X4, atype=_ANYX4, since=_100A, see=_ALT + "sub"),
    form("mul{.rnd}{.satfinite}.dtype.atype.ctype   d:w.dtype~, a:reg.atype~, c:reg.ctype~",
         rnd="rn", satfinite="satfinite", dtype=_FP8X4, atype=_ANYX4, ctype=_ANYX4, since=_100A, see=_ALT + "mul"),
    form("fma{.rnd}{.satfinite}.cdtype.atype.btype  d:w.cdtype~, a:reg.atype~, b:reg.btype~, c:reg.cdtype~",
         rnd="rn", satfinite="satfinite", cdtype=_FP8X4, atype=_ANYX4, btype=_ANYX4, since=_100A, see=_ALT + "fma"),
)  # fmt: skip
