// CuTe C++: layouts, tiled copies and tiled products in kernels of ours.
//! build cutlass 13.0.88 sm_80
#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>
using namespace cute;
#define KERNEL extern "C" __global__ void

//! kernel cute_transpose transpose
//! launch 2x2 128
//! args a=f32[32,32]:normal b=f32[32,32]:zeros
//! out b -> linear.transpose
KERNEL cute_transpose(const float *a, float *b) {
  __shared__ float pool[16 * 17];
  auto layout = make_layout(make_shape(Int<32>{}, Int<32>{}), LayoutRight{});
  Tensor ga = make_tensor(make_gmem_ptr(a), layout);
  Tensor gb = make_tensor(make_gmem_ptr(b), layout);
  auto tile = make_shape(Int<16>{}, Int<16>{});
  Tensor ta = local_tile(ga, tile, make_coord(blockIdx.y, blockIdx.x));
  Tensor tb = local_tile(gb, tile, make_coord(blockIdx.x, blockIdx.y));
  Tensor s = make_tensor(make_smem_ptr(pool), make_layout(tile, make_stride(Int<17>{}, Int<1>{})));
  Tensor st = make_tensor(make_smem_ptr(pool), make_layout(tile, make_stride(Int<1>{}, Int<17>{})));
  auto threads = make_layout(make_shape(Int<8>{}, Int<16>{}), LayoutRight{});
  copy(local_partition(ta, threads, threadIdx.x), local_partition(s, threads, threadIdx.x));
  __syncthreads();
  copy(local_partition(st, threads, threadIdx.x), local_partition(tb, threads, threadIdx.x));
}

//! kernel cute_axpy axpy
//! launch 2 32
//! args a=f32:3.0 x=f32[256]:integers(low=-9,high=10) y=f32[256]:integers(low=-9,high=10)
//! out y -> vector.saxpy
KERNEL cute_axpy(float a, const float *x, float *y) {
  Tensor gx = local_tile(make_tensor(make_gmem_ptr(x), Int<256>{}), Int<128>{}, blockIdx.x);
  Tensor gy = local_tile(make_tensor(make_gmem_ptr(y), Int<256>{}), Int<128>{}, blockIdx.x);
  auto tiled = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<_32>{}, Layout<_4>{});
  auto mine = tiled.get_slice(threadIdx.x);
  Tensor rx = make_fragment_like(mine.partition_D(gx));
  Tensor ry = make_fragment_like(mine.partition_D(gy));
  copy(tiled, mine.partition_S(gx), rx);
  copy(tiled, mine.partition_S(gy), ry);
  axpby(a, rx, 1.0f, ry);
  copy(tiled, ry, mine.partition_D(gy));
}

//! kernel cute_gemm tensor-core-gemm
//! launch 1 128
//! args a=f16[32,32]:normal bt=f16[32,32]:normal c=f32[32,32]:zeros
//! out c:1e-4:1e-3 -> linear.matmul_transposed
KERNEL cute_gemm(const half_t *a, const half_t *bt, float *c) {
  __shared__ alignas(128) half_t pool[2][32 * 32];
  auto shape = make_shape(Int<32>{}, Int<32>{});
  auto swizzled = composition(Swizzle<2, 3, 3>{}, make_layout(shape, LayoutRight{}));
  Tensor ga = make_tensor(make_gmem_ptr(a), shape, LayoutRight{});
  Tensor gb = make_tensor(make_gmem_ptr(bt), shape, LayoutRight{});
  Tensor gc = make_tensor(make_gmem_ptr(c), shape, LayoutRight{});
  Tensor sa = make_tensor(make_smem_ptr(pool[0]), swizzled);
  Tensor sb = make_tensor(make_smem_ptr(pool[1]), swizzled);
  auto loader = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, half_t>{},
                                Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
  auto load = loader.get_slice(threadIdx.x);
  copy(loader, load.partition_S(ga), load.partition_D(sa));
  copy(loader, load.partition_S(gb), load.partition_D(sb));
  cp_async_fence();
  cp_async_wait<0>();
  __syncthreads();
  TiledMMA mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
  auto thread = mma.get_slice(threadIdx.x);
  Tensor ra = thread.partition_fragment_A(sa);
  Tensor rb = thread.partition_fragment_B(sb);
  Tensor rc = thread.partition_fragment_C(gc);
  auto copy_a = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, mma);
  auto copy_b = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, mma);
  copy(copy_a, copy_a.get_slice(threadIdx.x).partition_S(sa), copy_a.get_slice(threadIdx.x).retile_D(ra));
  copy(copy_b, copy_b.get_slice(threadIdx.x).partition_S(sb), copy_b.get_slice(threadIdx.x).retile_D(rb));
  clear(rc);
  gemm(mma, ra, rb, rc);
  copy(rc, thread.partition_C(gc));
}

//! kernel cute_simt_gemm gemm
//! launch 1 64
//! args a=f64[16,8]:normal bt=f64[16,8]:normal c=f64[16,16]:zeros
//! out c:1e-13:1e-13 -> linear.matmul_transposed
KERNEL cute_simt_gemm(const double *a, const double *bt, double *c) {
  auto shape = make_shape(Int<16>{}, Int<8>{});
  Tensor ga = make_tensor(make_gmem_ptr(a), shape, LayoutRight{});
  Tensor gb = make_tensor(make_gmem_ptr(bt), shape, LayoutRight{});
  Tensor gc = make_tensor(make_gmem_ptr(c), make_shape(Int<16>{}, Int<16>{}), LayoutRight{});
  TiledMMA mma = make_tiled_mma(UniversalFMA<double>{}, Layout<Shape<_8, _8>>{});
  auto thread = mma.get_slice(threadIdx.x);
  Tensor rc = thread.partition_fragment_C(gc);
  clear(rc);
  Tensor ra = thread.partition_fragment_A(ga);
  Tensor rb = thread.partition_fragment_B(gb);
  copy(thread.partition_A(ga), ra);
  copy(thread.partition_B(gb), rb);
  gemm(mma, ra, rb, rc);
  copy(rc, thread.partition_C(gc));
}
