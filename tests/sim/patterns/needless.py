"""Synchronization that a kernel does not need in these runs, with the reason: its removal is not reported.

By kernel, statement and change: the number of occurrences, and the reason.
"""

from __future__ import annotations

_ADDRESS = "hands over the address that `alloc` wrote to shared memory; no tensor memory has been used yet"
_FREED = "`dealloc` is synchronous: the barrier before it is enough"
_ONE_WAIT = "a later `wait::ld` covers all loads of the warp; results in registers need none (true dependencies)"
_END = "the end of the grid completes the writes; the source has been read"
_ZEROS = "the copies that are left are zeros that nobody reads"
_HABIT = "`barrier.cluster.arrive` and `bar.sync` release the initialization themselves"
_OWN = "what follows reads words that the same thread wrote"
_POOL = "registers are taken that nobody needs here; giving back is what others wait for"
_WARPGROUP = "a warp that has waited may release the operands of its warpgroup, as published kernels do"
_NEW_BUFFERS = (
    "the first two slices of a CTA use buffers that no store has read; kernels of several tiles need the wait"
)
_TOGETHER = "brings the lanes together, which the label does too"
_LD = "tcgen05.wait::ld.sync.aligned;"
_BEFORE, _AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"
_INITIALIZED = "fence.mbarrier_init.release.cluster;"
_BULK, _READ = "cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"

NEEDLESS: dict[tuple[str, str, str], tuple[int, str]] = {
    ("hopper/tma_copy", _BULK, _READ): (1, _END),
    ("blackwell/tcgen05_tile", _BEFORE, "remove"): (2, f"{_ADDRESS}; {_FREED}"),
    ("blackwell/tcgen05_tile", _AFTER, "remove"): (2, f"{_ADDRESS}; {_FREED}"),
    ("blackwell/tcgen05_tile", _LD, "remove"): (3, _ONE_WAIT),
    ("hopper/cluster_gemm", "setmaxnreg.inc.sync.aligned.u32 232;", "remove"): (1, _POOL),
    ("hopper/cluster_gemm", f"@%p15 {_BULK}", f"@%p15 {_READ}"): (1, _END),
    ("hopper/persistent_gemm", "setmaxnreg.inc.sync.aligned.u32 232;", "remove"): (1, _POOL),
    ("hopper/persistent_gemm", f"@%p10 {_BULK}", f"@%p10 {_READ}"): (1, _END),
    ("hopper/fp8_gemm", "setmaxnreg.inc.sync.aligned.u32 232;", "remove"): (1, _POOL),
    ("hopper/fp8_gemm", f"@%p10 {_BULK}", f"@%p10 {_READ}"): (1, _END),
    ("hopper/grouped_gemm", "setmaxnreg.inc.sync.aligned.u32 232;", "remove"): (1, _POOL),
    ("hopper/grouped_gemm", f"@%p25 {_BULK}", f"@%p25 {_READ}"): (1, _END),
    ("blackwell/two_sm_gemm", _BEFORE, "remove"): (
        6, f"{_ADDRESS}; {_FREED}; those of the slices are for kernels that use the columns again"),
    ("blackwell/two_sm_gemm", _AFTER, "remove"): (
        3, f"{_ADDRESS}; {_FREED}; the third follows a wait for shared memory only"),
    ("blackwell/two_sm_gemm", "bar.warp.sync 4294967295;", "remove"): (
        3, f"{_TOGETHER}; two follow a wait: {_NEW_BUFFERS}"),
    ("blackwell/two_sm_gemm", _LD, "remove"): (3, _ONE_WAIT),
    ("blackwell/two_sm_gemm", f"@%p15 {_BULK}", f"@%p15 {_READ}"): (1, _END),
    ("blackwell/two_sm_gemm", "@%p15 cp.async.bulk.wait_group.read 1;", "remove"): (2, _NEW_BUFFERS),
    ("blackwell/two_sm_gemm", "@%p15 cp.async.bulk.wait_group.read 1;", "@%p15 cp.async.bulk.wait_group.read 2;"): (
        2, _NEW_BUFFERS),
    ("blackwell/tcgen05_tile", "bar.warp.sync 4294967295;", "remove"): (1, _TOGETHER),
    ("hopper/attention", "setmaxnreg.inc.sync.aligned.u32 240;", "remove"): (1, _POOL),
    ("cutedsl/cluster_exchange.sm_90a", _INITIALIZED, "remove"): (1, _HABIT),
    ("cutedsl/cluster_exchange.sm_90a", "barrier.cluster.wait;", "remove"): (
        1, "the last one: each CTA has waited for all that others wrote into it"),
    ("cutedsl/tcgen05_bf16.sm_100a", _INITIALIZED, "remove"): (1, _HABIT),
    ("cutedsl/tensor_map_copy.sm_90a", _INITIALIZED, "remove"): (1, _HABIT),
    ("cutedsl/wgmma_bf16.sm_90a", _INITIALIZED, "remove"): (1, _HABIT),
    ("cutedsl/wgmma_bf16.sm_90a", "bar.sync 0;", "remove"): (2, f"{_WARPGROUP}; the last: only registers follow"),
    ("cutedsl/wgmma_bf16.sm_90a", "wgmma.fence.sync.aligned;", "remove"): (1, "same accumulators, same shape"),
    ("numba/blelloch_scan.sm_75", "bar.sync 0;", "remove"): (3, _OWN),
    ("ampere/pipelined_gemm", "cp.async.wait_group 0;", "remove"): (1, _ZEROS),
    ("ampere/pipelined_gemm", "cp.async.wait_group 0;", "cp.async.wait_group 1;"): (1, _ZEROS),
    ("numba/reduce_block.sm_75", "bar.sync 0;", "remove"): (1, _OWN),
    ("numba/wave_steps.sm_90", "bar.sync 0;", "remove"): (1, f"with these arguments the loop ends here; {_OWN}"),
    ("pallas/triton_softmax.sm_90a", "griddepcontrol.wait;", "remove"): (1, "no grid runs before this one"),
    ("triton/matmul_f16.sm_90a", "cp.async.commit_group;", "remove"): (
        1, "the copies of the first stage become one group with those of its other operand"),
    ("triton/matmul_f16.sm_90a", "bar.sync 0;", "remove"): (1, _WARPGROUP),
    ("triton/matmul_f16.sm_90a", "cp.async.wait_group 0;", "cp.async.wait_group 1;"): (1, "the last groups are empty"),
}  # fmt: skip
