"""Manual: Parallel Synchronization and Communication Instructions: mbarrier."""

from __future__ import annotations

from functools import partial

from pyptx.isa.notation import form

MEANING = {
    "mbarrier.init": "Initialize an mbarrier object with its expected number of arrivals.",
    "mbarrier.inval": "Invalidate an mbarrier object, so that its memory can be reused.",
    "mbarrier.expect_tx": "Increase the bytes that the current phase waits for.",
    "mbarrier.complete_tx": "Decrease the bytes that the current phase waits for, as an asynchronous copy does.",
    "mbarrier.arrive": "Arrive at the barrier and return its state before the arrival.",
    "mbarrier.arrive_drop": "Arrive at the barrier and leave it for all later phases.",
    "mbarrier.test_wait": "Test whether a phase has completed.",
    "mbarrier.try_wait": "Test whether a phase has completed, suspending the thread for a limited time if not.",
    "mbarrier.pending_count": "Return the pending arrivals recorded in a state.",
    "mbarrier.check_layout": "Test whether the barrier object has this layout.",
    "cp.async.mbarrier.arrive": "Arrive at the barrier when this thread's earlier cp.async copies have completed.",
}
TRAITS = {
    "mbarrier.init": "opaque:mbarrier initializes",
    "mbarrier.inval": "opaque:mbarrier frees:mbarrier",
    "mbarrier.expect_tx": "opaque:mbarrier signals:expectation",
    "mbarrier.complete_tx": "opaque:mbarrier signals:completion",
    "mbarrier.arrive": "opaque:mbarrier signals:arrival",
    "mbarrier.arrive_drop": "opaque:mbarrier signals:drop",
    "mbarrier.test_wait": "opaque:mbarrier tests",
    "mbarrier.try_wait": "opaque:mbarrier tests suspends:phase",
    "mbarrier.check_layout": "opaque:mbarrier",
    "cp.async.mbarrier.arrive": "opaque:mbarrier signals:arrival commits:cp.async",
}

_SEE = "parallel-synchronization-and-communication-instructions-mbarrier"
_ARRIVE, _WAIT = f"{_SEE}-arrive", f"{_SEE}-test-wait-try-wait"
_SS = "shared shared::cta@7.8"
_ANYWHERE = "shared shared::cta shared::cluster"
_SCOPE = "cta@8.0 cluster@8.0,sm_90"
_RELEASE = "release@8.0 relaxed@8.6,sm_90"
_ACQUIRE = "acquire@8.0 relaxed@8.6,sm_90"
_TEST = "test_wait try_wait@7.8,sm_90"
_BOTH = "arrive arrive_drop"

_arrive = partial(form, op=_BOTH, sem=_RELEASE, scope=_SCOPE, see=_ARRIVE)
_wait = partial(form, op=_TEST, sem=_ACQUIRE, scope=_SCOPE, ss=_SS, see=_WAIT)

FORMS = (
    form("mbarrier.init{.layout}{.ss}.b64  [a:w], count:val[1..1048575].u32",
         layout="layout::v0@9.3,sm_90 layout::v1@9.3,sm_90", ss=_SS, ptx=(7, 0), sm="sm_80", see=f"{_SEE}-init"),
    form("mbarrier.inval{.ss}.b64  [a:w]", ss=_SS, ptx=(7, 0), sm="sm_80", see=f"{_SEE}-inval"),
    form("mbarrier.op{.sem.scope}{.ss}.b64  [a:rw], bytes:.u32",
         op="expect_tx complete_tx", sem="relaxed", scope="cta cluster", ss=_ANYWHERE,
         ptx=(8, 0), sm="sm_90", see=f"{_SEE}-expect-tx"),

    _arrive("mbarrier.op{.sem.scope}{.ss}.b64  d:w_.u64, [a:rw]", ss=_SS, ptx=(7, 0), sm="sm_80"),
    _arrive("mbarrier.op{.sem.scope}{.ss}.b64  d:w_.u64, [a:rw], count:val[1..4294967295].u32~",
         ss=_SS, ptx=(7, 8), sm="sm_90"),
    _arrive("mbarrier.op{.sem.scope}.shared::cluster.b64  d:sink, [a:rw]{, count:val[1..4294967295].u32}",
         ptx=(8, 0), sm="sm_90"),
    _arrive("mbarrier.op.expect_tx{.sem.scope}{.ss}.b64  d:w_.u64, [a:rw], bytes:.u32",
            ss=_SS, ptx=(8, 0), sm="sm_90"),
    _arrive("mbarrier.op.expect_tx{.sem.scope}.shared::cluster.b64  d:sink, [a:rw], bytes:.u32",
            ptx=(8, 0), sm="sm_90"),
    form("mbarrier.op.noComplete{.sem.scope}{.ss}.b64  d:w_.u64, [a:rw], count:val[1..4294967295].u32~",
         op=_BOTH, sem="release@8.0", scope="cta@8.0", ss=_SS, ptx=(7, 0), sm="sm_80", see=_ARRIVE),
    form("cp.async.mbarrier.arrive{.noinc}{.ss}.b64  [a:rw]",
         ss=_SS, ptx=(7, 0), sm="sm_80",
         see="parallel-synchronization-and-communication-instructions-cp-async-mbarrier-arrive"),

    _wait("mbarrier.op{.sem.scope}{.ss}.b64  d:w.pred, [a], state:.u64{?try_wait, {, hint:.u32}}",
         ptx=(7, 0), sm="sm_80"),
    _wait("mbarrier.op.parity{.sem.scope}{.ss}.b64  d:w.pred, [a], phase:val[0..1].u32{?try_wait, {, hint:.u32}}",
         ptx=(7, 1), sm="sm_80"),
    _wait("mbarrier.op.phase_type::primary{.sem.scope}{.ss}.b64"
         "  d:w.pred{|report:w_.pred}{, value:w.b8}, [a], state:.u64{?try_wait, {, hint:.u32}}",
         ptx=(9, 3), sm="sm_90"),
    _wait("mbarrier.op.parity.phase_type::primary{.sem.scope}{.ss}.b64"
         "  d:w.pred{|report:w_.pred}{, value:w.b8}, [a], phase:val[0..1].u32{?try_wait, {, hint:.u32}}",
         ptx=(9, 3), sm="sm_90"),
    _wait("mbarrier.op.parity.phase_type::conditional{.sem.scope}{.ss}.b64"
         "  d:w.pred, [a], phase:val[0..1].u32{?try_wait, {, hint:.u32}}", ptx=(9, 3), sm="sm_90"),
    form("mbarrier.pending_count{.layout}.b64  d:w.u32, state:.u64",
         layout="layout::v0@9.3,sm_90", ptx=(7, 0), sm="sm_80", see=f"{_SEE}-pending-count"),
    form("mbarrier.check_layout.layout{.ss}.b64  d:w.pred, [a]",
         layout="layout::v0 layout::v1", ss=_SS, ptx=(9, 3), sm="sm_90", see=f"{_SEE}-check-layout"),
)  # fmt: skip
