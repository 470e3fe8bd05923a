"""Manual: Data Movement and Conversion Instructions: cvt, cvt.pack."""

from __future__ import annotations

from pyptx.isa.choices import FTZ
from pyptx.isa.notation import form

MEANING = {
    "cvt": "Convert a value, or a pack of values, to another type.",
    "cvt.pack": "Convert two integers with saturation and pack them with the contents of a third register.",
}
TRAITS = {
    "cvt": "computes:offset",
}

_CVT = "data-movement-and-conversion-instructions-cvt"
_PACK = "data-movement-and-conversion-instructions-cvt-pack"

_INT = "u8 u16 u32 u64 s8 s16 s32 s64"
_INT16_64 = "u16 u32 u64 s16 s32 s64"
_IRND = "rni rzi rmi rpi"
_FRND = "rn rz rm rp"
_F8X2, _F8X4 = "e4m3x2 e5m2x2", "e4m3x4 e5m2x4"
_F6X2, _F6X4 = "e2m3x2 e3m2x2", "e2m3x4 e3m2x4"
_HALF2 = "f16x2 bf16x2"

_80, _90 = "7.0,sm_80", "7.8,sm_90"
_F8 = "7.8,sm_90|sm_89:8.1"
_BLACKWELL = "sm_100f|sm_110f|sm_120f"
_S2F6 = "9.1,sm_100a|sm_103a|sm_107a|sm_110a|sm_120a|sm_121a"
_RS = "8.7,sm_100a|sm_103a|sm_107a"
_RND_107 = "rn rz@9.4,sm_107f"
"""ptxas rounds toward zero to the small formats on sm_107, which is in no manual yet."""

# The manual does not say since when `.ftz` is; these versions are those of ptxas.
# `.sat` is for pairs of which one cannot hold all values of the other.
_INTEGERS = (
    form("cvt.dtype.atype       d:w.dtype+, a:.atype+", dtype=_INT, atype=_INT, see=_CVT),
    form("cvt.dtype.atype       d:w.dtype+, a:sreg.atype", dtype=_INT, atype=_INT, see=_CVT),
    form("cvt.sat.dtype.u8      d:w.dtype+, a:.u8+", dtype="s8", see=_CVT),
    form("cvt.sat.dtype.u16     d:w.dtype+, a:.u16+", dtype="u8 s8 s16", see=_CVT),
    form("cvt.sat.dtype.u32     d:w.dtype+, a:.u32+", dtype="u8 u16 s8 s16 s32", see=_CVT),
    form("cvt.sat.dtype.u64     d:w.dtype+, a:.u64+", dtype="u8 u16 u32 s8 s16 s32 s64", see=_CVT),
    form("cvt.sat.dtype.s8      d:w.dtype+, a:.s8+", dtype="u8 u16 u32 u64", see=_CVT),
    form("cvt.sat.dtype.s16     d:w.dtype+, a:.s16+", dtype="u8 u16 u32 u64 s8", see=_CVT),
    form("cvt.sat.dtype.s32     d:w.dtype+, a:.s32+", dtype="u8 u16 u32 u64 s8 s16", see=_CVT),
    form("cvt.sat.dtype.s64     d:w.dtype+, a:.s64+", dtype="u8 u16 u32 u64 s8 s16 s32", see=_CVT),
    form("cvt.irnd{.sat}.dtype.f16        d:w.dtype+, a:reg.f16+", irnd=_IRND, dtype=_INT, see=_CVT),
    form("cvt.irnd{.sat}.dtype.f64        d:w.dtype+, a:.f64", irnd=_IRND, dtype=_INT, see=_CVT),
    form("cvt.irnd{.ftz}{.sat}.dtype.f32  d:w.dtype+, a:.f32+", irnd=_IRND, ftz=FTZ, dtype=_INT, see=_CVT),
    form("cvt.irnd.dtype.bf16             d:w.dtype, a:reg.bf16", irnd=_IRND, dtype=_INT, since=_90, see=_CVT),
    form("cvt.frnd{.sat}.dtype.atype      d:w.dtype+, a:.atype+", frnd=_FRND, dtype="f16 f64", atype=_INT, see=_CVT),
    form("cvt.frnd{.ftz}{.sat}.f32.atype  d:w.f32+, a:.atype+", frnd=_FRND, ftz=FTZ, atype=_INT, see=_CVT),
    form("cvt.frnd.bf16.atype             d:w.bf16, a:.atype", frnd=_FRND, atype=_INT, since=_90, see=_CVT),
)  # fmt: skip

_FLOATS = (
    form("cvt{.irnd}{.sat}.type.f16        d:w.f16+, a:reg.f16+", irnd=_IRND, type="f16", see=_CVT),
    form("cvt{.irnd}{.sat}.type.f64        d, a", irnd=_IRND, type="f64", see=_CVT),
    form("cvt{.irnd}{.ftz}{.sat}.type.f32  d:w.f32+, a:.f32+", irnd=_IRND, ftz=FTZ, type="f32", see=_CVT),
    form("cvt{.irnd}.bf16.bf16             d, a:reg", irnd=_IRND, since=_90, see=_CVT),
    form("cvt{.sat}.f64.f16                d:w.f64, a:reg.f16+", see=_CVT),
    form("cvt{.ftz}{.sat}.f32.f16          d:w.f32+, a:reg.f16+", ftz=FTZ, see=_CVT),
    form("cvt{.ftz}{.sat}.f64.f32          d:w.f64, a:.f32+", ftz="ftz@1.5", see=_CVT),
    form("cvt.frnd{.sat}.f16.f64           d:w.f16+, a:.f64", frnd=_FRND, see=_CVT),
    form("cvt.frnd{.ftz}{.sat}.f32.f64     d:w.f32+, a:.f64", frnd=_FRND, ftz=FTZ, see=_CVT),
    form("cvt.frnd{.ftz}{.sat}.f16.f32     d:w.f16+, a:.f32+", frnd=_FRND, ftz=FTZ, see=_CVT),
    form("cvt.frnd.satfinite.f16.f32       d:w.f16+, a:.f32+", frnd="rn rz", since="8.1,sm_70", see=_CVT),
    form(
        "cvt.frnd.relu{.satfinite}.f16.f32  d:w.f16+, a:.f32+",
        frnd="rn rz", satfinite="satfinite@8.1", since=_80, see=_CVT,
    ),
    form("cvt.frnd{.ftz}.bf16.f32            d:w.bf16, a:.f32", frnd=_FRND, since=_80, see=_CVT),
    form("cvt.frnd.satfinite.bf16.f32        d:w.bf16, a:.f32", frnd="rn rz", since="8.1,sm_80", see=_CVT),
    form(
        "cvt.frnd.relu{.satfinite}.bf16.f32  d:w.bf16, a:.f32",
        frnd="rn rz", satfinite="satfinite@8.1", since=_80, see=_CVT,
    ),
    # The manual has no rounding for these four, which lose nothing; ptxas accepts one.
    form("cvt{.frnd}.f32.bf16              d:w.f32, a:reg.bf16", frnd=_FRND, since="7.1,sm_80", see=_CVT),
    form("cvt{.frnd}.ftz.f32.bf16          d:w.f32, a:reg.bf16", frnd=_FRND, since=_90, see=_CVT),
    form("cvt{.frnd}.dtype.bf16            d:w.dtype, a:reg.bf16", frnd=_FRND, dtype="f16 f64", since=_90, see=_CVT),
    form("cvt{.frnd}.bf16.f16              d:w.bf16, a:reg.f16", frnd=_FRND, since=_90, see=_CVT),
    form("cvt.frnd.bf16.f64                d:w.bf16, a:.f64", frnd=_FRND, since=_90, see=_CVT),
    form("cvt.rna{.satfinite}.tf32.f32     d:w.tf32, a:.f32", satfinite="satfinite@8.1", since=_80, see=_CVT),
    form("cvt.frnd{.relu}.tf32.f32         d:w.tf32, a:.f32", frnd="rn rz", since=_90, see=_CVT),
    form("cvt.frnd.satfinite{.relu}.tf32.f32  d:w.tf32, a:.f32", frnd="rn rz", since="8.6,sm_100", see=_CVT),
)  # fmt: skip

_PACKED = (
    form("cvt.frnd{.relu}{.satfinite}.f16x2.f32   d:w.f16x2+, a:.f32+, b:.f32+",
         frnd="rn rz", satfinite="satfinite@8.1", since=_80, see=_CVT),
    form("cvt.frnd{.relu}{.satfinite}.bf16x2.f32  d:w.bf16x2, a:.f32, b:.f32",
         frnd="rn rz", satfinite="satfinite@8.1", since=_80, see=_CVT),
    form("cvt.rs{.relu}{.satfinite}.f16x2.f32    d:w.f16x2+, a:.f32+, b:.f32+, rbits:reg.u32", since=_RS, see=_CVT),
    form("cvt.rs{.relu}{.satfinite}.bf16x2.f32   d:w.bf16x2, a:.f32, b:.f32, rbits:reg.u32", since=_RS, see=_CVT),
    form(
        "cvt.rnd.satfinite{.relu}.dtype.f32  d:w.dtype, a:.f32, b:.f32",
        rnd=_RND_107, dtype=_F8X2, since=_F8, see=_CVT,
    ),
    form(
        "cvt.rnd.satfinite{.relu}.dtype.f16x2  d:w.dtype, a:reg.f16x2",
        rnd=_RND_107, dtype=_F8X2, since=_F8, see=_CVT,
    ),
    form("cvt.rnd.satfinite{.relu}.dtype.bf16x2  d:w.dtype, a:reg.bf16x2",
         rnd=_RND_107, dtype=_F8X2, since="9.1," + _BLACKWELL, see=_CVT),
    form("cvt.rn{.relu}.f16x2.atype              d:w.f16x2, a:reg.atype", atype=_F8X2, since=_F8, see=_CVT),
    form("cvt.rnd.satfinite{.relu}.dtype.f32     d:w.b8, a:.f32, b:.f32",
         rnd=_RND_107, dtype="e2m1x2", since="8.6," + _BLACKWELL, see=_CVT),
    form("cvt.rnd.satfinite{.relu}.dtype.atype   d:w.b8, a:reg.atype",
         rnd=_RND_107, dtype="e2m1x2", atype=_HALF2, since="9.1," + _BLACKWELL, see=_CVT),
    form("cvt.rn{.relu}.f16x2.e2m1x2             d:w.f16x2, a:reg.b8", since="8.6," + _BLACKWELL, see=_CVT),
    form("cvt.rnd.satfinite{.relu}.dtype.f32     d:w.dtype, a:.f32, b:.f32",
         rnd=_RND_107, dtype=_F6X2, since="8.6," + _BLACKWELL, see=_CVT),
    form("cvt.rnd.satfinite{.relu}.dtype.atype   d:w.dtype, a:reg.atype",
         rnd=_RND_107, dtype=_F6X2, atype=_HALF2, since="9.1," + _BLACKWELL, see=_CVT),
    form(
        "cvt.rn{.relu}.f16x2.atype  d:w.f16x2, a:reg.atype",
        atype=_F6X2, since="8.6," + _BLACKWELL, see=_CVT,
    ),
    form("cvt.rn{.satfinite}{.relu}{.scaled}.bf16x2.atype   d:w.bf16x2, a:reg.atype{?scaled, scale:reg.b16}",
         scaled="scaled::n2::ue8m0", atype=f"{_F8X2} {_F6X2}", since="9.2," + _BLACKWELL, see=_CVT),
    form("cvt.rn{.satfinite}{.relu}{.scaled}.bf16x2.e2m1x2  d:w.bf16x2, a:reg.b8{?scaled, scale:reg.b16}",
         scaled="scaled::n2::ue8m0", since="9.2," + _BLACKWELL, see=_CVT),
    form("cvt.rs{.relu}.satfinite.dtype.f32      d:w.dtype, a:.f32*4, rbits:reg.u32",
         dtype=f"{_F8X4} {_F6X4} e2m1x4", since=_RS, see=_CVT),
    form(
        "cvt.rnd{.satfinite}.ue8m0x2.f32  d:w.ue8m0x2, a:.f32, b:.f32",
        rnd="rz rp", since="8.6," + _BLACKWELL, see=_CVT,
    ),
    form(
        "cvt.rnd{.satfinite}.ue8m0x2.bf16x2  d:w.ue8m0x2, a:reg.bf16x2",
        rnd="rz rp", since="8.6," + _BLACKWELL, see=_CVT,
    ),
    form("cvt.rn.bf16x2.ue8m0x2                  d:w.bf16x2, a:reg.ue8m0x2", since="8.6," + _BLACKWELL, see=_CVT),
    form("cvt.rnd.satfinite{.relu}{.scaled}.s2f6x2.f32     d:w.s2f6x2, a:.f32, b:.f32{?scaled, scale:reg.b16}",
         rnd="rn rz@sm_107a", scaled="scaled::n2::ue8m0", since=_S2F6, see=_CVT),
    form("cvt.rnd.satfinite{.relu}{.scaled}.s2f6x2.bf16x2  d:w.s2f6x2, a:reg.bf16x2{?scaled, scale:reg.b16}",
         rnd="rn rz@sm_107a", scaled="scaled::n2::ue8m0", since=_S2F6, see=_CVT),
    form("cvt.rn{.satfinite}{.relu}{.scaled}.bf16x2.s2f6x2  d:w.bf16x2, a:reg.s2f6x2{?scaled, scale:reg.b16}",
         scaled="scaled::n2::ue8m0", since=_S2F6, see=_CVT),
    form("cvt.pack.sat.type.s32      d:w.u32+, a:.s32+, b:.s32+", type="u16 s16", since="6.5,sm_72", see=_PACK),
    form("cvt.pack.sat.type.s32.b32  d:w.u32+, a:.s32+, b:.s32+, c:.b32+",
         type="u2@sm_75 s2@sm_75 u4@sm_75 s4@sm_75 u8 s8", since="6.5,sm_72", see=_PACK),
)  # fmt: skip

FORMS = (*_INTEGERS, *_FLOATS, *_PACKED)
