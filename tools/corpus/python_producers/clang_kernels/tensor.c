/* Tensor cores through the warp-wide matrix builtins. */
#include "nvptx.h"

KERNEL void wmma_half(const int *a, const int *b, float *out) {
  int left[8], right[8];
  float total[8] = {0};
  __hmma_m16n16k16_ld_a(left, a, 16, 0);
  __hmma_m16n16k16_ld_b(right, b, 16, 0);
  __hmma_m16n16k16_mma_f32f32(total, left, right, total, 0, 0);
  __hmma_m16n16k16_st_c_f32(out, total, 16, 0);
}

KERNEL void wmma_bytes(const int *a, const int *b, int *out) {
  int left[2], right[2], total[8] = {0};
  __imma_m16n16k16_ld_a_s8(left, a, 16, 0);
  __imma_m16n16k16_ld_b_s8(right, b, 16, 1);
  __imma_m16n16k16_mma_s8(total, left, right, total, 1, 1);
  __imma_m16n16k16_st_c_i32(out, total, 16, 0);
}

KERNEL void wmma_bits(const int *a, const int *b, int *out) {
  int left, right, total[2] = {0};
  __bmma_m8n8k128_ld_a_b1(&left, a, 128, 0);
  __bmma_m8n8k128_ld_b_b1(&right, b, 128, 1);
  __bmma_m8n8k128_mma_xor_popc_b1(total, &left, &right, total, 1);
  __bmma_m8n8k128_st_c_i32(out, total, 8, 0);
}
