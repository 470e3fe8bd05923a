"""CuTe DSL kernels on tensor cores: warp-wide mma, wgmma and tcgen05, with cp.async and tensor-map copies."""

import cutlass
import cutlass.cute as cute
from cutlass.cute import arch
from cutlass.cute.nvgpu import cpasync, tcgen05, warp, warpgroup


@cute.jit
def _eight(x: cute.Tensor, at: cutlass.Int32) -> cute.Tensor:
    """Return the n-th run of eight neighbors as the first mode, which a copy takes at once."""
    tile = cute.local_tile(x, (1, 8), (at // 8, at % 8))
    return cute.make_tensor(tile.iterator, cute.make_layout((8, 1)))


@cute.kernel
def gemm_mma(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, mma: cute.TiledMma):
    """One warp, 16 x 8 x 16 products fed by ldmatrix from padded shared memory: out = a · bᵀ, 16 x 8 x 64."""
    lane = arch.thread_idx()[0]
    storage = cutlass.utils.SmemAllocator()
    left = storage.allocate_tensor(cutlass.Float16, cute.make_layout((16, 64), stride=(72, 1)), 16)
    right = storage.allocate_tensor(cutlass.Float16, cute.make_layout((8, 64), stride=(72, 1)), 16)
    load = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float16, num_bits_per_copy=128)
    for k in cutlass.range_constexpr(4):
        at = k * 32 + lane
        cute.copy(load, _eight(a, at), _eight(left, at))
    for k in cutlass.range_constexpr(2):
        at = k * 32 + lane
        cute.copy(load, _eight(b, at), _eight(right, at))
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    part = mma.get_slice(lane)
    in_a, in_b = part.partition_A(left), part.partition_B(right)
    reg_a, reg_b = mma.make_fragment_A(in_a), mma.make_fragment_B(in_b)
    total = mma.make_fragment_C(part.partition_shape_C((16, 8)))
    total.fill(0.0)
    from_a = cute.make_tiled_copy_A(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16), mma)
    from_b = cute.make_tiled_copy_B(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 2), cutlass.Float16), mma)
    source_a, source_b = from_a.get_slice(lane), from_b.get_slice(lane)
    cute.copy(from_a, source_a.partition_S(left), source_a.retile(reg_a))
    cute.copy(from_b, source_b.partition_S(right), source_b.retile(reg_b))
    cute.gemm(mma, total, reg_a, reg_b, total)
    cute.autovec_copy(total, part.partition_C(out))


@cute.kernel
def tensor_map_copy(load: cute.CopyAtom, x: cute.Tensor, store: cute.CopyAtom, out: cute.Tensor):
    """A 16 x 32 tile in by tensor map, one added by the threads, out by tensor map."""
    lane = arch.thread_idx()[0]
    storage = cutlass.utils.SmemAllocator()
    tile = storage.allocate_tensor(cutlass.Float32, cute.make_layout((16, 32), stride=(32, 1)), 128)
    full = storage.allocate_array(cutlass.Int64, 1)
    place = arch.block_idx()[0]
    if lane == 0:
        arch.mbarrier_init(full, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    source = cute.local_tile(x, (16, 32), (place, 0))
    in_tile, in_x = cpasync.tma_partition(
        load, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), cute.group_modes(source, 0, 2)
    )
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(full, 16 * 32 * 4)
        cute.copy(load, in_x, in_tile, tma_bar_ptr=full)
    arch.mbarrier_wait(full, 0)
    for k in cutlass.range_constexpr(8):
        tile[k * 2 + lane // 32, lane % 32] = tile[k * 2 + lane // 32, lane % 32] + 1.0
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    target = cute.local_tile(out, (16, 32), (place, 0))
    out_tile, out_x = cpasync.tma_partition(
        store, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), cute.group_modes(target, 0, 2)
    )
    if arch.warp_idx() == 0:
        cute.copy(store, out_tile, out_x)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)


@cute.kernel
def gemm_wgmma(
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    out: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    kind: cutlass.Constexpr,
    steps: cutlass.Constexpr,
):
    """One warpgroup: tiles of 64 deep by tensor map, wgmma from shared memory, out = a · bᵀ."""
    lane = arch.thread_idx()[0]
    storage = cutlass.utils.SmemAllocator()
    left = storage.allocate_tensor(kind, layout_a.outer, 1024, swizzle=layout_a.inner)
    right = storage.allocate_tensor(kind, layout_b.outer, 1024, swizzle=layout_b.inner)
    full = storage.allocate_array(cutlass.Int64, 1)
    if lane == 0:
        arch.mbarrier_init(full, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    width = out.shape[1]
    depth = cute.size(left, mode=[1])
    tile_a = cute.local_tile(a, (64, depth), (0, None))
    tile_b = cute.local_tile(b, (width, depth), (0, None))
    one = cute.make_layout(1)
    in_a, from_a = cpasync.tma_partition(load_a, 0, one, cute.group_modes(left, 0, 2), cute.group_modes(tile_a, 0, 2))
    in_b, from_b = cpasync.tma_partition(load_b, 0, one, cute.group_modes(right, 0, 2), cute.group_modes(tile_b, 0, 2))
    part = mma.get_slice(lane)
    frag_a = mma.make_fragment_A(part.partition_A(left))
    frag_b = mma.make_fragment_B(part.partition_B(right))
    target = part.partition_C(out)
    total = cute.make_rmem_tensor(target.shape, cutlass.Float32)
    mma.set(warpgroup.Field.ACCUMULATE, False)
    for step in cutlass.range_constexpr(steps):
        if arch.warp_idx() == 0:
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(full, (64 + width) * depth * kind.width // 8)
            cute.copy(load_a, from_a[(None, step)], in_a[(None, 0)], tma_bar_ptr=full)
            cute.copy(load_b, from_b[(None, step)], in_b[(None, 0)], tma_bar_ptr=full)
        arch.mbarrier_wait(full, step % 2)
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(frag_a, mode=[2])):
            cute.gemm(mma, total, frag_a[(None, None, k, 0)], frag_b[(None, None, k, 0)], total)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        arch.sync_threads()
    target.store(total.load().to(out.element_type))


@cute.kernel
def gemm_tcgen05(
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    out: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    kind: cutlass.Constexpr,
    steps: cutlass.Constexpr,
):
    """One CTA of 128 threads: tiles by tensor map, products into tensor memory, out = a · bᵀ."""
    lane = arch.thread_idx()[0]
    storage = cutlass.utils.SmemAllocator()
    full = storage.allocate_array(cutlass.Int64, 1)
    done = storage.allocate_array(cutlass.Int64, 1)
    holder = storage.allocate_array(cutlass.Int32, 1)
    left = storage.allocate_tensor(kind, layout_a.outer, 1024, swizzle=layout_a.inner)
    right = storage.allocate_tensor(kind, layout_b.outer, 1024, swizzle=layout_b.inner)
    warp_index = arch.make_warp_uniform(arch.warp_idx())
    if warp_index == 0:
        arch.alloc_tmem(128, holder)
        if lane == 0:
            arch.mbarrier_init(full, 1)
            arch.mbarrier_init(done, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    columns = arch.retrieve_tmem_ptr(cutlass.Float32, alignment=16, ptr_to_buffer_holding_addr=holder)
    width, depth = out.shape[1], 64
    tile_a = cute.local_tile(a, (128, depth), (0, None))
    tile_b = cute.local_tile(b, (width, depth), (0, None))
    part = mma.get_slice(0)
    ordered_a, ordered_b, ordered_out = part.partition_A(tile_a), part.partition_B(tile_b), part.partition_C(out)
    one = cute.make_layout(1)
    in_a, from_a = cpasync.tma_partition(
        load_a, 0, one, cute.group_modes(left, 0, 3), cute.group_modes(ordered_a, 0, 3)
    )
    in_b, from_b = cpasync.tma_partition(
        load_b, 0, one, cute.group_modes(right, 0, 3), cute.group_modes(ordered_b, 0, 3)
    )
    frag_a, frag_b = mma.make_fragment_A(left), mma.make_fragment_B(right)
    shape = mma.make_fragment_C(mma.partition_shape_C((128, width)))
    total = cute.make_tensor(columns, shape.layout)
    for step in cutlass.range_constexpr(steps):
        if warp_index == 0:
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(full, (128 + width) * depth * kind.width // 8)
            cute.copy(load_a, from_a[(None, step)], in_a[(None, 0)], tma_bar_ptr=full)
            cute.copy(load_b, from_b[(None, step)], in_b[(None, 0)], tma_bar_ptr=full)
            arch.mbarrier_wait(full, step % 2)
            for k in cutlass.range_constexpr(cute.size(frag_a, mode=[2])):
                mma.set(tcgen05.Field.ACCUMULATE, step + k != 0)
                cute.gemm(mma, total, frag_a[(None, None, k, 0)], frag_b[(None, None, k, 0)], total)
            with arch.elect_one():
                tcgen05.commit(done)
        arch.mbarrier_wait(done, step % 2)
    load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x16, tcgen05.Pack.NONE), cutlass.Float32)
    drain = tcgen05.make_tmem_copy(load, total[((None, None), 0, 0)])
    thread = drain.get_slice(lane)
    source = thread.partition_S(total[((None, None), 0, 0)])
    target = thread.partition_D(ordered_out[((None, None), 0, 0)])
    values = cute.make_rmem_tensor(target.shape, cutlass.Float32)
    cute.copy(drain, source, values)
    arch.fence_view_async_tmem_load()
    target.store(values.load().to(out.element_type))
    arch.sync_threads()
    if warp_index == 0:
        arch.relinquish_tmem_alloc_permit()
        arch.dealloc_tmem(columns, 128)
