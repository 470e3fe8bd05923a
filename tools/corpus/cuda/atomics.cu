// Atomics of every width and scope, fences, flags between blocks.
//! build nvcc 13.5.37 sm_90
#include <cuda/atomic>
#include <cuda/barrier>
#define KERNEL extern "C" __global__ void

//! kernel atomic_integers atomic-integers
//! launch 2 32
//! args x=i32[64]:integers(low=-40,high=40) y=i32[8]:values(values=[0,100,-100,0,-1,0,0,5])
//! out y -> memory.atomic_integers
KERNEL atomic_integers(const int *x, int *y) {
  int v = x[blockIdx.x * 32 + threadIdx.x];
  atomicAdd(&y[0], v);
  atomicMin(&y[1], v);
  atomicMax(&y[2], v);
  atomicOr(&y[3], v & 0xff);
  atomicAnd(&y[4], v | 0xf0);
  atomicXor(&y[5], v);
  atomicInc((unsigned *)&y[6], 9);
  atomicDec((unsigned *)&y[7], 6);
}

//! kernel atomic_wide atomic-wide
//! launch 1 32
//! args x=u64[32]:integers(low=0,high=1000000000000) y=u64[5]:values(values=[0,18446744073709551615,0,0,0]) d=f64[1]:zeros
//! out y d:1e-12:0 -> memory.atomic_wide
KERNEL atomic_wide(const unsigned long long *x, unsigned long long *y, double *d) {
  unsigned long long v = x[threadIdx.x];
  atomicAdd(&y[0], v);
  atomicMin(&y[1], v);
  atomicMax(&y[2], v);
  atomicXor(&y[3], v);
  atomicOr(&y[4], v);
  atomicAdd(d, (double)v);
}

//! kernel compare_and_swap_loop compare-and-swap
//! launch 2 32
//! args x=f32[64]:normal y=f32[1]:fill(value=-100.0)
//! out y -> memory.float_maximum
KERNEL compare_and_swap_loop(const float *x, float *y) {
  int *address = (int *)y, old = *address;
  float v = x[blockIdx.x * 32 + threadIdx.x];
  while (__int_as_float(old) < v) {
    int seen = atomicCAS(address, old, __float_as_int(v));
    if (seen == old) break;
    old = seen;
  }
}

//! kernel scoped_orders memory-order
//! launch 2 32
//! args y=i32[6]:zeros
//! out y -> memory.scoped_counts
KERNEL scoped_orders(int *y) {
  cuda::atomic_ref<int, cuda::thread_scope_device> a(y[0]);
  cuda::atomic_ref<int, cuda::thread_scope_system> b(y[1]);
  cuda::atomic_ref<int, cuda::thread_scope_block> c(y[2 + blockIdx.x]);
  a.fetch_add(1, cuda::memory_order_relaxed);
  b.fetch_add(2, cuda::memory_order_acq_rel);
  c.fetch_max((int)threadIdx.x, cuda::memory_order_release);
  cuda::atomic_ref<int, cuda::thread_scope_device> d(y[4]);
  d.fetch_or(1 << threadIdx.x, cuda::memory_order_seq_cst);
  int want = 0;
  cuda::atomic_ref<int, cuda::thread_scope_device> e(y[5]);
  while (!e.compare_exchange_weak(want, want + 3, cuda::memory_order_acquire)) {}
}

//! kernel message_passing message-passing
//! launch 2 32
//! args x=i32[32]:integers(low=0,high=100) box=i32[32]:zeros flag=i32[1]:zeros y=i32[32]:zeros
//! out y -> memory.doubled
KERNEL message_passing(const int *x, int *box, int *flag, int *y) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    box[threadIdx.x] = 2 * x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0)
      while (ready.load(cuda::memory_order_acquire) == 0) {}
    __syncthreads();
    y[threadIdx.x] = box[threadIdx.x];
  }
}

//! kernel fences_and_hints cache-hints
//! launch 1 32
//! args x=f32[32]:normal y=f32[6,32]:zeros
//! out y -> memory.six_copies
KERNEL fences_and_hints(const float *x, float *y) {
  int i = threadIdx.x;
  y[i] = __ldg(x + i);
  __stcs(y + 32 + i, __ldcs(x + i));
  __stcg(y + 64 + i, __ldcg(x + i));
  __stwt(y + 96 + i, __ldcv(x + i));
  __threadfence_block();
  __stwb(y + 128 + i, __ldlu(x + i));
  __threadfence();
  ((volatile float *)y)[160 + i] = ((const volatile float *)x)[i];
  __threadfence_system();
}

//! kernel ticket_lock mutual-exclusion
//! launch 4 1
//! args ticket=u32[2]:zeros total=i32[1]:zeros
//! out total -> memory.ticket_total
KERNEL ticket_lock(unsigned *ticket, int *total) {
  unsigned mine = atomicAdd(&ticket[0], 1u);
  while (atomicAdd(&ticket[1], 0u) != mine) __nanosleep(20);
  __threadfence();
  *total = *total * 2 + 1;
  __threadfence();
  atomicAdd(&ticket[1], 1u);
}

//! kernel split_arrive split-barrier
//! launch 1 64
//! args x=i32[64]:integers(low=0,high=100) y=i32[64]:zeros
//! out y -> memory.rotated_sum
KERNEL split_arrive(const int *x, int *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> gate;
  __shared__ int s[64];
  if (threadIdx.x == 0) init(&gate, 64);
  __syncthreads();
  s[threadIdx.x] = x[threadIdx.x];
  auto token = gate.arrive();
  int mine = x[threadIdx.x] * 10;
  gate.wait(static_cast<decltype(token) &&>(token));
  y[threadIdx.x] = mine + s[(threadIdx.x + 1) & 63];
}

//! kernel float_vectors vector-reduction
//! launch 1 32
//! args x=f32[32,4]:integers(low=0,high=9) y=f32[4]:zeros
//! out y -> memory.column_totals
KERNEL float_vectors(const float4 *x, float4 *y) { atomicAdd(y, x[threadIdx.x]); }
