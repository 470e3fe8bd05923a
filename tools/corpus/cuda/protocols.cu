// Who tells whom: locks, flags, rings of bulk copies, stores and reductions that signal barriers, copies between CTAs.
//! build nvcc 13.1.115 sm_90a -lineinfo
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
#define KERNEL extern "C" __global__ void
#define CLUSTER(x, y) __cluster_dims__(x, y, 1)

__device__ void wait(uint64_t *bar, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, bar, parity)) {}
}

__device__ void expect(uint64_t *bar, unsigned bytes) {
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, bytes);
}

//! kernel split_barrier barrier-exchange
//! launch 2 128
//! args x=f32[2,128]:normal y=f32[2,128]:zeros rounds=i32:5
//! out y:1e-5:1e-5 -> protocols.split_barrier
KERNEL split_barrier(const float *x, float *y, int rounds) {
  __shared__ float cells[2][128];
  __shared__ alignas(8) unsigned char room[sizeof(cuda::barrier<cuda::thread_scope_block>)];
  auto &bar = *reinterpret_cast<cuda::barrier<cuda::thread_scope_block> *>(room);
  int t = threadIdx.x;
  if (t == 0) init(&bar, 128);
  __syncthreads();
  float v = x[blockIdx.x * 128 + t];
  for (int r = 0; r < rounds; ++r) {
    cells[r & 1][t] = v;
    auto token = bar.arrive();
    float mine = v * 0.5f;
    bar.wait(std::move(token));
    v = mine + 0.25f * (cells[r & 1][(t + 1) & 127] + cells[r & 1][(t + 127) & 127]);
  }
  y[blockIdx.x * 128 + t] = v;
}

//! kernel aggregated stream-compaction
//! launch 4 128
//! args x=i32[500]:integers(low=0,high=1000) kept=i32[500]:zeros count=i32[1]:zeros n=i32:500
//! out count -> protocols.aggregated
KERNEL aggregated(const int *x, int *kept, int *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] % 3 == 1) {
    auto active = cg::coalesced_threads();
    int first;
    if (active.thread_rank() == 0) first = atomicAdd(count, active.size());
    kept[active.shfl(first, 0) + active.thread_rank()] = x[i];
  }
}

//! kernel chained_scan decoupled-lookback-scan
//! launch 6 128
//! args x=i32[768]:integers(low=-100,high=100) y=i32[768]:zeros status=u64[6]:zeros sums=i32[6]:zeros
//! out y -> protocols.running_sums
KERNEL chained_scan(const int *x, int *y, volatile unsigned long long *status, int *sums) {
  __shared__ int s[128];
  __shared__ int before;
  int t = threadIdx.x, b = blockIdx.x;
  s[t] = x[b * 128 + t];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    int other = t >= d ? s[t - d] : 0;
    __syncthreads();
    s[t] += other;
    __syncthreads();
  }
  if (t == 0) {
    int sum = 0;
    if (b) {
      while (status[b - 1] == 0) {}
      __threadfence();
      sum = sums[b - 1];
    }
    sums[b] = sum + s[127];
    __threadfence();
    status[b] = 1;
    before = sum;
  }
  __syncthreads();
  y[b * 128 + t] = s[t] + before;
}

//! kernel tma_scale tensor-map-scale
//! launch 3x3 64
//! args x=f32[40,96]:normal! in=map(x,dims=96x40,box=32x16) y=f32[40,96]:zeros! out=map(y,dims=96x40,box=32x16)
//! args f=f32:3
//! out y -> protocols.tma_scale
KERNEL tma_scale(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out, float f) {
  __shared__ alignas(128) float tile[16][32];
  __shared__ alignas(8) uint64_t full;
  int coords[2] = {(int)blockIdx.x * 32, (int)blockIdx.y * 16};
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    expect(&full, sizeof(tile));
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &tile, &in, coords, &full);
  }
  __syncthreads();
  wait(&full, 0);
  for (int i = threadIdx.x; i < 512; i += blockDim.x) tile[i / 32][i % 32] *= f;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, coords, &tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

//! kernel bulk_ring ring-of-bulk-copies
//! launch 2 160
//! args x=f32[2,7,256]:normal y=f32[256]:ones tiles=i32:7
//! out y:1e-5:1e-5 -> protocols.bulk_ring
KERNEL bulk_ring(const float *x, float *y, int tiles) {
  __shared__ alignas(128) float ring[3][256];
  __shared__ alignas(128) float sums[256];
  __shared__ alignas(8) uint64_t full[3], empty[3];
  int t = threadIdx.x;
  if (t == 0)
    for (int s = 0; s < 3; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], 128);
    }
  __syncthreads();
  if (t == 128) {
    for (int i = 0; i < tiles; ++i) {
      int s = i % 3;
      wait(&empty[s], (i / 3 & 1) ^ 1);
      expect(&full[s], sizeof(ring[s]));
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, ring[s], x + (blockIdx.x * tiles + i) * 256, 1024, &full[s]);
    }
  } else if (t < 128) {
    float a = 0, b = 0;
    for (int i = 0; i < tiles; ++i) {
      int s = i % 3;
      wait(&full[s], i / 3 & 1);
      a += ring[s][t];
      b += ring[s][t + 128];
      ptx::fence_proxy_async(ptx::space_shared);
      ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &empty[s]);
    }
    sums[t] = a;
    sums[t + 128] = b;
    ptx::fence_proxy_async(ptx::space_shared);
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (t == 0) {
      ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, y, sums, 1024);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
  }
}

//! kernel halo halo-exchange
//! launch 4 32 cluster=4
//! args x=i32[128]:integers(low=0,high=1000) y=i32[128]:zeros rounds=i32:5
//! out y -> protocols.halo
KERNEL CLUSTER(4, 1) halo(const int *x, int *y, int rounds) {
  auto cluster = cg::this_cluster();
  __shared__ alignas(16) int ends[8][2];
  __shared__ alignas(8) uint64_t bar[8];
  int t = threadIdx.x, rank = cluster.block_rank(), last = blockDim.x - 1;
  if (t < 8) ptx::mbarrier_init(&bar[t], 1);
  cluster.sync();
  int v = x[blockIdx.x * blockDim.x + t];
  for (int i = 0; i < rounds; ++i) {
    if (t == 0) expect(&bar[i], 8);
    if (t == 0 || t == last) {
      int peer = (rank + (t == 0 ? 3 : 1)) % 4;
      ptx::st_async(cluster.map_shared_rank(&ends[i][t == 0], peer), v, cluster.map_shared_rank(&bar[i], peer));
    }
    int left = __shfl_up_sync(-1, v, 1), right = __shfl_down_sync(-1, v, 1);
    wait(&bar[i], 0);
    if (t == 0) left = ends[i][0];
    if (t == last) right = ends[i][1];
    v = (left + 2 * v + right) & 0xffff;
  }
  y[blockIdx.x * blockDim.x + t] = v;
  cluster.sync();
}

//! kernel votes cluster-histogram
//! launch 2x2 32 cluster=2x2
//! args x=i32[4,32]:integers(low=0,high=50) y=u32[4,8]:zeros
//! out y -> protocols.votes
KERNEL CLUSTER(2, 2) votes(const int *x, unsigned *y) {
  auto cluster = cg::this_cluster();
  __shared__ unsigned bins[8];
  __shared__ alignas(8) uint64_t bar;
  int t = threadIdx.x;
  unsigned rank = cluster.block_rank();
  if (t < 8) bins[t] = 0;
  if (t == 0) {
    ptx::mbarrier_init(&bar, 1);
    expect(&bar, 4 * 32 * sizeof(unsigned));
  }
  cluster.sync();
  int v = x[rank * 32 + t];
  for (int c = 0; c < 4; ++c)
    ptx::red_async(ptx::op_inc, cluster.map_shared_rank(&bins[(v + c) & 7], c), ~0u, cluster.map_shared_rank(&bar, c));
  wait(&bar, 0);
  if (t < 8) y[rank * 8 + t] = bins[t];
  cluster.sync();
}

//! kernel swap_tiles shared-memory-exchange
//! launch 2 64 cluster=2
//! args x=i32[2,64]:integers(low=0,high=1000) y=i32[2,64]:zeros
//! out y -> protocols.swap_tiles
KERNEL CLUSTER(2, 1) swap_tiles(const int *x, int *y) {
  auto cluster = cg::this_cluster();
  __shared__ alignas(16) int mine[64], theirs[64];
  __shared__ alignas(8) uint64_t bar;
  int t = threadIdx.x;
  unsigned rank = cluster.block_rank(), peer = rank ^ 1;
  if (t == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    expect(&bar, sizeof(theirs));
  }
  mine[t] = x[rank * 64 + t];
  ptx::fence_proxy_async(ptx::space_shared);
  cluster.sync();
  if (t == 0) {
    int *there = cluster.map_shared_rank(theirs, peer);
    uint64_t *signal = cluster.map_shared_rank(&bar, peer);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, there, mine, sizeof(mine), signal);
  }
  wait(&bar, 0);
  y[rank * 64 + t] = theirs[63 - t];
  cluster.sync();
}

//! kernel shared_tiles multicast-sum
//! launch 2 64 cluster=2
//! args x=f32[80,32]:normal! in=map(x,dims=32x80,box=32x8) y=f32[2,8,32]:zeros tiles=i32:5
//! out y:1e-4:1e-4 -> protocols.shared_tiles
KERNEL CLUSTER(2, 1) shared_tiles(const __grid_constant__ CUtensorMap in, float *y, int tiles) {
  auto cluster = cg::this_cluster();
  __shared__ alignas(128) float ring[2][2][8][32];
  __shared__ alignas(8) uint64_t full[2], empty[2];
  int t = threadIdx.x, rank = cluster.block_rank();
  if (t < 2) {
    ptx::mbarrier_init(&full[t], 1);
    ptx::mbarrier_init(&empty[t], 2);
  }
  cluster.sync();
  if (t == 0) {
    for (int i = 0; i < tiles; ++i) {
      int s = i & 1, coords[2] = {0, i * 16 + rank * 8};
      wait(&empty[s], (i / 2 & 1) ^ 1);
      expect(&full[s], sizeof(ring[s]));
      ptx::cp_async_bulk_tensor(
          ptx::space_cluster, ptx::space_global, &ring[s][rank], &in, coords, &full[s], (uint16_t)3);
    }
  } else if (t >= 32) {
    float sums[8] = {};
    for (int i = 0; i < tiles; ++i) {
      int s = i & 1;
      wait(&full[s], i / 2 & 1);
      for (int k = 0; k < 8; ++k) sums[k] += ring[s][rank ^ 1][k][t - 32] - 0.5f * ring[s][rank][k][t - 32];
      ptx::fence_proxy_async(ptx::space_shared);
      __syncwarp();
      if (t < 34)
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, cluster.map_shared_rank(&empty[s], t - 32));
    }
    for (int k = 0; k < 8; ++k) y[(rank * 8 + k) * 32 + t - 32] = sums[k];
  }
  cluster.sync();
}

//! kernel ticket_lock ticket-lock
//! launch 3 64
//! args lock=u32[2]:zeros data=i32[2]:zeros rounds=i32:3
//! out data lock -> protocols.ticket_lock
KERNEL ticket_lock(unsigned *lock, int *data, int rounds) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> next(lock[0]), serving(lock[1]);
  if (threadIdx.x % 32) return;
  for (int r = 0; r < rounds; ++r) {
    unsigned mine = next.fetch_add(1, cuda::memory_order_relaxed);
    while (serving.load(cuda::memory_order_acquire) != mine) {}
    data[0] += 1;
    data[1] = data[0] * data[0];
    serving.store(mine + 1, cuda::memory_order_release);
  }
}

//! kernel sequence_lock sequence-lock
//! launch 4 32
//! args sequence=u32[1]:zeros data=i32[2]:zeros y=i32[4]:zeros
//! out y data -> protocols.sequence_lock
KERNEL sequence_lock(unsigned *sequence, int *data, int *y) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> s(*sequence);
  cuda::atomic_ref<int, cuda::thread_scope_device> first(data[0]), second(data[1]);
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    for (int i = 1; i <= 5; ++i) {
      s.store(2 * i - 1, cuda::memory_order_relaxed);
      cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
      first.store(i, cuda::memory_order_relaxed);
      second.store(i * i, cuda::memory_order_relaxed);
      s.store(2 * i, cuda::memory_order_release);
    }
  } else {
    int a, b;
    unsigned before, after;
    do {
      before = s.load(cuda::memory_order_acquire);
      a = first.load(cuda::memory_order_relaxed);
      b = second.load(cuda::memory_order_relaxed);
      cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
      after = s.load(cuda::memory_order_relaxed);
    } while (before != after || before & 1);
    y[blockIdx.x] = 1 + b - a * a;
  }
}
