// Element-wise kernels over vectors.
//! build nvrtc 12.0.140 sm_75
#define KERNEL extern "C" __global__ void
#define INDEX (int)(blockIdx.x * blockDim.x + threadIdx.x)

//! kernel saxpy axpy
//! launch 4 64
//! args n=i32:250 a=f32:2.5 x=f32[250]:normal y=f32[250]:normal
//! out y:1e-6:1e-6 -> vector.saxpy
KERNEL saxpy(int n, float a, const float *x, float *y) {
  int i = INDEX;
  if (i < n) y[i] = a * x[i] + y[i];
}

//! kernel daxpy_strided axpy
//! launch 2 32
//! args n=i32:250 a=f64:-1.25 x=f64[250]:normal y=f64[250]:normal
//! out y:1e-14:1e-14 -> vector.saxpy
KERNEL daxpy_strided(int n, double a, const double *x, double *y) {
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

//! kernel add_float4 vector-add
//! launch 2 32
//! args a=f32[256]:normal b=f32[256]:normal c=f32[256]:zeros
//! out c -> vector.add
KERNEL add_float4(const float4 *a, const float4 *b, float4 *c) {
  int i = INDEX;
  float4 p = a[i], q = b[i];
  c[i] = make_float4(p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w);
}

//! kernel horner polynomial
//! launch 2 64
//! args n=i32:120 x=f32[120]:uniform(low=-1.0,high=1.0) y=f32[120]:zeros
//! out y:1e-5:1e-6 -> vector.horner
KERNEL horner(int n, const float *x, float *y) {
  const float c[6] = {1.0f, -0.5f, 0.25f, 2.0f, -1.5f, 0.125f};
  int i = INDEX;
  if (i >= n) return;
  float r = c[5];
#pragma unroll
  for (int k = 4; k >= 0; --k) r = r * x[i] + c[k];
  y[i] = r;
}

//! kernel gelu gelu
//! launch 2 64
//! args n=i32:128 x=f32[128]:normal y=f32[128]:zeros
//! out y:1e-4:1e-5 -> vector.gelu
KERNEL gelu(int n, const float *x, float *y) {
  int i = INDEX;
  if (i < n) y[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

//! kernel swiglu swiglu
//! launch 2 64
//! args n=i32:128 x=f32[128]:normal g=f32[128]:normal y=f32[128]:zeros
//! out y:1e-5:1e-6 -> vector.swiglu
KERNEL swiglu(int n, const float *x, const float *g, float *y) {
  int i = INDEX;
  if (i < n) y[i] = x[i] * g[i] / (1.0f + expf(-g[i]));
}

//! kernel clamp_select clamp
//! launch 1 128
//! args lo=i32:-20 hi=i32:30 x=i32[128]:integers(low=-100,high=100) y=i32[128]:zeros
//! out y -> vector.clamp
KERNEL clamp_select(int lo, int hi, const int *x, int *y) { y[threadIdx.x] = min(max(x[threadIdx.x], lo), hi); }

//! kernel transcendental elementary-functions
//! launch 1 64
//! args x=f32[64]:uniform(low=0.1,high=4.0) y=f32[8,64]:zeros
//! out y:3e-5:3e-5 -> vector.transcendental
KERNEL transcendental(const float *x, float *y) {
  int i = threadIdx.x;
  float v = x[i];
  y[i] = sinf(v);
  y[64 + i] = cosf(v);
  y[128 + i] = expf(v);
  y[192 + i] = logf(v);
  y[256 + i] = sqrtf(v);
  y[320 + i] = rsqrtf(v);
  y[384 + i] = atan2f(v, 1.5f);
  y[448 + i] = powf(v, 1.7f);
}

//! kernel fast_math elementary-functions
//! launch 1 64
//! args x=f32[64]:uniform(low=0.1,high=3.0) y=f32[6,64]:zeros
//! out y:1e-4:1e-4 -> vector.fast_math
KERNEL fast_math(const float *x, float *y) {
  int i = threadIdx.x;
  float v = x[i];
  y[i] = __sinf(v);
  y[64 + i] = __cosf(v);
  y[128 + i] = __expf(v);
  y[192 + i] = __log2f(v);
  y[256 + i] = __fdividef(1.0f, v);
  y[320 + i] = __frsqrt_rn(v);
}

//! kernel rounding_modes directed-rounding
//! launch 1 32
//! args a=f32[32]:normal b=f32[32]:normal y=f32[4,32]:zeros
//! out y -> vector.directed_sums
KERNEL rounding_modes(const float *a, const float *b, float *y) {
  int i = threadIdx.x;
  y[i] = __fadd_rn(a[i], b[i]);
  y[32 + i] = __fadd_rd(a[i], b[i]);
  y[64 + i] = __fadd_ru(a[i], b[i]);
  y[96 + i] = __fadd_rz(a[i], b[i]);
}

//! kernel double_arithmetic double-precision
//! launch 1 32
//! args a=f64[32]:normal b=f64[32]:uniform(low=0.5,high=2.0) y=f64[5,32]:zeros
//! out y:1e-15:0 -> vector.double_arithmetic
KERNEL double_arithmetic(const double *a, const double *b, double *y) {
  int i = threadIdx.x;
  y[i] = a[i] / b[i];
  y[32 + i] = sqrt(b[i]);
  y[64 + i] = fma(a[i], b[i], 1.0);
  y[96 + i] = fabs(a[i]) + floor(b[i]) + ceil(a[i]) + rint(b[i]);
  y[128 + i] = fmin(a[i], b[i]) - fmax(a[i], b[i]);
}

//! kernel float_to_int_conversions conversion
//! launch 1 32
//! args x=f32[32]:uniform(low=-50.0,high=50.0) y=i32[6,32]:zeros
//! out y -> vector.float_to_int
KERNEL float_to_int_conversions(const float *x, int *y) {
  int i = threadIdx.x;
  y[i] = __float2int_rn(x[i]);
  y[32 + i] = __float2int_rz(x[i]);
  y[64 + i] = __float2int_ru(x[i]);
  y[96 + i] = __float2int_rd(x[i]);
  y[128 + i] = __float_as_int(x[i]);
  y[160 + i] = (signed char)x[i] + (short)(x[i] * 3.0f) + (unsigned char)__float2int_rz(fabsf(x[i]));
}

//! kernel complex_multiply complex-product
//! launch 1 64
//! args a=f32[64,2]:normal b=f32[64,2]:normal c=f32[64,2]:zeros
//! out c:1e-5:1e-6 -> vector.complex_multiply
KERNEL complex_multiply(const float2 *a, const float2 *b, float2 *c) {
  int i = threadIdx.x;
  float2 p = a[i], q = b[i];
  c[i] = make_float2(p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x);
}

//! kernel quaternion_rotate quaternion-rotation
//! launch 1 32
//! args q=f32[32,4]:normal v=f32[32,3]:normal r=f32[32,3]:zeros
//! out r:1e-4:1e-4 -> vector.quaternion_rotate
KERNEL quaternion_rotate(const float4 *q, const float *v, float *r) {
  int i = threadIdx.x;
  float4 p = q[i];
  float s = 1.0f / (p.x * p.x + p.y * p.y + p.z * p.z + p.w * p.w);
  float a = v[3 * i], b = v[3 * i + 1], c = v[3 * i + 2];
  float tx = 2 * (p.y * c - p.z * b), ty = 2 * (p.z * a - p.x * c), tz = 2 * (p.x * b - p.y * a);
  r[3 * i] = a + s * (p.w * tx + p.y * tz - p.z * ty);
  r[3 * i + 1] = b + s * (p.w * ty + p.z * tx - p.x * tz);
  r[3 * i + 2] = c + s * (p.w * tz + p.x * ty - p.y * tx);
}

//! kernel ray_sphere ray-intersection
//! launch 1 64
//! args o=f32[64,3]:uniform(low=-2.0,high=2.0) d=f32[64,3]:normal t=f32[64]:zeros
//! out t:1e-3:1e-3 -> vector.ray_sphere
KERNEL ray_sphere(const float *o, const float *d, float *t) {
  int i = threadIdx.x;
  const float *p = o + 3 * i, *q = d + 3 * i;
  float a = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
  float b = p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
  float c = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] - 1.0f;
  float disc = b * b - a * c;
  t[i] = disc < 0.0f ? -1.0f : (-b + sqrtf(disc)) / a;
}
