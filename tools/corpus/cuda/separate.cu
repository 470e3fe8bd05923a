// Separate compilation: symbols of other modules, weak functions, kernels that launch kernels.
//! build nvcc 13.0.88 sm_90 -rdc=true
//! build nvcc 13.5.37 sm_103f -rdc=true -DLIBRARY as=library
#define KERNEL extern "C" __global__ void

#ifdef LIBRARY
__device__ int shared_counter = 3;
__constant__ float shared_factor = 0.5f;
__device__ float outer_function(float x, int n) {
  for (int i = 0; i < n; ++i) x = x * shared_factor + 1.0f;
  return x;
}
__device__ __noinline__ double4 corners(double2 a, double2 b) { return {a.x, a.y, b.x, b.y}; }
__device__ int count_up() { return atomicAdd(&shared_counter, 1); }
#else
extern __device__ int shared_counter;
extern __constant__ float shared_factor;
extern __device__ float outer_function(float x, int n);

template <typename T>
__device__ __noinline__ T square_of(T x) { return x * x; }

//! kernel calls_outside separate-compilation
//! norun calls a function of another module
KERNEL calls_outside(const float *x, float *y) {
  y[threadIdx.x] = outer_function(x[threadIdx.x], shared_counter) + square_of(shared_factor) + square_of((int)threadIdx.x);
}

//! kernel child dynamic-parallelism
//! launch 1 32
//! args depth=i32:2 y=i32[64]:zeros
//! out y -> control.child
KERNEL child(int depth, int *y) { y[threadIdx.x] += depth * threadIdx.x + 1; }

//! kernel parent dynamic-parallelism
//! norun launches kernels
KERNEL parent(int depth, int *y) {
  if (threadIdx.x == 0) {
    child<<<2, 32, 64>>>(depth, y);
    child<<<1, dim3(8, 4), 0, cudaStreamTailLaunch>>>(depth + 1, y + 32);
  }
  if (depth > 0 && threadIdx.x == 1) parent<<<1, 2>>>(depth - 1, y);
}

//! kernel weak_templateIfE copy
//! launch 1 32
//! args x=f32[32]:normal y=f32[32]:zeros
//! out y -> memory.copied
template <typename T>
__global__ void weak_template(const T *x, T *y) { y[threadIdx.x] = x[threadIdx.x]; }
template __global__ void weak_template<float>(const float *, float *);
#endif
