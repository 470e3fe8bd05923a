"""Manual: TensorCore 5th Generation: tensor memory, its copies and synchronization (`tcgen05_mma` has the products)."""

from __future__ import annotations

from functools import partial

from pyptx.isa.choices import FAMILY_100, MULTICAST
from pyptx.isa.notation import form

MEANING = {
    "tcgen05.alloc": "Allocate columns of tensor memory and write their address to shared memory.",
    "tcgen05.dealloc": "Free columns of tensor memory.",
    "tcgen05.relinquish_alloc_permit": "Relinquish this CTA's right to allocate tensor memory.",
    "tcgen05.ld": "Load from tensor memory into registers, asynchronously.",
    "tcgen05.st": "Store registers into tensor memory, asynchronously.",
    "tcgen05.wait": "Wait until this thread's tensor memory loads or stores have completed.",
    "tcgen05.cp": "Copy from shared into tensor memory, asynchronously.",
    "tcgen05.shift": "Shift rows of tensor memory down, asynchronously.",
    "tcgen05.fence": "Order asynchronous tcgen05 operations with thread synchronization.",
    "tcgen05.commit": "Arrive at a memory barrier when this thread's earlier asynchronous operations have completed.",
}
TRAITS = {
    "tcgen05.alloc": "tensor suspends:columns allocates:columns",
    "tcgen05.dealloc": "tensor suspends:columns frees:columns",
    "tcgen05.relinquish_alloc_permit": "tensor frees:permit",
    "tcgen05.ld": "tensor issues:tcgen05.ld",
    "tcgen05.st": "tensor issues:tcgen05.st",
    "tcgen05.wait::ld": "tensor lands:tcgen05.ld",
    "tcgen05.wait::st": "tensor lands:tcgen05.st",
    "tcgen05.cp": "tensor moves:copy issues:tcgen05",
    "tcgen05.shift": "tensor moves:shift issues:tcgen05",
    "tcgen05.fence": "tensor orders:tcgen05",
    "tcgen05.commit": "tensor commits:tcgen05 signals:arrival",
}

_SEE = "tcgen05-instructions-tcgen05"
_GROUP = "cta_group::1 cta_group::2"
_RED = "sm_103f|sm_110a|sm_110f"

_tcgen05 = partial(form, ptx=(8, 6), sm=FAMILY_100)
_group = partial(_tcgen05, cta_group=_GROUP)
_load = partial(_tcgen05, see=f"{_SEE}-ld")
_reduce = partial(form, ptx=(8, 8), sm=_RED, see=f"{_SEE}-ld", num="x2 x4 x8 x16 x32 x64 x128", op="min max")
_compress = partial(form, ptx=(9, 4), sm="sm_107a", see=f"{_SEE}-ld", op="min max", num="x4 x8 x16 x32 x64 x128")
_store = partial(_tcgen05, see=f"{_SEE}-st")
_copy = partial(_group, formats="b8x16.b6x16_p32 b8x16.b4x16_p64", see=f"{_SEE}-cp")

_64 = "x1 x2 x4 x8 x16 x32 x64 x128"
_128 = "x1 x2 x4 x8 x16 x32 x64"
_256 = "x1 x2 x4 x8 x16 x32"
_LD = "tcgen05.ld.sync.aligned"
_ST = "tcgen05.st.sync.aligned"
_SP = "spcompress.sync.aligned.32x32b.num.op.sp::2:4"
_T = "[t@tmem:reg.u32]"
_TO = "[t@tmem:wreg.u32]"

FORMS = (
    _group("tcgen05.alloc.cta_group.sync.aligned{.shared::cta}.b32  [d:w], columns:val[32..512/32].u32",
           see=f"{_SEE}-alloc-dealloc-relinquish-alloc-permit"),
    _group("tcgen05.alloc.cta_group.exclusive.sync.aligned{.shared::cta}.b32"
           "  [d:w], columns:val[32..4294967264/32].u32",
           ptx=(9, 4), sm="sm_100f sm_110f", see=f"{_SEE}-alloc-dealloc-relinquish-alloc-permit"),
    _group("tcgen05.dealloc.cta_group.sync.aligned.b32  t:.u32, columns:val[32..512/32].u32",
           see=f"{_SEE}-alloc-dealloc-relinquish-alloc-permit"),
    _group("tcgen05.dealloc.cta_group.exclusive.sync.aligned.b32  t:.u32, columns:val[32..512/32].u32",
           ptx=(9, 4), sm="sm_100f sm_110f", see=f"{_SEE}-alloc-dealloc-relinquish-alloc-permit"),
    _group("tcgen05.relinquish_alloc_permit.cta_group.sync.aligned",
           see=f"{_SEE}-alloc-dealloc-relinquish-alloc-permit"),

    _load(f"{_LD}.shape.num{{.pack::16b}}.b32     d:w.b32*num, {_T}", shape="16x64b 32x32b", num=_64),
    _load(f"{_LD}.16x128b.num{{.pack::16b}}.b32   d:w.b32*num*2, {_T}", num=_128),
    _load(f"{_LD}.16x256b.num{{.pack::16b}}.b32   d:w.b32*num*4, {_T}", num=_256),
    _load(f"{_LD}.16x32bx2.num{{.pack::16b}}.b32  d:w.b32*num, {_T}, split:imm", num=_64),
    _reduce("tcgen05.ld.red.sync.aligned.32x32b.num.op{.abs}{.NaN}.f32  d:w.b32*num, r:w.b32~, [t@tmem:reg.u32]"),
    _reduce("tcgen05.ld.red.sync.aligned.16x32bx2.num.op{.abs}{.NaN}.f32"
            "  d:w.b32*num, r:w.b32~, [t@tmem:reg.u32], split:imm"),
    _reduce("tcgen05.ld.red.sync.aligned.32x32b.num.op.type  d:w.b32*num, r:w.b32~, [t@tmem:reg.u32]", type="u32 s32"),
    _reduce("tcgen05.ld.red.sync.aligned.16x32bx2.num.op.type  d:w.b32*num, r:w.b32~, [t@tmem:reg.u32], split:imm",
            type="u32 s32"),
    # A register of metadata serves 32 columns.
    _compress(f"tcgen05.ld.{_SP}{{.abs}}.f32.b2  meta:w.b32*num/32, d:w.b32*num/2, {_T}"),
    _compress(f"tcgen05.ld.red.{_SP}{{.abs}}{{.NaN}}.f32.b2  meta:w.b32*num/32, d:w.b32*num/2, r:w.b32~, {_T}"),
    _store(f"{_ST}.shape.num{{.unpack::16b}}.b32     {_TO}, a:.b32*num", shape="16x64b 32x32b", num=_64),
    _store(f"{_ST}.16x128b.num{{.unpack::16b}}.b32   {_TO}, a:.b32*num*2", num=_128),
    _store(f"{_ST}.16x256b.num{{.unpack::16b}}.b32   {_TO}, a:.b32*num*4", num=_256),
    _store(f"{_ST}.16x32bx2.num{{.unpack::16b}}.b32  {_TO}, split:imm, a:.b32*num", num=_64),
    _tcgen05("tcgen05.which.sync.aligned", which="wait::ld wait::st", see=f"{_SEE}-wait"),

    _copy(f"tcgen05.cp.cta_group.shape{{.formats}}  {_TO}, a:.u64", shape="128x256b 4x256b 128x128b"),
    _copy(f"tcgen05.cp.cta_group.64x128b.warps{{.formats}}  {_TO}, a:.u64", warps="warpx2::02_13 warpx2::01_23"),
    _copy(f"tcgen05.cp.cta_group.32x128b.warpx4{{.formats}}  {_TO}, a:.u64"),
    _group("tcgen05.shift.cta_group.down  [t@tmem:rwreg.u32]", sm="sm_100a sm_103a sm_107a sm_110a",
           see=f"{_SEE}-shift"),
    _tcgen05("tcgen05.when", when="fence::before_thread_sync fence::after_thread_sync", see=f"{_SEE}-fence"),
    _group("tcgen05.commit.cta_group.mbarrier::arrive::one{.shared::cluster}{.multicast}.b64"
           "  [mbar:rw]{?multicast, ctas:val[0..65535].u16}", multicast=MULTICAST, see=f"{_SEE}-commit"),
    _group("tcgen05.commit.cta_group.mbarrier::arrive::one{.shared::cluster}.multicast::cluster::32b.b64"
           "  [mbar:rw], ctas:.u32", ptx=(9, 4), sm="sm_107f", see=f"{_SEE}-commit"),
)  # fmt: skip
