// Factorisations, solvers and sparse products.
//! build nvcc 13.5.37 sm_88
#define KERNEL extern "C" __global__ void

//! kernel lu_decomposition lu-factorisation
//! launch 1 16
//! args a=f64[16,16]:positive_definite
//! out a:1e-11:1e-11 -> linear.lu
KERNEL lu_decomposition(double *a) {
  __shared__ double s[16][16];
  int i = threadIdx.x;
  for (int j = 0; j < 16; ++j) s[i][j] = a[i * 16 + j];
  __syncthreads();
  for (int k = 0; k < 15; ++k) {
    if (i > k) {
      double factor = s[i][k] / s[k][k];
      s[i][k] = factor;
      for (int j = k + 1; j < 16; ++j) s[i][j] -= factor * s[k][j];
    }
    __syncthreads();
  }
  for (int j = 0; j < 16; ++j) a[i * 16 + j] = s[i][j];
}

//! kernel cholesky cholesky
//! launch 1 16
//! args a=f32[16,16]:positive_definite
//! out a:1e-4:1e-5 -> linear.cholesky
KERNEL cholesky(float *a) {
  int i = threadIdx.x;
  for (int k = 0; k < 16; ++k) {
    if (i == k) a[k * 16 + k] = sqrtf(a[k * 16 + k]);
    __syncthreads();
    if (i > k) a[i * 16 + k] /= a[k * 16 + k];
    __syncthreads();
    if (i > k)
      for (int j = k + 1; j <= i; ++j) a[i * 16 + j] -= a[i * 16 + k] * a[j * 16 + k];
    __syncthreads();
  }
  for (int j = i + 1; j < 16; ++j) a[i * 16 + j] = 0;
}

//! kernel triangular_solve triangular-solve
//! launch 1 32
//! args l=f32[32,32]:positive_definite b=f32[32]:normal x=f32[32]:zeros
//! out x:1e-4:1e-4 -> linear.lower_solve
KERNEL triangular_solve(const float *l, const float *b, float *x) {
  int lane = threadIdx.x;
  float rest = b[lane];
  for (int k = 0; k < 32; ++k) {
    float solved = __shfl_sync(0xffffffffu, rest / l[lane * 33], k);
    if (lane == k) x[k] = solved;
    if (lane > k) rest -= l[lane * 32 + k] * solved;
  }
}

//! kernel gram_schmidt qr-factorisation
//! launch 1 32
//! args q=f32[8,32]:normal
//! out q:1e-3:1e-4 -> linear.orthonormal_rows
KERNEL gram_schmidt(float *q) {
  int t = threadIdx.x;
  for (int i = 0; i < 8; ++i) {
    float v = q[i * 32 + t];
    for (int j = 0; j < i; ++j) {
      float u = q[j * 32 + t], dot = u * v;
      for (int d = 16; d > 0; d >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, d);
      v -= dot * u;
    }
    float norm = v * v;
    for (int d = 16; d > 0; d >>= 1) norm += __shfl_xor_sync(0xffffffffu, norm, d);
    q[i * 32 + t] = v * rsqrtf(norm);
  }
}

//! kernel power_iteration power-iteration
//! launch 1 16
//! args a=f64[16,16]:positive_definite v=f64[16]:ones value=f64[1]:zeros
//! out v:1e-9:1e-9 value:1e-9:1e-9 -> linear.power_iteration
KERNEL power_iteration(const double *a, double *v, double *value) {
  __shared__ double x[16], y[16];
  int i = threadIdx.x;
  x[i] = v[i];
  double norm = 1;
  for (int step = 0; step < 20; ++step) {
    __syncthreads();
    double acc = 0, square = 0;
    for (int j = 0; j < 16; ++j) acc += a[i * 16 + j] * x[j];
    y[i] = acc;
    __syncthreads();
    for (int j = 0; j < 16; ++j) square += y[j] * y[j];
    norm = sqrt(square);
    x[i] = y[i] / norm;
  }
  v[i] = x[i];
  if (i == 0) *value = norm;
}

//! kernel thomas tridiagonal-solve
//! launch 1 8
//! args b=f64[8,20]:normal x=f64[8,20]:zeros
//! out x:1e-12:1e-12 -> linear.tridiagonal
KERNEL thomas(const double *b, double *x) {
  double c[20], d[20];
  const double *rhs = b + threadIdx.x * 20;
  c[0] = -1.0 / 4.0;
  d[0] = rhs[0] / 4.0;
  for (int i = 1; i < 20; ++i) {
    double m = 1.0 / (4.0 + c[i - 1]);
    c[i] = -m;
    d[i] = (rhs[i] + d[i - 1]) * m;
  }
  x[threadIdx.x * 20 + 19] = d[19];
  for (int i = 18; i >= 0; --i) x[threadIdx.x * 20 + i] = d[i] -= c[i] * d[i + 1];
}

//! kernel spmv_csr sparse-matrix-vector
//! launch 1 64
//! args rows=i32:50 start=i32[51]:offsets(low=0,high=8) column=i32[400]:integers(low=0,high=40) value=f32[400]:normal x=f32[40]:normal y=f32[50]:zeros
//! out y:1e-5:1e-5 -> linear.spmv_csr
KERNEL spmv_csr(int rows, const int *start, const int *column, const float *value, const float *x, float *y) {
  int row = threadIdx.x;
  if (row >= rows) return;
  float acc = 0;
  for (int k = start[row]; k < start[row + 1]; ++k) acc += value[k] * __ldg(&x[column[k]]);
  y[row] = acc;
}

//! kernel spmv_csr_warp sparse-matrix-vector
//! launch 1 32x4
//! args start=i32[5]:offsets(low=30,high=80) column=i32[320]:integers(low=0,high=64) value=f64[320]:normal x=f64[64]:normal y=f64[4]:zeros
//! out y:1e-12:1e-12 -> linear.spmv_csr
KERNEL spmv_csr_warp(const int *start, const int *column, const double *value, const double *x, double *y) {
  int row = threadIdx.y;
  double acc = 0;
  for (int k = start[row] + threadIdx.x; k < start[row + 1]; k += 32) acc += value[k] * x[column[k]];
  for (int d = 16; d > 0; d >>= 1) acc += __shfl_down_sync(0xffffffffu, acc, d);
  if (threadIdx.x == 0) y[row] = acc;
}

//! kernel spmv_coo sparse-coordinate-product
//! launch 4 64
//! args row=i32[256]:integers(low=0,high=32) column=i32[256]:integers(low=0,high=32) value=f32[256]:normal x=f32[32]:normal y=f32[32]:zeros
//! out y:1e-4:1e-4 -> linear.spmv_coo
KERNEL spmv_coo(const int *row, const int *column, const float *value, const float *x, float *y) {
  int k = blockIdx.x * 64 + threadIdx.x;
  atomicAdd(&y[row[k]], value[k] * x[column[k]]);
}

//! kernel spmm_ell sparse-matrix-matrix
//! launch 16 32
//! args column=i32[16,4]:integers(low=0,high=16) value=f32[16,4]:normal b=f32[16,32]:normal c=f32[16,32]:zeros
//! out c:1e-5:1e-5 -> linear.spmm_ell
KERNEL spmm_ell(const int4 *column, const float4 *value, const float *b, float *c) {
  int4 k = column[blockIdx.x];
  float4 v = value[blockIdx.x];
  int j = threadIdx.x;
  c[blockIdx.x * 32 + j] = v.x * b[k.x * 32 + j] + v.y * b[k.y * 32 + j] + v.z * b[k.z * 32 + j] + v.w * b[k.w * 32 + j];
}

//! kernel conjugate_gradient conjugate-gradient
//! launch 1 16
//! args a=f64[16,16]:positive_definite b=f64[16]:normal x=f64[16]:zeros
//! out x:1e-7:1e-7 -> linear.solve
__device__ double block_dot(double u, double v, double *s) {
  __syncthreads();
  s[threadIdx.x] = u * v;
  __syncthreads();
  double total = 0;
  for (int i = 0; i < 16; ++i) total += s[i];
  return total;
}
KERNEL conjugate_gradient(const double *a, const double *b, double *x) {
  __shared__ double s[16], direction[16];
  int i = threadIdx.x;
  double xi = 0, r = b[i], p = r, rr = block_dot(r, r, s);
  for (int step = 0; step < 16 && rr > 1e-24; ++step) {
    __syncthreads();
    direction[i] = p;
    __syncthreads();
    double q = 0;
    for (int j = 0; j < 16; ++j) q += a[i * 16 + j] * direction[j];
    double alpha = rr / block_dot(p, q, s);
    xi += alpha * p;
    r -= alpha * q;
    double next = block_dot(r, r, s);
    p = r + next / rr * p;
    rr = next;
  }
  x[i] = xi;
}

//! kernel givens_rotations jacobi-eigenvalues
//! launch 1 32
//! args a=f32[32,3]:normal e=f32[32,2]:zeros
//! out e:1e-4:1e-4 -> linear.symmetric_2x2
KERNEL givens_rotations(const float *a, float *e) {
  float p = a[3 * threadIdx.x], q = a[3 * threadIdx.x + 1], r = a[3 * threadIdx.x + 2];
  float theta = 0.5f * atan2f(2 * q, p - r), c, s;
  c = cosf(theta);
  s = sinf(theta);
  e[2 * threadIdx.x] = c * c * p + 2 * c * s * q + s * s * r;
  e[2 * threadIdx.x + 1] = s * s * p - 2 * c * s * q + c * c * r;
}
