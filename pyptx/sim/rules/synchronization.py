"""Barriers, mbarriers, warps that part, and hangs: PTX0950-PTX0975, PTX0990-PTX0991."""

from __future__ import annotations

from pyptx.sim.rules import advice
from pyptx.sim.rules.definitions import KERNEL, error, warning

# mbarriers
NOT_A_BARRIER = error(
    950,
    "mbarrier operation on an object that is not a live mbarrier",
    "The object must be initialized and not invalidated.",
    "let one thread execute `mbarrier.init` on it, then a barrier, before its first use",
)
REINITIALISED = error(
    951,
    "mbarrier.init of a live barrier",
    "A live mbarrier must be invalidated before it is initialized again.",
    "execute `mbarrier.inval` first",
)
BARRIER_BYTES = error(
    952, "ordinary access to a live mbarrier", "Only mbarrier operations may access it.", "keep data elsewhere"
)
TOO_MANY_ARRIVALS = error(
    953,
    "mbarrier arrival beyond its count",
    "The pending count would become negative.",
    "initialize the mbarrier with the number of arrivals per phase",
)
TRANSACTION_RANGE = error(
    954,
    "mbarrier transaction count out of range",
    "The transaction count ranges from -(2^20 - 1) to 2^20 - 1 bytes.",
    "expect fewer bytes per phase",
)
BYTES_DIFFER = error(
    955,
    "expected and completed bytes differ",
    "A phase completes when the completed bytes equal the expected bytes; out-of-bounds parts of a TMA box still "
    "count.",
    "expect exactly the bytes of the copies that signal this mbarrier",
)
PHASE_ALIAS = error(
    956,
    "mbarrier wait passed on the parity of another phase",
    "Parity cannot distinguish a phase from the one two later; the mbarrier ran ahead of a thread that should hold it "
    "back.",
    "let the waiting thread also arrive to release the slot, or flip its parity each round",
)
PHASE_UNOBSERVED = warning(
    957,
    "mbarrier phase that no thread observed",
    "A wait must observe each phase before an arrive on the next.",
    "wait for every phase; let `mbarrier.init` count all arrivals of one phase",
)
REMOTE_OPERATION = error(
    958,
    "mbarrier operation that is not allowed on another CTA's mbarrier",
    "Remote mbarriers allow only arrive, arrive_drop, expect_tx and complete_tx, without a result.",
    "wait on an mbarrier of the executing CTA",
)
COUNT_RANGE = error(
    959,
    "mbarrier count out of range",
    "The count ranges from 1 to 2^20 - 1 (`.layout::v1`: 511).",
    "use a count in this range",
)

# Convergence
DIVERGENT = error(
    960,
    "aligned instruction in a divergent warp",
    "`.aligned` requires that all threads of the warp execute the same instruction.",
    "reconverge first, or use the form without `.aligned`",
)
NOT_IN_MASK = error(
    961,
    "executing lane not in its member mask",
    "The member mask must include the executing lane.",
    "add the lane to the mask",
)
SHFL_SOURCE = error(
    962,
    "value from a lane that does not participate",
    "`shfl.sync` from a lane that is inactive or not in the mask returns an undefined value.",
    "shuffle between participating lanes only",
)
EXITED_LANES = warning(
    963,
    "bar.warp.sync includes exited lanes",
    "The manual does not say whether exited lanes count as arrived.",
    "name only live lanes",
)
WARPGROUP = error(
    964,
    "instruction not executed by a whole warpgroup",
    "`wgmma` and `setmaxnreg` are executed by four warps, the first of a rank that is a multiple of four.",
    "let whole warpgroups take the branch",
)
SETMAXNREG = error(
    965,
    "setmaxnreg count out of range or in the wrong direction",
    "The count is 24 … 256 in steps of 8; `.dec` must not raise it, `.inc` must not lower it, and the CTA's pool must "
    "have enough registers.",
    "balance the counts of all warpgroups",
)
ELECT = error(
    966,
    "elect.sync with a wrong mask",
    "The mask must name exactly the executing lanes.",
    "use the mask of the converged lanes",
)
CTA_PAIR = error(
    967,
    "CTA pair mismatch",
    "`.cta_group::2` needs both CTAs of a pair, live and in step.",
    "launch clusters of two CTAs",
)
OPERANDS_DIFFER = error(
    968,
    "operand differs between lanes that execute an instruction together",
    "All threads of a warp give the same tensor memory address, the same number of columns to allocate or free, and "
    "the same matrix and stride of `wmma`; all of a warpgroup give the same matrix descriptor of `wgmma`. Otherwise "
    "the behavior is undefined (tcgen05.ld; tcgen05.alloc; wmma.load; wgmma.mma_async).",
    "compute the operand from values that all lanes share, such as the warp or warpgroup number",
)
SETMAXNREG_AGAIN = error(
    969,
    "second setmaxnreg before the warpgroup has synchronized",
    "After a `setmaxnreg` all warps of the warpgroup must synchronize before they execute another (setmaxnreg).",
    "put a barrier of the warpgroup's 128 threads between the two, `bar.sync 1, 128`",
)

# Barriers
BARRIER_COUNT = error(
    970,
    "barrier count or id that cannot match",
    "Ids are 0 … 15, counts are multiples of the warp size, and all participants of a round give the same count.",
    "use one count per barrier",
)
BARRIER_MIXED = error(
    971,
    "bar.red mixed with bar.sync or bar.arrive",
    "An active barrier allows only one kind of operation.",
    "use one kind of operation",
)
BARRIER_TWICE = error(
    972,
    "warp arrives twice in one round of a barrier",
    "The round would complete without the warps that it waits for.",
    "use two barriers, or wait between the arrivals",
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
    "The manual requires that the warpgroup synchronize before every further `setmaxnreg`; Triton's loops repeat one "
    "that requests the count that the warps already have, which changes nothing.",
    "put a barrier of the warpgroup's 128 threads between the two, or remove the second",
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
