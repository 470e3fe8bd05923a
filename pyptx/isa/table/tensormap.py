"""Manual: tensormap.replace, tensormap.cp_fenceproxy and the cluster launch control instructions."""

from __future__ import annotations

from functools import partial

from pyptx.isa.choices import FAMILY_100_120
from pyptx.isa.notation import form

MEANING = {
    "tensormap.replace": "Change one field of a tensor map in memory.",
    "tensormap.cp_fenceproxy": "Copy a tensor map from shared to global memory and release it to the tensormap proxy.",
    "clusterlaunchcontrol.try_cancel": "Request to cancel a cluster that has not started, to take over its work.",
    "clusterlaunchcontrol.query_cancel": "Query the response to a cancellation: success, and the first CTA.",
}
TRAITS = {
    "tensormap.replace": "opaque:tensormap",
    "tensormap.cp_fenceproxy": "opaque:tensormap orders:tensormap",
    "clusterlaunchcontrol.try_cancel": "issues:launch",
}

_SEE = "data-movement-and-conversion-instructions-tensormap-replace"
_SYNC = "parallel-synchronization-and-communication-instructions"
_SS = "global shared::cta"

_replace = partial(form, ss=_SS, ptx=(8, 3), sm=f"sm_90a|{FAMILY_100_120}", see=_SEE)
_cancel = partial(form, ptx=(8, 6), see=f"{_SYNC}-clusterlaunchcontrol-try-cancel")
_query = partial(form, ptx=(8, 6), sm="sm_100", see=f"{_SYNC}-clusterlaunchcontrol-query-cancel")

FORMS = (
    _replace("tensormap.replace.tile.global_address{.ss}.b1024.b64  [a@ss:rw], value:.b64"),
    _replace("tensormap.replace.tile.rank{.ss}.b1024.b32  [a@ss:rw], value:.b32"),
    _replace("tensormap.replace.tile.field{.ss}.b1024.b32  [a@ss:rw], dim:imm[0..4], value:.u32",
             field="box_dim global_dim element_stride"),
    _replace("tensormap.replace.tile.global_stride{.ss}.b1024.b64  [a@ss:rw], dim:imm[0..4], value:.b64"),
    _replace("tensormap.replace.tile.elemtype{.ss}.b1024.b32  [a@ss:rw], value:imm[0..12]"),
    _replace("tensormap.replace.tile.elemtype{.ss}.b1024.b32  [a@ss:rw], value:imm[13..15]",
             ptx=(8, 7), sm=FAMILY_100_120),
    _replace("tensormap.replace.tile.interleave_layout{.ss}.b1024.b32  [a@ss:rw], value:imm[0..2]"),
    _replace("tensormap.replace.tile.swizzle_mode{.ss}.b1024.b32  [a@ss:rw], value:imm[0..3]"),
    # The manual names sm_103a alone; ptxas has it on sm_107a too.
    _replace("tensormap.replace.tile.swizzle_mode{.ss}.b1024.b32  [a@ss:rw], value:imm[4..4]",
             ptx=(8, 8), sm="sm_103a sm_107a"),
    _replace("tensormap.replace.tile.swizzle_atomicity{.ss}.b1024.b32  [a@ss:rw], value:imm[0..3]",
             ptx=(8, 6), sm=FAMILY_100_120),
    _replace("tensormap.replace.tile.fill_mode{.ss}.b1024.b32  [a@ss:rw], value:imm[0..1]"),

    form("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned"
         "  [d@global:w], [a@shared::cta], size:imm[128..128]",
         scope="cta cluster gpu sys", ptx=(8, 3), sm="sm_90", see=f"{_SYNC}-tensormap-cp-fenceproxy"),

    _cancel("clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes.b128"
            "  [d:w], [mbar:rw]", sm="sm_100"),
    _cancel("clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes"
            ".multicast::cluster::all.b128  [d:w], [mbar:rw]", sm=FAMILY_100_120),
    _query("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128  d:w.pred, answer:.b128"),
    _query("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128  d:w_.b32*4, answer:.b128"),
    _query("clusterlaunchcontrol.query_cancel.dim.b32.b128  d:w.b32, answer:.b128~",
           dim="get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z"),
)  # fmt: skip
