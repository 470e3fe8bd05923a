/* Small floating-point types, fixed point, and plain numerics. */
#include "nvptx.h"

typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef __bf16 bfloat2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));

KERNEL void half_pairs(const half2 *a, const half2 *b, half2 *out, int n) {
  int i = global_id();
  if (i < n) out[i] = a[i] * b[i] + a[i];
}

KERNEL void bfloat_pairs(const bfloat2 *a, const bfloat2 *b, bfloat2 *out, int n) {
  int i = global_id();
  if (i < n) out[i] = a[i] + b[i];
}

KERNEL void normalise_vectors(const float4 *x, float4 *out, int n) {
  int i = global_id();
  if (i >= n) return;
  float4 v = x[i];
  float length = __nvvm_sqrt_approx_f(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w);
  out[i] = v / length;
}

/* 16.16 fixed point: the integer square root of x, then a multiplication with rounding. */
KERNEL void fixed_point(const u32 *x, u32 *out, int n) {
  int i = global_id();
  if (i >= n) return;
  u32 root = 0;
  for (u32 bit = 1u << 15; bit; bit >>= 1) {
    u32 trial = root | bit;
    if ((u64)trial * trial <= x[i]) root = trial;
  }
  out[i] = ((u64)root * 92682 + 32768) >> 16;
}

KERNEL void newton_roots(const double *a, double *out, int n) {
  int i = global_id();
  if (i >= n) return;
  double x = a[i] > 1 ? a[i] : 1;
  for (int step = 0; step < 40; step++) {
    double next = x - (x * x * x - a[i]) / (3 * x * x);
    if (next == x) break;
    x = next;
  }
  out[i] = x;
}

KERNEL void rounding_modes(const float *x, float *out, int n) {
  int i = global_id();
  if (i >= n) return;
  out[4 * i] = __nvvm_add_rz_f(x[i], 0.1f) + __nvvm_mul_rm_f(x[i], 3.3f);
  out[4 * i + 1] = __nvvm_div_rn_f(x[i], 7.0f) + __nvvm_fma_rp_f(x[i], x[i], 1.0f);
  out[4 * i + 2] = __nvvm_floor_f(x[i]) + __nvvm_ceil_f(x[i]) + __nvvm_trunc_f(x[i]);
  out[4 * i + 3] = __nvvm_f2i_rn(x[i]) + __nvvm_f2i_rz(x[i]) + __nvvm_fabs_f(x[i]);
}

KERNEL void simpson(const double *limits, double *out, int n) {
  int i = global_id();
  if (i >= n) return;
  double step = limits[i] / 16, total = 0;
  for (int k = 0; k <= 16; k++) {
    double x = k * step, weight = k == 0 || k == 16 ? 1 : k % 2 ? 4 : 2;
    total += weight * (x * x * x - 2 * x) / (1 + x * x);
  }
  out[i] = total * step / 3;
}
