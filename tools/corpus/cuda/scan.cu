// Prefix sums and what is built from them.
//! build nvcc 13.0.88 sm_86
#define KERNEL extern "C" __global__ void
#define FULL 0xffffffffu

//! kernel hillis_steele inclusive-scan
//! launch 1 128
//! args x=i32[128]:integers(low=-9,high=10) y=i32[128]:zeros
//! out y -> scan.inclusive
KERNEL hillis_steele(const int *x, int *y) {
  __shared__ int buffer[2][128];
  int t = threadIdx.x, from = 0;
  buffer[0][t] = x[t];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    buffer[1 - from][t] = buffer[from][t] + (t >= d ? buffer[from][t - d] : 0);
    from = 1 - from;
    __syncthreads();
  }
  y[t] = buffer[from][t];
}

//! kernel blelloch exclusive-scan
//! launch 1 64
//! args x=u32[128]:integers(low=0,high=1000) y=u32[128]:zeros
//! out y -> scan.exclusive
KERNEL blelloch(const unsigned *x, unsigned *y) {
  __shared__ unsigned tree[128];
  int t = threadIdx.x, offset = 1;
  tree[2 * t] = x[2 * t];
  tree[2 * t + 1] = x[2 * t + 1];
  for (int d = 64; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
    offset *= 2;
  }
  if (t == 0) tree[127] = 0;
  for (int d = 1; d < 128; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
      unsigned v = tree[a];
      tree[a] = tree[b];
      tree[b] += v;
    }
  }
  __syncthreads();
  y[2 * t] = tree[2 * t];
  y[2 * t + 1] = tree[2 * t + 1];
}

//! kernel warp_scan inclusive-scan
//! launch 1 64
//! args x=i32[64]:integers(low=-9,high=10) y=i32[64]:zeros
//! out y -> scan.per_warp
KERNEL warp_scan(const int *x, int *y) {
  int lane = threadIdx.x & 31, v = x[threadIdx.x];
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    int w = __shfl_up_sync(FULL, v, d);
    if (lane >= d) v += w;
  }
  y[threadIdx.x] = v;
}

//! kernel scan_of_warps inclusive-scan
//! launch 1 256
//! args x=f64[256]:normal y=f64[256]:zeros
//! out y:1e-12:1e-12 -> scan.inclusive
KERNEL scan_of_warps(const double *x, double *y) {
  __shared__ double totals[8];
  int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  double v = x[t];
  for (int d = 1; d < 32; d *= 2) {
    double w = __shfl_up_sync(FULL, v, d);
    if (lane >= d) v += w;
  }
  if (lane == 31) totals[warp] = v;
  __syncthreads();
  for (int w = 0; w < warp; ++w) v += totals[w];
  y[t] = v;
}

//! kernel segmented_scan segmented-scan
//! launch 1 128
//! args x=i32[128]:integers(low=0,high=10) head=i32[128]:integers(low=0,high=2) y=i32[128]:zeros
//! out y -> scan.segmented
KERNEL segmented_scan(const int *x, const int *head, int *y) {
  __shared__ int value[128], flag[128];
  int t = threadIdx.x;
  value[t] = x[t];
  flag[t] = head[t];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    int v = 0, f = 1;
    if (t >= d) v = value[t - d], f = flag[t - d];
    __syncthreads();
    if (t >= d) {
      if (!flag[t]) value[t] += v;
      flag[t] |= f;
    }
    __syncthreads();
  }
  y[t] = value[t];
}

//! kernel compact_ballot compaction
//! launch 1 32
//! args x=i32[32]:integers(low=-20,high=20) y=i32[32]:zeros count=i32[1]:zeros
//! out y count -> scan.compact_positive
KERNEL compact_ballot(const int *x, int *y, int *count) {
  int lane = threadIdx.x, v = x[lane];
  unsigned keep = __ballot_sync(FULL, v > 0);
  if (v > 0) y[__popc(keep & ((1u << lane) - 1))] = v;
  if (lane == 0) *count = __popc(keep);
}

//! kernel lookback_scan decoupled-look-back
//! launch 4 64
//! args x=i32[256]:integers(low=0,high=100) y=i32[256]:zeros state=u64[4]:zeros
//! out y -> scan.inclusive
KERNEL lookback_scan(const int *x, int *y, volatile unsigned long long *state) {
  __shared__ int part[64], before;
  int t = threadIdx.x, b = blockIdx.x, v = x[b * 64 + t];
  part[t] = v;
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    int w = t >= d ? part[t - d] : 0;
    __syncthreads();
    part[t] += w;
    __syncthreads();
  }
  if (t == 0) {
    int sum = 0;
    state[b] = (b == 0 ? 2ull << 32 : 1ull << 32) | (unsigned)part[63];
    __threadfence();
    for (int p = b - 1; p >= 0; --p) {
      unsigned long long s;
      do s = state[p];
      while (s == 0);
      sum += (int)s;
      if (s >> 33) break;
    }
    if (b) state[b] = 2ull << 32 | (unsigned)(sum + part[63]);
    before = sum;
  }
  __syncthreads();
  y[b * 64 + t] = before + part[t];
}

//! kernel summed_area_rows integral-image
//! launch 16 32
//! args x=f32[16,32]:uniform y=f32[16,32]:zeros
//! out y:1e-5:1e-5 -> scan.rows
KERNEL summed_area_rows(const float *x, float *y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float v = x[i];
  for (int d = 1; d < 32; d <<= 1) {
    float w = __shfl_up_sync(FULL, v, d);
    v += threadIdx.x >= d ? w : 0.0f;
  }
  y[i] = v;
}

//! kernel run_length_heads run-length
//! launch 1 128
//! args x=i32[128]:sorted(low=0,high=20) value=i32[128]:zeros length=i32[128]:zeros runs=i32[1]:zeros
//! out value length runs -> scan.run_lengths
KERNEL run_length_heads(const int *x, int *value, int *length, int *runs) {
  __shared__ int rank[128];
  int t = threadIdx.x, head = t == 0 || x[t] != x[t - 1];
  rank[t] = head;
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    int w = t >= d ? rank[t - d] : 0;
    __syncthreads();
    rank[t] += w;
    __syncthreads();
  }
  if (head) value[rank[t] - 1] = x[t];
  atomicAdd(&length[rank[t] - 1], 1);
  if (t == 127) *runs = rank[t];
}
