/* Bytes, hashes and wide integers. */
#include "nvptx.h"

static CONSTANT const u8 hex_digits[16] = "0123456789abcdef";

KERNEL void hex_encode(const u8 *data, u8 *out, int n) {
  int i = global_id();
  if (i < n) {
    out[2 * i] = hex_digits[data[i] >> 4];
    out[2 * i + 1] = hex_digits[data[i] & 15];
  }
}

KERNEL void fnv_hash(const u8 *rows, u64 *out, int n) {
  int i = global_id();
  if (i >= n) return;
  u64 hash = 0xcbf29ce484222325ull;
  for (int k = 0; k < 20; k++) hash = (hash ^ rows[i * 20 + k]) * 0x100000001b3ull;
  out[i] = hash;
}

KERNEL void adler32(const u8 *rows, u32 *out, int n) {
  int i = global_id();
  if (i >= n) return;
  u32 low = 1, high = 0;
  for (int k = 0; k < 20; k++) {
    low = (low + rows[i * 20 + k]) % 65521;
    high = (high + low) % 65521;
  }
  out[i] = high << 16 | low;
}

static u32 turned(u32 x, int count) { return x << count | x >> (32 - count); }

KERNEL void murmur3(const u32 *rows, u32 *out, int n) {
  int i = global_id();
  if (i >= n) return;
  u32 hash = 42;
  for (int k = 0; k < 5; k++) {
    u32 word = turned(rows[i * 5 + k] * 0xcc9e2d51u, 15) * 0x1b873593u;
    hash = turned(hash ^ word, 13) * 5 + 0xe6546b64u;
  }
  hash ^= 20;
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  out[i] = hash ^ hash >> 16;
}

KERNEL void wide_multiply(const u64 *a, const u64 *b, u64 *out, int n) {
  int i = global_id();
  if (i >= n) return;
  u128 product = (u128)a[i] * b[i] + a[i];
  product -= (u128)b[i] << 17;
  out[2 * i] = product;
  out[2 * i + 1] = product >> 64;
}

KERNEL void run_lengths(const u8 *rows, u8 *out, int *counts, int n) {
  int i = global_id();
  if (i >= n) return;
  int written = 0;
  for (int k = 0; k < 16;) {
    int first = k;
    while (k < 16 && rows[i * 16 + k] == rows[i * 16 + first]) k++;
    out[i * 32 + written++] = k - first;
    out[i * 32 + written++] = rows[i * 16 + first];
  }
  counts[i] = written;
}

KERNEL void greatest_divisor(const u32 *a, const u32 *b, u32 *out, int n) {
  int i = global_id();
  if (i >= n) return;
  u32 x = a[i], y = b[i];
  while (y) {
    u32 rest = x % y;
    x = y;
    y = rest;
  }
  out[i] = x;
}

KERNEL void decode_utf8(const u8 *text, u32 *out, int n) {
  int i = global_id();
  if (i >= n || (text[i] & 0xc0) == 0x80) return;
  u8 lead = text[i];
  int extra = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  u32 point = extra ? lead & (63 >> extra) : lead;
  for (int k = 1; k <= extra && i + k < n; k++) point = point << 6 | (text[i + k] & 63);
  out[i] = point;
}
