"""Manual: Fabric Instructions on tensors. ptxas 13.5 is the source of these rows' spellings and operand order."""

from __future__ import annotations

from functools import partial

from pyptx.isa.notation import form

MEANING = {
    "fabric.try_get.async.tensor": "Copy a box of a fabric handle's tensor to shared memory, asynchronously.",
    "fabric.try_put.async.tensor": "Copy a box in shared memory to a fabric handle's tensor, asynchronously.",
    "fabric.try_red.async.tensor": "Reduce a box in shared memory into a fabric handle's tensor.",
}
TRAITS = {
    "fabric.try_get.async.tensor": "issues:fabric",
    "fabric.try_put.async.tensor": "issues:fabric",
    "fabric.try_red.async.tensor": "issues:fabric",
}

_SEE = "fabric-instructions"
_ALL, _MANY = "1d 2d 3d 4d 5d", "2d 3d 4d 5d"
_GET = "shared::cta{.tile}.mbarrier::complete_tx::bytes.mbarrier::report::fabric{.hint}{{.relaxed}.sys}"
_PUT = "shared::cta{.tile}.mbarrier::complete_tx::16B.mbarrier::report::fabric{.counted::bytes}{.hint}{{.relaxed}.sys}"
_ADDRESS = "override::global_address"
_DIM, _STRIDE = f"{_ADDRESS}.override::global_dim", f"{_ADDRESS}.override::global_dim_stride"
_MAP = "map@generic, endpoint:reg.u32, offset:reg.u64"
_TO = f"{_MAP}{{?counted::bytes, counter:reg.u64}}"
_SIZES = "size:.u16*dim, low:reg.u32*dim-1, high:reg.u16"
_MBAR = "[mbar@shared::cta:rw]{?hint, policy:.u64}"
_FROM = f"[a@shared::cta], bytes:.u32, {_MBAR}"

_get = partial(form, hint="L2::cache_hint", ptx=(9, 4), sm="sm_107f", see=f"{_SEE}-try-get-async-tensor")
_put = partial(form, hint="L2::cache_hint", ptx=(9, 4), sm="sm_107f", see=f"{_SEE}-try-put-async-tensor")
_red = partial(_put, op="add min max and or xor", see=f"{_SEE}-try-red-async-tensor")

FORMS = (
    _get(f"fabric.try_get.async.tensor.dim.{_GET}.b128.{_ADDRESS}"
         f"  [d@shared::cta:w], [{_MAP}, at:.s32*dim], {_MBAR}", dim=_ALL),
    _get(f"fabric.try_get.async.tensor.1d.{_GET}.b128.{_DIM}"
         f"  [d@shared::cta:w], [{_MAP}, size:.u16*1, at:.s32*1], {_MBAR}"),
    _get(f"fabric.try_get.async.tensor.dim.{_GET}.b128.{_STRIDE}"
         f"  [d@shared::cta:w], [{_MAP}, {_SIZES}, at:.s32*dim], {_MBAR}", dim=_MANY),
    _put(f"fabric.try_put.async.tensor.dim{{.multimem}}.{_PUT}.b128.{_ADDRESS}  [{_TO}, at:.s32*dim], {_FROM}",
         dim=_ALL),
    _put(f"fabric.try_put.async.tensor.1d{{.multimem}}.{_PUT}.b128.{_DIM}  [{_TO}, size:.u16*1, at:.s32*1], {_FROM}"),
    _put(f"fabric.try_put.async.tensor.dim{{.multimem}}.{_PUT}.b128.{_STRIDE}"
         f"  [{_TO}, {_SIZES}, at:.s32*dim], {_FROM}", dim=_MANY),
    _red(f"fabric.try_red.async.tensor.dim{{.multimem}}.{_PUT}.op.{_ADDRESS}  [{_TO}, at:.s32*dim], {_FROM}", dim=_ALL),
    _red(f"fabric.try_red.async.tensor.1d{{.multimem}}.{_PUT}.op.{_DIM}  [{_TO}, size:.u16*1, at:.s32*1], {_FROM}"),
    _red(f"fabric.try_red.async.tensor.dim{{.multimem}}.{_PUT}.op.{_STRIDE}"
         f"  [{_TO}, {_SIZES}, at:.s32*dim], {_FROM}", dim=_MANY),
)  # fmt: skip
