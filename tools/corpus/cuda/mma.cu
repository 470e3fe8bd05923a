// One warp, one tensor-core product each: every operand type of mma.sync up to Ada.
// Words of A (row-major) and of B transposed are loaded straight into fragments: lane 4g+t holds row g, word t.
//! build nvcc 13.1.115 sm_89
typedef unsigned u32;
#define KERNEL extern "C" __global__ void
#define LANE int g = threadIdx.x >> 2, t = threadIdx.x & 3

#define MMA_K256(name, text, kind, letter)                                                                  \
  KERNEL name(const u32 *a, const u32 *bt, kind *c) {                                                       \
    LANE;                                                                                                   \
    u32 a0 = a[g * 8 + t], a1 = a[(g + 8) * 8 + t], a2 = a[g * 8 + t + 4], a3 = a[(g + 8) * 8 + t + 4];     \
    u32 b0 = bt[g * 8 + t], b1 = bt[g * 8 + t + 4];                                                         \
    kind d0 = 0, d1 = 0, d2 = 0, d3 = 0;                                                                    \
    asm volatile(text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                    \
                 : "+" letter(d0), "+" letter(d1), "+" letter(d2), "+" letter(d3)                           \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));                                   \
    c[g * 8 + 2 * t] = d0, c[g * 8 + 2 * t + 1] = d1, c[(g + 8) * 8 + 2 * t] = d2, c[(g + 8) * 8 + 2 * t + 1] = d3; \
  }

//! kernel mma_f16 tensor-core-gemm
//! launch 1 32
//! args a=f16[16,16]:normal bt=f16[8,16]:normal c=f32[16,8]:zeros
//! out c:1e-5:1e-4 -> linear.matmul_transposed
MMA_K256(mma_f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", float, "f")

//! kernel mma_bf16 tensor-core-gemm
//! launch 1 32
//! args a=bf16[16,16]:normal bt=bf16[8,16]:normal c=f32[16,8]:zeros
//! out c:1e-5:1e-4 -> linear.matmul_transposed
MMA_K256(mma_bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")

//! kernel mma_tf32 tensor-core-gemm
//! launch 1 32
//! args a=f32[16,8]:integers(low=-50,high=50) bt=f32[8,8]:integers(low=-50,high=50) c=f32[16,8]:zeros
//! out c -> linear.matmul_transposed
MMA_K256(mma_tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", float, "f")

//! kernel mma_s8 tensor-core-gemm
//! launch 1 32
//! args a=i8[16,32]:bits bt=i8[8,32]:bits c=i32[16,8]:zeros
//! out c -> linear.matmul_transposed
MMA_K256(mma_s8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", int, "r")

//! kernel mma_u8_s8 tensor-core-gemm
//! launch 1 32
//! args a=u8[16,32]:bits bt=i8[8,32]:bits c=i32[16,8]:zeros
//! out c -> linear.matmul_transposed
MMA_K256(mma_u8_s8, "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", int, "r")

//! kernel mma_s4 tensor-core-gemm
//! launch 1 32
//! args a=u32[16,8]:bits bt=u32[8,8]:bits c=i32[16,8]:zeros
//! out c -> tensor.matmul_int4
MMA_K256(mma_s4, "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", int, "r")

//! kernel mma_b1_xor binary-gemm
//! launch 1 32
//! args a=u32[16,8]:bits bt=u32[8,8]:bits c=i32[16,8]:zeros
//! out c -> tensor.xor_popcount
MMA_K256(mma_b1_xor, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", int, "r")

//! kernel mma_b1_and binary-gemm
//! launch 1 32
//! args a=u32[16,8]:bits bt=u32[8,8]:bits c=i32[16,8]:zeros
//! out c -> tensor.and_popcount
MMA_K256(mma_b1_and, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", int, "r")

//! kernel mma_e4m3 tensor-core-gemm
//! launch 1 32
//! args a=e4m3[16,32]:normal bt=e5m2[8,32]:normal c=f32[16,8]:zeros
//! out c:1e-2:5e-2 -> linear.matmul_transposed
MMA_K256(mma_e4m3, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", float, "f")

//! kernel mma_f64 tensor-core-gemm
//! launch 1 32
//! args a=f64[8,4]:normal bt=f64[8,4]:normal c=f64[8,8]:zeros
//! out c:1e-14:1e-14 -> linear.matmul_transposed
KERNEL mma_f64(const double *a, const double *bt, double *c) {
  LANE;
  double d0 = 0, d1 = 0;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d0), "+d"(d1) : "d"(a[g * 4 + t]), "d"(bt[g * 4 + t]));
  c[g * 8 + 2 * t] = d0, c[g * 8 + 2 * t + 1] = d1;
}

//! kernel mma_s8_small tensor-core-gemm
//! launch 1 32
//! args a=i8[8,16]:bits bt=i8[8,16]:bits c=i32[8,8]:zeros
//! out c -> linear.matmul_transposed
KERNEL mma_s8_small(const u32 *a, const u32 *bt, int *c) {
  LANE;
  int d0 = 0, d1 = 0;
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(d0), "+r"(d1) : "r"(a[g * 4 + t]), "r"(bt[g * 4 + t]));
  c[g * 8 + 2 * t] = d0, c[g * 8 + 2 * t + 1] = d1;
}

//! kernel mma_f16_accumulate tensor-core-gemm
//! launch 1 32
//! args a=f16[16,8]:integers(low=-4,high=5) bt=f16[8,8]:integers(low=-4,high=5) c=f16[16,8]:zeros
//! out c -> linear.matmul_transposed
KERNEL mma_f16_accumulate(const u32 *a, const u32 *bt, u32 *c) {
  LANE;
  u32 d0 = 0, d1 = 0;
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
               : "+r"(d0), "+r"(d1) : "r"(a[g * 4 + t]), "r"(a[(g + 8) * 4 + t]), "r"(bt[g * 4 + t]));
  c[g * 4 + t] = d0, c[(g + 8) * 4 + t] = d1;
}

//! kernel ldmatrix_gemm tensor-core-gemm
//! launch 1 32
//! args a=f16[16,16]:normal b=f16[16,8]:normal c=f32[16,8]:zeros
//! out c:1e-5:1e-4 -> linear.matmul
KERNEL ldmatrix_gemm(const uint4 *a, const uint4 *b, float *c) {
  __shared__ uint4 s[32], w[16];
  LANE;
  s[threadIdx.x] = a[threadIdx.x];
  if (threadIdx.x < 16) w[threadIdx.x] = b[threadIdx.x];
  __syncwarp();
  u32 at = (u32)__cvta_generic_to_shared(&s[(threadIdx.x & 15) * 2 + (threadIdx.x >> 4)]), a0, a1, a2, a3, b0, b1;
  u32 bt = (u32)__cvta_generic_to_shared(&w[threadIdx.x & 15]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(bt));
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[g * 8 + 2 * t] = d0, c[g * 8 + 2 * t + 1] = d1, c[(g + 8) * 8 + 2 * t] = d2, c[(g + 8) * 8 + 2 * t + 1] = d3;
}

//! kernel movmatrix_transpose transpose
//! launch 1 32
//! args a=u16[8,8]:bits b=u16[8,8]:zeros
//! out b -> linear.transpose
KERNEL movmatrix_transpose(const u32 *a, u32 *b) {
  u32 d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a[threadIdx.x]));
  b[threadIdx.x] = d;
}

//! kernel mma_sparse_f16 sparse-tensor-core-gemm
//! launch 1 32
//! args a=f16[16,8]:normal bt=f16[8,16]:normal c=f32[16,8]:zeros
//! out c:1e-5:1e-4 -> tensor.sparse_first_two
KERNEL mma_sparse_f16(const u32 *a, const u32 *bt, float *c) {
  LANE;
  u32 metadata = 0x44444444u;  // columns 0 and 1 of every four
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3}, %8, 0x0;"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
               : "r"(a[g * 4 + t]), "r"(a[(g + 8) * 4 + t]), "r"(bt[g * 8 + t]), "r"(bt[g * 8 + t + 4]), "r"(metadata));
  c[g * 8 + 2 * t] = d0, c[g * 8 + 2 * t + 1] = d1, c[(g + 8) * 8 + 2 * t] = d2, c[(g + 8) * 8 + 2 * t + 1] = d3;
}

//! kernel cp_async_pipeline pipelined-gemm
//! launch 1 32
//! args a=f16[16,64]:normal bt=f16[8,64]:normal c=f32[16,8]:zeros
//! out c:1e-4:1e-3 -> linear.matmul_transposed
KERNEL cp_async_pipeline(const uint4 *a, const uint4 *bt, float *c) {
  __shared__ uint4 s[2][16][2], w[2][8][2];
  LANE;
  int row = threadIdx.x >> 1, half = threadIdx.x & 1;
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  for (int k = 0; k < 5; ++k) {
    if (k < 4) {
      u32 to = (u32)__cvta_generic_to_shared(&s[k & 1][row][half]);
      asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(&a[row * 8 + k * 2 + half]) : "memory");
      if (row < 8) {
        to = (u32)__cvta_generic_to_shared(&w[k & 1][row][half]);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(&bt[row * 8 + k * 2 + half]), "r"(16) : "memory");
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
    if (k == 0) continue;
    if (k < 4) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
    const u32 *p = (const u32 *)s[(k - 1) & 1], *q = (const u32 *)w[(k - 1) & 1];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(p[g * 8 + t]), "r"(p[(g + 8) * 8 + t]), "r"(p[g * 8 + t + 4]), "r"(p[(g + 8) * 8 + t + 4]),
                   "r"(q[g * 8 + t]), "r"(q[g * 8 + t + 4]));
    __syncwarp();
  }
  c[g * 8 + 2 * t] = d0, c[g * 8 + 2 * t + 1] = d1, c[(g + 8) * 8 + 2 * t] = d2, c[(g + 8) * 8 + 2 * t + 1] = d3;
}
