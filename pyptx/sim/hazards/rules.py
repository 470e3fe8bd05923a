"""Every hazard code: what it means, the section of the manual that says so, and how to mend it.

Errors are wrong on hardware. Warnings are what the manual asks for and published kernels omit.
"""

from __future__ import annotations

from dataclasses import replace

from pyptx.diagnostics import Rule, Severity
from pyptx.sim.hazards import advice
from pyptx.sim.hazards.events import Space

REMEDIES: dict[str, str] = {}
_found: list[Rule] = []
_KERNEL = """\
.version 8.5
.target sm_90a
.address_size 64
.global .u32 flag;
.visible .entry k()
{{
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    {}
    ret;
}}
"""
"""A kernel that 32 threads run, for the examples of hangs."""
_ARITHMETIC = _KERNEL.replace(
    ".reg .b32 %r<4>;", ".reg .b32 %r<4>;\n    .reg .b64 %rd<4>;\n    .reg .b16 %h<4>;\n    .reg .f32 %f<4>;"
)
"""The same with registers of all sizes, for the examples of numerics."""


def _make_rule(number: int, title: str, why: str, remedy: str, severity: Severity) -> Rule:
    code = f"PTX{number:04d}"
    rule = Rule(code, title, why, "", "", severity)
    REMEDIES[code] = remedy
    _found.append(rule)
    return rule


def _make_error(number: int, title: str, why: str, remedy: str) -> Rule:
    return _make_rule(number, title, why, remedy, Severity.ERROR)


def _make_warning(number: int, title: str, why: str, remedy: str) -> Rule:
    return _make_rule(number, title, why, remedy, Severity.WARNING)


# Races
RACE = _make_error(
    901,
    "data race",
    "Two accesses overlap, at least one writes, and nothing orders them (Memory Consistency Model, Data-Race).",
    "order them: a barrier, or a release after the first and an acquire before the second",
)
LANE_RACE = _make_error(
    902,
    "data race between lanes of one warp",
    "Lanes are independent threads. `shfl`, `vote` and `elect` converge them but order no memory (bar.warp.sync).",
    "put `bar.warp.sync` with the mask of both lanes between the accesses",
)
NARROW_SCOPE = _make_error(
    903,
    "scope too narrow",
    "Strong accesses of one location race unless the scope of each holds the thread of the other, and a release hands "
    "data to an acquire only then (Morally strong operations); only the wide scope makes ptxas write caches back and "
    "invalidate them.",
    "use `.cluster` between CTAs of a cluster, `.gpu` across clusters: on both accesses, or on the release or arrive, "
    "the acquire or wait, and their fences",
)
MIXED_SIZE = _make_error(
    904,
    "strong accesses that overlap partly",
    "Strong accesses of different bytes are not morally strong to each other; such a race voids the model (Conflict).",
    "access the location with one size everywhere",
)
READONLY = _make_error(
    905,
    "read-only load of bytes written in the same grid",
    "`ld.global.nc` reads through a cache that no fence refreshes: the bytes must be constant for the whole kernel.",
    "use a plain `ld.global`",
)
BEFORE_PRIMARY = _make_error(
    906,
    "access of an overlapping grid's data before griddepcontrol.wait",
    "A dependent grid may run before its prerequisite ended; `griddepcontrol.wait` orders it after (griddepcontrol).",
    "execute `griddepcontrol.wait` before reading the primary's results and before overwriting what it reads",
)
SAME_STORE = _make_warning(
    907,
    "lanes of one store write different values to the same bytes",
    "Which lane's value stays is undefined (CUDA C++ Programming Guide, SIMT Architecture; Data-Race).",
    "let one lane store",
)
# Uninitialized
UNINITIALISED_SHARED = _make_error(
    910, "shared memory read before it was written", "Shared memory starts undefined.", "write it first"
)
UNINITIALISED_REGISTER = _make_error(
    911, "register read before it was written", "Registers start undefined.", "initialize it on every path"
)
UNINITIALISED_TENSOR = _make_error(
    912,
    "tensor memory read before it was written",
    "Columns handed out by `tcgen05.alloc` are undefined.",
    "clear the accumulator: the first `tcgen05.mma` with `enable-input-d` false",
)
UNINITIALISED_GLOBAL = _make_error(
    913,
    "global memory read before it was written",
    "Memory that a call allocates for an output is undefined, as from `torch.empty` or `cudaMalloc`; `atom`, `red` and "
    "reducing copies read it too.",
    "write every element before it is read, or pass an array with values: `out=numpy.zeros(…)`",
)
UNINITIALISED = {
    Space.SHARED: UNINITIALISED_SHARED, Space.TENSOR: UNINITIALISED_TENSOR, Space.GLOBAL: UNINITIALISED_GLOBAL,
}  # fmt: skip
# Proxies
WRITE_THEN_ASYNC_READ = _make_error(
    920,
    "generic write, then async-proxy read, with no proxy fence",
    "The async proxy sees generic writes only if a proxy fence lies on the path to them (Proxies; membar / fence).",
    "put `fence.proxy.async` after the writes, before the barrier; or in the issuing thread after it",
)
WRITE_THEN_ASYNC_WRITE = _make_error(
    921,
    "generic write, then async-proxy overwrite, with no proxy fence",
    "Without a proxy fence the older generic write may land after the copy (Proxies; membar / fence).",
    "put `fence.proxy.async` between the write and the copy, in either thread",
)
CP_ASYNC_THEN_ASYNC_READ = _make_warning(
    922,
    "cp.async data read by the async proxy, with no proxy fence",
    "Non-bulk `cp.async` writes through the generic proxy, so the manual asks for a fence; CUTLASS main loops omit it.",
    "put `fence.proxy.async` after the wait for the copies",
)
READ_THEN_ASYNC_WRITE = _make_warning(
    923,
    "generic read, then async-proxy overwrite, with no proxy fence",
    "The manual orders a generic read before an async overwrite by a proxy fence; ldmatrix-fed main loops omit it.",
    "put `fence.proxy.async` after the reads, before the slot is handed back",
)
STORE_THEN_ASYNC_READ = _make_warning(
    924,
    "bulk store, then async read by another CTA, with no proxy fence",
    "The hand-over between the CTAs runs through the generic proxy, so the reader needs a proxy fence after it.",
    "put `fence.proxy.async.global` after the acquire",
)
MAP_NOT_ACQUIRED = _make_error(
    925,
    "tensor map in global memory used without an acquire",
    "Maps are read through the tensormap proxy; neither kernel start nor ordinary fences acquire it (membar / fence).",
    "execute `fence.proxy.tensormap::generic.acquire` on the map (`.sys` if the host wrote it) once per CTA",
)
MAP_NOT_RELEASED = _make_error(
    926,
    "edited tensor map used without a release",
    "`tensormap.replace` writes through the generic proxy; the map must be released to the tensormap proxy.",
    "use `tensormap.cp_fenceproxy` or `fence.proxy.tensormap::generic.release` after the edits, then a barrier",
)
MAP_IN_USE = _make_error(
    927,
    "tensor map edited while a copy may still read it",
    "The copy reads its map at any time until it has completed.",
    "wait for the copies that use the map before editing it",
)
BARRIER_NOT_VISIBLE = _make_error(
    928,
    "mbarrier used before its initialization is visible",
    "Threads of the CTA need a barrier after `mbarrier.init`; other CTAs need a cluster barrier that releases it.",
    "`fence.mbarrier_init.release.cluster` and `barrier.cluster.arrive`/`.wait`, or `bar.sync` within the CTA",
)
# Dependent grids: looked for only when asked for by name
BEFORE_WAIT = _make_warning(
    929,
    "global memory touched before griddepcontrol.wait",
    "The kernel waits for the grid before it, which until then may still write what this one reads, or read what this "
    "one overwrites (griddepcontrol). Only what no earlier grid writes, weights say, may be read before the wait.",
    "move the access behind `griddepcontrol.wait` and, in other warps, behind a barrier after it; read constants by "
    "`ld.global.nc`",
)
# Asynchronous results too early
LOAD_TOO_EARLY = _make_error(
    930,
    "asynchronous copy touched before its mbarrier phase was observed",
    "The bytes land at any time until the phase that counts them completes and is observed (Async operations).",
    "wait for the phase of this copy: check the parity, the bytes of `expect_tx`, and that whoever waits hands on by "
    "a barrier",
)
CP_ASYNC_TOO_EARLY = _make_error(
    931,
    "cp.async data touched before its wait",
    "`cp.async.wait_group` covers the groups of the executing thread only; other threads need a barrier after it.",
    "every copying thread waits for its groups, then a barrier, then the data",
)
STORE_TOO_EARLY = _make_error(
    932,
    "results of a bulk store used before it completed",
    "`cp.async.bulk.wait_group.read` says that the source was read, not that the writes are done.",
    "use `cp.async.bulk.wait_group` without `.read` in the thread that committed, then release",
)
WGMMA_TOO_EARLY = _make_error(
    933,
    "wgmma registers accessed before wgmma.wait_group",
    "Accumulators and register operands belong to the operation until the group was waited for (Asynchronous wgmma).",
    "`wgmma.commit_group` and `wgmma.wait_group` before touching the registers",
)
WGMMA_NO_FENCE = _make_error(
    934,
    "wgmma without wgmma.fence",
    "The first wgmma, and every one after other accesses to its registers, needs `wgmma.fence` by all four warps.",
    "put `wgmma.fence.sync.aligned` before it",
)
TENSOR_TOO_EARLY = _make_error(
    935,
    "tensor memory touched before tcgen05.commit was observed",
    "tcgen05.mma, cp and shift complete when an mbarrier phase that `tcgen05.commit` signals is observed.",
    "`tcgen05.commit` by the issuing thread, and wait for the mbarrier phase",
)
TCGEN05_FENCE_RELAXED = _make_error(
    936,
    "tcgen05 hand-over by a relaxed barrier without tcgen05.fence",
    "With relaxed arrive or wait only the tcgen05 fences order the operations (tcgen05.fence).",
    "`tcgen05.fence::before_thread_sync` before the arrive and `::after_thread_sync` after the wait",
)
TCGEN05_FENCE = _make_warning(
    937,
    "tcgen05 hand-over without tcgen05.fence",
    "The manual pairs every hand-over with before/after_thread_sync; CUTLASS omits them with acquire/release edges. "
    "`tcgen05.dealloc` is synchronous (tcgen05 memory consistency): a barrier behind the waits is enough for it.",
    "`tcgen05.fence::before_thread_sync` before the arrive and `::after_thread_sync` after the wait",
)
TENSOR_LOAD_PENDING = _make_error(
    938,
    "tensor memory overwritten or handed back while tcgen05.ld may still read it",
    "`tcgen05.ld` reads asynchronously; only `tcgen05.wait::ld` says that it is done with the columns, to its own "
    "warp; others learn it by a barrier behind that.",
    "`tcgen05.wait::ld.sync.aligned` before the arrive, store, MMA or dealloc",
)
TENSOR_STORE_PENDING = _make_error(
    939,
    "tensor memory used while tcgen05.st may still write it",
    "`tcgen05.st` writes asynchronously; only `tcgen05.wait::st` says that the columns are written, to its own warp; "
    "others learn it by a barrier behind that.",
    "`tcgen05.wait::st.sync.aligned` before the columns are used",
)
# Asynchronous sources reused too early
WGMMA_SOURCE = _make_error(
    940,
    "shared operand of wgmma overwritten before wgmma.wait_group",
    "wgmma reads shared memory until its group was waited for by the warpgroup.",
    "`wgmma.wait_group` before the slot is released",
)
TCGEN05_SOURCE = _make_error(
    941,
    "shared operand of tcgen05 overwritten before its commit was observed",
    "The tensor core reads the operands after the issuing thread went on; a plain arrive does not cover it.",
    "release the slot by `tcgen05.commit` to its mbarrier, not by a plain arrive",
)
STORE_SOURCE = _make_error(
    942,
    "source of a bulk store overwritten before it was read",
    "The copy reads its source until `wait_group.read` of the committing thread; others need a barrier after that.",
    "`cp.async.bulk.wait_group.read` in the committing thread, then a barrier",
)
FOREIGN_COMMIT = _make_error(
    943,
    "commit by another thread than the one that issued",
    "Commits track the operations of the executing thread only.",
    "issue and commit from the same thread",
)
WRONG_CTA = _make_error(
    944,
    "asynchronous operation that names the wrong CTA",
    "The data and the mbarrier of `st.async` and `red.async` lie in one CTA; `cp.async.bulk` from `shared::cta` to "
    "`shared::cluster` goes to another CTA than the executing one (st.async; red.async; cp.async.bulk).",
    "map the address of the data and that of the mbarrier to one rank (`mapa`); copy within the CTA by `ld` and `st`",
)
# Tensor memory
NOT_ALLOCATED = _make_error(
    945, "tensor memory not allocated", "Columns must lie inside a live allocation.", "allocate them first"
)
ALLOC_SIZE = _make_error(
    946,
    "tensor memory allocation",
    "Columns: a power of two from 32 to 512, by one whole warp, never growing in a CTA, none after relinquishing.",
    "allocate once, the largest first",
)
DEALLOC = _make_error(
    947,
    "tensor memory handed back wrongly",
    "Every allocation is freed exactly once, before the CTA exits, when nobody uses the columns any more.",
    "synchronize all users, then one warp deallocates what was allocated",
)
WRONG_QUARTER = _make_warning(
    948,
    "tensor memory lanes of another warp",
    "Warp w of a warpgroup reaches lanes 32w … 32w+31 (tcgen05.ld, access restrictions). Hardware ignores which "
    "quarter an address names, and published kernels rely on it: the access goes to the warp's own quarter.",
    "add the warp's own quarter to the address, `(warp % 4) << 21`",
)
CTA_GROUP = _make_error(
    949,
    "two values of .cta_group in one kernel",
    "All tcgen05 instructions of a kernel name the same `.cta_group`.",
    "use one value everywhere",
)
# mbarriers
NOT_A_BARRIER = _make_error(
    950,
    "mbarrier operation on no barrier",
    "The object must be initialized and not invalidated.",
    "let one thread execute `mbarrier.init` on it, then a barrier, before anybody uses it",
)
REINITIALISED = _make_error(
    951, "mbarrier.init of a live barrier", "A live mbarrier must be invalidated first.", "`mbarrier.inval` first"
)
BARRIER_BYTES = _make_error(
    952, "ordinary access to a live mbarrier", "Only mbarrier operations may touch it.", "keep data elsewhere"
)
TOO_MANY_ARRIVALS = _make_error(
    953,
    "mbarrier arrival beyond its count",
    "The pending count would become negative.",
    "initialize the barrier with the number of arrivals per phase",
)
TRANSACTION_RANGE = _make_error(
    954, "mbarrier transaction count out of range", "±(2^20 - 1) bytes.", "expect less per phase"
)
BYTES_DIFFER = _make_error(
    955,
    "expected and completed bytes differ",
    "A phase ends when the bytes that completed are those expected; a copy counts its full box, also out of bounds.",
    "expect exactly the bytes of the copies that signal this barrier",
)
PHASE_ALIAS = _make_error(
    956,
    "mbarrier wait passed by aliasing",
    "Parity cannot tell a phase from the one two later; the barrier ran ahead of a thread that should hold it back.",
    "let the waiting thread take part in releasing the slot, or flip its parity each round",
)
PHASE_UNOBSERVED = _make_warning(
    957,
    "mbarrier phase that nobody observed",
    "Each phase must be observed by a wait before an arrive on the next.",
    "wait for every phase; let `mbarrier.init` count all arrivals of one",
)
REMOTE_OPERATION = _make_error(
    958,
    "mbarrier operation that is not allowed on another CTA's barrier",
    "Remote barriers take arrive, arrive_drop, expect_tx and complete_tx without result only.",
    "wait on a barrier of the own CTA",
)
COUNT_RANGE = _make_error(959, "mbarrier count out of range", "1 … 2^20 - 1 (`.layout::v1`: 511).", "use a legal count")
# Convergence
DIVERGENT = _make_error(
    960,
    "aligned instruction in a divergent warp",
    "`.aligned` promises that all threads of the warp execute the same instruction.",
    "reconverge first, or use the form without .aligned",
)
NOT_IN_MASK = _make_error(
    961, "executing lane not in its member mask", "The mask must name the executing lane.", "add the lane to the mask"
)
SHFL_SOURCE = _make_error(
    962,
    "value taken from a lane that takes no part",
    "`shfl.sync` from an inactive or unnamed lane gives an undefined value.",
    "shuffle between participating lanes only",
)
EXITED_LANES = _make_warning(
    963,
    "bar.warp.sync names exited lanes",
    "The manual does not say that exited lanes count as arrived.",
    "name live lanes only",
)
WARPGROUP = _make_error(
    964,
    "not executed by a whole warpgroup",
    "wgmma and setmaxnreg are executed by four warps, the first of a rank that is a multiple of four.",
    "let whole warpgroups take the branch",
)
SETMAXNREG = _make_error(
    965,
    "setmaxnreg out of range or direction",
    "24 … 256 in steps of 8; .dec not above, .inc not below the current count; the CTA's pool must suffice.",
    "balance the counts of all warpgroups",
)
ELECT = _make_error(
    966, "elect.sync with a wrong mask", "The mask names the executing lanes.", "use the converged mask"
)
CTA_PAIR = _make_error(
    967, "CTA pair mismatch", "`.cta_group::2` needs both CTAs of a pair, alive and in step.", "launch clusters of two"
)
OPERANDS_DIFFER = _make_error(
    968,
    "operand differs between lanes that execute an instruction together",
    "All threads of the warp name one address of tensor memory, one number of columns to allocate or free, one matrix "
    "and stride of `wmma`, all of the warpgroup one matrix descriptor of `wgmma`; otherwise the behavior is undefined "
    "(tcgen05.ld; tcgen05.alloc; wmma.load; wgmma.mma_async).",
    "compute the operand from what all lanes share, such as the number of the warp or warpgroup",
)
SETMAXNREG_AGAIN = _make_error(
    969,
    "setmaxnreg again before the warpgroup has synchronized",
    "After a `setmaxnreg` all warps of the warpgroup synchronize explicitly before they execute another (setmaxnreg).",
    "put a barrier of the warpgroup's 128 threads between the two, `bar.sync 1, 128`",
)
# Barriers
BARRIER_COUNT = _make_error(
    970,
    "bar count or id that cannot match",
    "Ids 0 … 15; counts multiples of the warp size; all participants of a round give the same count.",
    "use one count per barrier",
)
BARRIER_MIXED = _make_error(
    971, "bar.red mixed with sync or arrive", "An active barrier takes one kind of operation.", "use one kind"
)
BARRIER_TWICE = _make_error(
    972,
    "warp arrives twice in one round of a barrier",
    "The round would complete without the warps that it waits for.",
    "use two barriers, or wait in between",
)
CLUSTER_BARRIER = _make_error(
    973,
    "barrier.cluster arrive and wait out of step",
    "Each thread arrives once, then waits, per round.",
    "pair every arrive with a wait",
)
SETMAXNREG_REPEATED = _make_warning(
    974,
    "setmaxnreg repeated before the warpgroup has synchronized",
    "The manual wants the warpgroup to synchronize before every further `setmaxnreg`; Triton's loops repeat one that "
    "asks for the count that the warps have already, and changes nothing.",
    "put a barrier of the warpgroup's 128 threads between the two, or leave the second out",
)
# Unused: looked for only when asked for by name
UNREAD_COPY = _make_warning(
    976,
    "copied bytes that nobody read",
    "A copy brought bytes into shared memory that were overwritten, or lost at the end, before anybody read them; fill "
    "outside a tensor and padding do not count.",
    "copy only what is read, or read the part that is left: check the box, the bytes, the stages and the offsets",
)
UNREAD_ACCUMULATOR = _make_warning(
    977,
    "accumulators that nobody read",
    "A product wrote columns of tensor memory, or registers, that nobody reads before they are overwritten or gone.",
    "read every column by `tcgen05.ld`, every register in the epilogue, or make N smaller",
)
EMPTY_COPY = _make_warning(
    978,
    "tensor copy of a box outside its tensor",
    "No element of the box lies inside the tensor: a load brings only fill, a store writes nothing (Tensor copy).",
    "leave the copy out, or correct its coordinates",
)
# Lifetimes
PEER_NOT_STARTED = _make_error(
    980,
    "access to another CTA before any cluster barrier",
    "A CTA of the cluster may not have started yet (cluster barrier).",
    "`barrier.cluster.arrive` and `.wait` first",
)
PEER_EXITED = _make_error(
    981,
    "access to a CTA that may have exited",
    "Shared memory ends with its CTA; it must stay until its last remote user is done.",
    "`barrier.cluster.arrive` and `.wait` by all, before exit",
)
LANDS_AFTER_EXIT = _make_error(
    982,
    "copy still landing in shared memory at exit",
    "The memory may already belong to another CTA.",
    "wait for every copy before exit",
)
STORE_AT_EXIT = _make_warning(
    983,
    "exit while a bulk copy may still read its source",
    "The manual asks for the wait; published kernels leave it out.",
    "`cp.async.bulk.wait_group.read 0` before exit",
)
ABSENT_CTA = _make_error(
    984, "multicast to an absent CTA", "The mask names ranks of the cluster.", "mask off ranks beyond the cluster"
)
# Layouts
PATTERN_START = _make_warning(
    914,
    "matrix descriptor that starts inside a swizzle pattern",
    "The pattern of a swizzle goes by address bits: it repeats every 1024, 512 or 256 bytes (128B, 64B, 32B). A matrix "
    "starts in its first line, or the descriptor's base offset says in which (Matrix Descriptor Format).",
    "align the tile to the pattern, start on a multiple of 8 rows, or set the base offset",
)
SWIZZLE = _make_warning(
    985,
    "swizzle of the copy and of the descriptor differ",
    "A product takes the bytes of a tile from where its descriptor says that the swizzle put them; a tensor copy with "
    "another mode put them elsewhere (Tensor swizzling modes; matrix descriptors).",
    "give the tensor map and the matrix descriptor the same swizzle; only data that was swizzled before may be copied "
    "without one",
)
LOST_BOX = _make_warning(
    986,
    "coordinates of a tensor copy that look exchanged or scaled",
    "A box without any element inside the tensor loads only fill, or stores nothing; the coordinates of all boxes "
    "would fit in another order or unit (Tensor copy; Tiled mode).",
    "give coordinates in elements, that of the fastest dimension first",
)
OVERLAPPING_OPERAND = _make_warning(
    987,
    "matrix descriptor whose offsets overlap",
    "The leading and the stride byte offset (LBO, SBO) of a descriptor put two elements of an operand on the same "
    "bytes, so that the product reads some of them twice and others never (matrix descriptors; canonical layouts).",
    "SBO is at least 1024, 512, 256 or 128 bytes: 8 lines of the 128-, 64-, 32-byte swizzle or of none; LBO is ignored "
    "with a swizzle along K",
)
ELEMENT_TYPE = _make_warning(
    988,
    "element type of the tensor map and of the product differ",
    "A tensor map of floating-point numbers says what its bytes are, and the product takes them for another type.",
    "encode the tensor map with the type that the product reads, or let the product read the map's; maps of U8, U16 "
    "and U32 copy bits",
)
ROW_SWIZZLE = _make_warning(
    989,
    "rows read by another swizzle than they were written",
    "The eight addresses of a matrix show which swizzle `ldmatrix` expects; the tensor copy or `stmatrix` that wrote "
    "the rows used another (Tensor swizzling modes; ldmatrix).",
    "apply the swizzle of the writer to the addresses, or write without one",
)
# Bounds
SUBSCRIPT = _make_error(
    917,
    "index outside its allocation",
    "The element is not one of the allocation; what lies there belongs to another one, or to nobody.",
    "compare the index with the shape, or guard the access",
)
# Hangs
DEADLOCK = replace(
    _make_error(
        990,
        "deadlock",
        "Nothing can run: every live thread waits for an event that can no longer occur.",
        advice.OTHERS,
    ),
    wrong=_KERNEL.format("bar.sync 0, 64;"),
    right=_KERNEL.format("bar.sync 0, 32;"),
)
LIVELOCK = replace(
    _make_error(991, "no progress", "Threads run, but nothing that they wait for changes.", advice.OTHERS),
    wrong=_KERNEL.format("$wait: ld.acquire.gpu.u32 %r2, [flag];\n    setp.eq.u32 %p0, %r2, 0;\n    @%p0 bra $wait;"),
    right=_KERNEL.format(
        "st.release.gpu.u32 [flag], 1;\n    $wait: ld.acquire.gpu.u32 %r2, [flag];\n    setp.eq.u32 %p0, %r2, 0;\n"
        "    @%p0 bra $wait;"
    ),
)
_found[-2:] = [DEADLOCK, LIVELOCK]

# Numerics and outputs: looked for only when asked for by name
_INDEXED = """\
mov.u64 %rd1, flag;
    {}
    add.s64 %rd1, %rd1, %rd2;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ld.global.u32 %r3, [%rd1];"""
NAN = replace(
    _make_warning(
        992,
        "NaN first produced here",
        "None of the operands is NaN, the result is: 0 * inf, inf - inf, 0 / 0, the root or logarithm of a negative "
        "number, or a value beyond a format without infinity.",
        "look at the operands: guard the division, clamp the argument, or scale the values",
    ),
    wrong=_ARITHMETIC.format("mov.f32 %f0, 0fFF800000;\n    sub.f32 %f1, %f0, %f0;"),
    right=_ARITHMETIC.format("mov.f32 %f0, 0f3F800000;\n    sub.f32 %f1, %f0, %f0;"),
)
INFINITY = replace(
    _make_warning(
        993,
        "infinity first produced here",
        "All operands are finite, the result is not: a sum, product or conversion beyond the type's range, or a "
        "division by zero. An infinity that a kernel writes itself is an operand.",
        "scale the values, accumulate in a wider type, or convert with `.satfinite`",
    ),
    wrong=_ARITHMETIC.format("mov.f32 %f0, 0f00000000;\n    rcp.approx.f32 %f1, %f0;"),
    right=_ARITHMETIC.format("mov.f32 %f0, 0f3F800000;\n    rcp.approx.f32 %f1, %f0;"),
)
ADDRESS_OVERFLOW = replace(
    _make_warning(
        994,
        "integer overflow in address arithmetic",
        "The exact result does not fit the type, and the wrapped value becomes part of an address or a coordinate.",
        "compute the index in 64 bits: `mul.wide`, `mad.wide`, or `cvt` to 64 bits before the arithmetic",
    ),
    wrong=_ARITHMETIC.format(_INDEXED.format("mul.lo.s32 %r2, %r1, 134217728;\n    mul.wide.s32 %rd2, %r2, 4;")),
    right=_ARITHMETIC.format(_INDEXED.format("mul.wide.s32 %rd2, %r1, 536870912;")),
)
NARROWED = replace(
    _make_warning(
        995,
        "value lost by narrowing",
        "The bits that are cut off are neither zeros nor copies of the sign: no reading of what is left is the value.",
        "keep the value wide, or narrow with `.sat`",
    ),
    wrong=_ARITHMETIC.format("mul.lo.s32 %r2, %r1, 100000;\n    cvt.u16.u32 %h1, %r2;"),
    right=_ARITHMETIC.format("mul.lo.s32 %r2, %r1, 1000;\n    cvt.u16.u32 %h1, %r2;"),
)
INEXACT = replace(
    _make_warning(
        996,
        "integer not exact as a floating-point number",
        "f32 holds all integers up to 2^24, f64 up to 2^53, f16 up to 2^11, bf16 up to 2^8; beyond, they are rounded.",
        "convert to a wider type, or keep the integer",
    ),
    wrong=_ARITHMETIC.format("mad.lo.s32 %r2, %r1, 1, 16777216;\n    cvt.rn.f32.s32 %f1, %r2;"),
    right=_ARITHMETIC.format("mad.lo.s32 %r2, %r1, 2, 16777216;\n    cvt.rn.f32.s32 %f1, %r2;"),
)
OUT_OF_RANGE = replace(
    _make_warning(
        997,
        "floating-point number beyond the integer's range",
        "What does not fit becomes the nearest limit of the integer type, NaN becomes 0 or the least integer, silently "
        "(cvt).",
        "clamp before the conversion, or write `.sat` if the limit is meant",
    ),
    wrong=_ARITHMETIC.format("mov.f32 %f0, 0fBF800000;\n    cvt.rzi.u32.f32 %r2, %f0;"),
    right=_ARITHMETIC.format("mov.f32 %f0, 0fBF000000;\n    cvt.rzi.u32.f32 %r2, %f0;"),
)
UNWRITTEN = _make_warning(
    998,
    "output elements never written",
    "Elements that no thread writes keep what the array held before; in an output that the call allocates that is "
    "undefined.",
    "let the grid cover the whole output, tail included, or pass an initialized array as `out=`",
)
_found[-7:-1] = [NAN, INFINITY, ADDRESS_OVERFLOW, NARROWED, INEXACT, OUT_OF_RANGE]

RULES: tuple[Rule, ...] = tuple(_found)
