"""Manual: Warp Level Matrix Instructions: wmma. Shapes are coupled with types and fragment sizes, so a row has few."""

from __future__ import annotations

from functools import partial

from pyptx.isa.notation import form

MEANING = {
    "wmma.load": "Load a warp's fragment of matrix A, B or C.",
    "wmma.store": "Store a warp's fragment of matrix D.",
    "wmma.mma": "Multiply two fragments and add a third.",
}
TRAITS = {
    "wmma.load": "rearranges:fragment",
    "wmma.store": "rearranges:fragment",
    "wmma.mma": "multiplies",
}

_LOAD, _STORE, _MMA = (f"warp-level-matrix-instructions-wmma-{name}" for name in ("ld", "st", "mma"))
_LAYOUT = "row col"
_SS = "global shared shared::cta@7.8"
_SHAPES = "m16n16k16 m8n32k16@6.1 m32n8k16@6.1"
_INT8 = "s8 u8"
_INT4 = "s4 u4"
_INT8_PAIRS = "s8.s8 u8.u8"
_INT4_PAIRS = "s4.s4 u4.u4"
_P = "[p]{, stride:.u32}"

_old_load = partial(
    form, layout=_LAYOUT, ss=_SS, shape=_SHAPES, ptx=(6, 0), sm="sm_70", removed=((6, 3), ""), see=_LOAD,
)  # fmt: skip
_old_mma = partial(form, a=_LAYOUT, b=_LAYOUT, shape=_SHAPES, ptx=(6, 0), sm="sm_70", removed=((6, 3), ""), see=_MMA)
_load = partial(form, layout=_LAYOUT, ss=_SS, see=_LOAD)
_store = partial(form, layout=_LAYOUT, ss=_SS, see=_STORE)
_mma = partial(form, a=_LAYOUT, b=_LAYOUT, see=_MMA)
_A, _B, _C = (f"wmma.load.{matrix}.sync.aligned" for matrix in "abc")
_D = "wmma.store.d.sync.aligned"
_M = "wmma.mma.sync.aligned"
_OF_FLOAT = "wmma.mma.sync.aligned.a.b.shape"

FORMS = (
    _load("wmma.load.side.sync.aligned.layout.shape{.ss}.f16  d:w.f16x2*8, [p]{, stride:.u32}",
          side="a b", shape=_SHAPES, ptx=(6, 3), sm="sm_70"),
    _load(f"{_C}.layout.shape{{.ss}}.f16  d:w.f16x2*4, {_P}", shape=_SHAPES, ptx=(6, 3), sm="sm_70"),
    _load(f"{_C}.layout.shape{{.ss}}.f32  d:w.f32*8, {_P}", shape=_SHAPES, ptx=(6, 3), sm="sm_70"),
    _load(f"{_C}.layout.shape{{.ss}}.s32  d:w.s32*8, {_P}",
          shape="m16n16k16 m8n32k16 m32n8k16", ptx=(6, 3), sm="sm_72"),

    _load(f"{_A}.layout.m16n16k16{{.ss}}.type  d:w.b32*2, {_P}", type=_INT8, ptx=(6, 3), sm="sm_72"),
    _load(f"{_A}.layout.m8n32k16{{.ss}}.type   d:w.b32*1, {_P}", type=_INT8, ptx=(6, 3), sm="sm_72"),
    _load(f"{_A}.layout.m32n8k16{{.ss}}.type   d:w.b32*4, {_P}", type=_INT8, ptx=(6, 3), sm="sm_72"),
    _load(f"{_B}.layout.m16n16k16{{.ss}}.type  d:w.b32*2, {_P}", type=_INT8, ptx=(6, 3), sm="sm_72"),
    _load(f"{_B}.layout.m8n32k16{{.ss}}.type   d:w.b32*4, {_P}", type=_INT8, ptx=(6, 3), sm="sm_72"),
    _load(f"{_B}.layout.m32n8k16{{.ss}}.type   d:w.b32*1, {_P}", type=_INT8, ptx=(6, 3), sm="sm_72"),

    _load(f"{_A}.layout.m16n16k16{{.ss}}.bf16  d:w.bf16x2*4, {_P}", ptx=(7, 0), sm="sm_80"),
    _load(f"{_A}.layout.m8n32k16{{.ss}}.bf16   d:w.bf16x2*2, {_P}", ptx=(7, 0), sm="sm_80"),
    _load(f"{_A}.layout.m32n8k16{{.ss}}.bf16   d:w.bf16x2*8, {_P}", ptx=(7, 0), sm="sm_80"),
    _load(f"{_B}.layout.m16n16k16{{.ss}}.bf16  d:w.bf16x2*4, {_P}", ptx=(7, 0), sm="sm_80"),
    _load(f"{_B}.layout.m8n32k16{{.ss}}.bf16   d:w.bf16x2*8, {_P}", ptx=(7, 0), sm="sm_80"),
    _load(f"{_B}.layout.m32n8k16{{.ss}}.bf16   d:w.bf16x2*2, {_P}", ptx=(7, 0), sm="sm_80"),
    _load("wmma.load.side.sync.aligned.layout.m16n16k8{.ss}.tf32  d:w.tf32*4, [p]{, stride:.u32}",
          side="a b", ptx=(7, 0), sm="sm_80"),
    _load(f"{_C}.layout.m16n16k8{{.ss}}.f32  d:w.f32*8, {_P}", ptx=(7, 0), sm="sm_80"),
    _load("wmma.load.side.sync.aligned.layout.m8n8k4{.ss}.f64  d:w.f64*1, [p]{, stride:.u32}",
          side="a b", ptx=(7, 0), sm="sm_80"),
    _load(f"{_C}.layout.m8n8k4{{.ss}}.f64  d:w.f64*2, {_P}", ptx=(7, 0), sm="sm_80"),
    _load(f"{_A}.row.m8n8k32{{.ss}}.type  d:w.b32*1, {_P}", type=_INT4, ptx=(6, 3), sm="sm_75"),
    _load(f"{_B}.col.m8n8k32{{.ss}}.type  d:w.b32*1, {_P}", type=_INT4, ptx=(6, 3), sm="sm_75"),
    _load(f"{_A}.row.m8n8k128{{.ss}}.b1   d:w.b32*1, {_P}", ptx=(6, 3), sm="sm_75"),
    _load(f"{_B}.col.m8n8k128{{.ss}}.b1   d:w.b32*1, {_P}", ptx=(6, 3), sm="sm_75"),
    _load(f"{_C}.layout.shape{{.ss}}.s32  d:w.s32*2, {_P}", shape="m8n8k32 m8n8k128", ptx=(6, 3), sm="sm_75"),

    _store(f"{_D}.layout.shape{{.ss}}.f16  [p:w], a:reg.f16x2*4{{, stride:.u32}}",
           shape=_SHAPES, ptx=(6, 3), sm="sm_70"),
    _store(f"{_D}.layout.shape{{.ss}}.f32  [p:w], a:reg.f32*8{{, stride:.u32}}",
           shape=_SHAPES, ptx=(6, 3), sm="sm_70"),
    _store(f"{_D}.layout.shape{{.ss}}.s32  [p:w], a:reg.s32*8{{, stride:.u32}}",
           shape="m16n16k16 m8n32k16 m32n8k16", ptx=(6, 3), sm="sm_72"),
    _store(f"{_D}.layout.shape{{.ss}}.s32  [p:w], a:reg.s32*2{{, stride:.u32}}",
           shape="m8n8k32 m8n8k128", ptx=(6, 3), sm="sm_75"),
    _store(f"{_D}.layout.m16n16k8{{.ss}}.f32  [p:w], a:reg.f32*8{{, stride:.u32}}", ptx=(7, 0), sm="sm_80"),
    _store(f"{_D}.layout.m8n8k4{{.ss}}.f64  [p:w], a:reg.f64*2{{, stride:.u32}}", ptx=(7, 0), sm="sm_80"),

    _mma(f"{_OF_FLOAT}.f16.f16  d:w.f16x2*4, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f16x2*4",
         shape=_SHAPES, ptx=(6, 3), sm="sm_70"),
    _mma(f"{_OF_FLOAT}.f32.f16  d:w.f32*8, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f16x2*4",
         shape=_SHAPES, ptx=(6, 3), sm="sm_70"),
    _mma(f"{_OF_FLOAT}.f16.f32  d:w.f16x2*4, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f32*8",
         shape=_SHAPES, ptx=(6, 3), sm="sm_70"),
    _mma(f"{_OF_FLOAT}.f32.f32  d:w.f32*8, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f32*8",
         shape=_SHAPES, ptx=(6, 3), sm="sm_70"),
    _mma(f"{_M}.a.b.m16n16k16.s32.types.s32{{.satfinite}}  d:w.s32*8, x:reg.b32*2, y:reg.b32*2, c:reg.s32*8",
         types=_INT8_PAIRS, ptx=(6, 3), sm="sm_72"),
    _mma(f"{_M}.a.b.m8n32k16.s32.types.s32{{.satfinite}}   d:w.s32*8, x:reg.b32*1, y:reg.b32*4, c:reg.s32*8",
         types=_INT8_PAIRS, ptx=(6, 3), sm="sm_72"),
    _mma(f"{_M}.a.b.m32n8k16.s32.types.s32{{.satfinite}}   d:w.s32*8, x:reg.b32*4, y:reg.b32*1, c:reg.s32*8",
         types=_INT8_PAIRS, ptx=(6, 3), sm="sm_72"),
    _mma(f"{_M}.a.b.m16n16k16.f32.bf16.bf16.f32  d:w.f32*8, x:reg.bf16x2*4, y:reg.bf16x2*4, c:reg.f32*8",
         ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.a.b.m8n32k16.f32.bf16.bf16.f32   d:w.f32*8, x:reg.bf16x2*2, y:reg.bf16x2*8, c:reg.f32*8",
         ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.a.b.m32n8k16.f32.bf16.bf16.f32   d:w.f32*8, x:reg.bf16x2*8, y:reg.bf16x2*2, c:reg.f32*8",
         ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.a.b.m16n16k8.f32.tf32.tf32.f32   d:w.f32*8, x:reg.tf32*4, y:reg.tf32*4, c:reg.f32*8",
         ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.a.b.m8n8k4{{.rnd}}.f64.f64.f64.f64  d:w.f64*2, x:reg.f64*1, y:reg.f64*1, c:reg.f64*2",
         rnd="rn rz rm rp", ptx=(7, 0), sm="sm_80"),
    _mma(f"{_M}.row.col.m8n8k32.s32.types.s32{{.satfinite}}  d:w.s32*2, x:reg.b32*1, y:reg.b32*1, c:reg.s32*2",
         types=_INT4_PAIRS, ptx=(6, 3), sm="sm_75"),
    _mma("wmma.mma.op.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"
         "  d:w.s32*2, x:reg.b32*1, y:reg.b32*1, c:reg.s32*2", op="xor and@7.1,sm_80", ptx=(6, 3), sm="sm_75"),

    # Before 6.3 there was no .aligned; saturation of floats went with 6.5.
    _old_load("wmma.load.side.sync.layout.shape{.ss}.f16  d:w.f16x2*8, [p]{, stride:.u32}", side="a b"),
    _old_load("wmma.load.c.sync.layout.shape{.ss}.f16  d:w.f16x2*4, [p]{, stride:.u32}"),
    _old_load("wmma.load.c.sync.layout.shape{.ss}.f32  d:w.f32*8, [p]{, stride:.u32}"),
    _old_load("wmma.store.d.sync.layout.shape{.ss}.f16  [p:w], a:reg.f16x2*4{, stride:.u32}", see=_STORE),
    _old_load("wmma.store.d.sync.layout.shape{.ss}.f32  [p:w], a:reg.f32*8{, stride:.u32}", see=_STORE),
    _old_mma("wmma.mma.sync.a.b.shape.f16.f16{.satfinite}  d:w.f16x2*4, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f16x2*4"),
    _old_mma("wmma.mma.sync.a.b.shape.f32.f16{.satfinite}  d:w.f32*8, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f16x2*4"),
    _old_mma("wmma.mma.sync.a.b.shape.f16.f32{.satfinite}  d:w.f16x2*4, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f32*8"),
    _old_mma("wmma.mma.sync.a.b.shape.f32.f32{.satfinite}  d:w.f32*8, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f32*8"),
    _mma("wmma.mma.sync.aligned.a.b.shape.f16.f16.satfinite  d:w.f16x2*4, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f16x2*4",
         shape=_SHAPES, ptx=(6, 3), sm="sm_70", removed=((6, 5), "")),
    _mma("wmma.mma.sync.aligned.a.b.shape.f32.f16.satfinite  d:w.f32*8, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f16x2*4",
         shape=_SHAPES, ptx=(6, 3), sm="sm_70", removed=((6, 5), "")),
    _mma("wmma.mma.sync.aligned.a.b.shape.f16.f32.satfinite  d:w.f16x2*4, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f32*8",
         shape=_SHAPES, ptx=(6, 3), sm="sm_70", removed=((6, 5), "")),
    _mma("wmma.mma.sync.aligned.a.b.shape.f32.f32.satfinite  d:w.f32*8, x:reg.f16x2*8, y:reg.f16x2*8, c:reg.f32*8",
         shape=_SHAPES, ptx=(6, 3), sm="sm_70", removed=((6, 5), "")),
)  # fmt: skip
