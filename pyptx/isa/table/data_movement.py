"""Manual: Data Movement and Conversion Instructions: mov, shfl, prmt and the conversions of addresses."""

from __future__ import annotations

from pyptx.isa.choices import SHARED
from pyptx.isa.notation import form

MEANING = {
    "mov": "Copy a register, immediate, special register or address; pack or unpack a vector of registers.",
    "shfl": "Exchange a register within the warp (without .sync: removed for sm_70 and newer).",
    "shfl.sync": "Exchange a register among the lanes in a member mask.",
    "prmt": "Select four of eight bytes.",
    "isspacep": "Test whether a generic address is in a state space.",
    "cvta": "Convert a state-space address to a generic address.",
    "cvta.to": "Convert a generic address to a state-space address.",
    "mapa": "Map a shared-memory address to the corresponding address in another CTA of the cluster.",
    "getctarank": "Get the rank of the CTA that a shared-memory address belongs to.",
}
TRAITS = {
    "mov": "carries computes:copy",
    "shfl": "gathers:warp carries",
    "shfl.sync": "carries",
    "prmt": "carries computes:pattern",
    "cvta": "computes:offset",
    "cvta.to": "computes:offset",
}

_MOV = "data-movement-and-conversion-instructions-mov"
_PACK = "data-movement-and-conversion-instructions-mov-2"
_SHFL = "data-movement-and-conversion-instructions-shfl"
_SHFL_SYNC = "data-movement-and-conversion-instructions-shfl-sync"
_ISSPACEP = "data-movement-and-conversion-instructions-isspacep"
_CVTA = "data-movement-and-conversion-instructions-cvta"
_MAPA = "data-movement-and-conversion-instructions-mapa"
_RANK = "data-movement-and-conversion-instructions-getctarank"

_GENERIC_SPACE = "const@3.1 global local param@7.7,sm_70 param::entry@8.3,sm_70 " + SHARED
_INTEGER = "b16 b32 b64 u16 u32 u64 s16 s32 s64"

FORMS = (
    form("mov.type  d:w~, a:mov~", type=_INTEGER, see=_MOV),
    form("mov.pred  d, {!}a:mov", see=_MOV),
    form("mov.type  d:w~, a:val~", type="f32 f64", see=_MOV),
    form("mov.b128  d:w~, a:val~", since="8.3,sm_70", see=_PACK),
    form("mov.b16   d, a:.b8*2", see=_PACK),
    form("mov.b32   d, a:.b8*4", see=_PACK),
    form("mov.b32   d, a:.b16*2", see=_PACK),
    form("mov.b64   d, a:.b16*4", see=_PACK),
    form("mov.b64   d, a:.b32*2", see=_PACK),
    form("mov.b128  d, a:.b32*4", since="8.3,sm_70", see=_PACK),
    form("mov.b128  d, a:.b64*2", since="8.3,sm_70", see=_PACK),
    form("mov.b16   d:w_.b8*2, a:mov", see=_PACK),
    form("mov.b32   d:w_.b8*4, a:mov", see=_PACK),
    form("mov.b32   d:w_.b16*2, a:mov", see=_PACK),
    form("mov.b64   d:w_.b16*4, a:mov", see=_PACK),
    form("mov.b64   d:w_.b32*2, a:mov", see=_PACK),
    form("mov.b128  d:w_.b32*4, a", since="8.3,sm_70", see=_PACK),
    form("mov.b128  d:w_.b64*2, a", since="8.3,sm_70", see=_PACK),
    # Undocumented: ptxas copies vectors as it loads them, and reads a whole special register.
    form("mov.vec.type  d:w_.type*vec, a:.type*vec", vec="v2 v4", type="b16 b32 u16 u32 s16 s32 f32", see=_MOV),
    form("mov.v2.type   d:w_.type*2, a:.type*2", type="b64 u64 s64 f64", see=_MOV),
    form("mov.v4.type   d:w_.type*4, a:sreg", type="b32 u32 s32 b16 u16 s16", see=_MOV),
    form(
        "shfl.mode.b32  d{|p:.pred}, a, b, c",
        mode="up down bfly idx", ptx=(3, 0), sm="sm_30", removed=((6, 4), "sm_70"), see=_SHFL,
    ),
    # The manual says PTX 6.0; ptxas accepts it in 5.1 too.
    form(
        "shfl.sync.mode.b32  d{|p:_.pred}, a, b, c, membermask:.u32",
        mode="up down bfly idx", since="5.1,sm_30", see=_SHFL_SYNC,
    ),
    form(
        "prmt.b32{.mode}  d, a, b, c",
        mode="f4e b4e rc8 ecl ecr rc16", ptx=(2, 0), sm="sm_20", see="data-movement-and-conversion-instructions-prmt",
    ),
    form("isspacep.space  p:w.pred, a:.u64", space=_GENERIC_SPACE, ptx=(2, 0), sm="sm_20", see=_ISSPACEP),
    form("isspacep.space  p:w.pred, a:.u32", space=_GENERIC_SPACE, ptx=(2, 0), sm="sm_20", see=_ISSPACEP),
    form("cvta.ss.size     p:w, a:mov", ss=_GENERIC_SPACE, size="u32 u64", ptx=(2, 0), sm="sm_20", see=_CVTA),
    form("cvta.to.ss.size  p:w, a", ss=_GENERIC_SPACE, size="u32 u64", ptx=(2, 0), sm="sm_20", see=_CVTA),
    # The manual has the unsigned types only; ptxas accepts the signed ones too.
    form("mapa{.shared::cluster}.type        d, a:mov, b:.u32", type="u32 u64 s32 s64", since="7.8,sm_90", see=_MAPA),
    form("getctarank{.shared::cluster}.type  d:w.u32, a:mov", type="u32 u64 s32 s64", since="7.8,sm_90", see=_RANK),
)  # fmt: skip
