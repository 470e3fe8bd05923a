"""Races, uninitialized memory, and writes that another proxy cannot see: PTX0901-PTX0929."""

from __future__ import annotations

from pyptx.sim.base.events import Space
from pyptx.sim.rules.definitions import error, warning

# Races
RACE = error(
    901,
    "data race",
    "Two accesses overlap, at least one writes, and nothing orders them (Memory Consistency Model, Data-Race).",
    "order the accesses: a barrier, or a release after the first and an acquire before the second",
)
LANE_RACE = error(
    902,
    "data race between lanes of one warp",
    "Lanes are independent threads. `shfl`, `vote` and `elect` converge them but do not order memory (bar.warp.sync).",
    "put `bar.warp.sync` with the mask of both lanes between the accesses",
)
NARROW_SCOPE = error(
    903,
    "scope too narrow",
    "Strong accesses to one location race unless the scope of each includes the thread of the other; a release and an "
    "acquire likewise (Morally strong operations). Only at the wide scope does ptxas write back and invalidate "
    "caches.",
    "use `.cluster` between CTAs of a cluster and `.gpu` across clusters: on both accesses, or on the release or "
    "arrive, the acquire or wait, and their fences",
)
MIXED_SIZE = error(
    904,
    "strong accesses that overlap partially",
    "Strong accesses to different byte ranges are not morally strong with each other; such a race makes the behavior "
    "undefined (Conflict).",
    "access the location with one size everywhere",
)
READONLY = error(
    905,
    "read-only load of bytes written in the same grid",
    "`ld.global.nc` reads through a cache that no fence invalidates: the bytes must be constant for the whole kernel.",
    "use a plain `ld.global`",
)
BEFORE_PRIMARY = error(
    906,
    "access to an overlapping grid's data before griddepcontrol.wait",
    "A dependent grid may run before its prerequisite grid completes; `griddepcontrol.wait` waits for it "
    "(griddepcontrol).",
    "execute `griddepcontrol.wait` before reading the primary's results and before overwriting its inputs",
)
SAME_STORE = warning(
    907,
    "lanes of one store write different values to the same bytes",
    "It is undefined which lane's value remains (CUDA C++ Programming Guide, SIMT Architecture; Data-Race).",
    "let one lane store",
)

# Uninitialized
UNINITIALISED_SHARED = error(
    910, "shared memory read before it was written", "Shared memory is undefined at the start.", "write it first"
)
UNINITIALISED_REGISTER = error(
    911,
    "register read before it was written",
    "Registers are undefined at the start.",
    "initialize the register on every path",
)
UNINITIALISED_TENSOR = error(
    912,
    "tensor memory read before it was written",
    "Columns from `tcgen05.alloc` are undefined.",
    "clear the accumulator: set `enable-input-d` to false in the first `tcgen05.mma`",
)
UNINITIALISED_GLOBAL = error(
    913,
    "global memory read before it was written",
    "Memory that a call allocates for an output is undefined, as from `torch.empty` or `cudaMalloc`; `atom`, `red` "
    "and reducing copies also read it.",
    "write every element before it is read, or pass an initialized array: `out=numpy.zeros(…)`",
)
UNINITIALISED = {
    Space.SHARED: UNINITIALISED_SHARED, Space.TENSOR: UNINITIALISED_TENSOR, Space.GLOBAL: UNINITIALISED_GLOBAL,
}  # fmt: skip

# Proxies
WRITE_THEN_ASYNC_READ = error(
    920,
    "generic write, then async-proxy read, with no proxy fence",
    "The async proxy sees generic writes only after a proxy fence (Proxies; membar / fence).",
    "put `fence.proxy.async` after the writes, before the barrier; or after the barrier in the issuing thread",
)
WRITE_THEN_ASYNC_WRITE = error(
    921,
    "generic write, then async-proxy overwrite, with no proxy fence",
    "Without a proxy fence the earlier generic write may take effect after the copy (Proxies; membar / fence).",
    "put `fence.proxy.async` between the write and the copy, in either thread",
)
CP_ASYNC_THEN_ASYNC_READ = warning(
    922,
    "cp.async data read by the async proxy, with no proxy fence",
    "Non-bulk `cp.async` writes through the generic proxy, so the manual requires a fence; CUTLASS main loops omit it.",
    "put `fence.proxy.async` after the wait for the copies",
)
READ_THEN_ASYNC_WRITE = warning(
    923,
    "generic read, then async-proxy overwrite, with no proxy fence",
    "The manual requires a proxy fence between a generic read and an async overwrite; main loops that use ldmatrix "
    "omit it.",
    "put `fence.proxy.async` after the reads, before the slot is released",
)
STORE_THEN_ASYNC_READ = warning(
    924,
    "bulk store, then async read by another CTA, with no proxy fence",
    "The CTAs synchronize through the generic proxy, so the reader needs a proxy fence after it.",
    "put `fence.proxy.async.global` after the acquire",
)
MAP_NOT_ACQUIRED = error(
    925,
    "tensor map in global memory used without an acquire",
    "Maps are read through the tensormap proxy; neither kernel start nor an ordinary fence acquires them (membar / "
    "fence).",
    "execute `fence.proxy.tensormap::generic.acquire` on the map (`.sys` if the host wrote it) once per CTA",
)
MAP_NOT_RELEASED = error(
    926,
    "modified tensor map used without a release",
    "`tensormap.replace` writes through the generic proxy; a release must make the map visible to the tensormap proxy.",
    "execute `tensormap.cp_fenceproxy` or `fence.proxy.tensormap::generic.release` after the changes, then a barrier",
)
MAP_IN_USE = error(
    927,
    "tensor map modified while a copy may still read it",
    "The copy may read its map until it completes.",
    "wait for the copies that use the map before modifying it",
)
BARRIER_NOT_VISIBLE = error(
    928,
    "mbarrier used before its initialization is visible",
    "Threads of the CTA need a barrier after `mbarrier.init`; other CTAs need a cluster barrier that releases it.",
    "execute `fence.mbarrier_init.release.cluster` and `barrier.cluster.arrive`/`.wait`, or `bar.sync` within the CTA",
)

# Dependent grids: looked for only when asked for by name
BEFORE_WAIT = warning(
    929,
    "global memory accessed before griddepcontrol.wait",
    "Until the wait returns, the previous grid may still write what this grid reads, or read what it overwrites "
    "(griddepcontrol). Only data that no earlier grid writes, such as weights, may be read before the wait.",
    "move the access after `griddepcontrol.wait` and, in other warps, after a barrier that follows it; read constants "
    "by `ld.global.nc`",
)
