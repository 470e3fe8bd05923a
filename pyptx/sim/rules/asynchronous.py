"""Results of asynchronous operations used too early, their sources reused too early, tensor memory: PTX0930-PTX0949."""

from __future__ import annotations

from pyptx.sim.rules.definitions import error, warning

# Asynchronous results too early
LOAD_TOO_EARLY = error(
    930,
    "asynchronous copy accessed before its mbarrier phase was observed",
    "The bytes may arrive at any time until the phase that counts them completes and a thread observes it (Async "
    "operations).",
    "wait for the phase of this copy: check the parity and the bytes of `expect_tx`; other threads need a barrier "
    "after the wait",
)
CP_ASYNC_TOO_EARLY = error(
    931,
    "cp.async data accessed before its wait",
    "`cp.async.wait_group` covers only the groups of the executing thread; other threads need a barrier after it.",
    "let every copying thread wait for its groups, then execute a barrier before the data is used",
)
STORE_TOO_EARLY = error(
    932,
    "results of a bulk store used before it completed",
    "`cp.async.bulk.wait_group.read` waits until the source was read, not until the writes are complete.",
    "use `cp.async.bulk.wait_group` without `.read` in the thread that committed, then release",
)
WGMMA_TOO_EARLY = error(
    933,
    "wgmma registers accessed before wgmma.wait_group",
    "Accumulators and register operands belong to the operation until `wgmma.wait_group` returns (Asynchronous wgmma).",
    "execute `wgmma.commit_group` and `wgmma.wait_group` before the access to the registers",
)
WGMMA_NO_FENCE = error(
    934,
    "wgmma without wgmma.fence",
    "All four warps execute `wgmma.fence` before the first wgmma and again after any other access to its registers.",
    "put `wgmma.fence.sync.aligned` before it",
)
TENSOR_TOO_EARLY = error(
    935,
    "tensor memory accessed before tcgen05.commit was observed",
    "`tcgen05.mma`, `cp` and `shift` are complete when a thread observes the mbarrier phase that `tcgen05.commit` "
    "signals.",
    "execute `tcgen05.commit` in the issuing thread and wait for the mbarrier phase",
)
TCGEN05_FENCE_RELAXED = error(
    936,
    "tcgen05 handoff by a relaxed barrier without tcgen05.fence",
    "If the arrive or the wait is relaxed, only the tcgen05 fences order the operations (tcgen05.fence).",
    "put `tcgen05.fence::before_thread_sync` before the arrive and `::after_thread_sync` after the wait",
)
TCGEN05_FENCE = warning(
    937,
    "tcgen05 handoff without tcgen05.fence",
    "The manual pairs every handoff with before/after_thread_sync; CUTLASS omits the fences where acquire/release "
    "orders the threads. `tcgen05.dealloc` is synchronous (tcgen05 memory consistency), so it needs only a barrier "
    "after the waits.",
    "put `tcgen05.fence::before_thread_sync` before the arrive and `::after_thread_sync` after the wait",
)
TENSOR_LOAD_PENDING = error(
    938,
    "tensor memory overwritten or freed while tcgen05.ld may still read it",
    "`tcgen05.ld` reads asynchronously. `tcgen05.wait::ld` waits for the reads of its own warp; other warps need a "
    "barrier after it.",
    "put `tcgen05.wait::ld.sync.aligned` before the arrive, store, MMA or dealloc",
)
TENSOR_STORE_PENDING = error(
    939,
    "tensor memory used while tcgen05.st may still write it",
    "`tcgen05.st` writes asynchronously. `tcgen05.wait::st` waits for the writes of its own warp; other warps need a "
    "barrier after it.",
    "put `tcgen05.wait::st.sync.aligned` before the columns are used",
)

# Asynchronous sources reused too early
WGMMA_SOURCE = error(
    940,
    "shared-memory operand of wgmma overwritten before wgmma.wait_group",
    "wgmma reads shared memory until the warpgroup waits for its group.",
    "execute `wgmma.wait_group` before the slot is released",
)
TCGEN05_SOURCE = error(
    941,
    "shared-memory operand of tcgen05 overwritten before its commit was observed",
    "The tensor core may still read the operands while the issuing thread runs on; a plain arrive does not wait for "
    "it.",
    "release the slot by `tcgen05.commit` to its mbarrier, not by a plain arrive",
)
STORE_SOURCE = error(
    942,
    "source of a bulk store overwritten before it was read",
    "The copy may read its source until `wait_group.read` returns in the committing thread; other threads need a "
    "barrier after it.",
    "execute `cp.async.bulk.wait_group.read` in the committing thread, then a barrier",
)
FOREIGN_COMMIT = error(
    943,
    "commit by a thread other than the issuing one",
    "A commit covers only the operations of the executing thread.",
    "issue and commit in the same thread",
)
WRONG_CTA = error(
    944,
    "asynchronous operation that names the wrong CTA",
    "The data and the mbarrier of `st.async` and `red.async` are in one CTA; `cp.async.bulk` from `shared::cta` to "
    "`shared::cluster` copies to a CTA other than the executing one (st.async; red.async; cp.async.bulk).",
    "map the addresses of the data and of the mbarrier to one rank (`mapa`); within a CTA copy by `ld` and `st`",
)

# Tensor memory
NOT_ALLOCATED = error(
    945, "tensor memory not allocated", "Columns must be inside a live allocation.", "allocate the columns first"
)
ALLOC_SIZE = error(
    946,
    "invalid allocation of tensor memory",
    "One whole warp allocates a power of two from 32 to 512 columns, never more than the CTA's allocation before, and "
    "none after `tcgen05.relinquish_alloc_permit`.",
    "allocate once, or the largest allocation first",
)
DEALLOC = error(
    947,
    "tensor memory freed incorrectly",
    "Every allocation is freed exactly once, before the CTA exits and after the last use of its columns.",
    "synchronize all users, then let one warp free exactly what was allocated",
)
WRONG_QUARTER = warning(
    948,
    "tensor memory lanes of another warp",
    "Warp w of a warpgroup accesses lanes 32w … 32w+31 (tcgen05.ld, access restrictions). Hardware ignores the "
    "quarter in the address, and published kernels rely on it: the access goes to the warp's own quarter.",
    "add the warp's own quarter to the address, `(warp % 4) << 21`",
)
CTA_GROUP = error(
    949,
    "two values of .cta_group in one kernel",
    "All tcgen05 instructions of a kernel have the same `.cta_group`.",
    "use one value everywhere",
)
