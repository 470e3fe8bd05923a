// Sorting, merging, searching, selecting.
//! build nvrtc 12.6.85 sm_89
#define KERNEL extern "C" __global__ void

//! kernel bitonic_sort bitonic-sort
//! launch 1 128
//! args keys=i32[256]:integers(low=-1000,high=1000)
//! out keys -> sort.ascending
KERNEL bitonic_sort(int *keys) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = keys[t];
  s[t + 128] = keys[t + 128];
  for (int k = 2; k <= 256; k *= 2)
    for (int j = k / 2; j > 0; j >>= 1) {
      __syncthreads();
      int i = 2 * t - (t & (j - 1)), p = i + j;
      bool up = (i & k) == 0;
      if ((s[i] > s[p]) == up) {
        int v = s[i];
        s[i] = s[p];
        s[p] = v;
      }
    }
  __syncthreads();
  keys[t] = s[t];
  keys[t + 128] = s[t + 128];
}

//! kernel odd_even_sort odd-even-sort
//! launch 1 32
//! args keys=f32[64]:normal
//! out keys -> sort.ascending
KERNEL odd_even_sort(float *keys) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = keys[t];
  s[t + 32] = keys[t + 32];
  for (int round = 0; round < 64; ++round) {
    __syncthreads();
    int i = 2 * t + (round & 1);
    if (i + 1 < 64 && s[i] > s[i + 1]) {
      float v = s[i];
      s[i] = s[i + 1];
      s[i + 1] = v;
    }
  }
  __syncthreads();
  keys[t] = s[t];
  keys[t + 32] = s[t + 32];
}

//! kernel radix_sort_bits radix-sort
//! launch 1 128
//! args keys=u32[128]:integers(low=0,high=256)
//! out keys -> sort.ascending
KERNEL radix_sort_bits(unsigned *keys) {
  __shared__ unsigned s[128], ones[128];
  int t = threadIdx.x;
  unsigned key = keys[t];
  for (int bit = 0; bit < 8; ++bit) {
    unsigned one = key >> bit & 1;
    ones[t] = one;
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
      unsigned w = t >= d ? ones[t - d] : 0;
      __syncthreads();
      ones[t] += w;
      __syncthreads();
    }
    unsigned zeros = 128 - ones[127];
    s[one ? zeros + ones[t] - 1 : t - ones[t]] = key;
    __syncthreads();
    key = s[t];
    __syncthreads();
  }
  keys[t] = key;
}

//! kernel rank_sort rank-sort
//! launch 1 96
//! args keys=f32[96]:normal sorted=f32[96]:zeros
//! out sorted -> sort.ascending_copy
KERNEL rank_sort(const float *keys, float *sorted) {
  int rank = 0;
  float v = keys[threadIdx.x];
  for (int i = 0; i < 96; ++i) rank += keys[i] < v || (keys[i] == v && i < threadIdx.x);
  sorted[rank] = v;
}

//! kernel counting_sort counting-sort
//! launch 1 64
//! args keys=u8[256]:integers(low=0,high=64) sorted=u8[256]:zeros
//! out sorted -> sort.ascending_copy
KERNEL counting_sort(const unsigned char *keys, unsigned char *sorted) {
  __shared__ int count[64];
  int t = threadIdx.x;
  count[t] = 0;
  __syncthreads();
  for (int i = t; i < 256; i += 64) atomicAdd(&count[keys[i]], 1);
  __syncthreads();
  int start = 0;
  for (int k = 0; k < t; ++k) start += count[k];
  for (int k = 0; k < count[t]; ++k) sorted[start + k] = t;
}

//! kernel merge_path merge
//! launch 1 32
//! args a=i32[100]:sorted(low=0,high=500) b=i32[60]:sorted(low=0,high=500) c=i32[160]:zeros
//! out c -> sort.merged
KERNEL merge_path(const int *a, const int *b, int *c) {
  int diagonal = threadIdx.x * 5;
  int low = max(0, diagonal - 60), high = min(diagonal, 100);
  while (low < high) {
    int mid = (low + high) / 2;
    if (a[mid] <= b[diagonal - 1 - mid]) low = mid + 1;
    else high = mid;
  }
  int i = low, j = diagonal - low;
  for (int k = 0; k < 5; ++k) c[diagonal + k] = j >= 60 || (i < 100 && a[i] <= b[j]) ? a[i++] : b[j++];
}

//! kernel binary_search binary-search
//! launch 1 64
//! args table=f32[128]:values(values=[0.0,0.5,1.0,1.5,2.0,2.5,3.0,3.5,4.0,4.5,5.0,5.5,6.0,6.5,7.0,7.5,8.0,8.5,9.0,9.5]) n=i32:20 q=f32[64]:uniform(low=-1.0,high=11.0) where=i32[64]:zeros
//! out where -> sort.lower_bound
KERNEL binary_search(const float *table, int n, const float *q, int *where) {
  float v = q[threadIdx.x];
  int low = 0, high = n;
  while (low < high) {
    int mid = (low + high) >> 1;
    if (table[mid] < v) low = mid + 1;
    else high = mid;
  }
  where[threadIdx.x] = low;
}

//! kernel select_kth quickselect
//! launch 1 64
//! args k=i32:20 x=i32[64]:permutation out=i32[1]:zeros
//! out out -> sort.kth
KERNEL select_kth(int k, const int *x, int *out) {
  __shared__ int below;
  int v = x[threadIdx.x], low = -1, high = 64;
  while (high - low > 1) {
    int mid = (low + high) / 2;
    if (threadIdx.x == 0) below = 0;
    __syncthreads();
    if (v <= mid) atomicAdd(&below, 1);
    __syncthreads();
    if (below > k) high = mid;
    else low = mid;
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = high;
}

//! kernel top_k_insertion top-k
//! launch 1 16
//! args x=f32[16,40]:normal y=f32[16,4]:zeros
//! out y -> sort.top_four
KERNEL top_k_insertion(const float *x, float *y) {
  float best[4] = {-1e30f, -1e30f, -1e30f, -1e30f};
  for (int j = 0; j < 40; ++j) {
    float v = x[threadIdx.x * 40 + j];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (v > best[k]) {
        float old = best[k];
        best[k] = v;
        v = old;
      }
  }
  for (int k = 0; k < 4; ++k) y[threadIdx.x * 4 + k] = best[k];
}

//! kernel shell_sort shell-sort
//! launch 1 4
//! args keys=i32[4,50]:integers(low=0,high=99)
//! out keys -> sort.rows_ascending
KERNEL shell_sort(int *keys) {
  int *row = keys + threadIdx.x * 50;
  for (int gap = 25; gap > 0; gap /= 2)
    for (int i = gap; i < 50; ++i) {
      int v = row[i], j = i;
      for (; j >= gap && row[j - gap] > v; j -= gap) row[j] = row[j - gap];
      row[j] = v;
    }
}

//! kernel heap_sort heap-sort
//! launch 1 2
//! args keys=u32[2,40]:bits
//! out keys -> sort.rows_ascending
KERNEL heap_sort(unsigned *keys) {
  unsigned *heap = keys + threadIdx.x * 40;
  int n = 40, start = 20;
  while (n > 1) {
    if (start > 0) --start;
    else {
      --n;
      unsigned v = heap[n];
      heap[n] = heap[0];
      heap[0] = v;
    }
    for (int root = start;;) {
      int child = 2 * root + 1;
      if (child >= n) break;
      if (child + 1 < n && heap[child] < heap[child + 1]) ++child;
      if (heap[root] >= heap[child]) break;
      unsigned v = heap[root];
      heap[root] = heap[child];
      heap[child] = v;
      root = child;
    }
  }
}
