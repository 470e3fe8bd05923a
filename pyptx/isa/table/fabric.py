"""Manual: Fabric Instructions."""

from __future__ import annotations

from functools import partial

from pyptx.isa.notation import form

MEANING = {
    "fabric.try_get": "Copy from a fabric handle to shared memory, asynchronously.",
    "fabric.try_put": "Copy from shared memory to a fabric handle, asynchronously.",
    "fabric.try_red": "Reduce shared memory into the resource of a fabric handle, asynchronously.",
    "fabric.try_pullred": "Load from every resource of a multicast handle and reduce, asynchronously.",
    "fabric.try_atom": "Update the resource of a fabric handle atomically and return its old value to shared memory.",
    "fabric.submit": "Submit this thread's earlier fabric operations.",
    "fabric.wait": "Wait until submitted fabric operations have read local shared memory.",
}
TRAITS = {
    "fabric.try_get": "issues:fabric",
    "fabric.try_put": "issues:fabric",
    "fabric.try_red": "issues:fabric",
    "fabric.try_pullred": "issues:fabric",
    "fabric.try_atom": "issues:fabric",
    "fabric.submit": "commits:fabric",
    "fabric.wait": "lands:fabric",
}

_SEE = "fabric-instructions"
_BITWISE = "and.b32 and.b64 or.b32 or.b64 xor.b32 xor.b64"
_MIN_MAX = "min.u32 min.s32 min.u64 min.s64 min.f16 min.bf16 max.u32 max.s32 max.u64 max.s64 max.f16 max.bf16"
_ADD = "add.u32 add.u64 add.f16 add.bf16 add.f32"
_NOT_ALL = "sm_100f|sm_110f|sm_120f"
_EIGHT_BITS = (
    f"min.e4m3@9.3,{_NOT_ALL} min.e5m2@9.3,{_NOT_ALL} max.e4m3@9.3,{_NOT_ALL} max.e5m2@9.3,{_NOT_ALL} "
    f"add.acc::f16.e4m3@9.3,{_NOT_ALL} add.acc::f16.e5m2@9.3,{_NOT_ALL} "
    f"add.acc::f32.e4m3@9.3,{_NOT_ALL} add.acc::f32.e5m2@9.3,{_NOT_ALL} "
    f"add.acc::f32.f16@9.3,{_NOT_ALL} add.acc::f32.bf16@9.3,{_NOT_ALL}"
)
_ATOMS = (
    "add.u32 add.u64 add.f16x2 add.bf16x2 add.f32 add.f64 min.u32 min.s32 min.u64 min.s64 min.f16x2 min.bf16x2 "
    "max.u32 max.s32 max.u64 max.s64 max.f16x2 max.bf16x2 exch.b32 exch.b64 exch.b128 cas.b32 cas.b64 cas.b128"
)
_FETCH = "shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric"
_SEND = "shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric"
_COUNTED = "endpoint@generic:reg.u32, offset:reg.u64, counter:reg.u64"
_HANDLE = "endpoint@generic:reg.u32, offset:reg.u64"
_MBAR = "[mbar@shared::cta:rw]"
_END = "{?hint, policy:.u64}"
# The manual requires the ordering; ptxas lets all but try_atom leave it out.
_ORDER = "{{.relaxed}.sys}"

_fabric = partial(form, ptx=(9, 3), sm="sm_100", hint="L2::cache_hint")

FORMS = (
    _fabric(f"fabric.try_get.async.{_FETCH}{{.hint}}{_ORDER}.b128"
            f"  [d@shared::cta:w], [{_HANDLE}], size:.u32, {_MBAR}{_END}", see=f"{_SEE}-try-get"),
    _fabric(f"fabric.try_put.async{{.multimem}}.{_SEND}{{.mask}}{{.hint}}{_ORDER}.b128"
            f"  [{_HANDLE}], [a@shared::cta], size:.u32, {_MBAR}{{?mask, bytes:.u16~}}{_END}",
            mask="cp_mask", see=f"{_SEE}-try-put"),
    _fabric(f"fabric.try_put.async{{.multimem}}.{_SEND}.counted::bytes{{.hint}}{_ORDER}.b128"
            f"  [{_COUNTED}], [a@shared::cta], size:.u32, {_MBAR}{_END}", see=f"{_SEE}-try-put"),
    _fabric(f"fabric.try_red.async{{.multimem}}.{_SEND}{{.hint}}{_ORDER}.op"
            f"  [{_HANDLE}], [a@shared::cta], size:.u32, {_MBAR}{_END}",
            op=f"{_BITWISE} {_MIN_MAX} {_ADD} add.f64", see=f"{_SEE}-try-red"),
    _fabric(f"fabric.try_red.async{{.multimem}}.{_SEND}.counted::bytes{{.hint}}{_ORDER}.op"
            f"  [{_COUNTED}], [a@shared::cta], size:.u32, {_MBAR}{_END}",
            op=f"{_BITWISE} {_MIN_MAX} {_ADD} add.f64", see=f"{_SEE}-try-red"),
    _fabric(f"fabric.try_pullred.async.multimem.{_FETCH}{_ORDER}.op.sync"
            f"  [d@shared::cta:w], [{_HANDLE}], size:.u32, {_MBAR}, lanes:imm[4294967295..4294967295]",
            op=f"{_BITWISE} {_MIN_MAX} {_ADD} {_EIGHT_BITS}", see=f"{_SEE}-try-pullred"),
    _fabric(f"fabric.try_atom.async.{_SEND}{{.hint}}.relaxed.sys.op"
            f"  [{_HANDLE}], [d@shared::cta:w], [a@shared::cta], {_MBAR}{_END}",
            op=f"{_BITWISE} {_ATOMS}", ptx=(9, 4), see=f"{_SEE}-try-atom"),
    form("fabric.submit{.which}", which="op_restrict::fetching", ptx=(9, 3), sm="sm_100", see=f"{_SEE}-submit"),
    form("fabric.submit.commit_group", ptx=(9, 5), sm="sm_100", see=f"{_SEE}-submit"),
    # The manual gives wait no operand; ptxas accepts a count, as cp.async.bulk.wait_group does.
    form("fabric.wait.sync_restrict::reads  {n:imm}", ptx=(9, 3), sm="sm_100", see=f"{_SEE}-wait"),
)  # fmt: skip
