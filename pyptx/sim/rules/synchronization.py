"""Barriers, mbarriers, warps that part, and hangs: PTX0950-PTX0975, PTX0990-PTX0991."""

from __future__ import annotations

from pyptx.sim.rules import advice
from pyptx.sim.rules.definitions import KERNEL, error, warning

# mbarriers
NOT_A_BARRIER = error(
    950,
    "mbarrier operation on no barrier",
    "The object must be initialized and not invalidated.",
    "let one thread execute `mbarrier.init` on it, then a barrier, before anybody uses it",
)
REINITIALISED = error(
    951, "mbarrier.init of a live barrier", "A live mbarrier must be invalidated first.", "`mbarrier.inval` first"
)
BARRIER_BYTES = error(
    952, "ordinary access to a live mbarrier", "Only mbarrier operations may touch it.", "keep data elsewhere"
)
TOO_MANY_ARRIVALS = error(
    953,
    "mbarrier arrival beyond its count",
    "The pending count would become negative.",
    "initialize the barrier with the number of arrivals per phase",
)
TRANSACTION_RANGE = error(954, "mbarrier transaction count out of range", "±(2^20 - 1) bytes.", "expect less per phase")
BYTES_DIFFER = error(
    955,
    "expected and completed bytes differ",
    "A phase ends when the bytes that completed are those expected; a copy counts its full box, also out of bounds.",
    "expect exactly the bytes of the copies that signal this barrier",
)
PHASE_ALIAS = error(
    956,
    "mbarrier wait passed by aliasing",
    "Parity cannot tell a phase from the one two later; the barrier ran ahead of a thread that should hold it back.",
    "let the waiting thread take part in releasing the slot, or flip its parity each round",
)
PHASE_UNOBSERVED = warning(
    957,
    "mbarrier phase that nobody observed",
    "Each phase must be observed by a wait before an arrive on the next.",
    "wait for every phase; let `mbarrier.init` count all arrivals of one",
)
REMOTE_OPERATION = error(
    958,
    "mbarrier operation that is not allowed on another CTA's barrier",
    "Remote barriers take arrive, arrive_drop, expect_tx and complete_tx without result only.",
    "wait on a barrier of the own CTA",
)
COUNT_RANGE = error(959, "mbarrier count out of range", "1 … 2^20 - 1 (`.layout::v1`: 511).", "use a legal count")

# Convergence
DIVERGENT = error(
    960,
    "aligned instruction in a divergent warp",
    "`.aligned` promises that all threads of the warp execute the same instruction.",
    "reconverge first, or use the form without .aligned",
)
NOT_IN_MASK = error(
    961, "executing lane not in its member mask", "The mask must name the executing lane.", "add the lane to the mask"
)
SHFL_SOURCE = error(
    962,
    "value taken from a lane that takes no part",
    "`shfl.sync` from an inactive or unnamed lane gives an undefined value.",
    "shuffle between participating lanes only",
)
EXITED_LANES = warning(
    963,
    "bar.warp.sync names exited lanes",
    "The manual does not say that exited lanes count as arrived.",
    "name live lanes only",
)
WARPGROUP = error(
    964,
    "not executed by a whole warpgroup",
    "wgmma and setmaxnreg are executed by four warps, the first of a rank that is a multiple of four.",
    "let whole warpgroups take the branch",
)
SETMAXNREG = error(
    965,
    "setmaxnreg out of range or direction",
    "24 … 256 in steps of 8; .dec not above, .inc not below the current count; the CTA's pool must suffice.",
    "balance the counts of all warpgroups",
)
ELECT = error(966, "elect.sync with a wrong mask", "The mask names the executing lanes.", "use the converged mask")
CTA_PAIR = error(
    967, "CTA pair mismatch", "`.cta_group::2` needs both CTAs of a pair, alive and in step.", "launch clusters of two"
)
OPERANDS_DIFFER = error(
    968,
    "operand differs between lanes that execute an instruction together",
    "All threads of the warp name one address of tensor memory, one number of columns to allocate or free, one matrix "
    "and stride of `wmma`, all of the warpgroup one matrix descriptor of `wgmma`; otherwise the behavior is undefined "
    "(tcgen05.ld; tcgen05.alloc; wmma.load; wgmma.mma_async).",
    "compute the operand from what all lanes share, such as the number of the warp or warpgroup",
)
SETMAXNREG_AGAIN = error(
    969,
    "setmaxnreg again before the warpgroup has synchronized",
    "After a `setmaxnreg` all warps of the warpgroup synchronize explicitly before they execute another (setmaxnreg).",
    "put a barrier of the warpgroup's 128 threads between the two, `bar.sync 1, 128`",
)

# Barriers
BARRIER_COUNT = error(
    970,
    "bar count or id that cannot match",
    "Ids 0 … 15; counts multiples of the warp size; all participants of a round give the same count.",
    "use one count per barrier",
)
BARRIER_MIXED = error(
    971, "bar.red mixed with sync or arrive", "An active barrier takes one kind of operation.", "use one kind"
)
BARRIER_TWICE = error(
    972,
    "warp arrives twice in one round of a barrier",
    "The round would complete without the warps that it waits for.",
    "use two barriers, or wait in between",
)
CLUSTER_BARRIER = error(
    973,
    "barrier.cluster arrive and wait out of step",
    "Each thread arrives once, then waits, per round.",
    "pair every arrive with a wait",
)
SETMAXNREG_REPEATED = warning(
    974,
    "setmaxnreg repeated before the warpgroup has synchronized",
    "The manual wants the warpgroup to synchronize before every further `setmaxnreg`; Triton's loops repeat one that "
    "asks for the count that the warps have already, and changes nothing.",
    "put a barrier of the warpgroup's 128 threads between the two, or leave the second out",
)

# Hangs
DEADLOCK = error(
    990,
    "deadlock",
    "Nothing can run: every live thread waits for an event that can no longer occur.",
    advice.OTHERS,
    wrong=KERNEL.format("bar.sync 0, 64;"),
    right=KERNEL.format("bar.sync 0, 32;"),
)
LIVELOCK = error(
    991,
    "no progress",
    "Threads run, but nothing that they wait for changes.",
    advice.OTHERS,
    wrong=KERNEL.format("$wait: ld.acquire.gpu.u32 %r2, [flag];\n    setp.eq.u32 %p0, %r2, 0;\n    @%p0 bra $wait;"),
    right=KERNEL.format(
        "st.release.gpu.u32 [flag], 1;\n    $wait: ld.acquire.gpu.u32 %r2, [flag];\n    setp.eq.u32 %p0, %r2, 0;\n"
        "    @%p0 bra $wait;"
    ),
)
