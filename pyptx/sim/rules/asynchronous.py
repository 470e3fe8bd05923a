"""Results of asynchronous operations used too early, their sources reused too early, tensor memory: PTX0930-PTX0949."""

from __future__ import annotations

from pyptx.sim.rules.definitions import error, warning

# Asynchronous results too early
LOAD_TOO_EARLY = error(
    930,
    "asynchronous copy touched before its mbarrier phase was observed",
    "The bytes land at any time until the phase that counts them completes and is observed (Async operations).",
    "wait for the phase of this copy: check the parity, the bytes of `expect_tx`, and that whoever waits hands on by "
    "a barrier",
)
CP_ASYNC_TOO_EARLY = error(
    931,
    "cp.async data touched before its wait",
    "`cp.async.wait_group` covers the groups of the executing thread only; other threads need a barrier after it.",
    "every copying thread waits for its groups, then a barrier, then the data",
)
STORE_TOO_EARLY = error(
    932,
    "results of a bulk store used before it completed",
    "`cp.async.bulk.wait_group.read` says that the source was read, not that the writes are done.",
    "use `cp.async.bulk.wait_group` without `.read` in the thread that committed, then release",
)
WGMMA_TOO_EARLY = error(
    933,
    "wgmma registers accessed before wgmma.wait_group",
    "Accumulators and register operands belong to the operation until the group was waited for (Asynchronous wgmma).",
    "`wgmma.commit_group` and `wgmma.wait_group` before touching the registers",
)
WGMMA_NO_FENCE = error(
    934,
    "wgmma without wgmma.fence",
    "The first wgmma, and every one after other accesses to its registers, needs `wgmma.fence` by all four warps.",
    "put `wgmma.fence.sync.aligned` before it",
)
TENSOR_TOO_EARLY = error(
    935,
    "tensor memory touched before tcgen05.commit was observed",
    "tcgen05.mma, cp and shift complete when an mbarrier phase that `tcgen05.commit` signals is observed.",
    "`tcgen05.commit` by the issuing thread, and wait for the mbarrier phase",
)
TCGEN05_FENCE_RELAXED = error(
    936,
    "tcgen05 hand-over by a relaxed barrier without tcgen05.fence",
    "With relaxed arrive or wait only the tcgen05 fences order the operations (tcgen05.fence).",
    "`tcgen05.fence::before_thread_sync` before the arrive and `::after_thread_sync` after the wait",
)
TCGEN05_FENCE = warning(
    937,
    "tcgen05 hand-over without tcgen05.fence",
    "The manual pairs every hand-over with before/after_thread_sync; CUTLASS omits them with acquire/release edges. "
    "`tcgen05.dealloc` is synchronous (tcgen05 memory consistency): a barrier behind the waits is enough for it.",
    "`tcgen05.fence::before_thread_sync` before the arrive and `::after_thread_sync` after the wait",
)
TENSOR_LOAD_PENDING = error(
    938,
    "tensor memory overwritten or handed back while tcgen05.ld may still read it",
    "`tcgen05.ld` reads asynchronously; only `tcgen05.wait::ld` says that it is done with the columns, to its own "
    "warp; others learn it by a barrier behind that.",
    "`tcgen05.wait::ld.sync.aligned` before the arrive, store, MMA or dealloc",
)
TENSOR_STORE_PENDING = error(
    939,
    "tensor memory used while tcgen05.st may still write it",
    "`tcgen05.st` writes asynchronously; only `tcgen05.wait::st` says that the columns are written, to its own warp; "
    "others learn it by a barrier behind that.",
    "`tcgen05.wait::st.sync.aligned` before the columns are used",
)

# Asynchronous sources reused too early
WGMMA_SOURCE = error(
    940,
    "shared operand of wgmma overwritten before wgmma.wait_group",
    "wgmma reads shared memory until its group was waited for by the warpgroup.",
    "`wgmma.wait_group` before the slot is released",
)
TCGEN05_SOURCE = error(
    941,
    "shared operand of tcgen05 overwritten before its commit was observed",
    "The tensor core reads the operands after the issuing thread went on; a plain arrive does not cover it.",
    "release the slot by `tcgen05.commit` to its mbarrier, not by a plain arrive",
)
STORE_SOURCE = error(
    942,
    "source of a bulk store overwritten before it was read",
    "The copy reads its source until `wait_group.read` of the committing thread; others need a barrier after that.",
    "`cp.async.bulk.wait_group.read` in the committing thread, then a barrier",
)
FOREIGN_COMMIT = error(
    943,
    "commit by another thread than the one that issued",
    "Commits track the operations of the executing thread only.",
    "issue and commit from the same thread",
)
WRONG_CTA = error(
    944,
    "asynchronous operation that names the wrong CTA",
    "The data and the mbarrier of `st.async` and `red.async` lie in one CTA; `cp.async.bulk` from `shared::cta` to "
    "`shared::cluster` goes to another CTA than the executing one (st.async; red.async; cp.async.bulk).",
    "map the address of the data and that of the mbarrier to one rank (`mapa`); copy within the CTA by `ld` and `st`",
)

# Tensor memory
NOT_ALLOCATED = error(
    945, "tensor memory not allocated", "Columns must lie inside a live allocation.", "allocate them first"
)
ALLOC_SIZE = error(
    946,
    "tensor memory allocation",
    "Columns: a power of two from 32 to 512, by one whole warp, never growing in a CTA, none after relinquishing.",
    "allocate once, the largest first",
)
DEALLOC = error(
    947,
    "tensor memory handed back wrongly",
    "Every allocation is freed exactly once, before the CTA exits, when nobody uses the columns any more.",
    "synchronize all users, then one warp deallocates what was allocated",
)
WRONG_QUARTER = warning(
    948,
    "tensor memory lanes of another warp",
    "Warp w of a warpgroup reaches lanes 32w … 32w+31 (tcgen05.ld, access restrictions). Hardware ignores which "
    "quarter an address names, and published kernels rely on it: the access goes to the warp's own quarter.",
    "add the warp's own quarter to the address, `(warp % 4) << 21`",
)
CTA_GROUP = error(
    949,
    "two values of .cta_group in one kernel",
    "All tcgen05 instructions of a kernel name the same `.cta_group`.",
    "use one value everywhere",
)
