// Cooperative groups: tiles, reductions, grids, clusters, asynchronous copies.
//! build nvcc 13.1.115 sm_90a
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void

//! kernel tile_reduce tiled-reduction
//! launch 1 64
//! args x=i32[64]:integers(low=0,high=100) y=i32[64]:zeros
//! out y -> cooperation.tile_sums
KERNEL tile_reduce(const int *x, int *y) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  y[threadIdx.x] = cg::reduce(tile, x[threadIdx.x], cg::plus<int>()) + tile.meta_group_rank();
}

//! kernel tile_scan tiled-scan
//! launch 1 32
//! args x=i32[32]:integers(low=0,high=100) y=i32[32]:zeros
//! out y -> cooperation.tile_scan
KERNEL tile_scan(const int *x, int *y) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  y[threadIdx.x] = cg::exclusive_scan(tile, x[threadIdx.x]);
}

//! kernel coalesced_count coalesced-group
//! launch 1 64
//! args x=i32[64]:integers(low=0,high=10) y=i32[64]:zeros total=i32[1]:zeros
//! out total -> cooperation.odd_count
KERNEL coalesced_count(const int *x, int *y, int *total) {
  if (x[threadIdx.x] & 1) {
    auto active = cg::coalesced_threads();
    int base = 0;
    if (active.thread_rank() == 0) base = atomicAdd(total, active.size());
    y[threadIdx.x] = active.shfl(base, 0) + active.thread_rank();
  }
}

//! kernel grid_rounds grid-synchronisation
//! launch 4 32 cooperative
//! args x=f32[128]:integers(low=0,high=9) y=f32[128]:zeros
//! out x -> cooperation.neighbour_sums
KERNEL grid_rounds(float *x, float *y) {
  auto grid = cg::this_grid();
  int i = grid.thread_rank();
  for (int round = 0; round < 3; ++round) {
    y[i] = x[(i + 1) & 127] + x[(i + 127) & 127];
    grid.sync();
    x[i] = y[i];
    grid.sync();
  }
}

//! kernel cluster_histogram distributed-histogram
//! launch 4 64 cluster=4
//! args x=u8[256]:integers(low=0,high=64) bins=i32[64]:zeros
//! out bins -> text.histogram
KERNEL __cluster_dims__(4, 1, 1) cluster_histogram(const unsigned char *x, int *bins) {
  __shared__ int mine[16];
  auto cluster = cg::this_cluster();
  if (threadIdx.x < 16) mine[threadIdx.x] = 0;
  cluster.sync();
  int bin = x[blockIdx.x * 64 + threadIdx.x];
  atomicAdd(cluster.map_shared_rank(mine, bin / 16) + bin % 16, 1);
  cluster.sync();
  if (threadIdx.x < 16) bins[cluster.block_rank() * 16 + threadIdx.x] = mine[threadIdx.x];
}

//! kernel cluster_exchange distributed-shared-memory
//! launch 2 32 cluster=2
//! args x=f32[64]:normal y=f32[64]:zeros
//! out y -> cooperation.swapped_halves
KERNEL __cluster_dims__(2, 1, 1) cluster_exchange(const float *x, float *y) {
  __shared__ float s[32];
  auto cluster = cg::this_cluster();
  s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
  cluster.sync();
  float *other = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
  y[blockIdx.x * 32 + threadIdx.x] = other[threadIdx.x];
  cluster.sync();
}

//! kernel copy_async_group asynchronous-copy
//! launch 2 32
//! args x=f32[2,128]:normal y=f32[2,128]:zeros
//! out y -> cooperation.reversed_rows
KERNEL copy_async_group(const float *x, float *y) {
  __shared__ alignas(16) float s[128];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, x + blockIdx.x * 128, cuda::aligned_size_t<16>(512));
  cg::wait(block);
  for (int i = threadIdx.x; i < 128; i += 32) y[blockIdx.x * 128 + i] = s[127 - i];
}

//! kernel pipeline_stages pipelined-copy
//! launch 1 32
//! args x=f32[4,32]:normal y=f32[32]:zeros
//! out y:1e-5:1e-5 -> cooperation.column_sums
KERNEL pipeline_stages(const float *x, float *y) {
  __shared__ float s[2][32];
  auto pipe = cuda::make_pipeline();
  float sum = 0;
  for (int k = 0; k < 5; ++k) {
    if (k < 4) {
      pipe.producer_acquire();
      cuda::memcpy_async(&s[k & 1][threadIdx.x], &x[k * 32 + threadIdx.x], sizeof(float), pipe);
      pipe.producer_commit();
    }
    if (k == 0) continue;
    if (k < 4) cuda::pipeline_consumer_wait_prior<1>(pipe);
    else cuda::pipeline_consumer_wait_prior<0>(pipe);
    sum += s[(k - 1) & 1][threadIdx.x];
    pipe.consumer_release();
  }
  y[threadIdx.x] = sum;
}
