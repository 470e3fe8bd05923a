"""Manual: Warp Level Matrix Instructions: ldmatrix, stmatrix, movmatrix."""

from __future__ import annotations

from functools import partial

from pyptx.isa.choices import FAMILY_100_120
from pyptx.isa.notation import form

MEANING = {
    "ldmatrix": "Load 8-row matrices from shared memory, distributed over a warp.",
    "stmatrix": "Store 8-row matrices of a warp's registers to shared memory.",
    "movmatrix": "Transpose an 8 x 8 matrix across a warp's registers.",
}
TRAITS = {
    "ldmatrix": "rearranges:rows",
    "stmatrix": "rearranges:rows",
    "movmatrix": "rearranges:lanes",
}

_SS = "shared shared::cta@7.8"
_UNPACKED = "b8x16.b6x16_p32 b8x16.b4x16_p64"

_load = partial(form, ss=_SS, see="warp-level-matrix-instructions-ldmatrix")
_store = partial(form, ss=_SS, see="warp-level-matrix-instructions-stmatrix")

FORMS = (
    _load("ldmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16     d:w.b32*num, [p]",
          num="x1 x2 x4", ptx=(6, 5), sm="sm_75"),
    _load("ldmatrix.sync.aligned.m16n16.num.trans{.ss}.b8      d:w.b32*num*2, [p]",
          num="x1 x2", ptx=(8, 6), sm=FAMILY_100_120),
    _load("ldmatrix.sync.aligned.m16n16.num.trans{.ss}.format  d:w.b32*num*2, [p]",
          num="x1 x2", format=_UNPACKED, ptx=(8, 6), sm=FAMILY_100_120),
    _load("ldmatrix.sync.aligned.m8n16.num{.ss}.format         d:w.b32*num, [p]",
          num="x1 x2 x4", format=_UNPACKED, ptx=(8, 6), sm=FAMILY_100_120),
    _load("ldmatrix.sync.aligned.m8n16.num{.ss}.s8.s4          d:w.b32*num, [p]",
          num="x1 x2 x4", ptx=(9, 4), sm="sm_90a sm_100f sm_110f sm_120f"),
    _store("stmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16    [p:w], a:reg.b32*num",
           num="x1 x2 x4", ptx=(7, 8), sm="sm_90"),
    _store("stmatrix.sync.aligned.m16n8.num.trans{.ss}.b8      [p:w], a:reg.b32*num",
           num="x1 x2 x4", ptx=(8, 6), sm=FAMILY_100_120),
    form("movmatrix.sync.aligned.m8n8.trans.b16  d:w.b32, a:reg.b32",
         ptx=(7, 8), sm="sm_75", see="warp-level-matrix-instructions-movmatrix"),
)  # fmt: skip
