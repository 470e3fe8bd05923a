// What the newest architectures and PTX versions added, and what they kept of the old.
//! build nvcc 13.5.37 sm_103a
//! build nvcc 13.1.115 sm_90a -DSPARSE as=sparse
typedef unsigned u32;
typedef unsigned short u16;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void
__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
#ifdef SPARSE

//! kernel sparse_products sparse-warpgroup-gemm
//! norun lists forms on shared memory that nobody wrote
KERNEL sparse_products(u64 a, u64 b, u32 metadata, float *c) {
  float d[4] = {0, 0, 0, 0};
  int e[4] = {0, 0, 0, 0};
  u32 h[2] = {0, 0};
#define WGMMA_SP(text, tail)                                                                     \
  asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8" text " {%0, %1, %2, %3}, %4, %5, %6, 0, 1" tail ";" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(metadata))
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  WGMMA_SP("k32.f32.f16.f16", ", 1, 1, 0, 0");
  WGMMA_SP("k32.f32.bf16.bf16", ", -1, 1, 0, 1");
  WGMMA_SP("k16.f32.tf32.tf32", ", 1, 1");
  WGMMA_SP("k64.f32.e5m2.e4m3", ", 1, -1");
  asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.u8.s8.satfinite {%0, %1, %2, %3}, %4, %5, %6, 0, 1;"
               : "+r"(e[0]), "+r"(e[1]), "+r"(e[2]), "+r"(e[3]) : "l"(a), "l"(b), "r"(metadata));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, 1, 1, 1, 1, 0;" : "+r"(h[0]), "+r"(h[1]) : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e5m2 {%0, %1}, %2, %3, 0, 1, 1;" : "+r"(h[0]), "+r"(h[1]) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) c[threadIdx.x * 4 + i] = d[i] + e[i] + h[i & 1];
}

//! kernel fused_out_of_bounds half-arithmetic
//! launch 1 32
//! args a=f16[64]:integers(low=-8,high=9) b=f16[64]:integers(low=-8,high=9) c=f16[64]:integers(low=-8,high=9) y=f16[64]:zeros
//! out y -> formats.fused_relu
KERNEL fused_out_of_bounds(const u32 *a, const u32 *b, const u32 *c, u32 *y) {
  asm("fma.rn.oob.relu.f16x2 %0, %1, %2, %3;" : "=r"(y[threadIdx.x]) : "r"(a[threadIdx.x]), "r"(b[threadIdx.x]), "r"(c[threadIdx.x]));
}
#else

//! kernel wide_vectors vector-copy
//! launch 1 32
//! args x=f32[32,8]:normal y=f32[32,8]:zeros z=f32[32,8]:zeros
//! out y z -> memory.copied_twice
KERNEL wide_vectors(const float *x, float *y, float *z) {
  float a, b, c, d, e, f, g, h;
  u64 p, q, r, s;
  x += 8 * threadIdx.x, y += 8 * threadIdx.x, z += 8 * threadIdx.x;
  asm volatile("ld.global.v8.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=f"(a), "=f"(b), "=f"(c), "=f"(d), "=f"(e), "=f"(f), "=f"(g), "=f"(h) : "l"(x));
  asm volatile("st.global.v8.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};"
               ::"l"(y), "f"(a), "f"(b), "f"(c), "f"(d), "f"(e), "f"(f), "f"(g), "f"(h) : "memory");
  asm volatile("ld.global.nc.L1::no_allocate.L2::evict_first.v4.b64 {%0, %1, %2, %3}, [%4];" : "=l"(p), "=l"(q), "=l"(r), "=l"(s) : "l"(x));
  asm volatile("st.global.L1::no_allocate.v4.b64 [%0], {%1, %2, %3, %4};" ::"l"(z), "l"(p), "l"(q), "l"(r), "l"(s) : "memory");
}

//! kernel carryless_products carryless-multiplication
//! launch 1 32
//! args a=u64[32]:bits b=u64[32]:bits c=u64[32]:bits y=u64[32,2]:zeros
//! out y -> integers.carryless
KERNEL carryless_products(const u64 *a, const u64 *b, const u64 *c, u64 *y) {
  int i = threadIdx.x;
  asm("clmad.lo.u64 %0, %1, %2, %3;" : "=l"(y[2 * i]) : "l"(a[i]), "l"(b[i]), "l"(c[i]));
  asm("clmad.hi.u64 %0, %1, %2, %3;" : "=l"(y[2 * i + 1]) : "l"(a[i]), "l"(b[i]), "l"(c[i]));
}

//! kernel find_set_bits nth-set-bit
//! launch 1 32
//! args mask=u32[32]:bits base=u32[32]:integers(low=0,high=32) offset=i32[32]:integers(low=-4,high=5) y=u32[32]:zeros
//! out y -> integers.nth_set_bit
KERNEL find_set_bits(const u32 *mask, const u32 *base, const int *offset, u32 *y) {
  asm("fns.b32 %0, %1, %2, %3;" : "=r"(y[threadIdx.x]) : "r"(mask[threadIdx.x]), "r"(base[threadIdx.x]), "r"(offset[threadIdx.x]));
}

//! kernel bulk_clear bulk-store
//! launch 1 32
//! args x=u32[64]:bits y=u32[64]:zeros
//! out y -> memory.half_cleared
KERNEL bulk_clear(const u32 *x, u32 *y) {
  __shared__ alignas(16) u32 s[64];
  s[threadIdx.x] = x[threadIdx.x], s[threadIdx.x + 32] = x[threadIdx.x + 32];
  __syncwarp();
  if (threadIdx.x == 0) asm volatile("st.bulk.weak.shared::cta [%0], 128, 0;" ::"l"((u64)shared_address(s)) : "memory");
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x], y[threadIdx.x + 32] = s[threadIdx.x + 32];
}

//! kernel stochastic_conversions stochastic-rounding
//! norun rounds by random bits
KERNEL stochastic_conversions(const float *x, const u32 *noise, u32 *y) {
  float a = x[0], b = x[1], c = x[2], d = x[3];
  u32 r = noise[threadIdx.x], v[6];
  u16 h;
  asm("cvt.rs.f16x2.f32 %0, %1, %2, %3;" : "=r"(v[0]) : "f"(a), "f"(b), "r"(r));
  asm("cvt.rs.relu.bf16x2.f32 %0, %1, %2, %3;" : "=r"(v[1]) : "f"(a), "f"(b), "r"(r));
  asm("cvt.rs.satfinite.e4m3x4.f32 %0, {%1, %2, %3, %4}, %5;" : "=r"(v[2]) : "f"(a), "f"(b), "f"(c), "f"(d), "r"(r));
  asm("cvt.rs.relu.satfinite.e5m2x4.f32 %0, {%1, %2, %3, %4}, %5;" : "=r"(v[3]) : "f"(a), "f"(b), "f"(c), "f"(d), "r"(r));
  asm("cvt.rs.satfinite.e2m3x4.f32 %0, {%1, %2, %3, %4}, %5;" : "=r"(v[4]) : "f"(a), "f"(b), "f"(c), "f"(d), "r"(r));
  asm("cvt.rs.satfinite.e3m2x4.f32 %0, {%1, %2, %3, %4}, %5;" : "=r"(v[5]) : "f"(a), "f"(b), "f"(c), "f"(d), "r"(r));
  asm("cvt.rs.satfinite.e2m1x4.f32 %0, {%1, %2, %3, %4}, %5;" : "=h"(h) : "f"(a), "f"(b), "f"(c), "f"(d), "r"(r));
  y[threadIdx.x] = v[0] ^ v[1] ^ v[2] ^ v[3] ^ v[4] ^ v[5] ^ h;
}

//! kernel stack_and_remote stack-allocation
//! norun allocates on the stack and stores asynchronously to another device
KERNEL stack_and_remote(u64 *p, u32 n, u32 tmem) {
  u64 top, block;
  asm volatile("stacksave.u64 %0;\n\talloca.u64 %1, %2, 16;" : "=l"(top), "=l"(block) : "l"((u64)n));
  asm volatile("st.local.u64 [%0], %1;" ::"l"(block), "l"(top) : "memory");
  asm volatile("stackrestore.u64 %0;" ::"l"(top));
  asm volatile("st.async.release.sys.global.b32 [%0], %1;\n\tred.async.release.sys.global.add.u32 [%0], %1;" ::"l"(p), "r"(n) : "memory");
  u32 a, b;
  float c, d, e;
  asm volatile("tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32 {%0, %1}, %2, [%3];" : "=r"(a), "=r"(b), "=r"(n) : "r"(tmem));
  asm volatile("tcgen05.ld.red.sync.aligned.32x32b.x2.min.abs.NaN.f32 {%0, %1}, %2, [%3];" : "=f"(c), "=f"(d), "=f"(e) : "r"(tmem));
  asm volatile("tcgen05.wait::ld.sync.aligned;");
  p[threadIdx.x] = a + b + n + (u64)(c + d + e);
}
#endif
