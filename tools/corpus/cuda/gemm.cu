// Matrix products without tensor cores.
//! build nvcc 13.3.73 sm_87 -O2
#define KERNEL extern "C" __global__ void

//! kernel gemm_naive gemm
//! launch 2x2 16x16
//! args m=i32:30 n=i32:28 k=i32:20 a=f32[30,20]:normal b=f32[20,28]:normal c=f32[30,28]:zeros
//! out c:1e-5:1e-4 -> linear.matmul
KERNEL gemm_naive(int m, int n, int k, const float *a, const float *b, float *c) {
  int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  if (row >= m || col >= n) return;
  float acc = 0;
  for (int i = 0; i < k; ++i) acc += a[row * k + i] * b[i * n + col];
  c[row * n + col] = acc;
}

//! kernel gemm_tiled gemm
//! launch 2x2 16x16
//! args a=f32[32,32]:normal b=f32[32,32]:normal c=f32[32,32]:zeros
//! out c:1e-5:1e-4 -> linear.matmul
KERNEL gemm_tiled(const float *a, const float *b, float *c) {
  __shared__ float s[16][16], t[16][17];
  int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float acc = 0;
  for (int k = 0; k < 32; k += 16) {
    s[y][x] = a[row * 32 + k + x];
    t[y][x] = b[(k + y) * 32 + col];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) acc += s[y][i] * t[i][x];
    __syncthreads();
  }
  c[row * 32 + col] = acc;
}

//! kernel gemm_registers gemm
//! launch 1 8x8
//! args a=f32[32,16]:normal b=f32[16,32]:normal c=f32[32,32]:zeros
//! out c:1e-5:1e-4 -> linear.matmul
KERNEL gemm_registers(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  __shared__ float s[16][32], t[16][32];
  int tid = threadIdx.y * 8 + threadIdx.x;
  for (int i = tid; i < 512; i += 64) {
    s[i & 15][i >> 4] = a[i];
    t[i >> 5][i & 31] = b[i];
  }
  __syncthreads();
  float acc[4][4] = {};
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    float4 p = *(const float4 *)&s[k][threadIdx.y * 4], q = *(const float4 *)&t[k][threadIdx.x * 4];
    float u[4] = {p.x, p.y, p.z, p.w}, v[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[i][j] += u[i] * v[j];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    *(float4 *)&c[(threadIdx.y * 4 + i) * 32 + threadIdx.x * 4] =
        make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}

//! kernel gemv_warp gemv
//! launch 4 32x4
//! args n=i32:70 a=f32[16,70]:normal x=f32[70]:normal y=f32[16]:zeros
//! out y:1e-5:1e-4 -> linear.matvec
KERNEL gemv_warp(int n, const float *a, const float *x, float *y) {
  int row = blockIdx.x * 4 + threadIdx.y;
  float acc = 0;
  for (int j = threadIdx.x; j < n; j += 32) acc += a[row * n + j] * x[j];
  for (int d = 16; d > 0; d >>= 1) acc += __shfl_down_sync(0xffffffffu, acc, d);
  if (threadIdx.x == 0) y[row] = acc;
}

//! kernel batched_small_gemm batched-gemm
//! launch 1 4x4x8
//! args a=f64[8,4,4]:normal b=f64[8,4,4]:normal c=f64[8,4,4]:zeros
//! out c:1e-13:1e-13 -> linear.matmul
KERNEL batched_small_gemm(const double *a, const double *b, double *c) {
  int base = threadIdx.z * 16;
  double acc = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) acc = fma(a[base + threadIdx.y * 4 + k], b[base + k * 4 + threadIdx.x], acc);
  c[base + threadIdx.y * 4 + threadIdx.x] = acc;
}

//! kernel transpose_tile transpose
//! launch 2x2 16x8
//! args a=f32[32,32]:normal b=f32[32,32]:zeros
//! out b -> linear.transpose
KERNEL transpose_tile(const float *a, float *b) {
  __shared__ float tile[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  for (int j = 0; j < 16; j += 8) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * 32 + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  for (int j = 0; j < 16; j += 8) b[(y + j) * 32 + x] = tile[threadIdx.x][threadIdx.y + j];
}

//! kernel gemm_int8_dp4a quantised-gemm
//! launch 1 16x16
//! args a=i8[16,32]:bits bt=i8[16,32]:bits c=i32[16,16]:zeros
//! out c -> linear.matmul_transposed
KERNEL gemm_int8_dp4a(const int *a, const int *bt, int *c) {
  int acc = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) acc = __dp4a(a[threadIdx.y * 8 + k], bt[threadIdx.x * 8 + k], acc);
  c[threadIdx.y * 16 + threadIdx.x] = acc;
}

//! kernel gemm_split_k split-k-gemm
//! launch 1x1x4 8x8
//! args a=f32[8,32]:normal b=f32[32,8]:normal c=f32[8,8]:zeros
//! out c:1e-5:1e-4 -> linear.matmul
KERNEL gemm_split_k(const float *a, const float *b, float *c) {
  float acc = 0;
  for (int k = blockIdx.z * 8; k < blockIdx.z * 8 + 8; ++k) acc += a[threadIdx.y * 32 + k] * b[k * 8 + threadIdx.x];
  atomicAdd(&c[threadIdx.y * 8 + threadIdx.x], acc);
}

//! kernel gemm_dynamic_smem gemm
//! launch 1 16x4 smem=6144
//! args k=i32:24 a=f32[32,24]:normal b=f32[24,32]:normal bias=f32[32]:normal c=f32[32,32]:zeros
//! out c:1e-5:1e-4 -> linear.matmul_bias_relu
KERNEL gemm_dynamic_smem(int k, const float *a, const float *b, const float *bias, float *c) {
  extern __shared__ float pool[];
  float *s = pool, *t = pool + 32 * k;
  int tid = threadIdx.y * 16 + threadIdx.x;
  for (int i = tid; i < 32 * k; i += 64) s[i] = a[i], t[i] = b[i];
  __syncthreads();
  for (int row = threadIdx.y; row < 32; row += 4)
    for (int col = threadIdx.x; col < 32; col += 16) {
      float acc = bias[col];
      for (int i = 0; i < k; ++i) acc += s[row * k + i] * t[i * 32 + col];
      c[row * 32 + col] = fmaxf(acc, 0.0f);
    }
}

//! kernel syrk_lower symmetric-rank-k
//! launch 1 16x16
//! args a=f32[16,12]:normal c=f32[16,16]:zeros
//! out c:1e-5:1e-4 -> linear.gram_lower
KERNEL syrk_lower(const float *a, float *c) {
  int i = threadIdx.y, j = threadIdx.x;
  if (j > i) return;
  float acc = 0;
  for (int k = 0; k < 12; ++k) acc += a[i * 12 + k] * a[j * 12 + k];
  c[i * 16 + j] = acc;
}
