"""Manual: Data Movement and Conversion Instructions: multimem.ld_reduce, .st, .red, .st.async."""

from __future__ import annotations

from pyptx.isa.choices import MEM
from pyptx.isa.notation import form

MEANING = {
    "multimem.ld_reduce": "Load from every replica of a multimem address and reduce the values.",
    "multimem.st": "Store to every replica of a multimem address.",
    "multimem.red": "Reduce a value into every replica of a multimem address.",
    "multimem.st.async": "Store asynchronously to every replica of a multimem address, in release order.",
}
TRAITS = {
    "multimem.ld_reduce": "loads",
    "multimem.st": "stores",
    "multimem.red": "updates",
    "multimem.st.async": "issues:store",
}

_SEE = "data-movement-and-conversion-instructions-multimem"
_ASYNC = "data-movement-and-conversion-instructions-multimem-st-async"
_90 = "8.1,sm_90"
_FP8 = "8.6,sm_100f|sm_110f|sm_120a|sm_121a"

_LD, _ST, _RED = (
    " ".join([*alone, *(f"{order}.{scope}" for order in orders for scope in ("cta", "cluster", "gpu", "sys"))])
    for alone, orders in (
        (["weak"], ["relaxed", "acquire"]),
        (["weak"], ["relaxed", "release"]),
        ([], ["relaxed", "release"]),
    )
)
"""An order needs a scope; .weak has none."""
_INT = (
    "add.u32 add.s32 add.u64 min.u32 min.s32 min.u64 min.s64 max.u32 max.s32 max.u64 max.s64 "
    "and.b32 and.b64 or.b32 or.b64 xor.b32 xor.b64"
)
"""The operation and its type are coupled."""
_WORD = "b32 b64 u32 u64 s32 s64 f32 f64"
_HALF, _HALF2 = "f16 bf16", "f16x2 bf16x2"
_E8, _E8X2, _E8X4 = "e5m2 e4m3", "e5m2x2 e4m3x2", "e5m2x4 e4m3x4"
_ACC32, _ACC16 = "acc::f32@8.2", "acc::f16"

_LOADS = (
    form(
        "multimem.ld_reduce{.sem}{.global}.op_type  d:w.op_type/1, [a]",
        sem=_LD, op_type=_INT, since=_90, see=_SEE,
    ),
    form("multimem.ld_reduce{.sem}{.global}.add.type          d:~, [a]", sem=_LD, type="f32 f64", since=_90, see=_SEE),
    form(
        "multimem.ld_reduce{.sem}{.global}.add.vec.f32  d:w_.f32*vec, [a]",
        sem=_LD, vec="v2 v4", since=_90, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.op.vec.type   d:w_.b16*vec, [a]",
        sem=_LD, op="min max", vec="v2 v4 v8", type=_HALF, since=_90, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.add{.acc}.vec.type  d:w_.b16*vec, [a]",
        sem=_LD, acc=_ACC32, vec="v2 v4 v8", type=_HALF, since=_90, see=_SEE,
    ),
    form("multimem.ld_reduce{.sem}{.global}.op.type d:~, [a]", sem=_LD, op="min max", type=_HALF2, since=_90, see=_SEE),
    form(
        "multimem.ld_reduce{.sem}{.global}.op.vec.type  d:w_.type*vec, [a]",
        sem=_LD, op="min max", vec="v2 v4", type=_HALF2, since=_90, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.add{.acc}.type  d:~, [a]",
        sem=_LD, acc=_ACC32, type=_HALF2, since=_90, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.add{.acc}.vec.type  d:w_.type*vec, [a]",
        sem=_LD, acc=_ACC32, vec="v2 v4", type=_HALF2, since=_90, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.op.vec.type  d:w_.b8*vec, [a]",
        sem=_LD, op="min max", vec="v4 v8", type=_E8, since=_FP8, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.add{.acc}.vec.type  d:w_.b8*vec, [a]",
        sem=_LD, acc=_ACC16, vec="v4 v8", type=_E8, since=_FP8, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.op.vec.type  d:w_.b16*vec, [a]",
        sem=_LD, op="min max", vec="v2 v4 v8", type=_E8X2, since=_FP8, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.add{.acc}.vec.type  d:w_.b16*vec, [a]",
        sem=_LD, acc=_ACC16, vec="v2 v4 v8", type=_E8X2, since=_FP8, see=_SEE,
    ),
    form("multimem.ld_reduce{.sem}{.global}.op.type d:~, [a]", sem=_LD, op="min max", type=_E8X4, since=_FP8, see=_SEE),
    form(
        "multimem.ld_reduce{.sem}{.global}.op.vec.type  d:w_.type*vec, [a]",
        sem=_LD, op="min max", vec="v2 v4", type=_E8X4, since=_FP8, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.add{.acc}.type  d:~, [a]",
        sem=_LD, acc=_ACC16, type=_E8X4, since=_FP8, see=_SEE,
    ),
    form(
        "multimem.ld_reduce{.sem}{.global}.add{.acc}.vec.type  d:w_.type*vec, [a]",
        sem=_LD, acc=_ACC16, vec="v2 v4", type=_E8X4, since=_FP8, see=_SEE,
    ),
)  # fmt: skip

_STORES = (
    form("multimem.st{.sem}{.global}.type        [a:w], b", sem=_ST, type=_WORD, since=_90, see=_SEE),
    form("multimem.st{.sem}{.global}.vec.f32     [a:w], b:.f32*vec", sem=_ST, vec="v2 v4", since=_90, see=_SEE),
    form(
        "multimem.st{.sem}{.global}.vec.type  [a:w], b:.b16*vec",
        sem=_ST, vec="v2 v4 v8", type=_HALF, since=_90, see=_SEE,
    ),
    form(
        "multimem.st{.sem}{.global}{.vec}.type  [a:w], b:reg.type~*vec",
        sem=_ST, vec="v2 v4", type=_HALF2, since=_90, see=_SEE,
    ),
    form(
        "multimem.st{.sem}{.global}.vec.type  [a:w], b:.b8*vec",
        sem=_ST, vec="v4 v8", type=_E8, since=_FP8, see=_SEE,
    ),
    form(
        "multimem.st{.sem}{.global}.vec.type  [a:w], b:.b16*vec",
        sem=_ST, vec="v2 v4 v8", type=_E8X2, since=_FP8, see=_SEE,
    ),
    form(
        "multimem.st{.sem}{.global}{.vec}.type  [a:w], b:.type~*vec",
        sem=_ST, vec="v2 v4", type=_E8X4, since=_FP8, see=_SEE,
    ),
    form(
        "multimem.st.async.release.scope{.global}.type  [a:w], b:.type+",
        scope="gpu sys", type=MEM, since="9.3,sm_100", see=_ASYNC,
    ),
)  # fmt: skip

_REDUCTIONS = (
    form(
        "multimem.red{.sem}{.global}.op_type  [a:w], b:.op_type/1",
        sem=_RED, op_type=_INT, since=_90, see=_SEE,
    ),
    form("multimem.red{.sem}{.global}.add{.vec}.f32     [a:w], b:.f32*vec", sem=_RED, vec="v2 v4", since=_90, see=_SEE),
    form("multimem.red{.sem}{.global}.add.f64           [a:w], b", sem=_RED, since=_90, see=_SEE),
    form(
        "multimem.red{.sem}{.global}.add{.vec}.type  [a:w], b:reg.type*vec",
        sem=_RED, vec="v2 v4", type=_HALF2, since=_90, see=_SEE,
    ),
    form(
        "multimem.red{.sem}{.global}.add.vec.type  [a:w], b:reg.type*vec",
        sem=_RED, vec="v2 v4 v8", type=_HALF, since=_90, see=_SEE,
    ),
    # The manual has .add only for floating point; ptxas accepts .min and .max of vectors.
    form(
        "multimem.red{.sem}{.global}.op.vec.type  [a:w], b:reg.type*vec",
        sem=_RED, op="min max", vec="v2 v4", type=_HALF2, since=_90, see=_SEE,
    ),
    form(
        "multimem.red{.sem}{.global}.op.vec.type  [a:w], b:reg.type*vec",
        sem=_RED, op="min max", vec="v2 v4 v8", type=_HALF, since=_90, see=_SEE,
    ),
)  # fmt: skip

FORMS = (*_LOADS, *_STORES, *_REDUCTIONS)
