"""Manual: Parallel Synchronization and Communication Instructions: barriers, fences and warp-wide operations."""

from __future__ import annotations

from pyptx.isa.notation import form

MEANING = {
    "bar": "Wait at a barrier of the CTA, arrive at it, or reduce a predicate across it.",
    "barrier": "Wait at a barrier of the CTA, arrive at it, or reduce a predicate across it.",
    "bar.warp.sync": "Wait for the threads of a warp that are in a mask.",
    "barrier.cluster": "Arrive at the barrier of the cluster, or wait for it.",
    "membar": "Order earlier memory accesses before later ones (older form of fence).",
    "fence": "Order earlier memory accesses before later ones, or one proxy's accesses before another's.",
    "vote": "Combine a predicate across the warp.",
    "vote.sync": "Combine a predicate across the threads of a warp that are in a mask.",
    "match": "Find the threads of the warp with the same value.",
    "activemask": "Return the mask of the currently active threads of the warp.",
    "redux.sync": "Reduce a value across the threads of a warp that are in a mask.",
    "griddepcontrol": "Let dependent grids start, or wait for the grids that this one depends on.",
    "elect.sync": "Elect one thread of the warp.",
}
TRAITS = {
    "bar": "meets:cta aligned yields:uniform",
    "barrier": "meets:cta yields:uniform",
    "bar.warp.sync": "meets:warp",
    "barrier.cluster": "meets:cluster",
    "membar": "orders",
    "fence": "orders",
    "vote": "gathers:warp yields:uniform computes:mask",
    "vote.sync": "yields:uniform computes:mask",
    "match": "yields:varying computes:mask",
    "activemask": "yields:uniform",
    "redux.sync": "yields:uniform",
    "griddepcontrol": "meets:grid",
    "elect.sync": "yields:varying",
}

_SEE = "parallel-synchronization-and-communication-instructions-"
_NUMBER = "a:val[0..15].u32"
_COUNT = "b:val[0..4294967264/32].u32"
_ARRIVING = "b:val[32..4294967264/32].u32"
_CTA = "cta@7.8,sm_20"
_20 = "2.0,sm_20"
_BARRIER = "5.1,sm_30"
"""The manual says PTX 6.0; ptxas accepts it since 5.1."""
_ALL = "all any uni"
_LEVEL = "cta@1.4 gl@1.4 sys@2.0,sm_20"
_SCOPE = "cta cluster@7.8,sm_90 gpu sys"
_PROXY = "alias async@8.0,sm_90 async.global@8.0,sm_90 async.shared::cta@8.0,sm_90 async.shared::cluster@8.0,sm_90"
_FABRIC = "generic::fabric fabric::generic fabric::fabric"

FORMS = (
    form(f"bar{{.cta}}.sync                           {_NUMBER}{{, {_COUNT}}}", cta=_CTA, see=_SEE + "bar"),
    form(f"bar{{.cta}}.arrive                         {_NUMBER}, {_ARRIVING}", cta=_CTA, since=_20, see=_SEE + "bar"),
    form(f"bar{{.cta}}.red.popc.u32                   d, {_NUMBER}{{, {_COUNT}}}, {{!}}c:.pred",
         cta=_CTA, since=_20, see=_SEE + "bar"),
    form(f"bar{{.cta}}.red.op.pred                    p:w.pred, {_NUMBER}{{, {_COUNT}}}, {{!}}c:.pred",
         cta=_CTA, op="and or", since=_20, see=_SEE + "bar"),
    form(f"barrier{{.cta}}.sync{{.aligned}}           {_NUMBER}{{, {_COUNT}}}",
         cta=_CTA, aligned="aligned", since=_BARRIER, see=_SEE + "bar"),
    form(f"barrier{{.cta}}.arrive{{.aligned}}         {_NUMBER}, {_ARRIVING}",
         cta=_CTA, aligned="aligned", since=_BARRIER, see=_SEE + "bar"),
    form(f"barrier{{.cta}}.red.popc{{.aligned}}.u32   d, {_NUMBER}{{, {_COUNT}}}, {{!}}c:.pred",
         cta=_CTA, aligned="aligned", since=_BARRIER, see=_SEE + "bar"),
    form(f"barrier{{.cta}}.red.op{{.aligned}}.pred    p:w.pred, {_NUMBER}{{, {_COUNT}}}, {{!}}c:.pred",
         cta=_CTA, op="and or", aligned="aligned", since=_BARRIER, see=_SEE + "bar"),
    form("bar.warp.sync                           membermask:.u32", since=_BARRIER, see=_SEE + "bar-warp-sync"),
    form("barrier.cluster.arrive{.sem}{.aligned}",
         sem="release@8.0 relaxed@8.0", aligned="aligned", since="7.8,sm_90", see=_SEE + "barrier-cluster"),
    form("barrier.cluster.wait{.acquire}{.aligned}",
         acquire="acquire@8.0", aligned="aligned", since="7.8,sm_90", see=_SEE + "barrier-cluster"),
    form("membar.level", level=_LEVEL, see=_SEE + "membar"),
    # ptxas accepts the whole async proxy here, but not its spaces.
    form("membar.proxy.kind", kind="alias async@8.0,sm_90", since="7.5,sm_60", see=_SEE + "membar"),
    form("fence{.sem}.scope", sem="sc acq_rel", scope=_SCOPE, since="6.0,sm_70", see=_SEE + "membar"),
    form("fence.sem.scope", sem="acquire release", scope=_SCOPE, since="8.6,sm_90", see=_SEE + "membar"),
    form("fence.acquire.sync_restrict::shared::cluster.cluster", since="8.6,sm_90", see=_SEE + "membar"),
    form("fence.release.sync_restrict::shared::cta.cluster", since="8.6,sm_90", see=_SEE + "membar"),
    form("fence.mbarrier_init.release.cluster", since="8.0,sm_90", see=_SEE + "membar"),
    form("fence.proxy.kind", kind=_PROXY, since="7.5,sm_70", see=_SEE + "membar"),
    form("fence.proxy.tensormap::generic.release.scope", scope=_SCOPE, since="8.3,sm_90", see=_SEE + "membar"),
    form("fence.proxy.tensormap::generic.acquire.scope  [addr@generic], size:imm[128..128]",
         scope=_SCOPE, since="8.3,sm_90", see=_SEE + "membar"),
    form("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
         since="8.6,sm_90", see=_SEE + "membar"),
    form("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster",
         since="8.6,sm_90", see=_SEE + "membar"),
    form("fence.proxy.kind.alias.sem.sys",
         kind=_FABRIC, sem="acquire release", since="9.3,sm_100", see=_SEE + "membar"),
    form("vote.mode.pred       d, {!}a:.pred",
         mode=_ALL, since="1.2,sm_12", removed=((6, 4), "sm_70"), see=_SEE + "vote"),
    form("vote.ballot.b32      d, {!}a:.pred", since=_20, removed=((6, 4), "sm_70"), see=_SEE + "vote"),
    form("vote.sync.mode.pred  d, {!}a:.pred, membermask:.u32", mode=_ALL, since=_BARRIER, see=_SEE + "vote-sync"),
    form("vote.sync.ballot.b32 d, {!}a:.pred, membermask:.u32", since=_BARRIER, see=_SEE + "vote-sync"),
    form("match.any.sync.type  d:w.u32, a, membermask:.u32",
         type="b32 b64", since="6.0,sm_70", see=_SEE + "match-sync"),
    form("match.all.sync.type  d:w_.u32{|p:w_.pred}, a, membermask:.u32",
         type="b32 b64", since="6.0,sm_70", see=_SEE + "match-sync"),
    form("activemask.b32       d", since="6.2,sm_30", see=_SEE + "activemask"),
    form("redux.sync.op.type   d, a, membermask:.u32",
         op="add min max", type="u32 s32", since="7.0,sm_80", see=_SEE + "redux-sync"),
    form("redux.sync.op.b32    d:w.u32, a:.u32, membermask:.u32",
         op="and or xor", since="7.0,sm_80", see=_SEE + "redux-sync"),
    form("redux.sync.op{.abs}{.NaN}.f32  d, a, membermask:.u32",
         op="min max", abs="abs", NaN="NaN", since="8.6,sm_100a|sm_100f:8.8", see=_SEE + "redux-sync"),
    form("griddepcontrol.action", action="launch_dependents wait", since="7.8,sm_90", see=_SEE + "griddepcontrol"),
    form("elect.sync           d:w_.u32|p:w.pred, membermask:.u32", since="8.0,sm_90", see=_SEE + "elect-sync"),
)  # fmt: skip
