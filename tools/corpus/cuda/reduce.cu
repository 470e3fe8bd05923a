// Reductions: trees in shared memory, shuffles, atomics, pairs of values.
//! build nvrtc 12.4.127 sm_80
#define KERNEL extern "C" __global__ void
#define FULL 0xffffffffu

//! kernel sum_tree reduction
//! launch 2 128
//! args x=f32[256]:normal out=f32[2]:zeros
//! out out:1e-5:1e-4 -> reduce.block_sums
KERNEL sum_tree(const float *x, float *out) {
  __shared__ float part[128];
  int t = threadIdx.x;
  part[t] = x[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

//! kernel sum_shuffle reduction
//! launch 2 128
//! args x=f32[256]:normal out=f32[1]:zeros
//! out out:1e-5:1e-4 -> reduce.total
KERNEL sum_shuffle(const float *x, float *out) {
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int s = 16; s > 0; s >>= 1) v += __shfl_down_sync(FULL, v, s);
  if ((threadIdx.x & 31) == 0) atomicAdd(out, v);
}

//! kernel max_butterfly reduction
//! launch 1 64
//! args x=i32[64]:integers(low=-1000,high=1000) out=i32[64]:zeros
//! out out -> reduce.warp_max
KERNEL max_butterfly(const int *x, int *out) {
  int v = x[threadIdx.x];
#pragma unroll
  for (int s = 1; s < 32; s <<= 1) v = max(v, __shfl_xor_sync(FULL, v, s));
  out[threadIdx.x] = v;
}

//! kernel argmin_pairs argmin
//! launch 1 128
//! args x=f32[128]:normal out=i32[1]:zeros
//! out out -> reduce.argmin
KERNEL argmin_pairs(const float *x, int *out) {
  __shared__ float value[128];
  __shared__ int where[128];
  int t = threadIdx.x;
  value[t] = x[t];
  where[t] = t;
  __syncthreads();
  for (int s = 64; s > 0; s >>= 1) {
    if (t < s && value[t + s] < value[t]) {
      value[t] = value[t + s];
      where[t] = where[t + s];
    }
    __syncthreads();
  }
  if (t == 0) *out = where[0];
}

//! kernel dot_product dot-product
//! launch 1 96
//! args n=i32:300 x=f64[300]:normal y=f64[300]:normal out=f64[1]:zeros
//! out out:1e-12:1e-12 -> reduce.dot
KERNEL dot_product(int n, const double *x, const double *y, double *out) {
  __shared__ double part[96];
  double acc = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) acc += x[i] * y[i];
  part[threadIdx.x] = acc;
  __syncthreads();
  if (threadIdx.x == 0) {
    double total = 0;
    for (int i = 0; i < 96; ++i) total += part[i];
    *out = total;
  }
}

//! kernel welford_variance variance
//! launch 1 64
//! args x=f32[640]:normal out=f32[2]:zeros
//! out out:1e-4:1e-5 -> reduce.variance
KERNEL welford_variance(const float *x, float *out) {
  __shared__ float means[64], squares[64];
  int t = threadIdx.x;
  float mean = 0, m2 = 0;
  for (int k = 0; k < 10; ++k) {
    float v = x[k * 64 + t], delta = v - mean;
    mean += delta / (k + 1);
    m2 += delta * (v - mean);
  }
  means[t] = mean;
  squares[t] = m2;
  __syncthreads();
  for (int s = 32, n = 10; s > 0; s >>= 1, n *= 2) {
    if (t < s) {
      float delta = means[t + s] - means[t];
      squares[t] += squares[t + s] + delta * delta * n * 0.5f;
      means[t] = 0.5f * (means[t] + means[t + s]);
    }
    __syncthreads();
  }
  if (t == 0) out[0] = means[0], out[1] = squares[0] / 640;
}

//! kernel count_if_ballot count-if
//! launch 2 64
//! args limit=i32:40 x=i32[128]:integers(low=0,high=100) out=i32[1]:zeros
//! out out -> reduce.count_below
KERNEL count_if_ballot(int limit, const int *x, int *out) {
  unsigned votes = __ballot_sync(FULL, x[blockIdx.x * 64 + threadIdx.x] < limit);
  if ((threadIdx.x & 31) == 0) atomicAdd(out, __popc(votes));
}

//! kernel row_sums row-reduction
//! launch 8 32
//! args x=f32[8,100]:normal out=f32[8]:zeros
//! out out:1e-5:1e-4 -> reduce.row_sums
KERNEL row_sums(const float *x, float *out) {
  float v = 0;
  for (int j = threadIdx.x; j < 100; j += 32) v += x[blockIdx.x * 100 + j];
  for (int s = 16; s > 0; s >>= 1) v += __shfl_xor_sync(FULL, v, s);
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}

//! kernel column_sums column-reduction
//! launch 2 32x8
//! args x=f32[40,64]:normal out=f32[64]:zeros
//! out out:1e-5:1e-4 -> reduce.column_sums
KERNEL column_sums(const float *x, float *out) {
  __shared__ float part[8][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  float v = 0;
  for (int r = threadIdx.y; r < 40; r += 8) v += x[r * 64 + c];
  part[threadIdx.y][threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int k = 1; k < 8; ++k) v += part[k][threadIdx.x];
    out[c] = v;
  }
}

//! kernel last_block_sum single-pass-reduction
//! launch 4 64
//! args x=f32[256]:normal partial=f32[4]:zeros ticket=u32[1]:zeros out=f32[1]:zeros
//! out out:1e-5:1e-4 -> reduce.total
KERNEL last_block_sum(const float *x, volatile float *partial, unsigned *ticket, float *out) {
  __shared__ float part[64];
  __shared__ bool last;
  int t = threadIdx.x;
  part[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int s = 32; s > 0; s >>= 1) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) {
    partial[blockIdx.x] = part[0];
    __threadfence();
    last = atomicInc(ticket, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    float total = 0;
    for (int b = 0; b < gridDim.x; ++b) total += partial[b];
    *out = total;
  }
}

//! kernel kahan_sum compensated-sum
//! launch 1 32
//! args x=f32[1024]:uniform out=f32[32]:zeros
//! out out:1e-6:0 -> reduce.strided_sums
KERNEL kahan_sum(const float *x, float *out) {
  float sum = 0, lost = 0;
  for (int i = threadIdx.x; i < 1024; i += 32) {
    float y = __fsub_rn(x[i], lost), t = __fadd_rn(sum, y);
    lost = __fsub_rn(__fsub_rn(t, sum), y);
    sum = t;
  }
  out[threadIdx.x] = sum;
}
