// Integers: bits, wide products, number theory.
//! build nvcc 13.3.73 sm_75
typedef unsigned u32;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void

//! kernel bit_counts bit-counting
//! launch 1 32
//! args x=u32[32]:bits z=u64[32]:bits y=i32[7,32]:zeros
//! out y -> integers.bit_counts
KERNEL bit_counts(const u32 *x, const u64 *z, int *y) {
  int i = threadIdx.x;
  y[i] = __popc(x[i]);
  y[32 + i] = __clz(x[i]);
  y[64 + i] = __ffs(x[i]);
  y[96 + i] = __brev(x[i]);
  y[128 + i] = __popcll(z[i]);
  y[160 + i] = __clzll(z[i]);
  y[192 + i] = __ffsll(z[i]);
}

//! kernel byte_shuffles byte-permutation
//! launch 1 32
//! args x=u32[32]:bits y=u32[32]:bits out=u32[3,32]:zeros
//! out out -> integers.byte_shuffles
KERNEL byte_shuffles(const u32 *x, const u32 *y, u32 *out) {
  int i = threadIdx.x;
  out[i] = __byte_perm(x[i], y[i], 0x0123);
  out[32 + i] = __byte_perm(x[i], y[i], 0x5140);
  out[64 + i] = __byte_perm(x[i], y[i], y[i] & 0x7777);
}

//! kernel funnel_shifts funnel-shift
//! launch 1 32
//! args x=u32[32]:bits y=u32[32]:bits s=u32[32]:integers(low=0,high=32) out=u32[2,32]:zeros
//! out out -> integers.funnel_shifts
KERNEL funnel_shifts(const u32 *x, const u32 *y, const u32 *s, u32 *out) {
  int i = threadIdx.x;
  out[i] = __funnelshift_l(x[i], y[i], s[i]);
  out[32 + i] = __funnelshift_r(x[i], y[i], s[i]);
}

//! kernel gray_code gray-code
//! launch 1 64
//! args x=u32[64]:bits g=u32[64]:zeros b=u32[64]:zeros
//! out g b -> integers.gray_code
KERNEL gray_code(const u32 *x, u32 *g, u32 *b) {
  u32 v = x[threadIdx.x] ^ x[threadIdx.x] >> 1;
  g[threadIdx.x] = v;
  for (int s = 1; s < 32; s *= 2) v ^= v >> s;
  b[threadIdx.x] = v;
}

//! kernel morton_codes morton-code
//! launch 1 64
//! args x=u32[64]:integers(low=0,high=1024) y=u32[64]:integers(low=0,high=1024) z=u32[64]:integers(low=0,high=1024) code=u32[64]:zeros
//! out code -> integers.morton
__device__ u32 spread(u32 v) {
  v = (v | v << 16) & 0x030000ff;
  v = (v | v << 8) & 0x0300f00f;
  v = (v | v << 4) & 0x030c30c3;
  return (v | v << 2) & 0x09249249;
}
KERNEL morton_codes(const u32 *x, const u32 *y, const u32 *z, u32 *code) {
  int i = threadIdx.x;
  code[i] = spread(x[i]) | spread(y[i]) << 1 | spread(z[i]) << 2;
}

//! kernel wide_products wide-multiply
//! launch 1 32
//! args a=u64[32]:bits b=u64[32]:bits out=u64[32,2]:zeros
//! out out -> integers.wide_products
KERNEL wide_products(const u64 *a, const u64 *b, u64 *out) {
  unsigned __int128 p = (unsigned __int128)a[threadIdx.x] * b[threadIdx.x];
  out[2 * threadIdx.x] = (u64)p;
  out[2 * threadIdx.x + 1] = (u64)(p >> 64);
}

//! kernel division_variants division
//! launch 1 32
//! args a=i32[32]:bits b=i32[32]:integers(low=-50,high=-1) c=u64[32]:bits d=u64[32]:integers(low=1,high=1000000) out=i64[5,32]:zeros
//! out out -> integers.divisions
KERNEL division_variants(const int *a, const int *b, const u64 *c, const u64 *d, long long *out) {
  int i = threadIdx.x;
  out[i] = a[i] / b[i];
  out[32 + i] = a[i] % b[i];
  out[64 + i] = c[i] / d[i];
  out[96 + i] = c[i] % d[i];
  out[128 + i] = a[i] / 7 + (u32)a[i] % 10u;
}

//! kernel euclid greatest-common-divisor
//! launch 1 64
//! args a=u32[64]:integers(low=1,high=1000000) b=u32[64]:integers(low=1,high=1000000) g=u32[64]:zeros
//! out g -> integers.gcd
KERNEL euclid(const u32 *a, const u32 *b, u32 *g) {
  u32 x = a[threadIdx.x], y = b[threadIdx.x];
  while (y) {
    u32 r = x % y;
    x = y;
    y = r;
  }
  g[threadIdx.x] = x;
}

//! kernel binary_gcd greatest-common-divisor
//! launch 1 64
//! args a=u64[64]:integers(low=1,high=100000000000) b=u64[64]:integers(low=1,high=100000000000) g=u64[64]:zeros
//! out g -> integers.gcd
KERNEL binary_gcd(const u64 *a, const u64 *b, u64 *g) {
  u64 x = a[threadIdx.x], y = b[threadIdx.x];
  int shift = __ffsll(x | y) - 1;
  x >>= __ffsll(x) - 1;
  while (y) {
    y >>= __ffsll(y) - 1;
    if (x > y) {
      u64 t = x;
      x = y;
      y = t;
    }
    y -= x;
  }
  g[threadIdx.x] = x << shift;
}

//! kernel modular_power modular-exponentiation
//! launch 1 32
//! args base=u64[32]:integers(low=2,high=1000000006) e=u64[32]:integers(low=0,high=1000000) r=u64[32]:zeros
//! out r -> integers.modular_power
KERNEL modular_power(const u64 *base, const u64 *e, u64 *r) {
  u64 x = base[threadIdx.x], n = e[threadIdx.x], acc = 1;
  for (; n; n >>= 1) {
    if (n & 1) acc = acc * x % 1000000007ull;
    x = x * x % 1000000007ull;
  }
  r[threadIdx.x] = acc;
}

//! kernel montgomery_product montgomery-multiplication
//! launch 1 32
//! args a=u32[32]:integers(low=0,high=2147483646) b=u32[32]:integers(low=0,high=2147483646) r=u32[32]:zeros
//! out r -> integers.montgomery
KERNEL montgomery_product(const u32 *a, const u32 *b, u32 *r) {
  const u32 p = 2147483647u;
  u64 t = (u64)a[threadIdx.x] * b[threadIdx.x];
  u32 m = (u32)t * 2147483649u;
  u32 v = (u32)((t + (u64)m * p) >> 32);
  r[threadIdx.x] = v >= p ? v - p : v;
}

//! kernel integer_sqrt integer-square-root
//! launch 1 64
//! args x=u32[64]:bits r=u32[64]:zeros
//! out r -> integers.square_root
KERNEL integer_sqrt(const u32 *x, u32 *r) {
  u32 v = x[threadIdx.x], root = 0;
  for (u32 bit = 1u << 30; bit; bit >>= 2)
    if (v >= root + bit) {
      v -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  r[threadIdx.x] = root;
}

//! kernel collatz_steps collatz
//! launch 1 64
//! args steps=i32[64]:zeros
//! out steps -> integers.collatz
KERNEL collatz_steps(int *steps) {
  u64 n = threadIdx.x + 1;
  int k = 0;
  for (; n != 1; ++k) n = n & 1 ? 3 * n + 1 : n >> 1;
  steps[threadIdx.x] = k;
}

//! kernel sieve prime-sieve
//! launch 1 64
//! args composite=u8[512]:zeros
//! out composite -> integers.sieve
KERNEL sieve(unsigned char *composite) {
  for (int p = 2; p * p < 512; ++p) {
    __syncthreads();
    if (!composite[p])
      for (int k = p * p + p * threadIdx.x; k < 512; k += p * 64) composite[k] = 1;
  }
}

//! kernel big_addition big-integer-addition
//! launch 1 32
//! args a=u32[32]:bits b=u32[32]:bits c=u32[33]:zeros
//! out c -> integers.big_addition
KERNEL big_addition(const u32 *a, const u32 *b, u32 *c) {
  int t = threadIdx.x;
  u32 sum = a[t] + b[t];
  u32 generate = __ballot_sync(~0u, sum < a[t]), propagate = __ballot_sync(~0u, sum == ~0u);
  u64 carries = ((u64)generate << 1) + propagate;
  carries = (carries ^ propagate);
  c[t] = sum + (u32)(carries >> t & 1);
  if (t == 31) c[32] = (u32)(carries >> 32 & 1);
}

//! kernel fibonacci_matrix fibonacci
//! launch 1 90
//! args f=u64[90]:zeros
//! out f -> integers.fibonacci
KERNEL fibonacci_matrix(u64 *f) {
  u64 a = 0, b = 1;
  for (int bit = 6; bit >= 0; --bit) {
    u64 c = a * (2 * b - a), d = a * a + b * b;
    if (threadIdx.x >> bit & 1) a = d, b = c + d;
    else a = c, b = d;
  }
  f[threadIdx.x] = a;
}

//! kernel sums_of_differences absolute-differences
//! launch 1 32
//! args a=i32[32]:integers(low=-999,high=999) b=i32[32]:integers(low=-999,high=999) out=i32[4,32]:zeros
//! out out -> integers.differences
KERNEL sums_of_differences(const int *a, const int *b, int *out) {
  int i = threadIdx.x;
  out[i] = __sad(a[i], b[i], 5);
  out[32 + i] = __hadd(a[i], b[i]);
  out[64 + i] = __rhadd(a[i], b[i]);
  out[96 + i] = __mulhi(a[i] * 1000000, b[i]) + __mul24(a[i], b[i]);
}

//! kernel queens_backtrack n-queens
//! launch 1 6
//! args total=u32[1]:zeros
//! out total -> integers.six_queens
KERNEL queens_backtrack(u32 *total) {
  u32 column[6], left[6], right[6], n = 0;
  int row = 1;
  column[0] = 1u << threadIdx.x;
  u32 free_[6], used = column[0], l = used << 1, r = used >> 1;
  free_[1] = 63 & ~(used | l | r);
  left[1] = l, right[1] = r, column[1] = used;
  while (row > 0) {
    if (!free_[row]) {
      --row;
      continue;
    }
    u32 bit = free_[row] & -free_[row];
    free_[row] ^= bit;
    if (row == 5) {
      ++n;
      continue;
    }
    u32 c = column[row] | bit, a = (left[row] | bit) << 1, b = (right[row] | bit) >> 1;
    ++row;
    column[row] = c, left[row] = a, right[row] = b;
    free_[row] = 63 & ~(c | a | b);
  }
  atomicAdd(total, n);
}
