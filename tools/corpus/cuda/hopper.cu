// Hopper's asynchronous machinery by inline assembly: bulk copies, tensor maps, mbarriers, wgmma, clusters.
//! build nvcc 13.3.73 sm_90a
typedef unsigned u32;
typedef unsigned short u16;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void
struct alignas(64) TensorMap { char bytes[128]; };

__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void barrier_init(u64 *bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_expect(u64 *bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_wait(u64 *bar, int parity) {
  asm volatile("{\n\t.reg .pred done;\n\tWAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@done bra DONE;\n\t"
               "bra WAIT;\n\tDONE:\n\t}" ::"r"(shared_address(bar)), "r"(parity) : "memory");
}

//! kernel bulk_copy bulk-copy
//! launch 2 32
//! args x=f32[256]:normal y=f32[256]:zeros
//! out y -> asynchronous.doubled
KERNEL bulk_copy(const float *x, float *y) {
  __shared__ alignas(128) float s[128];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    barrier_init(&bar, 1);
    barrier_expect(&bar, 512);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared_address(s)), "l"(x + blockIdx.x * 128), "r"(512), "r"(shared_address(&bar)) : "memory");
  }
  __syncthreads();
  barrier_wait(&bar, 0);
  for (int i = threadIdx.x; i < 128; i += 32) s[i] *= 2.0f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + blockIdx.x * 128), "r"(shared_address(s)), "r"(512) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
  }
}

//! kernel bulk_reduce bulk-reduction
//! launch 4 32
//! args x=i32[4,64]:integers(low=0,high=100) y=i32[64]:zeros
//! out y -> asynchronous.column_sums
KERNEL bulk_reduce(const int *x, int *y) {
  __shared__ alignas(16) int s[64];
  for (int i = threadIdx.x; i < 64; i += 32) s[i] = x[blockIdx.x * 64 + i];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 256;" ::"l"(y), "r"(shared_address(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

//! kernel tensor_tile_copy tensor-map-copy
//! launch 2x4 128
//! args x=f32[64,32]:normal! mx=map(x,dims=32x64,box=16x16) y=f32[64,32]:zeros! my=map(y,dims=32x64,box=16x16)
//! out y -> asynchronous.doubled
KERNEL tensor_tile_copy(const __grid_constant__ TensorMap mx, const __grid_constant__ TensorMap my) {
  __shared__ alignas(128) float s[16][16];
  __shared__ u64 bar;
  int c = blockIdx.x * 16, r = blockIdx.y * 16;
  if (threadIdx.x == 0) {
    barrier_init(&bar, 1);
    asm volatile("prefetch.tensormap [%0];" ::"l"(&mx) : "memory");
    barrier_expect(&bar, 1024);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared_address(s)), "l"(&mx), "r"(c), "r"(r), "r"(shared_address(&bar)) : "memory");
  }
  __syncthreads();
  barrier_wait(&bar, 0);
  for (int i = threadIdx.x; i < 256; i += 128) s[i >> 4][i & 15] *= 2.0f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&my), "r"(c), "r"(r), "r"(shared_address(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
  }
}

//! kernel tensor_swizzled_read swizzled-tensor-map
//! launch 1 32
//! args x=f32[8,32]:normal! mx=map(x,dims=32x8,box=32x8,swizzle=128B) y=f32[8,32]:zeros
//! out y -> memory.copied
KERNEL tensor_swizzled_read(const __grid_constant__ TensorMap mx, float *y) {
  __shared__ alignas(1024) float s[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    barrier_init(&bar, 1);
    barrier_expect(&bar, 1024);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared_address(s)), "l"(&mx), "r"(0), "r"(0), "r"(shared_address(&bar)) : "memory");
  }
  __syncthreads();
  barrier_wait(&bar, 0);
  for (int r = 0; r < 8; ++r) y[r * 32 + threadIdx.x] = s[r * 32 + ((threadIdx.x >> 2 ^ r) << 2 | (threadIdx.x & 3))];
}

//! kernel tensor_reduce tensor-map-reduction
//! launch 3 64
//! args y=f32[8,16]:normal! my=map(y,dims=16x8,box=16x4)
//! out y:1e-6:1e-6 -> asynchronous.three_times_two_rows
KERNEL tensor_reduce(const __grid_constant__ TensorMap my) {
  __shared__ alignas(128) float s[64];
  s[threadIdx.x] = (float)threadIdx.x;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&my), "r"(0), "r"(2), "r"(shared_address(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
  }
}

//! kernel tensor_multicast multicast-copy
//! launch 2 32 cluster=2
//! args x=f32[2,32]:normal! mx=map(x,dims=32x2,box=32x1) y=f32[2,32]:zeros
//! out y:1e-6:1e-6 -> asynchronous.sum_of_rows
KERNEL __cluster_dims__(2, 1, 1) tensor_multicast(const __grid_constant__ TensorMap mx, float *y) {
  __shared__ alignas(128) float s[64];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    barrier_init(&bar, 1);
    barrier_expect(&bar, 256);
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    u32 row = blockIdx.x;
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                 ::"r"(shared_address(s + 32 * row)), "l"(&mx), "r"(0), "r"(row), "r"(shared_address(&bar)), "h"((u16)3) : "memory");
  }
  barrier_wait(&bar, 0);
  y[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x] + s[32 + threadIdx.x];
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ __forceinline__ u64 descriptor(const void *p) {  // no swizzle; core matrices 128 bytes apart along K, 256 along M
  return (u64)(shared_address(p) >> 4) | (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32;
}
#define WGMMA(name, shape, text, kind, letter, tail)                                                        \
  KERNEL name(const u32 *a, const u32 *bt, kind *c) {                                                       \
    __shared__ alignas(128) u32 s[512], w[64];                                                              \
    int t = threadIdx.x;                                                                                    \
    for (int i = t; i < 512; i += 128) s[(i >> 6) * 64 + (i >> 2 & 1) * 32 + (i >> 3 & 7) * 4 + (i & 3)] = a[i]; \
    if (t < 64) w[(t >> 2 & 1) * 32 + (t >> 3) * 4 + (t & 3)] = bt[t];                                      \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                            \
    __syncthreads();                                                                                        \
    kind d0 = 0, d1 = 0, d2 = 0, d3 = 0;                                                                    \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                 \
    asm volatile("wgmma.mma_async.sync.aligned." shape text " {%0, %1, %2, %3}, %4, %5, 1" tail ";"         \
                 : "+" letter(d0), "+" letter(d1), "+" letter(d2), "+" letter(d3)                           \
                 : "l"(descriptor(s)), "l"(descriptor(w)));                                                 \
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;"                     \
                 : "+" letter(d0), "+" letter(d1), "+" letter(d2), "+" letter(d3)::"memory");               \
    int row = (t >> 5) * 16 + (t >> 2 & 7), col = (t & 3) * 2;                                              \
    c[row * 8 + col] = d0, c[row * 8 + col + 1] = d1, c[row * 8 + 64 + col] = d2, c[row * 8 + 65 + col] = d3; \
  }

//! kernel wgmma_f16 warpgroup-gemm
//! launch 1 128
//! args a=f16[64,16]:normal bt=f16[8,16]:normal c=f32[64,8]:zeros
//! out c:1e-5:1e-4 -> linear.matmul_transposed
WGMMA(wgmma_f16, "m64n8k16", ".f32.f16.f16", float, "f", ", 1, 1, 0, 0")
//! kernel wgmma_bf16 warpgroup-gemm
//! launch 1 128
//! args a=bf16[64,16]:normal bt=bf16[8,16]:normal c=f32[64,8]:zeros
//! out c:1e-5:1e-4 -> asynchronous.negated_product
WGMMA(wgmma_bf16, "m64n8k16", ".f32.bf16.bf16", float, "f", ", -1, 1, 0, 0")
//! kernel wgmma_tf32 warpgroup-gemm
//! launch 1 128
//! args a=f32[64,8]:integers(low=-50,high=50) bt=f32[8,8]:integers(low=-50,high=50) c=f32[64,8]:zeros
//! out c -> linear.matmul_transposed
WGMMA(wgmma_tf32, "m64n8k8", ".f32.tf32.tf32", float, "f", ", 1, 1")
//! kernel wgmma_e4m3 warpgroup-gemm
//! launch 1 128
//! args a=e4m3[64,32]:integers(low=-4,high=5) bt=e5m2[8,32]:integers(low=-4,high=5) c=f32[64,8]:zeros
//! out c:1e-3:1e-1 -> linear.matmul_transposed
WGMMA(wgmma_e4m3, "m64n8k32", ".f32.e4m3.e5m2", float, "f", ", 1, 1")
//! kernel wgmma_s8 warpgroup-gemm
//! launch 1 128
//! args a=i8[64,32]:bits bt=u8[8,32]:bits c=i32[64,8]:zeros
//! out c -> linear.matmul_transposed
WGMMA(wgmma_s8, "m64n8k32", ".s32.s8.u8", int, "r", "")
//! kernel wgmma_b1 binary-gemm
//! launch 1 128
//! args a=u32[64,8]:bits bt=u32[8,8]:bits c=i32[64,8]:zeros
//! out c -> tensor.and_popcount
WGMMA(wgmma_b1, "m64n8k256", ".s32.b1.b1.and.popc", int, "r", "")

//! kernel wgmma_register_a warpgroup-gemm
//! launch 1 128
//! args a=f16[64,16]:normal bt=f16[8,16]:normal c=f32[64,8]:zeros
//! out c:1e-5:1e-4 -> linear.matmul_transposed
KERNEL wgmma_register_a(const u32 *a, const u32 *bt, float *c) {
  __shared__ alignas(128) u32 w[64];
  int t = threadIdx.x, row = (t >> 5) * 16 + (t >> 2 & 7), k = t & 3;
  if (t < 64) w[(t >> 2 & 1) * 32 + (t >> 3) * 4 + (t & 3)] = bt[t];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d0, d1, d2, d3;
  u32 a0 = a[row * 8 + k], a1 = a[row * 8 + 64 + k], a2 = a[row * 8 + k + 4], a3 = a[row * 8 + 64 + k + 4];
  asm volatile("wgmma.fence.sync.aligned;" : "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3)::"memory");
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, 0, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0;\n\t}"
               : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(descriptor(w)));
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)::"memory");
  k *= 2;
  c[row * 8 + k] = d0, c[row * 8 + k + 1] = d1, c[row * 8 + 64 + k] = d2, c[row * 8 + 65 + k] = d3;
}

//! kernel specialised_pipeline warp-specialised-copy
//! launch 1 256
//! args x=f32[8,128]:normal y=f32[128]:zeros
//! out y:1e-5:1e-5 -> cooperation.column_sums
KERNEL __launch_bounds__(256, 1) specialised_pipeline(const float *x, float *y) {
  __shared__ alignas(128) float s[2][128];
  __shared__ u64 full[2], empty[2];
  if (threadIdx.x == 0) {
    barrier_init(&full[0], 1), barrier_init(&full[1], 1);
    barrier_init(&empty[0], 128), barrier_init(&empty[1], 128);
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (int k = 0; k < 8; ++k) {
        barrier_wait(&empty[k & 1], (k >> 1 & 1) ^ 1);
        barrier_expect(&full[k & 1], 512);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], 512, [%2], %3;"
                     ::"r"(shared_address(s[k & 1])), "l"(x + k * 128), "r"(shared_address(&full[k & 1])), "l"(0x12f0000000000000ull) : "memory");
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
    float sum = 0;
    for (int k = 0; k < 8; ++k) {
      barrier_wait(&full[k & 1], k >> 1 & 1);
      sum += s[k & 1][threadIdx.x - 128];
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&empty[k & 1])) : "memory");
    }
    y[threadIdx.x - 128] = sum;
  }
}

//! kernel remote_stores remote-store
//! launch 2 32 cluster=2
//! args x=i32[64]:integers(low=0,high=100) y=i32[64]:zeros
//! out y -> asynchronous.swapped_plus_sum
KERNEL __cluster_dims__(2, 1, 1) remote_stores(const int *x, int *y) {
  __shared__ alignas(16) int s[32];
  __shared__ int total;
  __shared__ u64 bar;
  u32 rank, remote, remote_bar, remote_total;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    total = 0;
    barrier_init(&bar, 1);
    barrier_expect(&bar, 256);
  }
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(&s[threadIdx.x])), "r"(rank ^ 1));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_bar) : "r"(shared_address(&bar)), "r"(rank ^ 1));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_total) : "r"(shared_address(&total)), "r"(rank ^ 1));
  int v = x[blockIdx.x * 32 + threadIdx.x];
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(remote), "r"(v), "r"(remote_bar) : "memory");
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
               ::"r"(remote_total), "r"(v), "r"(remote_bar) : "memory");
  barrier_wait(&bar, 0);
  y[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x] + total;
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

//! kernel elected_store elected-thread
//! launch 2 64
//! args y=i32[4]:zeros
//! out y -> asynchronous.elected
KERNEL elected_store(int *y) {
  u32 chosen, lane;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync %1|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(chosen), "=r"(lane));
  if (chosen) y[blockIdx.x * 2 + threadIdx.x / 32] = 100 + threadIdx.x - (threadIdx.x & 31) + (lane == (threadIdx.x & 31));
}

//! kernel stmatrix_transpose transpose
//! launch 1 32
//! args a=u16[8,8]:bits b=u16[8,8]:zeros
//! out b -> linear.transpose
KERNEL stmatrix_transpose(const u32 *a, u32 *b) {
  __shared__ alignas(16) u32 s[32];
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(shared_address(&s[(threadIdx.x & 7) * 4])), "r"(a[threadIdx.x]) : "memory");
  __syncwarp();
  b[threadIdx.x] = s[threadIdx.x];
}

//! kernel dependent_launch dependent-launch
//! launch 1 32
//! args x=i32[32]:integers(low=0,high=100) y=i32[32]:zeros
//! out y -> memory.doubled
KERNEL dependent_launch(const int *x, int *y) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  y[threadIdx.x] = x[threadIdx.x] * 2;
  asm volatile("griddepcontrol.launch_dependents;");
}

//! kernel named_barriers named-barriers
//! launch 1 96
//! args x=i32[96]:integers(low=0,high=100) y=i32[96]:zeros
//! out y -> asynchronous.handed_over
KERNEL named_barriers(const int *x, int *y) {
  __shared__ int s[64];
  int t = threadIdx.x;
  if (t < 64) {
    s[t] = x[t];
    asm volatile("bar.arrive 1, 96;" ::: "memory");
    y[t] = x[t] + 1;
  } else {
    asm volatile("barrier.sync.aligned 1, 96;" ::: "memory");
    y[t] = s[t - 64] + s[t - 32];
  }
  int count, any;
  asm volatile("{\n\t.reg .pred p, q;\n\tsetp.gt.s32 p, %2, 50;\n\tbarrier.red.popc.aligned.u32 %0, 2, p;\n\t"
               "bar.red.or.pred q, 3, p;\n\tselp.s32 %1, 1, 0, q;\n\t}" : "=r"(count), "=r"(any) : "r"(x[t]));
  y[t] += count * 1000 + any;
}
