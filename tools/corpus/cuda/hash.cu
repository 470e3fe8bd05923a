// Hashes, checksums, codes, ciphers.
//! build nvcc 13.0.88 sm_89 -O1
typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void

//! kernel murmur3 murmur-hash
//! launch 1 64
//! args seed=u32:42 x=u32[64,4]:bits h=u32[64]:zeros
//! out h -> hashing.murmur3
__device__ __forceinline__ u32 rotl(u32 x, int r) { return __funnelshift_l(x, x, r); }
KERNEL murmur3(u32 seed, const uint4 *x, u32 *h) {
  uint4 v = x[threadIdx.x];
  u32 words[4] = {v.x, v.y, v.z, v.w}, a = seed;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    u32 k = rotl(words[i] * 0xcc9e2d51u, 15) * 0x1b873593u;
    a = rotl(a ^ k, 13) * 5 + 0xe6546b64u;
  }
  a ^= 16;
  a = (a ^ a >> 16) * 0x85ebca6bu;
  a = (a ^ a >> 13) * 0xc2b2ae35u;
  h[threadIdx.x] = a ^ a >> 16;
}

//! kernel fnv1a_64 fnv-hash
//! launch 1 32
//! args x=u8[32,20]:bits h=u64[32]:zeros
//! out h -> hashing.fnv1a
KERNEL fnv1a_64(const u8 *x, u64 *h) {
  u64 a = 0xcbf29ce484222325ull;
  for (int i = 0; i < 20; ++i) a = (a ^ x[threadIdx.x * 20 + i]) * 0x100000001b3ull;
  h[threadIdx.x] = a;
}

__constant__ u32 crc_nibbles[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                    0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                    0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

//! kernel crc32_table crc32
//! launch 1 16
//! args x=u8[16,33]:bits c=u32[16]:zeros
//! out c -> hashing.crc32
KERNEL crc32_table(const u8 *x, u32 *c) {
  u32 a = ~0u;
  for (int i = 0; i < 33; ++i) {
    a ^= x[threadIdx.x * 33 + i];
    a = a >> 4 ^ crc_nibbles[a & 15];
    a = a >> 4 ^ crc_nibbles[a & 15];
  }
  c[threadIdx.x] = ~a;
}

//! kernel crc32_bitwise crc32
//! launch 1 16
//! args x=u8[16,9]:bits c=u32[16]:zeros
//! out c -> hashing.crc32
KERNEL crc32_bitwise(const u8 *x, u32 *c) {
  u32 a = 0xffffffffu;
  for (int i = 0; i < 9; ++i) {
    a ^= x[threadIdx.x * 9 + i];
    for (int b = 0; b < 8; ++b) a = a & 1 ? a >> 1 ^ 0xedb88320u : a >> 1;
  }
  c[threadIdx.x] = ~a;
}

__constant__ u32 sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

//! kernel sha256_block sha256
//! launch 1 8
//! args x=u8[8,55]:bits h=u8[8,32]:zeros
//! out h -> hashing.sha256
__device__ __forceinline__ u32 rotr(u32 x, int r) { return __funnelshift_r(x, x, r); }
KERNEL sha256_block(const u8 *x, u8 *h) {
  u32 w[64], s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (int i = 0; i < 16; ++i) w[i] = 0;
  for (int i = 0; i < 55; ++i) w[i >> 2] |= (u32)x[threadIdx.x * 55 + i] << (24 - 8 * (i & 3));
  w[13] |= 0x80;
  w[15] = 55 * 8;
  for (int i = 16; i < 64; ++i) {
    u32 a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
  }
  u32 v[8];
  for (int i = 0; i < 8; ++i) v[i] = s[i];
  for (int i = 0; i < 64; ++i) {
    u32 t = v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + sha_k[i] + w[i];
    u32 m = (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
#pragma unroll
    for (int j = 7; j > 0; --j) v[j] = v[j - 1];
    v[4] += t;
    v[0] = t + m;
  }
  for (int i = 0; i < 32; ++i) h[threadIdx.x * 32 + i] = (s[i >> 2] + v[i >> 2]) >> (24 - 8 * (i & 3));
}

//! kernel adler32 adler32
//! launch 1 16
//! args x=u8[16,50]:bits c=u32[16]:zeros
//! out c -> hashing.adler32
KERNEL adler32(const u8 *x, u32 *c) {
  u32 a = 1, b = 0;
  for (int i = 0; i < 50; ++i) {
    a = (a + x[threadIdx.x * 50 + i]) % 65521;
    b = (b + a) % 65521;
  }
  c[threadIdx.x] = b << 16 | a;
}

//! kernel siphash siphash
//! launch 1 32
//! args k0=u64:506097522914230528 k1=u64:1084818905618843912 x=u64[32]:bits h=u64[32]:zeros
//! out h -> hashing.siphash
#define ROT(v, r) ((v) << (r) | (v) >> (64 - (r)))
#define ROUND                                                                                           \
  a += b, b = ROT(b, 13) ^ a, a = ROT(a, 32), c += d, d = ROT(d, 16) ^ c, a += d, d = ROT(d, 21) ^ a, \
      c += b, b = ROT(b, 17) ^ c, c = ROT(c, 32)
KERNEL siphash(u64 k0, u64 k1, const u64 *x, u64 *h) {
  u64 m = x[threadIdx.x];
  u64 a = k0 ^ 0x736f6d6570736575ull, b = k1 ^ 0x646f72616e646f6dull;
  u64 c = k0 ^ 0x6c7967656e657261ull, d = k1 ^ 0x7465646279746573ull;
  d ^= m;
  ROUND, ROUND;
  a ^= m;
  d ^= 8ull << 56;
  ROUND, ROUND;
  a ^= 8ull << 56;
  c ^= 0xff;
  ROUND, ROUND, ROUND, ROUND;
  h[threadIdx.x] = a ^ b ^ c ^ d;
}

//! kernel base64_encode base64
//! launch 1 16
//! args x=u8[48]:bits y=u8[64]:zeros
//! out y -> hashing.base64
KERNEL base64_encode(const u8 *x, u8 *y) {
  int t = threadIdx.x;
  u32 v = x[3 * t] << 16 | x[3 * t + 1] << 8 | x[3 * t + 2];
  for (int i = 0; i < 4; ++i) {
    u32 c = v >> (18 - 6 * i) & 63;
    y[4 * t + i] = c < 26 ? 'A' + c : c < 52 ? 'a' + c - 26 : c < 62 ? '0' + c - 52 : c == 62 ? '+' : '/';
  }
}

//! kernel chacha_quarter chacha20
//! launch 1 4
//! args x=u32[4,16]:bits y=u32[4,16]:zeros
//! out y -> hashing.chacha_block
#define QUARTER(a, b, c, d)                                                            \
  s[a] += s[b], s[d] = rotl(s[d] ^ s[a], 16), s[c] += s[d], s[b] = rotl(s[b] ^ s[c], 12), \
  s[a] += s[b], s[d] = rotl(s[d] ^ s[a], 8), s[c] += s[d], s[b] = rotl(s[b] ^ s[c], 7)
KERNEL chacha_quarter(const u32 *x, u32 *y) {
  u32 s[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) s[i] = x[threadIdx.x * 16 + i];
  for (int round = 0; round < 10; ++round) {
    QUARTER(0, 4, 8, 12), QUARTER(1, 5, 9, 13), QUARTER(2, 6, 10, 14), QUARTER(3, 7, 11, 15);
    QUARTER(0, 5, 10, 15), QUARTER(1, 6, 11, 12), QUARTER(2, 7, 8, 13), QUARTER(3, 4, 9, 14);
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) y[threadIdx.x * 16 + i] = s[i] + x[threadIdx.x * 16 + i];
}

//! kernel xtea_encrypt xtea
//! launch 1 32
//! args x=u32[32,2]:bits key=u32[4]:bits y=u32[32,2]:zeros
//! out y -> hashing.xtea
KERNEL xtea_encrypt(const uint2 *x, const u32 *key, uint2 *y) {
  uint2 v = x[threadIdx.x];
  u32 sum = 0;
  for (int i = 0; i < 32; ++i) {
    v.x += ((v.y << 4 ^ v.y >> 5) + v.y) ^ (sum + key[sum & 3]);
    sum += 0x9e3779b9u;
    v.y += ((v.x << 4 ^ v.x >> 5) + v.x) ^ (sum + key[sum >> 11 & 3]);
  }
  y[threadIdx.x] = v;
}

//! kernel hash_table_insert hash-table
//! launch 2 64
//! args key=i32[128]:permutation slot=i32[256]:fill(value=-1) found=i32[128]:zeros
//! out found -> hashing.all_found
KERNEL hash_table_insert(const int *key, int *slot, int *found) {
  int i = blockIdx.x * 64 + threadIdx.x, k = key[i];
  u32 at = k * 2654435761u >> 24;
  for (;;) {
    int old = atomicCAS(&slot[at], -1, k);
    if (old == -1 || old == k) break;
    at = (at + 1) & 255;
  }
  found[i] = slot[at] == k;
}

//! kernel bloom_filter bloom-filter
//! launch 1 64
//! args x=u32[64]:bits filter=u32[16]:zeros
//! out filter -> hashing.bloom
KERNEL bloom_filter(const u32 *x, u32 *filter) {
  u32 v = x[threadIdx.x];
  for (u32 k = 1; k <= 3; ++k) {
    u32 h = v * (2 * k + 0x9e3779b1u) >> 23;
    atomicOr(&filter[h >> 5], 1u << (h & 31));
  }
}

//! kernel reed_solomon_parity galois-field
//! launch 1 32
//! args x=u8[32,10]:bits p=u8[32]:zeros
//! out p -> hashing.galois_parity
KERNEL reed_solomon_parity(const u8 *x, u8 *p) {
  u32 parity = 0;
  for (int i = 0; i < 10; ++i) {
    u32 doubled = parity << 1;
    parity = (doubled & 0x100 ? doubled ^ 0x11d : doubled) ^ x[threadIdx.x * 10 + i];
  }
  p[threadIdx.x] = parity;
}
