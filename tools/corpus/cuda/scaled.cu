// Block-scaled and narrow products of one warp (GeForce Blackwell), packed arithmetic of small formats.
//! build nvcc 13.5.37 sm_120a
typedef unsigned u32;
#define KERNEL extern "C" __global__ void
#define NARROW(name, text, operands, tail)                                                                  \
  KERNEL name(const u32 *a, const u32 *bt, float *c) {                                                      \
    int g = threadIdx.x >> 2, t = threadIdx.x & 3;                                                          \
    u32 a0 = a[g * 8 + t], a1 = a[(g + 8) * 8 + t], a2 = a[g * 8 + t + 4], a3 = a[(g + 8) * 8 + t + 4];     \
    u32 b0 = bt[g * 8 + t], b1 = bt[g * 8 + t + 4], scale = operands;                                       \
    float d0 = 0, d1 = 0, d2 = 0, d3 = 0;                                                                   \
    asm volatile(text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}" tail ";"            \
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)                                                   \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(scale));                       \
    c[g * 8 + 2 * t] = d0, c[g * 8 + 2 * t + 1] = d1, c[(g + 8) * 8 + 2 * t] = d2, c[(g + 8) * 8 + 2 * t + 1] = d3; \
  }

//! kernel narrow_e4m3 narrow-gemm
//! launch 1 32
//! args a=e4m3[16,32]:normal bt=e4m3[8,32]:normal c=f32[16,8]:zeros
//! out c:1e-3:1e-2 -> linear.matmul_transposed
NARROW(narrow_e4m3, "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32", 0, "")
//! kernel scaled_mxf8 block-scaled-gemm
//! launch 1 32
//! args a=e4m3[16,32]:normal bt=e5m2[8,32]:normal c=f32[16,8]:zeros
//! out c:1e-3:1e-2 -> tensor.scaled_by_four
NARROW(scaled_mxf8, "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e5m2.f32.ue8m0", 0x80,
       ", %10, {0, 0}, %10, {0, 0}")
//! kernel scaled_mxf4 block-scaled-gemm
//! launch 1 32
//! args a=u32[16,8]:bits bt=u32[8,8]:bits c=f32[16,8]:zeros
//! out c:1e-5:1e-4 -> tensor.fp4_product
NARROW(scaled_mxf4, "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", 0x7f7f,
       ", %10, {0, 0}, %10, {0, 0}")
//! kernel scaled_nvf4 block-scaled-gemm
//! launch 1 32
//! args a=u32[16,8]:bits bt=u32[8,8]:bits c=f32[16,8]:zeros
//! out c:1e-5:1e-4 -> tensor.fp4_product
NARROW(scaled_nvf4, "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3", 0x38383838,
       ", %10, {0, 0}, %10, {0, 0}")

//! kernel narrow_loads matrix-load
//! norun expands six- and four-bit matrices while loading them
KERNEL narrow_loads(const uint4 *x, u32 *y) {
  __shared__ uint4 s[32];
  s[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  u32 at = (u32)__cvta_generic_to_shared(&s[threadIdx.x]), r[8];
  asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared::cta.b8x16.b4x16_p64 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%0}, [%1];" : "=r"(r[2]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%0, %1}, [%2];" : "=r"(r[3]), "=r"(r[4]) : "r"(at));
  asm volatile("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%0], {%1};" ::"r"(at), "r"(r[3]));
  y[threadIdx.x] = r[0] ^ r[1] ^ r[2] ^ r[3] ^ r[4];
}

//! kernel stochastic_rounding narrow-conversion
//! norun lists conversions
KERNEL stochastic_rounding(const float *x, u32 *y) {
  float a = x[0], b = x[1];
  unsigned short h[8];
  u32 w[8];
  asm("cvt.rn.satfinite.relu.e4m3x2.f32 %0, %1, %2;" : "=h"(h[0]) : "f"(a), "f"(b));
  asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(h[1]) : "r"(y[0]));
  asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;" : "=h"(h[2]) : "f"(a), "f"(b));
  asm("cvt.rn.satfinite.relu.e3m2x2.f32 %0, %1, %2;" : "=h"(h[3]) : "f"(a), "f"(b));
  asm("cvt.rz.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(h[4]) : "f"(a), "f"(b));
  asm("cvt.rp.satfinite.ue8m0x2.bf16x2 %0, %1;" : "=h"(h[5]) : "r"(y[1]));
  asm("{\n\t.reg .b8 t;\n\tcvt.rn.satfinite.e2m1x2.f32 t, %1, %2;\n\tmov.b16 %0, {t, t};\n\t}" : "=h"(h[6]) : "f"(a), "f"(b));
  asm("cvt.rn.satfinite.tf32.f32 %0, %1;" : "=r"(w[0]) : "f"(a));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(w[1]) : "h"(h[0]));
  asm("cvt.rn.relu.f16x2.e5m2x2 %0, %1;" : "=r"(w[2]) : "h"(h[1]));
  asm("cvt.rn.f16x2.e2m3x2 %0, %1;" : "=r"(w[3]) : "h"(h[2]));
  asm("cvt.rn.bf16x2.ue8m0x2 %0, %1;" : "=r"(w[4]) : "h"(h[4]));
  asm("{\n\t.reg .b8 t, u;\n\tmov.b16 {t, u}, %1;\n\tcvt.rn.f16x2.e2m1x2 %0, t;\n\t}" : "=r"(w[5]) : "h"(h[6]));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(w[6]) : "r"((int)a), "r"((int)b), "r"(0));
  asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(w[7]) : "r"((int)a), "r"((int)b));
  y[2] = w[0] + w[1] + w[2] + w[3] + w[4] + w[5] + w[6] + w[7] + h[3] + h[5];
}
