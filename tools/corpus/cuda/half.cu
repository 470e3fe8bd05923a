// Halves, bfloat16, eight-, six- and four-bit floats.
//! build nvcc 13.3.73 sm_100f
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>
#define KERNEL extern "C" __global__ void

//! kernel half2_axpy half-axpy
//! launch 1 32
//! args a=f16[1]:fill(value=1.5) x=f16[64]:integers(low=-8,high=8) y=f16[64]:integers(low=-8,high=8)
//! out y -> formats.axpy
KERNEL half2_axpy(const __half *a, const __half2 *x, __half2 *y) {
  y[threadIdx.x] = __hfma2(__half2half2(*a), x[threadIdx.x], y[threadIdx.x]);
}

//! kernel bfloat16_axpy half-axpy
//! launch 1 32
//! args a=bf16[1]:fill(value=1.5) x=bf16[64]:integers(low=-8,high=8) y=bf16[64]:integers(low=-8,high=8)
//! out y -> formats.axpy
KERNEL bfloat16_axpy(const __nv_bfloat16 *a, const __nv_bfloat162 *x, __nv_bfloat162 *y) {
  y[threadIdx.x] = __hfma2(__bfloat162bfloat162(*a), x[threadIdx.x], y[threadIdx.x]);
}

//! kernel half_functions half-arithmetic
//! launch 1 32
//! args x=f16[32]:uniform(low=0.25,high=4.0) y=f16[8,32]:zeros
//! out y:3e-3:3e-3 -> formats.half_functions
KERNEL half_functions(const __half *x, __half *y) {
  int i = threadIdx.x;
  __half v = x[i];
  y[i] = hsqrt(v);
  y[32 + i] = hexp2(v);
  y[64 + i] = hlog2(v);
  y[96 + i] = hrcp(v);
  y[128 + i] = __hmax(__habs(__hneg(v)), __float2half(1.0f));
  y[160 + i] = __hmin(v, __float2half(1.0f));
  y[192 + i] = hfloor(v);
  y[224 + i] = htanh(v);
}

//! kernel half_compare half-comparison
//! launch 1 32
//! args a=f16[64]:normal b=f16[64]:normal y=u32[32,3]:zeros
//! out y -> formats.half_compare
KERNEL half_compare(const __half2 *a, const __half2 *b, unsigned *y) {
  __half2 p = a[threadIdx.x], q = b[threadIdx.x];
  y[3 * threadIdx.x] = __hlt2_mask(p, q);
  y[3 * threadIdx.x + 1] = __hbge2(p, q);
  __half2 top = __hmax2(p, q);
  y[3 * threadIdx.x + 2] = *(unsigned *)&top;
}

//! kernel half_conversions half-conversion
//! launch 1 32
//! args x=f32[32]:normal h=f16[32]:zeros b=bf16[32]:zeros i=i32[32]:zeros
//! out h b i -> formats.half_conversions
KERNEL half_conversions(const float *x, __half *h, __nv_bfloat16 *b, int *i) {
  float v = x[threadIdx.x] * 8.0f;
  h[threadIdx.x] = __float2half_rn(v);
  b[threadIdx.x] = __float2bfloat16_rn(v);
  i[threadIdx.x] = __half2int_rd(__float2half_rn(v)) * 4 + __half2int_rn(__float2half_rz(v));
}

//! kernel half_atomics half-atomics
//! launch 1 32
//! args x=f16[64]:integers(low=0,high=4) total=f16[2]:zeros b=bf16[1]:zeros
//! out total b -> formats.half_atomics
KERNEL half_atomics(const __half2 *x, __half2 *total, __nv_bfloat16 *b) {
  atomicAdd(total, x[threadIdx.x]);
  atomicAdd(b, __nv_bfloat16(1.0f));
}

//! kernel fp8_round_trip fp8-conversion
//! launch 1 32
//! args x=f32[64]:normal p=e4m3[64]:zeros q=e5m2[64]:zeros y=f16[64]:zeros
//! out p q y -> formats.fp8
KERNEL fp8_round_trip(const float2 *x, __nv_fp8x2_storage_t *p, __nv_fp8x2_storage_t *q, __half2_raw *y) {
  float2 v = x[threadIdx.x];
  __nv_fp8x2_storage_t e4 = __nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, __NV_E4M3);
  p[threadIdx.x] = e4;
  q[threadIdx.x] = __nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, __NV_E5M2);
  y[threadIdx.x] = __nv_cvt_fp8x2_to_halfraw2(e4, __NV_E4M3);
}

//! kernel fp6_round_trip fp6-conversion
//! launch 1 32
//! args x=f32[64]:normal y=f16[2,64]:zeros
//! out y -> formats.fp6
KERNEL fp6_round_trip(const float2 *x, __half2_raw *y) {
  float2 v = x[threadIdx.x];
  y[threadIdx.x] = __nv_cvt_fp6x2_to_halfraw2(__nv_cvt_float2_to_fp6x2(v, __NV_E2M3, cudaRoundNearest), __NV_E2M3);
  y[32 + threadIdx.x] = __nv_cvt_fp6x2_to_halfraw2(__nv_cvt_float2_to_fp6x2(v, __NV_E3M2, cudaRoundNearest), __NV_E3M2);
}

//! kernel fp4_round_trip fp4-conversion
//! launch 1 32
//! args x=f32[64]:normal packed=u8[32]:zeros y=f16[64]:zeros
//! out packed y -> formats.fp4
KERNEL fp4_round_trip(const float2 *x, __nv_fp4x2_storage_t *packed, __half2_raw *y) {
  __nv_fp4x2_storage_t v = __nv_cvt_float2_to_fp4x2(x[threadIdx.x], __NV_E2M1, cudaRoundNearest);
  packed[threadIdx.x] = v;
  y[threadIdx.x] = __nv_cvt_fp4x2_to_halfraw2(v, __NV_E2M1);
}

//! kernel scale_bytes scale-conversion
//! launch 1 32
//! args x=f32[64]:uniform(low=0.01,high=100.0) s=u8[64]:zeros y=bf16[64]:zeros
//! out s y -> formats.scale_bytes
KERNEL scale_bytes(const float2 *x, __nv_fp8x2_storage_t *s, __nv_bfloat162_raw *y) {
  __nv_fp8x2_storage_t v = __nv_cvt_float2_to_e8m0x2(x[threadIdx.x], __NV_SATFINITE, cudaRoundPosInf);
  s[threadIdx.x] = v;
  y[threadIdx.x] = __nv_cvt_e8m0x2_to_bf162raw(v);
}

//! kernel packed_conversions packed-conversion
//! launch 1 32
//! args x=f32[64]:normal h=u32[32]:zeros b=u32[32]:zeros t=f32[32]:zeros
//! out h b t -> formats.packed
KERNEL packed_conversions(const float2 *x, unsigned *h, unsigned *b, float *t) {
  float2 v = x[threadIdx.x];
  unsigned p, q, r;
  asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(v.y), "f"(v.x));
  asm("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(q) : "f"(v.y), "f"(v.x));
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v.x));
  h[threadIdx.x] = p, b[threadIdx.x] = q, t[threadIdx.x] = __uint_as_float(r);
}

//! kernel packed_single packed-single-precision
//! launch 1 32
//! args a=f32[64]:normal b=f32[64]:normal c=f32[64]:normal y=f32[3,64]:zeros
//! out y:1e-6:1e-6 -> formats.packed_single
KERNEL packed_single(const unsigned long long *a, const unsigned long long *b, const unsigned long long *c, unsigned long long *y) {
  int i = threadIdx.x;
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(y[i]) : "l"(a[i]), "l"(b[i]), "l"(c[i]));
  asm("add.rz.ftz.f32x2 %0, %1, %2;" : "=l"(y[32 + i]) : "l"(a[i]), "l"(b[i]));
  asm("mul.rn.f32x2 %0, %1, %2;" : "=l"(y[64 + i]) : "l"(a[i]), "l"(b[i]));
}
