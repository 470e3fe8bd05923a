"""Manual: Warp Level Matrix Instructions: mma, dense and sparse, block-scaled.

How many registers a fragment takes depends on the shape and the width of the type together, so a row has one of each.
"""

from __future__ import annotations

from functools import partial

from pyptx.isa.choices import FAMILY_100_120
from pyptx.isa.notation import form

MEANING = {
    "mma": "Multiply two fragments and add a third, synchronously in a warp.",
    "mma.sp": "Multiply with a structured sparse A.",
    "mma.sp::ordered_metadata": "Multiply with a structured sparse A whose metadata indices ascend.",
}
TRAITS = {
    "mma": "multiplies",
    "mma.sp": "multiplies",
    "mma.sp::ordered_metadata": "multiplies",
}

_PREFIX = "warp-level-matrix-instructions"
_FAMILY_120 = "sm_120a|sm_120f:8.8"
_8BIT, _4BIT = (" ".join(f"{a}.{b}" for a in kinds for b in kinds) for kinds in (("s8", "u8"), ("s4", "u4")))
_FP8 = "e4m3.e4m3 e4m3.e5m2 e5m2.e4m3 e5m2.e5m2"
_FP8_TO_4 = " ".join(
    f"{a}.{b}" for a in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1") for b in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
)
_NARROWER = " ".join(pair for pair in _FP8_TO_4.split() if pair not in _FP8.split())
_MXF4 = "kind::mxf4.block_scale kind::mxf4.block_scale.scale_vec::2X"
_NVF4 = (
    "scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0@9.1 "
    "scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
)
_MXF8 = "kind::mxf8f6f4.block_scale kind::mxf8f6f4.block_scale.scale_vec::1X"

_F4, _H2 = "d:w_.f32*4, a:{0}, b:{1}, c:.f32*4", "d:w_.f16x2*2, a:{0}, b:{1}, c:.f16x2*2"
_S4, _S2 = "d:w_.s32*4, a:{0}, b:{1}, c:.s32*4", "d:w_.s32*2, a:{0}, b:{1}, c:.s32*2"
_D4, _D2 = "d:w_.f64*4, a:{0}, b:{1}, c:.f64*4", "d:w_.f64*2, a:{0}, b:{1}, c:.f64*2"
_SCALE = ", scale_a:reg.b32~, which_a:val[0..3].u16*2, scale_b:reg.b32~, which_b:val[0..3].u16*2"
_META = ", meta:reg.b32~, selector:imm[0..3]"
_META_1 = ", meta:reg.b32~, selector:imm[0..1]"
_META_0 = ", meta:reg.b32~, selector:imm[0..0]"


def _bits(accumulator: str, a: int, b: int) -> str:
    return _of(accumulator, "b32", a, b)


def _of(accumulator: str, name: str, a: int, b: int) -> str:
    """Fill in the fragments. One register alone may not be an immediate, several may."""
    return accumulator.format(*(f"{'reg' if count == 1 else ''}.{name}*{count}" for count in (a, b)))


_M = "mma.sync.aligned"
_SP = "mma.sparse.sync.aligned"
_mma = partial(form, see=f"{_PREFIX}-mma")
_sparse = partial(form, sparse="sp sp::ordered_metadata@8.5", ptx=(7, 1), sm="sm_80", see=f"{_PREFIX}-sparse-mma")
_ordered = partial(form, ptx=(8, 7), sm=_FAMILY_120, see=f"{_PREFIX}-sparse-mma")
_VOLTA = "a:.f16x2*2, b:.f16x2*2"

FORMS = (
    _mma(f"{_M}.m8n8k4.x.y.f16.f16.f16.f16  d:w_.f16x2*4, {_VOLTA}, c:.f16x2*4", x="row col", y="row col",
         ptx=(6, 4), sm="sm_70"),
    _mma(f"{_M}.m8n8k4.x.y.f32.f16.f16.f16  d:w_.f32*8, {_VOLTA}, c:.f16x2*4", x="row col", y="row col",
         ptx=(6, 4), sm="sm_70"),
    _mma(f"{_M}.m8n8k4.x.y.f32.f16.f16.f32  d:w_.f32*8, {_VOLTA}, c:.f32*8", x="row col", y="row col",
         ptx=(6, 4), sm="sm_70"),
    _mma(f"{_M}.m16n8k8.row.col.f16.f16.f16.f16   {_of(_H2, 'f16x2', 2, 1)}", ptx=(6, 5), sm="sm_75"),
    _mma(f"{_M}.m16n8k8.row.col.f32.f16.f16.f32   {_of(_F4, 'f16x2', 2, 1)}", ptx=(6, 5), sm="sm_75"),
    _mma(f"{_M}.m16n8k16.row.col.f16.f16.f16.f16  {_of(_H2, 'f16x2', 4, 2)}", ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k16.row.col.f32.f16.f16.f32  {_of(_F4, 'f16x2', 4, 2)}", ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k8.row.col.f32.bf16.bf16.f32   {_of(_F4, 'bf16x2', 2, 1)}", ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k16.row.col.f32.bf16.bf16.f32  {_of(_F4, 'bf16x2', 4, 2)}", ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k4.row.col.f32.tf32.tf32.f32  {_of(_F4, 'tf32', 2, 1)}", ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k8.row.col.f32.tf32.tf32.f32  {_of(_F4, 'tf32', 4, 2)}", ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k16.row.col.f32.types.f32  {_bits(_F4, 2, 1)}", types=_FP8, ptx=(8, 7), sm="sm_89"),
    _mma(f"{_M}.m16n8k16.row.col.f16.types.f16  {_bits(_H2, 2, 1)}", types=_FP8, ptx=(8, 7), sm="sm_89"),
    _mma(f"{_M}.m16n8k32.row.col.f32.types.f32  {_bits(_F4, 4, 2)}", types=_FP8, ptx=(8, 4), sm="sm_89"),
    _mma(f"{_M}.m16n8k32.row.col.f16.types.f16  {_bits(_H2, 4, 2)}", types=_FP8, ptx=(8, 7), sm="sm_89"),
    # The manual has .kind::f8f6f4 on the sm_120 family; ptxas accepts it with eight-bit types on the sm_100 family too.
    _mma(f"{_M}.m16n8k16.row.col.kind::f8f6f4.f32.types.f32  {_bits(_F4, 2, 1)}",
         types=_FP8, ptx=(8, 7), sm=FAMILY_100_120),
    _mma(f"{_M}.m16n8k16.row.col.kind::f8f6f4.f16.types.f16  {_bits(_H2, 2, 1)}",
         types=_FP8, ptx=(8, 7), sm=FAMILY_100_120),
    _mma(f"{_M}.m16n8k32.row.col.kind::f8f6f4.f32.types.f32  {_bits(_F4, 4, 2)}",
         types=_FP8, ptx=(8, 6), sm=FAMILY_100_120),
    _mma(f"{_M}.m16n8k32.row.col.kind::f8f6f4.f16.types.f16  {_bits(_H2, 4, 2)}",
         types=_FP8, ptx=(8, 7), sm=FAMILY_100_120),
    _mma(f"{_M}.m16n8k32.row.col.kind::f8f6f4.f32.types.f32  {_bits(_F4, 4, 2)}",
         types=_NARROWER, ptx=(8, 7), sm=_FAMILY_120),
    _mma(f"{_M}.m16n8k32.row.col.kind::f8f6f4.f16.types.f16  {_bits(_H2, 4, 2)}",
         types=_NARROWER, ptx=(8, 7), sm=_FAMILY_120),
    _mma(f"{_M}.m16n8k64.row.col.kind.f32.e2m1.e2m1.f32.ue8m0  {_bits(_F4, 4, 2)}{_SCALE}",
         kind=_MXF4, ptx=(8, 7), sm=_FAMILY_120),
    _mma(f"{_M}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.types  {_bits(_F4, 4, 2)}{_SCALE}",
         types=_NVF4, ptx=(8, 7), sm=_FAMILY_120),
    _mma(f"{_M}.m16n8k32.row.col.kind.f32.types.f32.ue8m0  {_bits(_F4, 4, 2)}{_SCALE}",
         kind=_MXF8, types=_FP8_TO_4, ptx=(8, 7), sm=_FAMILY_120),
    # The manual gives products of doubles no rounding; ptxas accepts one, as wmma does.
    _mma(f"{_M}.m8n8k4.row.col{{.rnd}}.f64.f64.f64.f64    {_of(_D2, 'f64', 1, 1)}",
         rnd="rn rz rm rp", ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k4.row.col{{.rnd}}.f64.f64.f64.f64   {_of(_D4, 'f64', 2, 1)}",
         rnd="rn rz rm rp", ptx=(7, 8), sm="sm_90"),
    _mma(f"{_M}.m16n8k8.row.col{{.rnd}}.f64.f64.f64.f64   {_of(_D4, 'f64', 4, 2)}",
         rnd="rn rz rm rp", ptx=(7, 8), sm="sm_90"),
    _mma(f"{_M}.m16n8k16.row.col{{.rnd}}.f64.f64.f64.f64  {_of(_D4, 'f64', 8, 4)}",
         rnd="rn rz rm rp", ptx=(7, 8), sm="sm_90"),
    _mma(f"{_M}.m8n8k16.row.col{{.satfinite}}.s32.types.s32   {_bits(_S2, 1, 1)}", types=_8BIT, ptx=(6, 5), sm="sm_75"),
    _mma(f"{_M}.m16n8k16.row.col{{.satfinite}}.s32.types.s32  {_bits(_S4, 2, 1)}", types=_8BIT, ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k32.row.col{{.satfinite}}.s32.types.s32  {_bits(_S4, 4, 2)}", types=_8BIT, ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m8n8k32.row.col{{.satfinite}}.s32.types.s32   {_bits(_S2, 1, 1)}", types=_4BIT, ptx=(6, 5), sm="sm_75"),
    _mma(f"{_M}.m16n8k32.row.col{{.satfinite}}.s32.types.s32  {_bits(_S4, 2, 1)}", types=_4BIT, ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k64.row.col{{.satfinite}}.s32.types.s32  {_bits(_S4, 4, 2)}", types=_4BIT, ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m8n8k128.row.col.s32.b1.b1.s32.op.popc   {_bits(_S2, 1, 1)}",
         op="xor and@7.1,sm_80", ptx=(7, 0), sm="sm_75"),
    _mma(f"{_M}.m16n8k128.row.col.s32.b1.b1.s32.op.popc  {_bits(_S4, 2, 1)}",
         op="xor and@7.1", ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.m16n8k256.row.col.s32.b1.b1.s32.op.popc  {_bits(_S4, 4, 2)}",
         op="xor and@7.1", ptx=(7, 0), sm="sm_80"),

    _sparse(f"{_SP}.m16n8k16.row.col.f16.f16.f16.f16  {_of(_H2, 'f16x2', 2, 2)}{_META}"),
    _sparse(f"{_SP}.m16n8k16.row.col.f32.f16.f16.f32  {_of(_F4, 'f16x2', 2, 2)}{_META}"),
    _sparse(f"{_SP}.m16n8k32.row.col.f16.f16.f16.f16  {_of(_H2, 'f16x2', 4, 4)}{_META_1}"),
    _sparse(f"{_SP}.m16n8k32.row.col.f32.f16.f16.f32  {_of(_F4, 'f16x2', 4, 4)}{_META_1}"),
    _sparse(f"{_SP}.m16n8k16.row.col.f32.bf16.bf16.f32  {_of(_F4, 'bf16x2', 2, 2)}{_META}"),
    _sparse(f"{_SP}.m16n8k32.row.col.f32.bf16.bf16.f32  {_of(_F4, 'bf16x2', 4, 4)}{_META_1}"),
    _sparse(f"{_SP}.m16n8k8.row.col.f32.tf32.tf32.f32   {_of(_F4, 'tf32', 2, 2)}{_META}"),
    _sparse(f"{_SP}.m16n8k16.row.col.f32.tf32.tf32.f32  {_of(_F4, 'tf32', 4, 4)}{_META_1}"),
    _sparse(f"{_SP}.m16n8k64.row.col.f32.types.f32  {_bits(_F4, 4, 4)}{_META_0}", types=_FP8, ptx=(8, 4), sm="sm_89"),
    _sparse(f"{_SP}.m16n8k32.row.col{{.satfinite}}.s32.types.s32   {_bits(_S4, 2, 2)}{_META_1}", types=_8BIT),
    _sparse(f"{_SP}.m16n8k64.row.col{{.satfinite}}.s32.types.s32   {_bits(_S4, 4, 4)}{_META_0}", types=_8BIT),
    _sparse(f"{_SP}.m16n8k64.row.col{{.satfinite}}.s32.types.s32   {_bits(_S4, 2, 2)}{_META_1}", types=_4BIT),
    _sparse(f"{_SP}.m16n8k128.row.col{{.satfinite}}.s32.types.s32  {_bits(_S4, 4, 4)}{_META_0}", types=_4BIT),
    _ordered(f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f16.types.f16  {_bits(_H2, 4, 4)}{_META_0}",
             types=_FP8),
    _ordered("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.types.f32"
             f"  {_bits(_F4, 4, 4)}{_META_0}", types=_FP8, ptx=(8, 6), sm=FAMILY_100_120),
    _ordered("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.types.f32"
             f"  {_bits(_F4, 4, 4)}{_META_0}", types=_NARROWER),
    _ordered("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f16.types.f16"
             f"  {_bits(_H2, 4, 4)}{_META_0}", types=_FP8_TO_4),
    _ordered("mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind.f32.e2m1.e2m1.f32.ue8m0"
             f"  {_bits(_F4, 4, 4)}{_META_0}{_SCALE}", kind=_MXF4, sm="sm_120a sm_121a"),
    _ordered("mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.types"
             f"  {_bits(_F4, 4, 4)}{_META_0}{_SCALE}", types=_NVF4, sm="sm_120a sm_121a"),
    _ordered("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind.f32.types.f32.ue8m0"
             f"  {_bits(_F4, 4, 4)}{_META_0}{_SCALE}", kind=_MXF8, types=_FP8_TO_4),
)  # fmt: skip
