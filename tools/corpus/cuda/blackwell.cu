// Blackwell's tensor memory: products whose accumulators live beside the tensor cores.
//! build nvcc 13.5.37 sm_100a
typedef unsigned u32;
typedef unsigned short u16;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void
struct alignas(64) TensorMap { char bytes[128]; };
__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ u64 descriptor(const void *p) {  // no swizzle; core matrices 128 bytes apart along K, 256 along M
  return (u64)(shared_address(p) >> 4) | (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32 | 1ull << 46;
}
__device__ __forceinline__ void wait(u64 *bar) {
  asm volatile("{\n\t.reg .pred done;\n\tWAIT:\n\tmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], 0, 1000;\n\t"
               "@!done bra WAIT;\n\t}" ::"r"(shared_address(bar)) : "memory");
}

#define TENSOR_GEMM(name, kind, idesc)                                                                         \
  KERNEL name(const u32 *a, const u32 *bt, u32 *c) {                                                           \
    __shared__ alignas(128) u32 s[1024], w[64];                                                                \
    __shared__ u64 bar;                                                                                        \
    __shared__ u32 base;                                                                                       \
    int t = threadIdx.x;                                                                                       \
    if (t < 32) {                                                                                              \
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(&base)) : "memory"); \
      asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");                              \
    }                                                                                                          \
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&bar)) : "memory"); \
    for (int i = t; i < 1024; i += 128) s[(i >> 6) * 64 + (i >> 2 & 1) * 32 + (i >> 3 & 7) * 4 + (i & 3)] = a[i]; \
    if (t < 64) w[(t >> 2 & 1) * 32 + (t >> 3) * 4 + (t & 3)] = bt[t];                                         \
    asm volatile("fence.proxy.async.shared::cta;\n\ttcgen05.fence::before_thread_sync;" ::: "memory");         \
    __syncthreads();                                                                                           \
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");                                            \
    u32 tmem = base;                                                                                           \
    if (t == 0) {                                                                                              \
      asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, 0, 0;\n\t"                                            \
                   "tcgen05.mma.cta_group::1.kind::" kind " [%0], %1, %2, %3, p;\n\t}"                         \
                   ::"r"(tmem), "l"(descriptor(s)), "l"(descriptor(w)), "r"(idesc) : "memory");                \
      asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(&bar)) : "memory"); \
    }                                                                                                          \
    wait(&bar);                                                                                                \
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");                                            \
    u32 d[8];                                                                                                  \
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n\t"           \
                 "tcgen05.wait::ld.sync.aligned;"                                                              \
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]), "=r"(d[6]), "=r"(d[7]) \
                 : "r"(tmem + ((u32)(t >> 5) * 32 << 16)) : "memory");                                         \
    for (int i = 0; i < 8; ++i) c[t * 8 + i] = d[i];                                                           \
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");                                           \
    __syncthreads();                                                                                           \
    if (t < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(tmem));             \
  }
#define SHAPE (8 >> 3 << 17 | 128 >> 4 << 24)

//! kernel tensor_f16 tensor-memory-gemm
//! launch 1 128
//! args a=f16[128,16]:normal bt=f16[8,16]:normal c=f32[128,8]:zeros
//! out c:1e-5:1e-4 -> linear.matmul_transposed
TENSOR_GEMM(tensor_f16, "f16", SHAPE | 1 << 4)
//! kernel tensor_bf16 tensor-memory-gemm
//! launch 1 128
//! args a=bf16[128,16]:normal bt=bf16[8,16]:normal c=f32[128,8]:zeros
//! out c:1e-5:1e-4 -> asynchronous.negated_product
TENSOR_GEMM(tensor_bf16, "f16", SHAPE | 1 << 4 | 1 << 7 | 1 << 10 | 1 << 13)
//! kernel tensor_tf32 tensor-memory-gemm
//! launch 1 128
//! args a=f32[128,8]:integers(low=-50,high=50) bt=f32[8,8]:integers(low=-50,high=50) c=f32[128,8]:zeros
//! out c -> linear.matmul_transposed
TENSOR_GEMM(tensor_tf32, "tf32", SHAPE | 1 << 4 | 2 << 7 | 2 << 10)
//! kernel tensor_e4m3 tensor-memory-gemm
//! launch 1 128
//! args a=e4m3[128,32]:normal bt=e5m2[8,32]:normal c=f32[128,8]:zeros
//! out c:1e-4:1e-2 -> linear.matmul_transposed
TENSOR_GEMM(tensor_e4m3, "f8f6f4", SHAPE | 1 << 4 | 0 << 7 | 1 << 10)
//! kernel tensor_s8 tensor-memory-gemm
//! launch 1 128
//! args a=i8[128,32]:bits bt=i8[8,32]:bits c=i32[128,8]:zeros
//! out c -> linear.matmul_transposed
TENSOR_GEMM(tensor_s8, "i8", SHAPE | 2 << 4 | 1 << 7 | 1 << 10)

//! kernel tensor_memory_round_trip tensor-memory-copy
//! launch 1 128
//! args x=u32[128,4]:bits y=u32[128,4]:zeros
//! out y -> memory.copied
KERNEL tensor_memory_round_trip(const uint4 *x, uint4 *y) {
  __shared__ u32 base;
  if (threadIdx.x < 32)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&base)), "r"(64) : "memory");
  __syncthreads();
  u32 at = base + (threadIdx.x >> 5 << 21) + 16;
  uint4 v = x[threadIdx.x], r;
  asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %2, %3, %4};\n\ttcgen05.wait::st.sync.aligned;"
               ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];\n\ttcgen05.wait::ld.sync.aligned;"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(at) : "memory");
  y[threadIdx.x] = r;
  __syncthreads();
  if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(base), "r"(64));
}

//! kernel load_shapes tensor-memory-forms
//! norun reads tensor memory that nobody wrote
#define KEEP(n) for (int i = 0; i < n; ++i) sum += r[i]
KERNEL load_shapes(u32 at, u32 *y) {
  u32 r[8], sum = 0;
  asm volatile("tcgen05.ld.sync.aligned.16x64b.x1.b32 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
  KEEP(1);
  asm volatile("tcgen05.ld.sync.aligned.16x64b.x2.pack::16b.b32 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  KEEP(2);
  asm volatile("tcgen05.ld.sync.aligned.16x128b.x2.b32 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  KEEP(4);
  asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  KEEP(4);
  asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x4.b32 {%0, %1, %2, %3}, [%4], 8;" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  KEEP(4);
  asm volatile("tcgen05.st.sync.aligned.16x64b.x2.unpack::16b.b32 [%0], {%1, %2};" ::"r"(at), "r"(r[0]), "r"(r[1]));
  asm volatile("tcgen05.st.sync.aligned.16x128b.x1.b32 [%0], {%1, %2};" ::"r"(at), "r"(r[0]), "r"(r[1]));
  asm volatile("tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%0], 2, {%1};" ::"r"(at), "r"(r[0]));
  asm volatile("tcgen05.wait::ld.sync.aligned;\n\ttcgen05.wait::st.sync.aligned;");
  y[threadIdx.x] = sum;
}

//! kernel mma_forms tensor-memory-forms
//! norun lists forms on tensor memory that nobody wrote
KERNEL mma_forms(u32 d, u32 a, u64 p, u64 q, u32 idesc, u32 x, u32 y, u64 bar, u16 mask) {
#define MMA(text, ...) asm volatile("{\n\t.reg .pred e;\n\tsetp.ne.b32 e, %4, 0;\n\ttcgen05.mma" text "\n\t}" \
    ::"r"(d), "r"(a), "l"(p), "l"(q), "r"(idesc), "r"(x), "r"(y) : "memory")
  MMA(".cta_group::1.kind::f16 [%0], [%1], %3, %4, e;");
  MMA(".cta_group::1.kind::f16 [%0], %2, %3, %4, e, 2;");
  MMA(".cta_group::1.kind::tf32.collector::a::fill [%0], %2, %3, %4, e;");
  MMA(".cta_group::1.kind::f8f6f4.collector::a::lastuse [%0], %2, %3, %4, e;");
  MMA(".cta_group::1.kind::i8.collector::a::discard [%0], [%1], %3, %4, e;");
  MMA(".cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %2, %3, %4, [%5], [%6], e;");
  MMA(".cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%0], %2, %3, %4, [%5], [%6], e;");
  MMA(".cta_group::1.kind::mxf4nvf4.block_scale.block16 [%0], %2, %3, %4, [%5], [%6], e;");
  MMA(".sp.cta_group::1.kind::f16 [%0], %2, %3, [%5], %4, e;");
  MMA(".sp.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %2, %3, [%1], %4, [%5], [%6], e;");
  MMA(".ws.cta_group::1.kind::f16 [%0], %2, %3, %4, e;");
  MMA(".ws.cta_group::1.kind::tf32.collector::b1::fill [%0], [%1], %3, %4, e;");
  MMA(".ws.sp.cta_group::1.kind::f8f6f4.collector::b2::use [%0], %2, %3, [%5], %4, e;");
  asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(d), "l"(p) : "memory");
  asm volatile("tcgen05.cp.cta_group::1.4x256b [%0], %1;" ::"r"(d), "l"(p) : "memory");
  asm volatile("tcgen05.cp.cta_group::1.64x128b.warpx2::02_13.b8x16.b6x16_p32 [%0], %1;" ::"r"(d), "l"(p) : "memory");
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(d), "l"(p) : "memory");
  asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(d) : "memory");
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%0];" ::"l"(bar) : "memory");
}

//! kernel pair_forms tensor-memory-forms
//! norun lists forms on tensor memory that nobody wrote
KERNEL pair_forms(u32 d, u32 a, u64 p, u64 q, u32 idesc, u32 x, u32 y, u64 bar, u16 mask) {
  MMA(".cta_group::2.kind::f16 [%0], %2, %3, %4, {%5, %5, %5, %5, %5, %5, %5, %5}, e;");
  MMA(".cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], [%1], %3, %4, [%5], [%6], e;");
  asm volatile("tcgen05.cp.cta_group::2.128x128b.b8x16.b4x16_p64 [%0], %1;" ::"r"(d), "l"(p) : "memory");
  asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(x), "h"(mask) : "memory");
  asm volatile("tcgen05.shift.cta_group::2.down [%0];" ::"r"(d) : "memory");
}

//! kernel cancel_clusters work-stealing
//! norun asks the hardware for another cluster's work
KERNEL cancel_clusters(int *y) {
  __shared__ alignas(16) uint4 answer;
  __shared__ u64 bar;
  u32 cancelled, cx, cy, cz, first;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&bar)));
    asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], 16;" ::"r"(shared_address(&bar)));
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
                 ::"r"(shared_address(&answer)), "r"(shared_address(&bar)) : "memory");
  }
  __syncthreads();
  wait(&bar);
  asm volatile("{\n\t.reg .b128 h;\n\t.reg .pred p;\n\tld.shared.b128 h, [%5];\n\t"
               "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, h;\n\tselp.u32 %0, 1, 0, p;\n\t"
               "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, %2, %3, _}, h;\n\t"
               "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %4, h;\n\t}"
               : "=r"(cancelled), "=r"(cx), "=r"(cy), "=r"(cz), "=r"(first) : "r"(shared_address(&answer)) : "memory");
  if (cancelled) y[threadIdx.x] = cx + cy + cz + first;
}

//! kernel tensor_gather_scatter tensor-map-gather
//! norun uses tensor maps of a kind the manifest does not describe
KERNEL tensor_gather_scatter(const __grid_constant__ TensorMap m, const int *rows) {
  __shared__ alignas(128) float s[4][32];
  __shared__ u64 bar;
  int4 r = *(const int4 *)rows;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&bar)));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" ::"r"(shared_address(&bar)));
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
                 ::"r"(shared_address(s)), "l"(&m), "r"(0), "r"(r.x), "r"(r.y), "r"(r.z), "r"(r.w), "r"(shared_address(&bar)) : "memory");
  }
  __syncthreads();
  wait(&bar);
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];"
                 ::"l"(&m), "r"(32), "r"(r.x), "r"(r.y), "r"(r.z), "r"(r.w), "r"(shared_address(s)) : "memory");
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%0, {%1, %2, %3, %4, %5}];"
                 ::"l"(&m), "r"(64), "r"(r.x), "r"(r.y), "r"(r.z), "r"(r.w) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
  }
}

//! kernel float_reductions warp-reduction
//! launch 1 32
//! args x=f32[32]:normal y=f32[4]:zeros
//! out y -> asynchronous.float_reductions
KERNEL float_reductions(const float *x, float *y) {
  float v = x[threadIdx.x], low, high, a, b;
  asm volatile("redux.sync.min.f32 %0, %1, 0xffffffff;" : "=f"(low) : "f"(v));
  asm volatile("redux.sync.max.NaN.f32 %0, %1, 0xffffffff;" : "=f"(high) : "f"(v));
  asm volatile("redux.sync.min.abs.f32 %0, %1, 0xffffffff;" : "=f"(a) : "f"(v));
  asm volatile("redux.sync.max.abs.NaN.f32 %0, %1, 0xffffffff;" : "=f"(b) : "f"(v));
  if (threadIdx.x == 0) y[0] = low, y[1] = high, y[2] = a, y[3] = b;
}

//! kernel three_input_floats elementary-functions
//! launch 1 32
//! args a=f32[32]:normal b=f32[32]:normal c=f32[32]:normal y=f32[4,32]:zeros
//! out y:1e-6:1e-6 -> asynchronous.three_inputs
KERNEL three_input_floats(const float *a, const float *b, const float *c, float *y) {
  int i = threadIdx.x;
  asm("min.f32 %0, %1, %2, %3;" : "=f"(y[i]) : "f"(a[i]), "f"(b[i]), "f"(c[i]));
  asm("max.abs.f32 %0, %1, %2, %3;" : "=f"(y[32 + i]) : "f"(a[i]), "f"(b[i]), "f"(c[i]));
  asm("{\n\t.reg .f16 h;\n\tcvt.rn.f16.f32 h, %1;\n\tadd.f32.f16 %0, h, %2;\n\t}" : "=f"(y[64 + i]) : "f"(2.0f), "f"(b[i]));
  asm("{\n\t.reg .b16 h, k;\n\tcvt.rn.bf16.f32 h, 0f3F800000;\n\tmov.b16 k, h;\n\tfma.rn.f32.bf16 %0, h, k, %1;\n\t}" : "=f"(y[96 + i]) : "f"(c[i]));
}
