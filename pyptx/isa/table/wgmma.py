"""Manual: Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions."""

from __future__ import annotations

from functools import partial

from pyptx.isa.notation import form

MEANING = {
    "wgmma.mma_async": "Multiply matrices in shared memory (A also in registers) and accumulate, asynchronously.",
    "wgmma.mma_async.sp": "Multiply with a structured sparse A and accumulate, asynchronously.",
    "wgmma.fence": "Order register accesses before wgmma.mma_async.",
    "wgmma.commit_group": "Commit the warpgroup's pending wgmma.mma_async operations to a group.",
    "wgmma.wait_group": "Wait until at most n of the warpgroup's newest wgmma groups are pending.",
}
TRAITS = {
    "wgmma.mma_async": "gathers:warpgroup multiplies issues:wgmma",
    "wgmma.mma_async.sp": "gathers:warpgroup multiplies issues:wgmma",
    "wgmma.fence": "gathers:warpgroup orders:registers",
    "wgmma.commit_group": "gathers:warpgroup commits:wgmma",
    "wgmma.wait_group": "gathers:warpgroup lands:wgmma",
}

_SEE = "asynchronous-warpgroup-level-matrix-instructions"
_DENSE = f"{_SEE}-wgmma-mma-async"
_SPARSE = f"{_SEE}-wgmma-mma-async-sp"
_COLUMNS = tuple(range(8, 257, 8))
_SOME = (8, 16, 24, *range(32, 257, 16))
"""Integers and bits have fewer widths."""


def _shapes(depth: int, columns: tuple[int, ...] = _COLUMNS) -> str:
    return " ".join(f"m64n{n}k{depth}" for n in columns)


_FP8 = "e4m3.e4m3 e4m3.e5m2 e5m2.e4m3 e5m2.e5m2"
_INT8 = "s8.s8 u8.u8 s8.u8@8.4 u8.s8@8.4"

_F32, _F16, _S32 = "d:rw.f32*shape.n/2", "d:rw.f16x2*shape.n/4", "d:rw.s32*shape.n/2"
_SCALED = "{!}scale_d:val[0..1].pred, scale_a:imm[-1..1/2], scale_b:imm[-1..1/2]"
_BOTH = f"{_SCALED}, transpose_a:imm[0..1], transpose_b:imm[0..1]"
_ONE = f"{_SCALED}, transpose_b:imm[0..1]"
_PLAIN = "{!}scale_d:val[0..1].pred"
_AT, _B = "a:.u64", "b:.u64"
_META = "meta:reg.b32~, selector:imm[0..1]"
_META_0 = "meta:reg.b32~, selector:imm[0..0]"

_dense = partial(form, ptx=(8, 0), sm="sm_90a", see=_DENSE)
_sparse = partial(form, ptx=(8, 2), sm="sm_90a", see=_SPARSE)
# The manual requires .aligned; ptxas does not.
_MMA = "wgmma.mma_async.sync{.aligned}.shape"
_SP = "wgmma.mma_async.sp.sync{.aligned}.shape"

FORMS = (
    _dense(f"{_MMA}.f32.f16.f16   {_F32}, {_AT}, {_B}, {_BOTH}", shape=_shapes(16)),
    _dense(f"{_MMA}.f32.f16.f16   {_F32}, a:reg.f16x2*4, {_B}, {_ONE}", shape=_shapes(16)),
    _dense(f"{_MMA}.f16.f16.f16   {_F16}, {_AT}, {_B}, {_BOTH}", shape=_shapes(16)),
    _dense(f"{_MMA}.f16.f16.f16   {_F16}, a:reg.f16x2*4, {_B}, {_ONE}", shape=_shapes(16)),
    _dense(f"{_MMA}.f32.bf16.bf16  {_F32}, {_AT}, {_B}, {_BOTH}", shape=_shapes(16)),
    _dense(f"{_MMA}.f32.bf16.bf16  {_F32}, a:reg.bf16x2*4, {_B}, {_ONE}", shape=_shapes(16)),
    _dense(f"{_MMA}.f32.tf32.tf32  {_F32}, {_AT}, {_B}, {_SCALED}", shape=_shapes(8)),
    _dense(f"{_MMA}.f32.tf32.tf32  {_F32}, a:reg.tf32*4, {_B}, {_SCALED}", shape=_shapes(8)),
    _dense(f"{_MMA}.f32.types     {_F32}, {_AT}, {_B}, {_SCALED}", shape=_shapes(32), types=_FP8),
    _dense(f"{_MMA}.f32.types     {_F32}, a:reg.b32*4, {_B}, {_SCALED}", shape=_shapes(32), types=_FP8),
    _dense(f"{_MMA}.f16.types     {_F16}, {_AT}, {_B}, {_SCALED}", shape=_shapes(32), types=_FP8),
    _dense(f"{_MMA}.f16.types     {_F16}, a:reg.b32*4, {_B}, {_SCALED}", shape=_shapes(32), types=_FP8),
    _dense(f"{_MMA}{{.satfinite}}.s32.types  {_S32}, {_AT}, {_B}, {_PLAIN}", shape=_shapes(32, _SOME), types=_INT8),
    _dense(f"{_MMA}{{.satfinite}}.s32.types  {_S32}, a:reg.b32*4, {_B}, {_PLAIN}",
           shape=_shapes(32, _SOME), types=_INT8),
    _dense(f"{_MMA}.s32.b1.b1.and.popc  {_S32}, {_AT}, {_B}, {_PLAIN}", shape=_shapes(256, _SOME)),
    _dense(f"{_MMA}.s32.b1.b1.and.popc  {_S32}, a:reg.b32*4, {_B}, {_PLAIN}", shape=_shapes(256, _SOME)),

    _sparse(f"{_SP}.f32.f16.f16   {_F32}, {_AT}, {_B}, {_META}, {_BOTH}", shape=_shapes(32)),
    _sparse(f"{_SP}.f32.f16.f16   {_F32}, a:reg.f16x2*4, {_B}, {_META}, {_ONE}", shape=_shapes(32)),
    _sparse(f"{_SP}.f16.f16.f16   {_F16}, {_AT}, {_B}, {_META}, {_BOTH}", shape=_shapes(32)),
    _sparse(f"{_SP}.f16.f16.f16   {_F16}, a:reg.f16x2*4, {_B}, {_META}, {_ONE}", shape=_shapes(32)),
    _sparse(f"{_SP}.f32.bf16.bf16  {_F32}, {_AT}, {_B}, {_META}, {_BOTH}", shape=_shapes(32)),
    _sparse(f"{_SP}.f32.bf16.bf16  {_F32}, a:reg.bf16x2*4, {_B}, {_META}, {_ONE}", shape=_shapes(32)),
    _sparse(f"{_SP}.f32.tf32.tf32  {_F32}, {_AT}, {_B}, {_META}, {_SCALED}", shape=_shapes(16)),
    _sparse(f"{_SP}.f32.tf32.tf32  {_F32}, a:reg.tf32*4, {_B}, {_META}, {_SCALED}", shape=_shapes(16)),
    _sparse(f"{_SP}.f32.types     {_F32}, {_AT}, {_B}, {_META_0}, {_SCALED}", shape=_shapes(64), types=_FP8),
    _sparse(f"{_SP}.f32.types     {_F32}, a:reg.b32*4, {_B}, {_META_0}, {_SCALED}", shape=_shapes(64), types=_FP8),
    _sparse(f"{_SP}.f16.types     {_F16}, {_AT}, {_B}, {_META_0}, {_SCALED}", shape=_shapes(64), types=_FP8),
    _sparse(f"{_SP}.f16.types     {_F16}, a:reg.b32*4, {_B}, {_META_0}, {_SCALED}", shape=_shapes(64), types=_FP8),
    _sparse(f"{_SP}{{.satfinite}}.s32.types  {_S32}, {_AT}, {_B}, {_META_0}, {_PLAIN}",
            shape=_shapes(64, _SOME), types=_INT8),
    _sparse(f"{_SP}{{.satfinite}}.s32.types  {_S32}, a:reg.b32*4, {_B}, {_META_0}, {_PLAIN}",
            shape=_shapes(64, _SOME), types=_INT8),

    _dense("wgmma.fence.sync{.aligned}"),
    _dense("wgmma.commit_group.sync{.aligned}"),
    _dense("wgmma.wait_group.sync{.aligned}  n:imm[0..4294967295]"),
)  # fmt: skip
