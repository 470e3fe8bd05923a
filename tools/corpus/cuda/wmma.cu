// The C++ matrix fragments: load, multiply, store.
//! build nvcc 13.0.88 sm_80
#include <mma.h>
using namespace nvcuda::wmma;
#define KERNEL extern "C" __global__ void
#define WMMA(name, m, n, k, kind, from, order, to)                                              \
  KERNEL name(const from *a, const from *b, to *c) {                                            \
    fragment<matrix_a, m, n, k, kind, row_major> p;                                             \
    fragment<matrix_b, m, n, k, kind, order> q;                                                 \
    fragment<accumulator, m, n, k, to> d;                                                       \
    fill_fragment(d, (to)0.0f);                                                                 \
    load_matrix_sync(p, a, k);                                                                  \
    load_matrix_sync(q, b, order##_stride(n, k));                                               \
    mma_sync(d, p, q, d);                                                                       \
    store_matrix_sync(c, d, n, mem_row_major);                                                  \
  }
#define row_major_stride(n, k) n
#define col_major_stride(n, k) k

//! kernel wmma_f16 wmma-gemm
//! launch 1 32
//! args a=f16[16,16]:normal b=f16[16,16]:normal c=f32[16,16]:zeros
//! out c:1e-5:1e-4 -> linear.matmul
WMMA(wmma_f16, 16, 16, 16, __half, __half, row_major, float)
//! kernel wmma_f16_f16 wmma-gemm
//! launch 1 32
//! args a=f16[32,16]:integers(low=-3,high=4) bt=f16[8,16]:integers(low=-3,high=4) c=f16[32,8]:zeros
//! out c -> linear.matmul_transposed
WMMA(wmma_f16_f16, 32, 8, 16, __half, __half, col_major, __half)
//! kernel wmma_bf16 wmma-gemm
//! launch 1 32
//! args a=bf16[8,16]:normal b=bf16[16,32]:normal c=f32[8,32]:zeros
//! out c:1e-5:1e-4 -> linear.matmul
WMMA(wmma_bf16, 8, 32, 16, __nv_bfloat16, __nv_bfloat16, row_major, float)
//! kernel wmma_tf32 wmma-gemm
//! launch 1 32
//! args a=f32[16,8]:integers(low=-50,high=50) bt=f32[16,8]:integers(low=-50,high=50) c=f32[16,16]:zeros
//! out c -> linear.matmul_transposed
WMMA(wmma_tf32, 16, 16, 8, precision::tf32, float, col_major, float)
//! kernel wmma_s8 wmma-gemm
//! launch 1 32
//! args a=i8[16,16]:bits bt=i8[16,16]:bits c=i32[16,16]:zeros
//! out c -> linear.matmul_transposed
WMMA(wmma_s8, 16, 16, 16, signed char, signed char, col_major, int)
//! kernel wmma_u8 wmma-gemm
//! launch 1 32
//! args a=u8[8,16]:bits b=u8[16,32]:bits c=i32[8,32]:zeros
//! out c -> linear.matmul
WMMA(wmma_u8, 8, 32, 16, unsigned char, unsigned char, row_major, int)
//! kernel wmma_f64 wmma-gemm
//! launch 1 32
//! args a=f64[8,4]:normal bt=f64[8,4]:normal c=f64[8,8]:zeros
//! out c:1e-14:1e-14 -> linear.matmul_transposed
WMMA(wmma_f64, 8, 8, 4, double, double, col_major, double)

//! kernel wmma_b1 binary-gemm
//! launch 1 32
//! args a=u32[8,4]:bits bt=u32[8,4]:bits c=i32[8,8]:zeros
//! out c -> tensor.xor_popcount
KERNEL wmma_b1(const unsigned *a, const unsigned *bt, int *c) {
  fragment<matrix_a, 8, 8, 128, experimental::precision::b1, row_major> p;
  fragment<matrix_b, 8, 8, 128, experimental::precision::b1, col_major> q;
  fragment<accumulator, 8, 8, 128, int> d;
  fill_fragment(d, 0);
  load_matrix_sync(p, a, 128);
  load_matrix_sync(q, bt, 128);
  bmma_sync(d, p, q, d, experimental::bmmaBitOpXOR, experimental::bmmaAccumulateOpPOPC);
  store_matrix_sync(c, d, 8, mem_row_major);
}

//! kernel wmma_s4 wmma-gemm
//! launch 1 32
//! args a=u32[8,4]:bits bt=u32[8,4]:bits c=i32[8,8]:zeros
//! out c -> tensor.matmul_int4
KERNEL wmma_s4(const unsigned *a, const unsigned *bt, int *c) {
  fragment<matrix_a, 8, 8, 32, experimental::precision::s4, row_major> p;
  fragment<matrix_b, 8, 8, 32, experimental::precision::s4, col_major> q;
  fragment<accumulator, 8, 8, 32, int> d;
  load_matrix_sync(p, a, 32);
  load_matrix_sync(q, bt, 32);
  fill_fragment(d, 0);
  mma_sync(d, p, q, d);
  store_matrix_sync(c, d, 8, mem_row_major);
}

//! kernel wmma_chain wmma-attention
//! launch 1 32 smem=0
//! args q=f16[16,16]:normal kt=f16[16,16]:normal s=f32[16,16]:zeros
//! out s:1e-4:1e-4 -> tensor.scaled_scores
KERNEL wmma_chain(const __half *q, const __half *kt, float *s) {
  fragment<matrix_a, 16, 16, 16, __half, row_major> p;
  fragment<matrix_b, 16, 16, 16, __half, col_major> w;
  fragment<accumulator, 16, 16, 16, float> d;
  load_matrix_sync(d, s, 16, mem_row_major);
  load_matrix_sync(p, q, 16);
  load_matrix_sync(w, kt, 16);
  mma_sync(d, p, w, d);
#pragma unroll
  for (int i = 0; i < d.num_elements; ++i) d.x[i] *= 0.25f;
  store_matrix_sync(s, d, 16, mem_row_major);
}
