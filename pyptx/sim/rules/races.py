"""Races, uninitialized memory, and writes that another proxy cannot see: PTX0901-PTX0929."""

from __future__ import annotations

from pyptx.sim.base.events import Space
from pyptx.sim.rules.definitions import error, warning

# Races
RACE = error(
    901,
    "data race",
    "Two accesses overlap, at least one writes, and nothing orders them (Memory Consistency Model, Data-Race).",
    "order them: a barrier, or a release after the first and an acquire before the second",
)
LANE_RACE = error(
    902,
    "data race between lanes of one warp",
    "Lanes are independent threads. `shfl`, `vote` and `elect` converge them but order no memory (bar.warp.sync).",
    "put `bar.warp.sync` with the mask of both lanes between the accesses",
)
NARROW_SCOPE = error(
    903,
    "scope too narrow",
    "Strong accesses of one location race unless the scope of each holds the thread of the other, and a release hands "
    "data to an acquire only then (Morally strong operations); only the wide scope makes ptxas write caches back and "
    "invalidate them.",
    "use `.cluster` between CTAs of a cluster, `.gpu` across clusters: on both accesses, or on the release or arrive, "
    "the acquire or wait, and their fences",
)
MIXED_SIZE = error(
    904,
    "strong accesses that overlap partly",
    "Strong accesses of different bytes are not morally strong to each other; such a race voids the model (Conflict).",
    "access the location with one size everywhere",
)
READONLY = error(
    905,
    "read-only load of bytes written in the same grid",
    "`ld.global.nc` reads through a cache that no fence refreshes: the bytes must be constant for the whole kernel.",
    "use a plain `ld.global`",
)
BEFORE_PRIMARY = error(
    906,
    "access of an overlapping grid's data before griddepcontrol.wait",
    "A dependent grid may run before its prerequisite ended; `griddepcontrol.wait` orders it after (griddepcontrol).",
    "execute `griddepcontrol.wait` before reading the primary's results and before overwriting what it reads",
)
SAME_STORE = warning(
    907,
    "lanes of one store write different values to the same bytes",
    "Which lane's value stays is undefined (CUDA C++ Programming Guide, SIMT Architecture; Data-Race).",
    "let one lane store",
)

# Uninitialized
UNINITIALISED_SHARED = error(
    910, "shared memory read before it was written", "Shared memory starts undefined.", "write it first"
)
UNINITIALISED_REGISTER = error(
    911, "register read before it was written", "Registers start undefined.", "initialize it on every path"
)
UNINITIALISED_TENSOR = error(
    912,
    "tensor memory read before it was written",
    "Columns handed out by `tcgen05.alloc` are undefined.",
    "clear the accumulator: the first `tcgen05.mma` with `enable-input-d` false",
)
UNINITIALISED_GLOBAL = error(
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
WRITE_THEN_ASYNC_READ = error(
    920,
    "generic write, then async-proxy read, with no proxy fence",
    "The async proxy sees generic writes only if a proxy fence lies on the path to them (Proxies; membar / fence).",
    "put `fence.proxy.async` after the writes, before the barrier; or in the issuing thread after it",
)
WRITE_THEN_ASYNC_WRITE = error(
    921,
    "generic write, then async-proxy overwrite, with no proxy fence",
    "Without a proxy fence the older generic write may land after the copy (Proxies; membar / fence).",
    "put `fence.proxy.async` between the write and the copy, in either thread",
)
CP_ASYNC_THEN_ASYNC_READ = warning(
    922,
    "cp.async data read by the async proxy, with no proxy fence",
    "Non-bulk `cp.async` writes through the generic proxy, so the manual asks for a fence; CUTLASS main loops omit it.",
    "put `fence.proxy.async` after the wait for the copies",
)
READ_THEN_ASYNC_WRITE = warning(
    923,
    "generic read, then async-proxy overwrite, with no proxy fence",
    "The manual orders a generic read before an async overwrite by a proxy fence; ldmatrix-fed main loops omit it.",
    "put `fence.proxy.async` after the reads, before the slot is handed back",
)
STORE_THEN_ASYNC_READ = warning(
    924,
    "bulk store, then async read by another CTA, with no proxy fence",
    "The hand-over between the CTAs runs through the generic proxy, so the reader needs a proxy fence after it.",
    "put `fence.proxy.async.global` after the acquire",
)
MAP_NOT_ACQUIRED = error(
    925,
    "tensor map in global memory used without an acquire",
    "Maps are read through the tensormap proxy; neither kernel start nor ordinary fences acquire it (membar / fence).",
    "execute `fence.proxy.tensormap::generic.acquire` on the map (`.sys` if the host wrote it) once per CTA",
)
MAP_NOT_RELEASED = error(
    926,
    "edited tensor map used without a release",
    "`tensormap.replace` writes through the generic proxy; the map must be released to the tensormap proxy.",
    "use `tensormap.cp_fenceproxy` or `fence.proxy.tensormap::generic.release` after the edits, then a barrier",
)
MAP_IN_USE = error(
    927,
    "tensor map edited while a copy may still read it",
    "The copy reads its map at any time until it has completed.",
    "wait for the copies that use the map before editing it",
)
BARRIER_NOT_VISIBLE = error(
    928,
    "mbarrier used before its initialization is visible",
    "Threads of the CTA need a barrier after `mbarrier.init`; other CTAs need a cluster barrier that releases it.",
    "`fence.mbarrier_init.release.cluster` and `barrier.cluster.arrive`/`.wait`, or `bar.sync` within the CTA",
)

# Dependent grids: looked for only when asked for by name
BEFORE_WAIT = warning(
    929,
    "global memory touched before griddepcontrol.wait",
    "The kernel waits for the grid before it, which until then may still write what this one reads, or read what this "
    "one overwrites (griddepcontrol). Only what no earlier grid writes, weights say, may be read before the wait.",
    "move the access behind `griddepcontrol.wait` and, in other warps, behind a barrier after it; read constants by "
    "`ld.global.nc`",
)
