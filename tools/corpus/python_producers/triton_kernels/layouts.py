"""Gluon kernels (Triton with explicit layouts): asynchronous copies, wgmma, tcgen05 and packed arithmetic."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def async_scale(x, out, BLOCK: gl.constexpr):
    """Through shared memory by cp.async, two pieces in flight."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])
    tiles = gl.allocate_shared_memory(gl.float32, [2, BLOCK], flat)
    at = gl.arange(0, BLOCK, layout)
    for k in gl.static_range(2):
        async_copy.async_load(tiles.index(k), x + k * BLOCK + at)
        async_copy.commit_group()
    async_copy.wait_group(1)
    gl.store(out + at, tiles.index(0).load(layout) * 2.0)
    async_copy.wait_group(0)
    gl.store(out + BLOCK + at, tiles.index(1).load(layout) * 2.0)


@gluon.jit
def wgmma_tile(a, b, out, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """One wgmma product of a tile that the threads put into swizzled shared memory."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    left_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    right_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], gl.float16)
    result: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, N, 16])
    i = gl.arange(0, M, gl.SliceLayout(1, layout))
    j = gl.arange(0, N, gl.SliceLayout(0, layout))
    rows = gl.arange(0, K, gl.SliceLayout(1, layout))
    depth = gl.arange(0, K, gl.SliceLayout(0, layout))
    left = gl.allocate_shared_memory(gl.float16, [M, K], left_shared, gl.load(a + i[:, None] * K + depth[None, :]))
    right = gl.allocate_shared_memory(gl.float16, [K, N], right_shared, gl.load(b + rows[:, None] * N + j[None, :]))
    fence_async_shared()
    total = gl.zeros([M, N], gl.float32, result)
    total = warpgroup_mma(left, right, total, is_async=True)
    total = warpgroup_mma_wait(0, deps=[total])
    gl.store(out + i[:, None] * N + j[None, :], gl.convert_layout(total, layout))


@gluon.jit
def tcgen05_tile(a, b, out, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """One product into tensor memory, waited for on an mbarrier."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    left_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    right_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], gl.float16)
    columns: gl.constexpr = blackwell.TensorMemoryLayout([M, N], col_stride=1)
    i = gl.arange(0, M, gl.SliceLayout(1, layout))
    j = gl.arange(0, N, gl.SliceLayout(0, layout))
    rows = gl.arange(0, K, gl.SliceLayout(1, layout))
    depth = gl.arange(0, K, gl.SliceLayout(0, layout))
    left = gl.allocate_shared_memory(gl.float16, [M, K], left_shared, gl.load(a + i[:, None] * K + depth[None, :]))
    right = gl.allocate_shared_memory(gl.float16, [K, N], right_shared, gl.load(b + rows[:, None] * N + j[None, :]))
    total = blackwell.allocate_tensor_memory(gl.float32, [M, N], columns)
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    fence_async_shared()
    blackwell.tcgen05_mma(left, right, total, use_acc=False)
    blackwell.tcgen05_commit(done)
    mbarrier.wait(done, 0)
    mbarrier.invalidate(done)
    gl.store(out + i[:, None] * N + j[None, :], gl.convert_layout(total.load(), layout))


@gluon.jit
def packed_polynomial(x, out, BLOCK: gl.constexpr):
    """Two values per instruction with the packed 32-bit arithmetic of Blackwell."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    value = gl.load(x + at)
    square = blackwell.mul2(value, value)
    gl.store(out + at, blackwell.fma2(square, value, blackwell.sub2(value, square)))
