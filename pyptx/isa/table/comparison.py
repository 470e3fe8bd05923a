"""Manual: Comparison and Selection Instructions, and Half Precision Comparison Instructions."""

from __future__ import annotations

from pyptx.isa.choices import BOOL, CMP_FLOAT, FTZ
from pyptx.isa.notation import form

MEANING = {
    "set": "Compare two values, optionally combine with a predicate, and write all ones, 1.0 or zero.",
    "setp": "Compare two values, optionally combine with a predicate, and write predicates.",
    "selp": "Select one of two values by a predicate.",
    "slct": "Select one of two values by the sign of a third.",
}
TRAITS = {
    "selp": "carries",
    "slct": "carries",
}

_SEE = "comparison-and-selection-instructions-"
_HALF = "half-precision-comparison-instructions-"
_BITS = "b16 b32 b64"
_SIGNED = "s16 s32 s64"
_UNSIGNED = "u16 u32 u64"
_EQUAL = "eq ne"
_ORDER = "eq ne lt le gt ge"
_UNSIGNED_ORDER = "eq ne lt le gt ge lo ls hi hs"
_WORD = "u32 s32 f32"
_INTEGER = "u16 s16 u32 s32"
_16 = "4.2,sm_53"
_INTO_INTEGER = "6.5,sm_53"
_BF16 = "7.8,sm_90"
_ANY = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"
_SETP = "p:w_.pred{|q:w_.pred}, a, b{?bool, {!}c:.pred}"
_SETP_REG = "p:w_.pred{|q:w_.pred}, a:reg, b:reg{?bool, {!}c:.pred}"
_SET = "d:w.dtype, a:.stype, b:.stype{?bool, {!}c:.pred}"
_SET_REG = "d:w.dtype, a:reg.stype, b:reg.stype{?bool, {!}c:.pred}"
_SET_BF16 = "d:w.dtype, a:reg.stype, b:reg.stype{?bool, {!}c:reg.pred}"
_INTO_BF16 = "d:w.bf16, a:.stype, b:.stype{?bool, {!}c:reg.pred}"

FORMS = (
    form(f"set.cmp{{.bool}}.dtype.stype         {_SET}",
         cmp=_EQUAL, bool=BOOL, dtype=_WORD, stype=_BITS, see=_SEE + "set"),
    form(f"set.cmp{{.bool}}.dtype.stype         {_SET}",
         cmp=_ORDER, bool=BOOL, dtype=_WORD, stype=_SIGNED, see=_SEE + "set"),
    form(f"set.cmp{{.bool}}.dtype.stype         {_SET}",
         cmp=_UNSIGNED_ORDER, bool=BOOL, dtype=_WORD, stype=_UNSIGNED, see=_SEE + "set"),
    form(f"set.cmp{{.bool}}{{.ftz}}.dtype.f32   {_SET.replace('.stype', '.f32')}",
         cmp=CMP_FLOAT, bool=BOOL, ftz=FTZ, dtype=_WORD, see=_SEE + "set"),
    form(f"set.cmp{{.bool}}.dtype.f64           {_SET.replace('.stype', '.f64')}",
         cmp=CMP_FLOAT, bool=BOOL, dtype=_WORD, sm="sm_13", see=_SEE + "set"),
    form(f"setp.cmp{{.bool}}.type               {_SETP}", cmp=_EQUAL, bool=BOOL, type=_BITS, see=_SEE + "setp"),
    form(f"setp.cmp{{.bool}}.type               {_SETP}", cmp=_ORDER, bool=BOOL, type=_SIGNED, see=_SEE + "setp"),
    form(f"setp.cmp{{.bool}}.type               {_SETP}",
         cmp=_UNSIGNED_ORDER, bool=BOOL, type=_UNSIGNED, see=_SEE + "setp"),
    form(f"setp.cmp{{.bool}}{{.ftz}}.f32        {_SETP}",
         cmp=CMP_FLOAT, bool=BOOL, ftz=FTZ, see=_SEE + "setp"),
    form(f"setp.cmp{{.bool}}.f64                {_SETP}", cmp=CMP_FLOAT, bool=BOOL, sm="sm_13", see=_SEE + "setp"),
    form("selp.type                            d, a, b, {!}c:.pred", type=_ANY, see=_SEE + "selp"),
    form("slct.dtype.s32                       d:w.dtype, a:.dtype, b:.dtype, c:.s32", dtype=_ANY, see=_SEE + "slct"),
    form("slct{.ftz}.dtype.f32                 d:w.dtype, a:.dtype, b:.dtype, c:.f32",
         ftz=FTZ, dtype=_ANY, see=_SEE + "slct"),
    # ptxas accepts no immediate where f16 or bf16 is compared, and no constant predicate with bf16.
    form(f"set.cmp{{.bool}}.f16.stype           {_SET.replace('.dtype', '.f16')}",
         cmp=_EQUAL, bool=BOOL, stype=_BITS, since=_16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}.bf16.stype          {_INTO_BF16}",
         cmp=_EQUAL, bool=BOOL, stype=_BITS, since=_BF16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}.f16.stype           {_SET.replace('.dtype', '.f16')}",
         cmp=_ORDER, bool=BOOL, stype=_SIGNED, since=_16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}.bf16.stype          {_INTO_BF16}",
         cmp=_ORDER, bool=BOOL, stype=_SIGNED, since=_BF16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}.f16.stype           {_SET.replace('.dtype', '.f16')}",
         cmp=_UNSIGNED_ORDER, bool=BOOL, stype=_UNSIGNED, since=_16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}.bf16.stype          {_INTO_BF16}",
         cmp=_UNSIGNED_ORDER, bool=BOOL, stype=_UNSIGNED, since=_BF16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}{{.ftz}}.f16.f16     {_SET_REG.replace('.dtype', '.f16').replace('.stype', '.f16')}",
         cmp=CMP_FLOAT, bool=BOOL, ftz="ftz", since=_16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}{{.ftz}}.f16.f32     {_SET.replace('.dtype', '.f16').replace('.stype', '.f32')}",
         cmp=CMP_FLOAT, bool=BOOL, ftz="ftz", since=_16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}.f16.f64             {_SET.replace('.dtype', '.f16').replace('.stype', '.f64')}",
         cmp=CMP_FLOAT, bool=BOOL, since=_16, see=_HALF + "set"),
    # The manual has no bf16.bf16; ptxas accepts it.
    form(f"set.cmp{{.bool}}.bf16.stype          {_SET_BF16.replace('.dtype', '.bf16')}",
         cmp=CMP_FLOAT, bool=BOOL, stype="f16 bf16", since=_BF16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}.bf16.stype          {_INTO_BF16}",
         cmp=CMP_FLOAT, bool=BOOL, stype="f32 f64", since=_BF16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}{{.ftz}}.dtype.f16   {_SET_REG.replace('.stype', '.f16')}",
         cmp=CMP_FLOAT, bool=BOOL, ftz="ftz", dtype=_INTEGER, since=_INTO_INTEGER, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}.dtype.bf16          {_SET_BF16.replace('.stype', '.bf16')}",
         cmp=CMP_FLOAT, bool=BOOL, dtype=_INTEGER, since=_BF16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}{{.ftz}}.dtype.f16x2 {_SET_REG.replace('.stype', '.f16x2')}",
         cmp=CMP_FLOAT, bool=BOOL, ftz="ftz", dtype="f16x2 u32@6.5 s32@6.5", since=_16, see=_HALF + "set"),
    form(f"set.cmp{{.bool}}.dtype.bf16x2        {_SET_BF16.replace('.stype', '.bf16x2')}",
         cmp=CMP_FLOAT, bool=BOOL, dtype="bf16x2 u32 s32", since=_BF16, see=_HALF + "set"),
    form("setp.cmp{.bool}{.ftz}.f16            p:w_.pred, a:reg, b:reg{?bool, {!}c:.pred}",
         cmp=CMP_FLOAT, bool=BOOL, ftz="ftz", since=_16, see=_HALF + "setp"),
    form("setp.cmp{.bool}.bf16                 p:w_.pred, a:reg, b:reg{?bool, {!}c:reg.pred}",
         cmp=CMP_FLOAT, bool=BOOL, since=_BF16, see=_HALF + "setp"),
    # ptxas accepts one predicate for a pair too.
    form(f"setp.cmp{{.bool}}{{.ftz}}.f16x2      {_SETP_REG}",
         cmp=CMP_FLOAT, bool=BOOL, ftz="ftz", since=_16, see=_HALF + "setp"),
    form(f"setp.cmp{{.bool}}.bf16x2             {_SETP_REG.replace('c:', 'c:reg')}",
         cmp=CMP_FLOAT, bool=BOOL, since=_BF16, see=_HALF + "setp"),
)  # fmt: skip
