// The same kind of code at other optimisation levels: debug builds, line tables, relaxed mathematics.
//! build nvcc 13.0.88 sm_80 -Xcicc -O0 as=o0
//! build nvrtc 13.4.92 sm_120 -G -DDEBUG as=debug
//! build nvrtc 12.6.85 sm_87 -lineinfo -DLINES as=lines
//! build nvcc 13.1.115 sm_120f -ftz=true -prec-div=false -prec-sqrt=false -DRELAXED as=relaxed
#define KERNEL extern "C" __global__ void

struct Vector {
  float x, y, z;
  __device__ Vector operator+(const Vector &o) const { return {x + o.x, y + o.y, z + o.z}; }
  __device__ Vector operator*(float s) const { return {x * s, y * s, z * s}; }
  __device__ float dot(const Vector &o) const { return x * o.x + y * o.y + z * o.z; }
};

#if defined(DEBUG)
//! kernel reflect_vectors reflection
//! launch 1 16
//! args v=f32[16,3]:normal n=f32[16,3]:normal r=f32[16,3]:zeros
//! out r:1e-4:1e-4 -> vector.reflect
KERNEL reflect_vectors(const Vector *v, const Vector *n, Vector *r) {
  Vector a = v[threadIdx.x], b = n[threadIdx.x];
  float scale = -2.0f * a.dot(b) / b.dot(b);
  r[threadIdx.x] = a + b * scale;
}
#elif defined(LINES)
//! kernel bubble_sort bubble-sort
//! launch 1 4
//! args keys=i32[4,12]:integers(low=-9,high=10)
//! out keys -> sort.rows_ascending
__device__ void swap_if(int &a, int &b) {
  if (a > b) {
    int t = a;
    a = b;
    b = t;
  }
}
KERNEL bubble_sort(int *keys) {
  int *row = keys + 12 * threadIdx.x;
  for (int i = 0; i < 11; ++i)
    for (int j = 0; j < 11 - i; ++j) swap_if(row[j], row[j + 1]);
}
//! kernel pascal_triangle binomial-coefficients
//! launch 1 32
//! args y=u32[32,32]:zeros
//! out y -> integers.pascal
KERNEL pascal_triangle(unsigned *y) {
  unsigned v = threadIdx.x == 0;
  for (int row = 0; row < 32; ++row) {
    y[row * 32 + threadIdx.x] = v;
    unsigned left = __shfl_up_sync(0xffffffffu, v, 1);
    if (threadIdx.x) v += left;
  }
}
#elif defined(RELAXED)
//! kernel normalise_vectors normalisation
//! launch 1 32
//! args v=f32[32,3]:normal r=f32[32,3]:zeros
//! out r:1e-4:1e-5 -> vector.normalise
KERNEL normalise_vectors(const Vector *v, Vector *r) {
  Vector a = v[threadIdx.x];
  r[threadIdx.x] = a * (1.0f / sqrtf(a.dot(a)));
}
//! kernel newton_roots newton-iteration
//! launch 1 32
//! args x=f32[32]:uniform(low=0.5,high=8.0) y=f32[32]:zeros
//! out y:1e-4:1e-5 -> vector.cube_root
KERNEL newton_roots(const float *x, float *y) {
  float v = x[threadIdx.x], r = 1.5f;
  for (int i = 0; i < 8; ++i) r -= (r * r * r - v) / (3.0f * r * r);
  y[threadIdx.x] = r;
}
#else
//! kernel triangle_areas triangle-area
//! launch 1 16
//! args t=f32[16,9]:normal area=f32[16]:zeros
//! out area:1e-4:1e-5 -> vector.triangle_areas
__device__ Vector cross(Vector a, Vector b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
KERNEL triangle_areas(const Vector *t, float *area) {
  Vector a = t[3 * threadIdx.x], u = t[3 * threadIdx.x + 1] + a * -1.0f, v = t[3 * threadIdx.x + 2] + a * -1.0f;
  Vector n = cross(u, v);
  area[threadIdx.x] = 0.5f * sqrtf(n.dot(n));
}
//! kernel trapezoid_sum numerical-integration
//! launch 1 32
//! args y=f32[32,5]:normal out=f32[32]:zeros
//! out out:1e-5:1e-5 -> vector.trapezoids
KERNEL trapezoid_sum(const float *y, float *out) {
  float sum = 0;
  int i = 1;
  while (i < 5) {
    sum += 0.5f * (y[threadIdx.x * 5 + i - 1] + y[threadIdx.x * 5 + i]);
    ++i;
  }
  out[threadIdx.x] = sum;
}
#endif
