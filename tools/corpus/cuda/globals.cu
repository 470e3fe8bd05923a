// Symbols: initialised globals, tables of addresses, constants, managed memory, launch limits.
//! build nvcc 13.0.88 sm_110a -fmad=false
#define KERNEL extern "C" __global__

struct Item {
  char tag;
  short small;
  int number;
  double real;
  const char *name;
  const float *table;
};

__device__ int counter = 42;
__device__ float matrix[2][3] = {{1.0f, -2.5f, 3e10f}, {0.0f, 1e-20f}};
__device__ double reals[3] = {3.141592653589793, -0.0, 1e300};
__device__ unsigned long long wide[2] = {0xfedcba9876543210ull, 1};
__device__ short shorts[5] = {-1, 2, -3};
__device__ const char text[] = "quote \" backslash \\ tab \t end";
__device__ const float weights[4] = {0.1f, 0.2f, 0.3f, 0.4f};
__device__ Item items[2] = {{'a', -7, 12345, 2.5, text, weights}, {'b', 300, -1, -0.125, text + 6, weights + 2}};
__device__ int *pointer = &counter;
__device__ void *addresses[3] = {&counter, (char *)matrix + 8, reals + 1};
__constant__ int powers[8] = {1, 2, 4, 8, 16, 32, 64, 128};
__constant__ Item fixed = {'c', 1, 2, 3.0, nullptr, nullptr};
__managed__ int shared_with_host = 5;
__device__ __align__(128) unsigned char aligned_bytes[256];
static __device__ int hidden[4];
extern __shared__ __align__(1024) unsigned char pool[];

//! kernel read_globals global-variables
//! launch 1 8
//! args y=f64[8]:zeros
//! out y:1e-7:0 -> symbols.globals_read
KERNEL void __launch_bounds__(64, 2) read_globals(double *y) {
  switch (threadIdx.x) {
    case 0: y[0] = counter + *pointer; break;
    case 1: y[1] = matrix[0][1] * matrix[1][1]; break;
    case 2: y[2] = reals[0] + *(double *)addresses[2]; break;
    case 3: y[3] = (double)(wide[0] >> 32) + wide[1]; break;
    case 4: y[4] = shorts[0] * 100 + shorts[2]; break;
    case 5: y[5] = items[1].name[0] + items[0].table[3]; break;
    case 6: y[6] = items[0].real * items[1].small + fixed.number; break;
    default: y[7] = powers[threadIdx.x] + shared_with_host;
  }
}

//! kernel write_globals global-variables
//! launch 1 4
//! args y=i32[4]:zeros
//! out y -> symbols.globals_written
KERNEL void __launch_bounds__(4) write_globals(int *y) {
  hidden[threadIdx.x] = powers[threadIdx.x + 3] + threadIdx.x;
  aligned_bytes[threadIdx.x * 64] = threadIdx.x + 200;
  __syncthreads();
  y[threadIdx.x] = hidden[3 - threadIdx.x] + aligned_bytes[(threadIdx.x ^ 1) * 64];
}

//! kernel shared_pool shared-memory-layout
//! launch 1 32 smem=1024
//! args n=i32:8 y=f64[32]:zeros
//! out y -> symbols.shared_pool
KERNEL void shared_pool(int n, double *y) {
  double *reals = (double *)pool;
  short *shorts = (short *)(pool + 512);
  reals[threadIdx.x] = threadIdx.x * 0.5;
  shorts[threadIdx.x] = (short)(threadIdx.x * n);
  __syncthreads();
  y[threadIdx.x] = reals[31 - threadIdx.x] + shorts[threadIdx.x ^ 3];
}

struct Parameters {
  float scale;
  int offset[3];
  const float *x;
  float *y;
};

//! kernel by_value_constant grid-constant
//! norun takes a structure by value
KERNEL void by_value_constant(const __grid_constant__ Parameters p, int which) {
  p.y[threadIdx.x] = p.x[threadIdx.x] * p.scale + p.offset[which];
}

//! kernel fixed_cluster launch-bounds
//! norun needs a cluster launch and reads its identifiers
KERNEL void __cluster_dims__(2, 1, 1) __launch_bounds__(128) fixed_cluster(unsigned *y) {
  unsigned rank, count;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  y[blockIdx.x] = rank * 100 + count;
}

//! kernel bounded_cluster launch-bounds
//! norun has a bound on its cluster, not a size
KERNEL void __launch_bounds__(96, 3, 4) bounded_cluster(unsigned *y) {
  unsigned explicit_cluster;
  asm("{\n\t.reg .pred p;\n\tmov.pred p, %%is_explicit_cluster;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(explicit_cluster));
  y[threadIdx.x] = explicit_cluster;
}

template <typename T, int N>
__global__ void templated_sum(const T *x, T *y) {
  T sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum += x[threadIdx.x * N + i];
  y[threadIdx.x] = sum;
}
//! kernel templated_sumIiLi3E row-reduction
//! launch 1 16
//! args x=i32[16,3]:integers(low=-9,high=10) y=i32[16]:zeros
//! out y -> symbols.row_sums
template __global__ void templated_sum<int, 3>(const int *, int *);
//! kernel templated_sumIdLi5E row-reduction
//! launch 1 16
//! args x=f64[16,5]:normal y=f64[16]:zeros
//! out y:1e-14:1e-14 -> symbols.row_sums
template __global__ void templated_sum<double, 5>(const double *, double *);
