"""CuTe DSL kernels that work thread by thread: copies, warp and block reductions, bits, packed floats, clusters."""

import cutlass
import cutlass.cute as cute
from cutlass.cute import arch


@cute.kernel
def vector_add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    """Four values per thread through 128-bit loads."""
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    tile = cute.zipped_divide(x, (4,))
    left = tile[(None, i)].load()
    right = cute.zipped_divide(y, (4,))[(None, i)].load()
    target = cute.zipped_divide(out, (4,))[(None, i)]
    target.store(left + right)


@cute.kernel
def rmsnorm_rows(x: cute.Tensor, weight: cute.Tensor, out: cute.Tensor, eps: cutlass.Float32):
    """One block of 128 threads per row: butterfly in each warp, then the warps' sums through shared memory."""
    lane = arch.thread_idx()[0]
    row = arch.block_idx()[0]
    partial = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(4), 16)
    value = x[row, lane]
    total = value * value
    for step in cutlass.range_constexpr(5):
        total += arch.shuffle_sync_bfly(total, offset=1 << step)
    if lane % 32 == 0:
        partial[lane // 32] = total
    arch.sync_threads()
    total = partial[0] + partial[1] + partial[2] + partial[3]
    out[row, lane] = value * cute.math.rsqrt(total / 128.0 + eps) * weight[lane]


@cute.kernel
def softmax_warp(x: cute.Tensor, out: cute.Tensor):
    """One warp per row of 32."""
    row, lane = arch.block_idx()[0], arch.thread_idx()[0]
    value = x[row, lane]
    top = arch.warp_reduction_max(value)
    weight = cute.math.exp(value - top, fastmath=True)
    out[row, lane] = weight / arch.warp_reduction_sum(weight)


@cute.kernel
def redux_warp(x: cute.Tensor, out: cute.Tensor):
    i = arch.block_idx()[0] * 32 + arch.thread_idx()[0]
    value = x[i]
    total = arch.warp_redux_sync(value, kind="add")
    low = arch.warp_redux_sync(value, kind="min")
    both = arch.warp_redux_sync(value, kind="and")
    ballot = arch.vote_ballot_sync(value > 0)
    out[i, 0] = total
    out[i, 1] = low
    out[i, 2] = both
    out[i, 3] = arch.popc(ballot)


@cute.kernel
def bit_fields(x: cute.Tensor, out: cute.Tensor):
    i = arch.thread_idx()[0]
    word = x[i]
    out[i, 0] = arch.popc(word)
    out[i, 1] = arch.clz(word)
    out[i, 2] = arch.brev(word)
    out[i, 3] = arch.prmt(word, word, 0x0123)


@cute.kernel
def transpose_tile(x: cute.Tensor, out: cute.Tensor):
    """A 32 x 32 tile through padded shared memory."""
    lane, part, _ = arch.thread_idx()
    tile = cutlass.utils.SmemAllocator().allocate_tensor(
        cutlass.Float32, cute.make_layout((32, 32), stride=(33, 1)), 16
    )
    bx, by, _ = arch.block_idx()
    for k in cutlass.range_constexpr(8):
        tile[part + 4 * k, lane] = x[by * 32 + part + 4 * k, bx * 32 + lane]
    arch.sync_threads()
    for k in cutlass.range_constexpr(8):
        out[bx * 32 + part + 4 * k, by * 32 + lane] = tile[lane, part + 4 * k]


@cute.kernel
def histogram(x: cute.Tensor, out: cute.Tensor):
    bins = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(64), 16)
    lane = arch.thread_idx()[0]
    bins[lane] = 0
    arch.sync_threads()
    for k in range(4):
        arch.atomic_add(bins.iterator + x[(arch.block_idx()[0] * 4 + k) * 64 + lane], cutlass.Int32(1))
    arch.sync_threads()
    arch.atomic_add(out.iterator + lane, bins[lane])


@cute.kernel
def packed_axpy(alpha: cutlass.Float32, x: cute.Tensor, y: cute.Tensor):
    """Two values at a time with the packed 32-bit arithmetic of Blackwell."""
    i = arch.thread_idx()[0]
    first, second = arch.fma_packed_f32x2((alpha, alpha), (x[i, 0], x[i, 1]), (y[i, 0], y[i, 1]))
    y[i, 0] = first
    y[i, 1] = second


@cute.kernel
def cluster_sum(x: cute.Tensor, out: cute.Tensor):
    """Each of two CTAs adds what its neighbor left in its shared memory."""
    lane = arch.thread_idx()[0]
    rank = arch.block_idx_in_cluster()
    mine = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(32), 16)
    i = arch.block_idx()[0] * 32 + lane
    mine[lane] = x[i]
    arch.cluster_arrive()
    arch.cluster_wait()
    other = arch.map_dsmem_ptr(mine.iterator, rank ^ 1)
    theirs = arch.inline_ptx(
        "ld.shared::cluster.f32 {$w0}, [{$r0}];",
        write_only_types=[cutlass.Float32],
        read_only_args=[cutlass.Int32((other + lane).toint())],
    )
    out[i] = mine[lane] + theirs
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.kernel
def cluster_exchange(x: cute.Tensor, out: cute.Tensor):
    """Each CTA sends its values into the shared memory of the other; an mbarrier counts the bytes."""
    lane = arch.thread_idx()[0]
    rank = arch.block_idx_in_cluster()
    storage = cutlass.utils.SmemAllocator()
    inbox = storage.allocate_tensor(cutlass.Int32, cute.make_layout(32), 16)
    full = storage.allocate_array(cutlass.Int64, 1)
    if lane == 0:
        arch.mbarrier_init(full, 1)
        arch.mbarrier_arrive_and_expect_tx(full, 32 * 4)
    arch.mbarrier_init_fence()
    arch.cluster_arrive()
    arch.cluster_wait()
    i = arch.block_idx()[0] * 32 + lane
    arch.store_async_dsmem(inbox.iterator + lane, x[i], full, rank ^ 1)
    arch.mbarrier_wait(full, 0)
    out[i] = inbox[lane]
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.kernel
def dependent_scale(x: cute.Tensor, out: cute.Tensor):
    """A kernel that may start before its predecessor in the stream ends."""
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    arch.griddepcontrol_wait()
    out[i] = x[i] * 3.0
    arch.griddepcontrol_launch_dependents()


@cute.kernel
def quantise_pairs(x: cute.Tensor, out: cute.Tensor):
    """Sixteen values per thread to fp8."""
    i = arch.thread_idx()[0]
    values = cute.zipped_divide(x, (16,))[(None, i)].load()
    cute.zipped_divide(out, (16,))[(None, i)].store(values.to(cutlass.Float8E4M3FN))


@cute.kernel
def polynomial(x: cute.Tensor, out: cute.Tensor):
    """A polynomial, a square root and a sine in double precision."""
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    v = x[i]
    out[i] = ((0.25 * v - 1.5) * v + 2.0) * v + cute.math.sqrt(v) + cute.math.sin(v)


@cute.kernel
def binary_search(keys: cute.Tensor, queries: cute.Tensor, out: cute.Tensor):
    i = arch.thread_idx()[0]
    low = cutlass.Int32(0)
    high = cutlass.Int32(64)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < queries[i]:
            low = middle + 1
        else:
            high = middle
    out[i] = low


@cute.kernel
def print_lane(x: cute.Tensor):
    i = arch.thread_idx()[0]
    cute.printf("lane %d holds %f\n", i, x[i])
