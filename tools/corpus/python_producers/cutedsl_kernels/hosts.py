"""The host functions of the CuTe DSL kernels: tiled products, tensor maps, launches."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05, warp
from cutlass.utils import LayoutEnum, blackwell_helpers, hopper_helpers

from tools.corpus.python_producers.cutedsl_kernels import products


@cute.jit
def gemm_mma(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)))
    products.gemm_mma(a, b, out, mma).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def tensor_map_copy(x: cute.Tensor, out: cute.Tensor):
    tile = cute.make_layout((16, 32), stride=(32, 1))
    load, from_x = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, tile, (16, 32))
    store, to_out = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), out, tile, (16, 32))
    products.tensor_map_copy(load, from_x, store, to_out).launch(grid=(2, 1, 1), block=(64, 1, 1))


@cute.jit
def tensor_map_reduce(x: cute.Tensor, out: cute.Tensor):
    tile = cute.make_layout((16, 32), stride=(32, 1))
    load, from_x = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, tile, (16, 32))
    add = cpasync.CopyReduceBulkTensorTileS2GOp(cpasync.ReductionOp.ADD)
    store, to_out = cpasync.make_tiled_tma_atom(add, out, tile, (16, 32))
    products.tensor_map_copy(load, from_x, store, to_out).launch(grid=(2, 1, 1), block=(64, 1, 1))


@cute.jit
def gemm_wgmma(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    kind, width = a.element_type, out.shape[1]
    depth = 1024 // kind.width
    shape = (64, width, depth)
    major = OperandMajorMode.K
    mma = hopper_helpers.make_trivial_tiled_mma(kind, kind, major, major, cutlass.Float32, (1, 1, 1), (64, width))
    layout_a = hopper_helpers.make_smem_layout_a(LayoutEnum.ROW_MAJOR, shape, kind, 1)
    layout_b = hopper_helpers.make_smem_layout_b(LayoutEnum.ROW_MAJOR, shape, kind, 1)
    copy = cpasync.CopyBulkTensorTileG2SOp()
    load_a, from_a = cpasync.make_tiled_tma_atom(copy, a, cute.slice_(layout_a, (None, None, 0)), (64, depth))
    load_b, from_b = cpasync.make_tiled_tma_atom(copy, b, cute.slice_(layout_b, (None, None, 0)), (width, depth))
    steps = a.shape[1] // depth
    kernel = products.gemm_wgmma(load_a, from_a, load_b, from_b, out, mma, layout_a, layout_b, kind, steps)
    kernel.launch(grid=(1, 1, 1), block=(128, 1, 1))


@cute.jit
def gemm_tcgen05(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    kind, width = a.element_type, out.shape[1]
    shape = (128, width, 64)
    op = tcgen05.MmaF16BF16Op(
        kind, cutlass.Float32, (128, width, 16), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM,
        OperandMajorMode.K, OperandMajorMode.K,
    )  # fmt: skip
    mma = cute.make_tiled_mma(op)
    layout_a = blackwell_helpers.make_smem_layout_a(mma, shape, kind, 1)
    layout_b = blackwell_helpers.make_smem_layout_b(mma, shape, kind, 1)
    copy = cpasync.CopyBulkTensorTileG2SOp()
    slice_a, slice_b = (cute.slice_(layout, (None, None, None, 0)) for layout in (layout_a, layout_b))
    load_a, from_a = cute.nvgpu.make_tiled_tma_atom_A(copy, a, slice_a, shape, mma)
    load_b, from_b = cute.nvgpu.make_tiled_tma_atom_B(copy, b, slice_b, shape, mma)
    steps = a.shape[1] // 64
    kernel = products.gemm_tcgen05(load_a, from_a, load_b, from_b, out, mma, layout_a, layout_b, kind, steps)
    kernel.launch(grid=(1, 1, 1), block=(128, 1, 1))
