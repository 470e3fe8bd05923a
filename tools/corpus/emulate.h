// Enough of CUDA C++ to run the corpus kernels on a CPU: every thread of a block is a fiber, warps exchange through slots.
// Blocks run one after the other. No textures, no inline assembly, no clusters.
#include <ucontext.h>

#include <algorithm>
#include <cassert>
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>
using std::max;
using std::min;
typedef unsigned long long emu_u64;

struct emu_dim { unsigned x, y, z; };
struct emu_fiber {
  ucontext_t context;
  emu_dim index;
  unsigned linear;
  bool done;
  int block_barriers, warp_exchanges;
};
static emu_fiber *emu_current;
static std::vector<emu_fiber> emu_fibers;
static ucontext_t emu_main;
static emu_dim blockIdx, blockDim, gridDim;
static const int warpSize = 32;
alignas(256) static char emu_dynamic_shared[1 << 18];
#define threadIdx (emu_current->index)
static void emu_yield() { swapcontext(&emu_current->context, &emu_main); }

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

// Barriers count arrivals; threads that have returned do not hold one up.
static void __syncthreads() {
  int round = ++emu_current->block_barriers;
  auto late = [round](const emu_fiber &f) { return !f.done && f.block_barriers < round; };
  while (std::any_of(emu_fibers.begin(), emu_fibers.end(), late)) emu_yield();
}
static int emu_votes(int predicate) {
  static int votes[2][1024];
  int *now = votes[emu_current->block_barriers & 1], count = 0;
  now[emu_current->linear] = predicate != 0;
  __syncthreads();
  for (auto &f : emu_fibers) count += now[f.linear];
  return count;
}
static int __syncthreads_count(int p) { return emu_votes(p); }
static int __syncthreads_or(int p) { return emu_votes(p) > 0; }
static int __syncthreads_and(int p) { return emu_votes(p) == (int)emu_fibers.size(); }

// A warp exchange posts every lane's value in one of two rows of slots, used in turn, and waits for the named lanes.
template <class T> emu_u64 emu_bits(T v) {
  emu_u64 bits = 0;
  memcpy(&bits, &v, sizeof v);
  return bits;
}
template <class T> T emu_value(emu_u64 bits) {
  T v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
static unsigned emu_lane() { return emu_current->linear & 31; }
static emu_u64 *emu_exchange(unsigned mask, emu_u64 value) {
  static emu_u64 slots[2][1024];
  int round = ++emu_current->warp_exchanges;
  unsigned base = emu_current->linear & ~31u;
  emu_u64 *row = slots[round & 1] + base;
  row[emu_lane()] = value;
  for (bool waiting = true; waiting;) {
    waiting = false;
    for (unsigned l = 0; l < 32 && base + l < emu_fibers.size(); ++l)
      waiting |= (mask >> l & 1) && !emu_fibers[base + l].done && emu_fibers[base + l].warp_exchanges < round;
    if (waiting) emu_yield();
  }
  return row;
}
template <class T> T emu_take(unsigned mask, T v, int from) { return emu_value<T>(emu_exchange(mask, emu_bits(v))[from & 31]); }
template <class T> T __shfl_sync(unsigned m, T v, int from, int width = 32) {
  return emu_take(m, v, (emu_lane() & ~(width - 1)) | (from & (width - 1)));
}
template <class T> T __shfl_down_sync(unsigned m, T v, int by, int width = 32) {
  int lane = emu_lane(), from = lane + by;
  return emu_take(m, v, (from & ~(width - 1)) == (lane & ~(width - 1)) ? from : lane);
}
template <class T> T __shfl_up_sync(unsigned m, T v, int by, int width = 32) {
  int lane = emu_lane(), from = lane - by;
  return emu_take(m, v, from >= (lane & ~(width - 1)) ? from : lane);
}
template <class T> T __shfl_xor_sync(unsigned m, T v, int mask) { return emu_take(m, v, emu_lane() ^ mask); }
template <class T, class F> unsigned emu_lanes_where(unsigned m, T v, F accept) {
  emu_u64 *row = emu_exchange(m, emu_bits(v));
  unsigned found = 0, base = emu_current->linear & ~31u;
  for (unsigned l = 0; l < 32 && base + l < emu_fibers.size(); ++l) found |= (unsigned)((m >> l & 1) && accept(row[l])) << l;
  return found;
}
static unsigned __ballot_sync(unsigned m, int p) { return emu_lanes_where(m, p != 0, [](emu_u64 v) { return v != 0; }); }
static int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }
static int __all_sync(unsigned m, int p) { return __ballot_sync(m, p) == m; }
static unsigned __activemask() { return ~0u; }
static void __syncwarp(unsigned m = ~0u) { emu_exchange(m, 0); }
template <class T> unsigned __match_any_sync(unsigned m, T v) {
  return emu_lanes_where(m, v, [v](emu_u64 other) { return other == emu_bits(v); });
}
template <class T> unsigned __match_all_sync(unsigned m, T v, int *same) {
  *same = __match_any_sync(m, v) == m;
  return *same ? m : 0;
}
#define EMU_REDUCE(name, T, expression)                                        \
  static T name(unsigned m, T v) {                                             \
    emu_u64 *row = emu_exchange(m, emu_bits(v));                               \
    int first = __builtin_ctz(m);                                              \
    T a = emu_value<T>(row[first]);                                            \
    for (int l = first + 1; l < 32; ++l)                                       \
      if (m >> l & 1) {                                                        \
        T b = emu_value<T>(row[l]);                                            \
        a = expression;                                                        \
      }                                                                        \
    return a;                                                                  \
  }
EMU_REDUCE(__reduce_add_sync, unsigned, a + b)
EMU_REDUCE(__reduce_or_sync, unsigned, a | b)
EMU_REDUCE(__reduce_and_sync, unsigned, a &b)
EMU_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
EMU_REDUCE(__reduce_min_sync, int, min(a, b))
EMU_REDUCE(__reduce_max_sync, int, max(a, b))

#define EMU_ATOMIC(name, expression)                   \
  template <class T, class U> T name(T *p, U operand) { \
    T old = *p, v = (T)operand;                        \
    *p = expression;                                   \
    return old;                                        \
  }
EMU_ATOMIC(atomicAdd, old + v)
EMU_ATOMIC(atomicMin, min(old, v))
EMU_ATOMIC(atomicMax, max(old, v))
EMU_ATOMIC(atomicOr, old | v)
EMU_ATOMIC(atomicAnd, old &v)
EMU_ATOMIC(atomicXor, old ^ v)
EMU_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
template <class T, class U, class V> T atomicCAS(T *p, U expected, V v) {
  T old = *p;
  if (old == (T)expected) *p = (T)v;
  return old;
}
static void __threadfence() {}
static void __trap() { abort(); }

#define EMU_VECTOR(T, S, bytes2, bytes4)                                       \
  struct alignas(bytes2) T##2 { S x, y; };                                     \
  struct alignas(bytes4) T##4 { S x, y, z, w; };                               \
  static T##2 make_##T##2(S x, S y) { return {x, y}; }                         \
  static T##4 make_##T##4(S x, S y, S z, S w) { return {x, y, z, w}; }
EMU_VECTOR(float, float, 8, 16)
EMU_VECTOR(int, int, 8, 16)
EMU_VECTOR(uint, unsigned, 8, 16)
EMU_VECTOR(uchar, unsigned char, 2, 4)

#define __ldg(p) (*(p))
#define __sinf sinf
#define __cosf cosf
#define __expf(x) expf(x)
#define __log2f(x) log2f(x)
#define __fdividef(a, b) ((a) / (b))
#define __frsqrt_rn(x) rsqrtf(x)
static float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static float emu_rounded_sum(float a, float b, int mode) {
  fesetround(mode);
  volatile float x = a, y = b, sum = x + y;
  fesetround(FE_TONEAREST);
  return sum;
}
#define __fadd_rn(a, b) emu_rounded_sum(a, b, FE_TONEAREST)
#define __fsub_rn(a, b) emu_rounded_sum(a, -(b), FE_TONEAREST)
#define __fadd_rd(a, b) emu_rounded_sum(a, b, FE_DOWNWARD)
#define __fadd_ru(a, b) emu_rounded_sum(a, b, FE_UPWARD)
#define __fadd_rz(a, b) emu_rounded_sum(a, b, FE_TOWARDZERO)
static int __float2int_rn(float x) { return (int)rintf(x); }
static int __float2int_rz(float x) { return (int)x; }
static int __float2int_ru(float x) { return (int)ceilf(x); }
static int __float2int_rd(float x) { return (int)floorf(x); }
static int __float_as_int(float x) { return emu_value<int>(emu_bits(x)); }

#define __popc __builtin_popcount
#define __popcll __builtin_popcountll
#define __ffs __builtin_ffs
#define __ffsll __builtin_ffsll
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1) << (31 - i);
  return r;
}
static unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  emu_u64 pool = (emu_u64)b << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) r |= (unsigned)(pool >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return r;
}
static unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) { return (unsigned)(((emu_u64)hi << 32 | lo) << (s & 31) >> 32); }
static unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) { return (unsigned)(((emu_u64)hi << 32 | lo) >> (s & 31)); }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((emu_u64)a * b >> 32); }
static int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static unsigned __sad(int a, int b, unsigned c) { return c + (a > b ? a - b : b - a); }
static int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
static int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
static int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
static int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
  return c;
}

// The launch: `arguments` are pointers to the values, `dims` grid and block.
static void (*emu_body)(void *);
static void *emu_body_argument;
static void emu_entry() {
  emu_body(emu_body_argument);
  emu_current->done = true;
  emu_yield();
}
static void emu_run_block(std::vector<char> &stacks, size_t stack) {
  unsigned left = (unsigned)emu_fibers.size();
  for (unsigned i = 0; i < left; ++i) {
    emu_fiber &f = emu_fibers[i];
    f.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    f.linear = i;
    f.done = false;
    f.block_barriers = f.warp_exchanges = 0;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = &stacks[i * stack];
    f.context.uc_stack.ss_size = stack;
    makecontext(&f.context, emu_entry, 0);
  }
  for (long rounds = 0; left > 0; ++rounds) {
    if (rounds > 2000000) fprintf(stderr, "the kernel hangs\n"), exit(3);
    left = 0;
    for (auto &f : emu_fibers)
      if (!f.done) {
        emu_current = &f;
        swapcontext(&emu_main, &f.context);
        left += !f.done;
      }
  }
}
template <class... A, size_t... I> void emu_call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
  kernel(*(std::decay_t<A> *)arguments[I]...);
}
template <class... A> void emu_launch(void (*kernel)(A...), void **arguments, const int *dims) {
  struct Call { void (*kernel)(A...); void **arguments; } call{kernel, arguments};
  emu_body_argument = &call;
  emu_body = [](void *c) { emu_call(((Call *)c)->kernel, ((Call *)c)->arguments, std::index_sequence_for<A...>()); };
  gridDim = {(unsigned)dims[0], (unsigned)dims[1], (unsigned)dims[2]};
  blockDim = {(unsigned)dims[3], (unsigned)dims[4], (unsigned)dims[5]};
  const size_t stack = 65536, threads = (size_t)dims[3] * dims[4] * dims[5];
  emu_fibers.assign(threads, emu_fiber());
  std::vector<char> stacks(threads * stack);
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) emu_run_block(stacks, stack);
}
