// CUB's block and warp algorithms, instantiated in kernels of ours.
//! build cub 13.0.88 sm_80 --extended-lambda
//! build cub 13.5.37 sm_103a -DSORTS as=sorts
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#define KERNEL extern "C" __global__ void
#ifdef SORTS
//! kernel block_radix_sort radix-sort
//! launch 1 64
//! args keys=u32[128]:bits
//! out keys -> sort.ascending
KERNEL block_radix_sort(unsigned *keys) {
  using Sort = cub::BlockRadixSort<unsigned, 64, 2>;
  __shared__ typename Sort::TempStorage temp;
  unsigned mine[2] = {keys[2 * threadIdx.x], keys[2 * threadIdx.x + 1]};
  Sort(temp).Sort(mine);
  keys[2 * threadIdx.x] = mine[0];
  keys[2 * threadIdx.x + 1] = mine[1];
}

struct Less {
  template <typename T> __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};
//! kernel block_merge_sort merge-sort
//! launch 1 32
//! args keys=i32[128]:integers(low=-500,high=500)
//! out keys -> sort.ascending
KERNEL block_merge_sort(int4 *keys) {
  using Sort = cub::BlockMergeSort<int, 32, 4>;
  __shared__ typename Sort::TempStorage temp;
  int4 v = keys[threadIdx.x];
  int mine[4] = {v.x, v.y, v.z, v.w};
  Sort(temp).Sort(mine, Less());
  keys[threadIdx.x] = make_int4(mine[0], mine[1], mine[2], mine[3]);
}

//! kernel warp_merge_sort merge-sort
//! launch 1 32
//! args keys=f32[2,32]:normal
//! out keys -> sort.rows_ascending
KERNEL warp_merge_sort(float2 *keys) {
  using Sort = cub::WarpMergeSort<float, 2, 16>;
  __shared__ typename Sort::TempStorage temp[2];
  float2 v = keys[threadIdx.x];
  float mine[2] = {v.x, v.y};
  Sort(temp[threadIdx.x / 16]).Sort(mine, Less());
  keys[threadIdx.x] = make_float2(mine[0], mine[1]);
}
#else
//! kernel block_reduce reduction
//! launch 2 96
//! args x=f32[192]:normal out=f32[2]:zeros
//! out out:1e-5:1e-4 -> reduce.block_sums
KERNEL block_reduce(const float *x, float *out) {
  using Reduce = cub::BlockReduce<float, 96>;
  __shared__ typename Reduce::TempStorage temp;
  float sum = Reduce(temp).Sum(x[blockIdx.x * 96 + threadIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

//! kernel block_scan inclusive-scan
//! launch 1 64
//! args x=i32[256]:integers(low=-9,high=10) y=i32[256]:zeros
//! out y -> scan.inclusive
KERNEL block_scan(const int4 *x, int4 *y) {
  using Scan = cub::BlockScan<int, 64, cub::BLOCK_SCAN_RAKING>;
  __shared__ typename Scan::TempStorage temp;
  int4 v = x[threadIdx.x];
  int mine[4] = {v.x, v.y, v.z, v.w};
  Scan(temp).InclusiveSum(mine, mine);
  y[threadIdx.x] = make_int4(mine[0], mine[1], mine[2], mine[3]);
}

//! kernel block_histogram histogram
//! launch 1 64
//! args x=u8[256]:integers(low=0,high=32) bins=u32[32]:zeros
//! out bins -> text.histogram
KERNEL block_histogram(const unsigned char *x, unsigned *bins) {
  using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 32, cub::BLOCK_HISTO_ATOMIC>;
  __shared__ typename Histogram::TempStorage temp;
  __shared__ unsigned counts[32];
  unsigned char mine[4];
  for (int i = 0; i < 4; ++i) mine[i] = x[4 * threadIdx.x + i];
  Histogram(temp).Histogram(mine, counts);
  __syncthreads();
  if (threadIdx.x < 32) bins[threadIdx.x] = counts[threadIdx.x];
}

//! kernel block_exchange transpose
//! launch 1 32
//! args a=i32[32,4]:permutation b=i32[4,32]:zeros
//! out b -> linear.transpose
KERNEL block_exchange(const int *a, int *b) {
  using Load = cub::BlockLoad<int, 32, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<int, 32, 4, cub::BLOCK_STORE_STRIPED>;
  __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; } temp;
  int mine[4];
  Load(temp.load).Load(a, mine);
  __syncthreads();
  Store(temp.store).Store(b, mine);
}

//! kernel block_flags run-length
//! launch 1 128
//! args x=i32[128]:sorted(low=0,high=20) heads=i32[128]:zeros step=i32[128]:zeros
//! out heads step -> scan.heads_and_steps
KERNEL block_flags(const int *x, int *heads, int *step) {
  using Flags = cub::BlockDiscontinuity<int, 128>;
  using Difference = cub::BlockAdjacentDifference<int, 128>;
  __shared__ union { typename Flags::TempStorage flags; typename Difference::TempStorage difference; } temp;
  int mine[1] = {x[threadIdx.x]}, flag[1], delta[1];
  Flags(temp.flags).FlagHeads(flag, mine, [] __device__ (int a, int b) { return a != b; });
  __syncthreads();
  Difference(temp.difference).SubtractLeft(mine, delta, [] __device__ (int a, int b) { return a - b; });
  heads[threadIdx.x] = flag[0];
  step[threadIdx.x] = threadIdx.x ? delta[0] : 0;
}

struct ArgMax {
  __device__ cub::KeyValuePair<int, float> operator()(cub::KeyValuePair<int, float> a, cub::KeyValuePair<int, float> b) const {
    return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
  }
};
//! kernel warp_arg_max argmax
//! launch 1 32
//! args x=f32[32]:normal out=i32[1]:zeros
//! out out -> reduce.argmax
KERNEL warp_arg_max(const float *x, int *out) {
  using Reduce = cub::WarpReduce<cub::KeyValuePair<int, float>>;
  __shared__ typename Reduce::TempStorage temp;
  cub::KeyValuePair<int, float> pair;
  pair.key = threadIdx.x;
  pair.value = x[threadIdx.x];
  pair = Reduce(temp).Reduce(pair, ArgMax());
  if (threadIdx.x == 0) *out = pair.key;
}

//! kernel warp_scan_segments segmented-scan
//! launch 1 64
//! args x=i64[64]:integers(low=0,high=1000000000000) y=i64[64]:zeros
//! out y -> scan.of_eights
KERNEL warp_scan_segments(const long long *x, long long *y) {
  using Scan = cub::WarpScan<long long, 8>;
  __shared__ typename Scan::TempStorage temp[8];
  long long sum;
  Scan(temp[threadIdx.x / 8]).ExclusiveSum(x[threadIdx.x], sum);
  y[threadIdx.x] = sum;
}
#endif
