"""Manual: TensorCore 5th Generation: tcgen05.mma, dense and sparse, block-scaled and weight-stationary."""

from __future__ import annotations

from functools import partial

from pyptx.isa.choices import FAMILY_100
from pyptx.isa.notation import form

MEANING = {
    "tcgen05.mma": "Multiply matrices in shared or tensor memory and accumulate in tensor memory, asynchronously.",
    "tcgen05.mma.ws": "The same with B kept in the collector: weight-stationary.",
}
TRAITS = {
    "tcgen05.mma": "tensor multiplies issues:tcgen05",
    "tcgen05.mma.ws": "tensor multiplies issues:tcgen05",
}

_SEE = "tcgen05-mma-instructions-mma"
_GROUP = "cta_group::1 cta_group::2"
_ONLY_A = "sm_100a|sm_103a|sm_107a|sm_110a"
_USES = ("fill", "use", "lastuse", "discard")
_REUSE = " ".join(f"collector::a::{use}" for use in _USES)
_SHIFTED = "collector::a::lastuse collector::a::discard"
_KEEP = " ".join(f"collector::b::{use}@9.4,sm_107f" for use in _USES)
_BUFFERS = " ".join(f"collector::b{buffer}::{use}" for buffer in range(4) for use in _USES)
_KIND = "kind::f16 kind::tf32 kind::f8f6f4 kind::i8@8.6,sm_100a|sm_110a kind::ti16@9.4,sm_107f"
_SCALES = (
    f"kind::mxf8f6f4.block_scale kind::mxf8f6f4.block_scale.scale_vec::1X@8.6,{_ONLY_A} "
    f"kind::mxf8f6f4.block_scale.block32@8.8"
)
_FOUR_BITS = (
    f"kind::mxf4.block_scale kind::mxf4.block_scale.scale_vec::2X@8.6,{_ONLY_A} kind::mxf4.block_scale.block32@8.8 "
    f"kind::mxf4nvf4.block_scale.scale_vec::2X@8.7,{_ONLY_A} kind::mxf4nvf4.block_scale.scale_vec::4X@8.7,{_ONLY_A} "
    f"kind::mxf4nvf4.block_scale.block16@8.8 kind::mxf4nvf4.block_scale.block32@8.8"
)

_D = "[d@tmem:rwreg.u32]"
_SHARED = f"{_D}, a:.u64, b:.u64"
_TENSOR = f"{_D}, [a@tmem:reg.u32], b:.u64"
_LANES = "{, disabled:.u32*cta_group*4}, {!}accumulate:.pred"
_META = "{?sp, [meta@tmem:reg.u32]}, idesc:.u32"
_LUT = ", [lut@tmem:reg.u32], idesc:.u32"
_BLOCKS = ", [scale_a@tmem:reg.u32], [scale_b@tmem:reg.u32], {!}accumulate:.pred"
_MMA = "tcgen05.mma{.sp}.cta_group"
_WS = "tcgen05.mma.ws{.sp}.cta_group::1"

_mma = partial(form, cta_group=_GROUP, reuse=_REUSE, keep=_KEEP, ptx=(8, 6), sm=FAMILY_100, see=_SEE)
_scaled = partial(_mma, kind="kind::f16 kind::tf32", sm="sm_100a sm_100f:8.8")
_lut = partial(
    form, cta_group=_GROUP, reuse=_REUSE, keep=_KEEP, vector="block32 scale_vec::1X@9.4,sm_107a",
    ptx=(9, 4), sm="sm_107f", see=_SEE,
)  # fmt: skip
_ws = partial(form, kind=_KIND, keep=_BUFFERS, ptx=(8, 6), sm=FAMILY_100, see=f"{_SEE}-ws")

FORMS = (
    _mma(f"{_MMA}.kind{{.reuse}}{{.keep}}         {_SHARED}{_META}{_LANES}", kind=_KIND),
    _mma(f"{_MMA}.kind{{.reuse}}{{.keep}}         {_TENSOR}{_META}{_LANES}", kind=_KIND),
    _mma(f"{_MMA}.kind.ashift{{.reuse}}{{.keep}}  {_TENSOR}{_META}{_LANES}", kind=_KIND, reuse=_SHIFTED),
    _scaled(f"{_MMA}.kind{{.reuse}}{{.keep}}         {_SHARED}{_META}{_LANES}, scale:imm[0..15]"),
    _scaled(f"{_MMA}.kind{{.reuse}}{{.keep}}         {_TENSOR}{_META}{_LANES}, scale:imm[0..15]"),
    _scaled(f"{_MMA}.kind.ashift{{.reuse}}{{.keep}}  {_TENSOR}{_META}{_LANES}, scale:imm[0..15]", reuse=_SHIFTED),
    _mma(f"{_MMA}.kind{{.reuse}}{{.keep}}         {_SHARED}{_META}{_BLOCKS}", kind=_SCALES),
    _mma(f"{_MMA}.kind{{.reuse}}{{.keep}}         {_TENSOR}{_META}{_BLOCKS}", kind=_SCALES),
    _mma(f"tcgen05.mma.cta_group.kind{{.reuse}}{{.keep}}     {_SHARED}, idesc:.u32{_BLOCKS}", kind=_FOUR_BITS),
    _mma(f"tcgen05.mma.cta_group.kind{{.reuse}}{{.keep}}     {_TENSOR}, idesc:.u32{_BLOCKS}", kind=_FOUR_BITS),
    _mma(f"tcgen05.mma.sp.cta_group.kind{{.reuse}}{{.keep}}  {_SHARED}{_META}{_BLOCKS}", kind=_FOUR_BITS, sm=_ONLY_A),
    _mma(f"tcgen05.mma.sp.cta_group.kind{{.reuse}}{{.keep}}  {_TENSOR}{_META}{_BLOCKS}", kind=_FOUR_BITS, sm=_ONLY_A),

    _lut(f"tcgen05.mma.cta_group.kind::f8f6f4.decompress::lut::b{{.reuse}}{{.keep}}  {_SHARED}{_LUT}{_LANES}"),
    _lut(f"tcgen05.mma.cta_group.kind::f8f6f4.decompress::lut::b{{.reuse}}{{.keep}}  {_TENSOR}{_LUT}{_LANES}"),
    _lut("tcgen05.mma.cta_group.kind::mxf8f6f4.block_scale.decompress::lut::b{.vector}{.reuse}{.keep}"
         f"  {_SHARED}{_LUT}{_BLOCKS}"),
    _lut("tcgen05.mma.cta_group.kind::mxf8f6f4.block_scale.decompress::lut::b{.vector}{.reuse}{.keep}"
         f"  {_TENSOR}{_LUT}{_BLOCKS}"),

    _ws(f"{_WS}.kind{{.keep}}  {_SHARED}{_META}, {{!}}accumulate:.pred{{, columns:.u64}}"),
    _ws(f"{_WS}.kind{{.keep}}  {_TENSOR}{_META}, {{!}}accumulate:.pred{{, columns:.u64}}"),
)  # fmt: skip
