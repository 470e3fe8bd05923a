// CuTe C++ on Hopper: swizzled shared memory, warpgroup products.
//! build cutlass 13.1.115 sm_90a
#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cute/arch/cluster_sm90.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
#define KERNEL extern "C" __global__ void

template <class Atom, class In, class Out>
__device__ void warpgroup_product(Atom atom, const In *a, const In *bt, Out *c) {
  TiledMMA mma = make_tiled_mma(atom);
  auto layout_a = tile_to_shape(GMMA::Layout_K_SW128_Atom<In>{}, make_shape(Int<64>{}, Int<64>{}));
  auto layout_b = tile_to_shape(GMMA::Layout_K_SW128_Atom<In>{}, make_shape(Int<32>{}, Int<64>{}));
  __shared__ alignas(1024) In pool_a[64 * 64];
  __shared__ alignas(1024) In pool_b[32 * 64];
  Tensor sa = make_tensor(make_smem_ptr(pool_a), layout_a);
  Tensor sb = make_tensor(make_smem_ptr(pool_b), layout_b);
  for (int i = threadIdx.x; i < 64 * 64; i += 128) sa(i / 64, i % 64) = a[i];
  for (int i = threadIdx.x; i < 32 * 64; i += 128) sb(i / 64, i % 64) = bt[i];
  cutlass::arch::fence_view_async_shared();
  __syncthreads();
  Tensor gc = make_tensor(make_gmem_ptr(c), make_shape(Int<64>{}, Int<32>{}), LayoutRight{});
  auto thread = mma.get_slice(threadIdx.x);
  Tensor ra = thread.make_fragment_A(thread.partition_A(sa));
  Tensor rb = thread.make_fragment_B(thread.partition_B(sb));
  Tensor rc = thread.partition_fragment_C(gc);
  clear(rc);
  warpgroup_fence_operand(rc);
  warpgroup_arrive();
  gemm(mma, ra, rb, rc);
  warpgroup_commit_batch();
  warpgroup_wait<0>();
  warpgroup_fence_operand(rc);
  copy(rc, thread.partition_C(gc));
}

//! kernel cute_wgmma_f16 warpgroup-gemm
//! launch 1 128
//! args a=f16[64,64]:normal bt=f16[32,64]:normal c=f32[64,32]:zeros
//! out c:1e-4:1e-3 -> linear.matmul_transposed
KERNEL cute_wgmma_f16(const half_t *a, const half_t *bt, float *c) {
  warpgroup_product(SM90_64x32x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{}, a, bt, c);
}

//! kernel cute_wgmma_bf16 warpgroup-gemm
//! launch 1 128
//! args a=bf16[64,64]:normal bt=bf16[32,64]:normal c=f32[64,32]:zeros
//! out c:1e-4:1e-3 -> linear.matmul_transposed
KERNEL cute_wgmma_bf16(const bfloat16_t *a, const bfloat16_t *bt, float *c) {
  warpgroup_product(SM90_64x32x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>{}, a, bt, c);
}
