"""Manual: Data Movement and Conversion Instructions: Asynchronous copy, non-bulk and bulk."""

from __future__ import annotations

from functools import partial

from pyptx.isa.choices import MULTICAST, NO_REPORT, REPORT
from pyptx.isa.notation import form

MEANING = {
    "cp.async": "Copy 4, 8 or 16 bytes from global to shared memory, asynchronously.",
    "cp.async.commit_group": "Commit this thread's pending cp.async copies to a group.",
    "cp.async.wait_group": "Wait until at most n of this thread's newest cp.async groups are pending.",
    "cp.async.wait_all": "Wait until all of this thread's cp.async copies have completed.",
    "cp.async.bulk": "Copy a multiple of 16 bytes between global and shared memories, asynchronously.",
    "cp.async.bulk.prefetch": "Prefetch a range of global memory into L2.",
    "cp.async.bulk.commit_group": "Commit this thread's pending bulk operations to a bulk group.",
    "cp.async.bulk.wait_group": "Wait until at most n of this thread's newest bulk groups are pending.",
    "cp.reduce.async.bulk": "Reduce an array of shared memory into global or another CTA's memory, asynchronously.",
    "multimem.cp.async.bulk": "Copy shared memory to every device of a multimem address, asynchronously.",
    "multimem.cp.reduce.async.bulk": "Reduce shared memory into every device of a multimem address.",
    "applypriority.async.bulk": "Change the L2 eviction priority of a range of global memory, asynchronously.",
}
TRAITS = {
    "cp.async": "issues:cp.async",
    "cp.async.commit_group": "commits:cp.async",
    "cp.async.wait_group": "lands:cp.async",
    "cp.async.wait_all": "lands:cp.async",
    "cp.async.bulk": "issues:bulk",
    "cp.async.bulk.prefetch": "hints",
    "cp.async.bulk.commit_group": "commits:bulk",
    "cp.async.bulk.wait_group": "lands:bulk",
    "cp.reduce.async.bulk": "issues:bulk",
    "multimem.cp.async.bulk": "issues:bulk",
    "multimem.cp.reduce.async.bulk": "issues:bulk",
    "applypriority.async.bulk": "hints",
}

_SEE = "data-movement-and-conversion-instructions"
_HINT = "L2::cache_hint"
_SCOPES = "cta cluster gpu sys"
_WIDE = "multicast::cluster::32b@9.4,sm_107f"
_TO_GLOBAL = (
    "add.u32 add.s32 add.u64 add.f32 add.f64 add.noftz.f16 add.noftz.bf16 add.noftz.f32@9.4 "
    "min.u32 min.s32 min.u64 min.s64 min.f16 min.bf16 max.u32 max.s32 max.u64 max.s64 max.f16 max.bf16 "
    "inc.u32 dec.u32 and.b32 and.b64 or.b32 or.b64 xor.b32 xor.b64"
)
_TO_CLUSTER = "add.u32 add.s32 add.u64 min.u32 min.s32 max.u32 max.s32 inc.u32 dec.u32 and.b32 or.b32 xor.b32"

_async = partial(form, ptx=(7, 0), sm="sm_80", see=f"{_SEE}-cp-async")
_hinted = partial(_async, hint="L2::cache_hint@7.4", prefetch="L2::64B@7.4 L2::128B@7.4 L2::256B@7.4")
_bulk = partial(form, hint=_HINT, report=REPORT, ptx=(8, 0), sm="sm_90", see=f"{_SEE}-cp-async-bulk")
_reduce = partial(form, hint=_HINT, ptx=(8, 0), sm="sm_90", see=f"{_SEE}-cp-reduce-async-bulk")
_multimem = partial(form, mask="cp_mask@sm_100", scope=_SCOPES, sm="sm_90", see=f"{_SEE}-multimem-cp-async-bulk")

FORMS = (
    _hinted("cp.async.ca.ss.global{.hint}{.prefetch}"
            "  [d@ss:w], [a@global], size:imm[4..8/4]{, from:val[0..8].u32}{?hint, policy:.u64}",
            ss="shared shared::cta"),
    _hinted("cp.async.cop.ss.global{.hint}{.prefetch}"
            "  [d@ss:w], [a@global], size:imm[16..16]{, from:val[0..16].u32}{?hint, policy:.u64}",
            cop="ca cg", ss="shared shared::cta"),
    _hinted("cp.async.ca.ss.global{.hint}{.prefetch}"
            "  [d@ss:w], [a@global], size:imm[4..8/4], {!}ignore:reg.pred{?hint, policy:.u64}",
            ss="shared shared::cta", ptx=(7, 5)),
    _hinted("cp.async.cop.ss.global{.hint}{.prefetch}"
            "  [d@ss:w], [a@global], size:imm[16..16], {!}ignore:reg.pred{?hint, policy:.u64}",
            cop="ca cg", ss="shared shared::cta", ptx=(7, 5)),
    _async("cp.async.commit_group"),
    _async("cp.async.wait_group  n:imm"),
    _async("cp.async.wait_all"),

    _bulk("cp.async.bulk{.sem}.shared::cta.global.mbarrier::complete_tx::bytes{.report}{.hint}"
          "  [d@shared::cta:w], [a@global], size:val[0..1048560/16].u32, [mbar@shared::cta:rw]{?hint, policy:.u64}",
          sem="weak@9.3", ptx=(8, 6)),
    _bulk("cp.async.bulk{.sem}.shared::cta.global.mbarrier::complete_tx::bytes{.report}{.hint}.ignore_oob"
          "  [d@shared::cta:w], [a@global], "
          "size:val[0..1048560/16].u32, left:val[0..15].u32, right:val[0..15].u32, [mbar@shared::cta:rw]"
          "{?hint, policy:.u64}",
          sem="weak@9.3", report=NO_REPORT, ptx=(9, 2)),
    _bulk("cp.async.bulk.relaxed.scope.shared::cta.global.mbarrier::complete_tx::bytes{.report}{.hint}.b128"
          "  [d@shared::cta:w], [a@global], size:val[0..1048560/16].u32, [mbar@shared::cta:rw]{?hint, policy:.u64}",
          scope=_SCOPES, ptx=(9, 3)),
    _bulk("cp.async.bulk.relaxed.scope.shared::cta.global.mbarrier::complete_tx::bytes{.report}{.hint}.ignore_oob.b128"
          "  [d@shared::cta:w], [a@global], "
          "size:val[0..1048560/16].u32, left:val[0..15].u32, right:val[0..15].u32, [mbar@shared::cta:rw]"
          "{?hint, policy:.u64}",
          scope=_SCOPES, report=NO_REPORT, ptx=(9, 3)),

    _bulk("cp.async.bulk{.sem}.shared::cluster.global.mbarrier::complete_tx::bytes{.report}{.multicast}{.hint}"
          "  [d@shared::cluster:w], [a@global], size:val[0..1048560/16].u32, [mbar@shared::cluster:rw]"
          "{?multicast, ctas:val[0..65535].u16~}{?hint, policy:.u64}",
          sem="weak@9.3", multicast=MULTICAST),
    _bulk("cp.async.bulk{.sem}.shared::cluster.global.mbarrier::complete_tx::bytes{.report}.multicast{.hint}"
          "  [d@shared::cluster:w], [a@global], "
          "size:val[0..1048560/16].u32, [mbar@shared::cluster:rw], ctas:.u32{?hint, policy:.u64}",
          sem="weak@9.3", multicast=_WIDE),
    _bulk("cp.async.bulk.relaxed.scope.shared::cluster.global.mbarrier::complete_tx::bytes{.report}{.multicast}{.hint}"
          ".b128  [d@shared::cluster:w], [a@global], size:val[0..1048560/16].u32, [mbar@shared::cluster:rw]"
          "{?multicast, ctas:val[0..65535].u16~}{?hint, policy:.u64}",
          scope=_SCOPES, multicast=MULTICAST, ptx=(9, 3), sm="sm_90a sm_100f sm_110f"),
    _bulk("cp.async.bulk.relaxed.scope.shared::cluster.global.mbarrier::complete_tx::bytes{.report}.multicast{.hint}"
          ".b128  [d@shared::cluster:w], [a@global], size:val[0..1048560/16].u32, [mbar@shared::cluster:rw], ctas:.u32"
          "{?hint, policy:.u64}",
          scope=_SCOPES, multicast=_WIDE, ptx=(9, 3), sm="sm_90a sm_100f sm_110f"),

    _bulk("cp.async.bulk{.sem}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
          "  [d@shared::cluster:w], [a@shared::cta], "
          "size:val[0..1048560/16].u32, [mbar@shared::cluster:rw]", sem="weak@9.3"),
    _bulk("cp.async.bulk.relaxed.scope.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.b128"
          "  [d@shared::cluster:w], [a@shared::cta], size:val[0..1048560/16].u32, [mbar@shared::cluster:rw]",
          scope="cta cluster", ptx=(9, 3)),
    _bulk("cp.async.bulk{.sem}.global.shared::cta.bulk_group{.hint}{.mask}"
          "  [d@global:w], [a@shared::cta], size:val[0..1048560/16].u32{?hint, policy:.u64}{?mask, bytes:.u16~}",
          sem="weak@9.3", mask="cp_mask@8.6,sm_100"),
    _bulk("cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group{.hint}{.mask}.b128"
          "  [d@global:w], [a@shared::cta], size:val[0..1048560/16].u32{?hint, policy:.u64}{?mask, bytes:.u16~}",
          scope=_SCOPES, mask="cp_mask@8.6,sm_100", ptx=(9, 3)),

    _reduce("cp.reduce.async.bulk{.relaxed.scope}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op"
            "  [d@shared::cluster:rw], [a@shared::cta], size:val[0..1048560/16].u32, [mbar@shared::cluster:rw]",
            scope="cta@9.3 cluster@9.3", op=_TO_CLUSTER),
    _reduce("cp.reduce.async.bulk{.relaxed.scope}.global.shared::cta.bulk_group{.hint}.op"
            "  [d@global:rw], [a@shared::cta], size:val[0..1048560/16].u32{?hint, policy:.u64}",
            scope="cta@9.3 cluster@9.3 gpu@9.3 sys@9.3", op=_TO_GLOBAL),

    form("cp.async.bulk.prefetch.L2.global{.level}  [a@global], "
         "size:val[0..1048560/16].u32{?L2::cache_hint, policy:.u64}",
         level="L2::cache_hint L2::evict_last@9.4,sm_107f", ptx=(8, 0), sm="sm_90",
         see=f"{_SEE}-cp-async-bulk-prefetch"),
    _multimem("multimem.cp.async.bulk{.sem}.global.shared::cta.bulk_group{.mask}"
              "  [d@global:w], [a@shared::cta], "
              "size:val[0..1048560/16].u32{?mask, bytes:.u16~}", sem="weak@9.3", ptx=(9, 1)),
    _multimem("multimem.cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group{.mask}.b128"
              "  [d@global:w], [a@shared::cta], size:val[0..1048560/16].u32{?mask, bytes:.u16~}", ptx=(9, 3)),
    form("multimem.cp.reduce.async.bulk{.relaxed.scope}.global.shared::cta.bulk_group.op"
         "  [d@global:rw], [a@shared::cta], size:val[0..1048560/16].u32",
         scope="cta@9.3 cluster@9.3 gpu@9.3 sys@9.3", op=_TO_GLOBAL, ptx=(9, 1), sm="sm_90",
         see=f"{_SEE}-multimem-cp-reduce-async-bulk"),
    form("applypriority.async.bulk{.global}.bulk_group.L2::evict_normal  [a@global], size:val[0..1048560/16].u32",
         ptx=(9, 4), sm="sm_107f", see=f"{_SEE}-applypriority-async-bulk"),
    form("cp.async.bulk.commit_group", ptx=(8, 0), sm="sm_90", see=f"{_SEE}-cp-async-bulk-commit-group"),
    form("cp.async.bulk.wait_group{.read}  n:imm", ptx=(8, 0), sm="sm_90", see=f"{_SEE}-cp-async-bulk-wait-group"),
)  # fmt: skip
