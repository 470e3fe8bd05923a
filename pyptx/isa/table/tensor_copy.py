"""Manual: Data Movement and Conversion Instructions: Tensor copy."""

from __future__ import annotations

from functools import partial

from pyptx.isa.choices import FAMILY_100, MULTICAST, REPORT
from pyptx.isa.notation import form

MEANING = {
    "cp.async.bulk.tensor": "Copy a box of a tensor between global and shared memory, as described by a tensor map.",
    "cp.reduce.async.bulk.tensor": "Reduce a box in shared memory into a tensor in global memory, asynchronously.",
    "cp.async.bulk.prefetch.tensor": "Prefetch a box of a tensor into L2.",
    "applypriority.async.bulk.tensor": "Change the L2 eviction priority of a box of a tensor, asynchronously.",
}
TRAITS = {
    "cp.async.bulk.tensor": "issues:bulk",
    "cp.reduce.async.bulk.tensor": "issues:bulk",
    "cp.async.bulk.prefetch.tensor": "hints",
    "applypriority.async.bulk.tensor": "hints",
}

_SEE = "data-movement-and-conversion-instructions"
_ALL = "1d 2d 3d 4d 5d"
_MANY = "2d 3d 4d 5d"
_IM2COL = "3d 4d 5d"
_BOTH = "shared::cta@8.6 shared::cluster"
_NEWER = f"shared::cta@8.6,sm_100 shared::cluster@8.6,{FAMILY_100}"
_W = f"im2col::w im2col::w::128@8.6,{FAMILY_100}"
_NO_OFFSETS = "im2col_no_offs im2col_no_offs::w@9.4,sm_107f"
_BASE = "override::global_address@9.4,sm_107f"

_LOAD = "mbarrier::complete_tx::bytes{.report}{.cta_group}{.hint}"
_CAST = "mbarrier::complete_tx::bytes{.report}.multicast{.cta_group}{.hint}"
_WIDE = "mbarrier::complete_tx::bytes{.report}.multicast::cluster::32b{.cta_group}{.hint}"
_1D = "override::global_address.override::global_dim"
_ND = "override::global_address.override::global_dim_stride"

_D, _MBAR = "[d@dst:w]", "[mbar@dst:rw]"
_FAR, _FAR_MBAR = "[d@shared::cluster:w]", "[mbar@shared::cluster:rw]"
_MAP = "map@generic{?base, address:reg.u64}"
_MAP_1D = "map@generic, address:reg.u64, size:.u16*1"
_MAP_ND = "map@generic, address:reg.u64, size:.u16*dim, low:reg.u32*dim-1, high:reg.u16"
_END = "{?hint, policy:.u64}"
_POLICY = "{?L2::cache_hint, policy:.u64}"

_copy = partial(form, hint="L2::cache_hint", base=_BASE, ptx=(8, 0), sm="sm_90", see=f"{_SEE}-cp-async-bulk-tensor")
_load = partial(_copy, cta_group=f"cta_group::1@8.6,{FAMILY_100} cta_group::2@8.6,{FAMILY_100}", report=REPORT)
_cast = partial(_load, multicast=MULTICAST)
_wide = partial(_load, ptx=(9, 4), sm="sm_107f")
_reduce = partial(_copy, op="add min max inc dec and or xor", see=f"{_SEE}-cp-reduce-async-bulk-tensor")
_prefetch = partial(
    _copy, hint="L2::cache_hint L2::evict_last@9.4,sm_107f", see=f"{_SEE}-cp-async-bulk-prefetch-tensor",
)  # fmt: skip
_priority = partial(form, base=_BASE, ptx=(9, 4), sm="sm_107f", see=f"{_SEE}-applypriority-async-bulk-tensor")

FORMS = (
    _load(f"cp.async.bulk.tensor.dim.dst.global{{.tile}}.{_LOAD}{{.base}}  {_D}, [{_MAP}, at:.s32*dim], {_MBAR}{_END}",
          dim=_ALL, dst=_BOTH),
    _load(f"cp.async.bulk.tensor.1d.dst.global{{.tile}}.{_LOAD}.{_1D}  {_D}, [{_MAP_1D}, at:.s32*1], {_MBAR}{_END}",
          dst=_BOTH, ptx=(9, 4), sm="sm_107f"),
    _load(f"cp.async.bulk.tensor.dim.dst.global{{.tile}}.{_LOAD}.{_ND}  {_D}, [{_MAP_ND}, at:.s32*dim], {_MBAR}{_END}",
          dim=_MANY, dst=_BOTH, ptx=(9, 4), sm="sm_107f"),
    _load(f"cp.async.bulk.tensor.2d.dst.global.tile::gather4.{_LOAD}{{.base}}"
          f"  {_D}, [{_MAP}, at:.s32*5], {_MBAR}{_END}", dst=_NEWER),
    _load(f"cp.async.bulk.tensor.dim.dst.global.im2col.{_LOAD}{{.base}}"
          f"  {_D}, [{_MAP}, at:.s32*dim], {_MBAR}, offsets:.u16*dim-2{_END}", dim=_IM2COL, dst=_BOTH),
    _load(f"cp.async.bulk.tensor.dim.dst.global.mode.{_LOAD}{{.base}}"
          f"  {_D}, [{_MAP}, at:.s32*dim], {_MBAR}, halo:.u16*2{_END}", dim=_IM2COL, dst=_NEWER, mode=_W),

    _cast(f"cp.async.bulk.tensor.dim.shared::cluster.global{{.tile}}.{_CAST}{{.base}}"
          f"  {_FAR}, [{_MAP}, at:.s32*dim], {_FAR_MBAR}, ctas:val[0..65535].u16{_END}", dim=_ALL),
    _cast(f"cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.{_CAST}{{.base}}"
          f"  {_FAR}, [{_MAP}, at:.s32*5], {_FAR_MBAR}, ctas:val[0..65535].u16{_END}", ptx=(8, 6), sm=FAMILY_100),
    _cast(f"cp.async.bulk.tensor.dim.shared::cluster.global.im2col.{_CAST}{{.base}}"
          f"  {_FAR}, [{_MAP}, at:.s32*dim], {_FAR_MBAR}, offsets:.u16*dim-2, ctas:val[0..65535].u16{_END}",
          dim=_IM2COL),
    _cast(f"cp.async.bulk.tensor.dim.shared::cluster.global.mode.{_CAST}{{.base}}"
          f"  {_FAR}, [{_MAP}, at:.s32*dim], {_FAR_MBAR}, halo:.u16*2, ctas:val[0..65535].u16{_END}",
          dim=_IM2COL, mode=_W, ptx=(8, 6), sm=FAMILY_100),

    _wide(f"cp.async.bulk.tensor.dim.shared::cluster.global{{.tile}}.{_WIDE}{{.base}}"
          f"  {_FAR}, [{_MAP}, at:.s32*dim], {_FAR_MBAR}, ctas:.u32{_END}", dim=_ALL),
    _wide(f"cp.async.bulk.tensor.1d.shared::cluster.global{{.tile}}.{_WIDE}.{_1D}"
          f"  {_FAR}, [{_MAP_1D}, at:.s32*1], {_FAR_MBAR}, ctas:.u32{_END}"),
    _wide(f"cp.async.bulk.tensor.dim.shared::cluster.global{{.tile}}.{_WIDE}.{_ND}"
          f"  {_FAR}, [{_MAP_ND}, at:.s32*dim], {_FAR_MBAR}, ctas:.u32{_END}", dim=_MANY),
    _wide(f"cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.{_WIDE}{{.base}}"
          f"  {_FAR}, [{_MAP}, at:.s32*5], {_FAR_MBAR}, ctas:.u32{_END}"),
    _wide(f"cp.async.bulk.tensor.dim.shared::cluster.global.im2col.{_WIDE}{{.base}}"
          f"  {_FAR}, [{_MAP}, at:.s32*dim], {_FAR_MBAR}, offsets:.u16*dim-2, ctas:.u32{_END}", dim=_IM2COL),
    _wide(f"cp.async.bulk.tensor.dim.shared::cluster.global.mode.{_WIDE}{{.base}}"
          f"  {_FAR}, [{_MAP}, at:.s32*dim], {_FAR_MBAR}, halo:.u16*2, ctas:.u32{_END}", dim=_IM2COL, mode=_W),

    _copy(f"cp.async.bulk.tensor.dim.global.shared::cta{{.tile}}.bulk_group{{.hint}}{{.base}}"
          f"  [{_MAP}, at:.s32*dim], [a@shared::cta]{_END}", dim=_ALL),
    _copy(f"cp.async.bulk.tensor.1d.global.shared::cta{{.tile}}.bulk_group{{.hint}}.{_1D}"
          f"  [{_MAP_1D}, at:.s32*1], [a@shared::cta]{_END}", ptx=(9, 4), sm="sm_107f"),
    _copy(f"cp.async.bulk.tensor.dim.global.shared::cta{{.tile}}.bulk_group{{.hint}}.{_ND}"
          f"  [{_MAP_ND}, at:.s32*dim], [a@shared::cta]{_END}", dim=_MANY, ptx=(9, 4), sm="sm_107f"),
    _copy(f"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group{{.hint}}{{.base}}"
          f"  [{_MAP}, at:.s32*5], [a@shared::cta]{_END}", ptx=(8, 6), sm=FAMILY_100),
    _copy(f"cp.async.bulk.tensor.dim.global.shared::cta.mode.bulk_group{{.hint}}{{.base}}"
          f"  [{_MAP}, at:.s32*dim], [a@shared::cta]{_END}", dim=_IM2COL, mode=_NO_OFFSETS),

    _reduce(f"cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{{.tile}}.bulk_group{{.hint}}{{.base}}"
            f"  [{_MAP}, at:.s32*dim], [a@shared::cta]{_END}", dim=_ALL),
    _reduce(f"cp.reduce.async.bulk.tensor.1d.global.shared::cta.op{{.tile}}.bulk_group{{.hint}}.{_1D}"
            f"  [{_MAP_1D}, at:.s32*1], [a@shared::cta]{_END}", ptx=(9, 4), sm="sm_107f"),
    _reduce(f"cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{{.tile}}.bulk_group{{.hint}}.{_ND}"
            f"  [{_MAP_ND}, at:.s32*dim], [a@shared::cta]{_END}", dim=_MANY, ptx=(9, 4), sm="sm_107f"),
    # The manual gives reductions no scatter mode; ptxas has it where copies have it.
    _reduce(f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.op.tile::scatter4.bulk_group{{.hint}}{{.base}}"
            f"  [{_MAP}, at:.s32*5], [a@shared::cta]{_END}", ptx=(8, 6), sm=FAMILY_100),
    _reduce(f"cp.reduce.async.bulk.tensor.dim.global.shared::cta.op.mode.bulk_group{{.hint}}{{.base}}"
            f"  [{_MAP}, at:.s32*dim], [a@shared::cta]{_END}", dim=_IM2COL, mode=_NO_OFFSETS),

    _prefetch(f"cp.async.bulk.prefetch.tensor.dim.L2.global{{.tile}}{{.hint}}{{.base}}  [{_MAP}, at:.s32*dim]{_POLICY}",
              dim=_ALL),
    _prefetch(f"cp.async.bulk.prefetch.tensor.1d.L2.global{{.tile}}{{.hint}}.{_1D}  [{_MAP_1D}, at:.s32*1]{_POLICY}",
              ptx=(9, 4), sm="sm_107f"),
    _prefetch(f"cp.async.bulk.prefetch.tensor.dim.L2.global{{.tile}}{{.hint}}.{_ND}  [{_MAP_ND}, at:.s32*dim]{_POLICY}",
              dim=_MANY, ptx=(9, 4), sm="sm_107f"),
    _prefetch(f"cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4{{.hint}}{{.base}}"
              f"  [{_MAP}, at:.s32*5]{_POLICY}", ptx=(8, 6), sm=FAMILY_100),
    _prefetch(f"cp.async.bulk.prefetch.tensor.dim.L2.global.im2col{{.hint}}{{.base}}"
              f"  [{_MAP}, at:.s32*dim], offsets:.u16*dim-2{_POLICY}", dim=_IM2COL),
    _prefetch(f"cp.async.bulk.prefetch.tensor.dim.L2.global.mode{{.hint}}{{.base}}"
              f"  [{_MAP}, at:.s32*dim], halo:.u16*2{_POLICY}", dim=_IM2COL, mode=_W, ptx=(8, 6), sm=FAMILY_100),

    _priority(f"applypriority.async.bulk.tensor.dim{{.global}}{{.tile}}.bulk_group{{.base}}.L2::evict_normal"
              f"  [{_MAP}, at:.s32*dim]", dim=_ALL),
    _priority(f"applypriority.async.bulk.tensor.2d{{.global}}.mode.bulk_group{{.base}}.L2::evict_normal"
              f"  [{_MAP}, at:.s32*5]", mode="tile::gather4 tile::scatter4"),
    _priority(f"applypriority.async.bulk.tensor.dim{{.global}}.mode.bulk_group{{.base}}.L2::evict_normal"
              f"  [{_MAP}, at:.s32*dim]", dim=_IM2COL, mode=_NO_OFFSETS),
    _priority(f"applypriority.async.bulk.tensor.dim{{.global}}.im2col.bulk_group{{.base}}.L2::evict_normal"
              f"  [{_MAP}, at:.s32*dim], offsets:.u16*dim-2", dim=_IM2COL),
    _priority(f"applypriority.async.bulk.tensor.dim{{.global}}.mode.bulk_group{{.base}}.L2::evict_normal"
              f"  [{_MAP}, at:.s32*dim], halo:.u16*2", dim=_IM2COL, mode=_W),
)  # fmt: skip
