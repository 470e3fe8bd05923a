// Physics, finance, random numbers, fractals.
//! build nvrtc 13.4.92 sm_100 -lineinfo
typedef unsigned u32;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void

//! kernel nbody_forces n-body
//! launch 1 64
//! args body=f32[64,4]:uniform acceleration=f32[64,3]:zeros
//! out acceleration:1e-3:1e-2 -> simulation.nbody
KERNEL nbody_forces(const float4 *body, float *acceleration) {
  __shared__ float4 s[64];
  float4 me = s[threadIdx.x] = body[threadIdx.x];
  __syncthreads();
  float ax = 0, ay = 0, az = 0;
  for (int j = 0; j < 64; ++j) {
    float x = s[j].x - me.x, y = s[j].y - me.y, z = s[j].z - me.z;
    float inverse = rsqrtf(x * x + y * y + z * z + 0.01f), f = s[j].w * inverse * inverse * inverse;
    ax += x * f;
    ay += y * f;
    az += z * f;
  }
  acceleration[3 * threadIdx.x] = ax;
  acceleration[3 * threadIdx.x + 1] = ay;
  acceleration[3 * threadIdx.x + 2] = az;
}

//! kernel mandelbrot mandelbrot
//! launch 2x2 8x8
//! args limit=i32:40 count=i32[16,16]:zeros
//! out count -> simulation.mandelbrot
KERNEL mandelbrot(int limit, int *count) {
  int i = blockIdx.x * 8 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y, n = 0;
  double cr = -2.0 + i * 0.1875, ci = -1.5 + j * 0.1875, x = 0, y = 0;
  while (n < limit && x * x + y * y <= 4.0) {
    double next = x * x - y * y + cr;
    y = 2 * x * y + ci;
    x = next;
    ++n;
  }
  count[j * 16 + i] = n;
}

//! kernel monte_carlo_pi monte-carlo
//! launch 2 32
//! args samples=i32:20 hits=u32[1]:zeros
//! out hits -> simulation.monte_carlo_pi
KERNEL monte_carlo_pi(int samples, u32 *hits) {
  u32 s = (blockIdx.x * 32 + threadIdx.x) * 747796405u + 2891336453u, inside = 0;
  for (int i = 0; i < samples; ++i) {
    s ^= s << 13, s ^= s >> 17, s ^= s << 5;
    u32 x = s >> 18;
    s ^= s << 13, s ^= s >> 17, s ^= s << 5;
    u32 y = s >> 18;
    inside += x * x + y * y < (1u << 28);
  }
  atomicAdd(hits, inside);
}

//! kernel philox4x32 philox
//! launch 1 32
//! args key=u32[2]:bits out=u32[32,4]:zeros
//! out out -> simulation.philox
KERNEL philox4x32(const u32 *key, uint4 *out) {
  uint4 c = make_uint4(threadIdx.x, 0, 0, 0);
  u32 k0 = key[0], k1 = key[1];
#pragma unroll
  for (int i = 0; i < 10; ++i) {
    u32 high0 = __umulhi(0xd2511f53u, c.x), low0 = 0xd2511f53u * c.x;
    u32 high1 = __umulhi(0xcd9e8d57u, c.z), low1 = 0xcd9e8d57u * c.z;
    c = make_uint4(high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0);
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  out[threadIdx.x] = c;
}

//! kernel pcg32 permuted-congruential
//! launch 1 32
//! args out=u32[32,8]:zeros
//! out out -> simulation.pcg32
KERNEL pcg32(u32 *out) {
  u64 state = threadIdx.x * 0x9e3779b97f4a7c15ull + 1;
  for (int i = 0; i < 8; ++i) {
    u64 old = state;
    state = old * 6364136223846793005ull + 1442695040888963407ull;
    u32 x = (u32)((old >> 18 ^ old) >> 27), r = (u32)(old >> 59);
    out[threadIdx.x * 8 + i] = x >> r | x << (-r & 31);
  }
}

//! kernel box_muller gaussian-sampling
//! launch 1 32
//! args u=f32[32,2]:uniform(low=0.01,high=0.99) z=f32[32,2]:zeros
//! out z:1e-4:1e-4 -> simulation.box_muller
KERNEL box_muller(const float2 *u, float2 *z) {
  float2 v = u[threadIdx.x];
  float r = sqrtf(-2.0f * logf(v.x)), s = sinf(6.2831853f * v.y), c = cosf(6.2831853f * v.y);
  z[threadIdx.x] = make_float2(r * c, r * s);
}

//! kernel black_scholes black-scholes
//! launch 1 64
//! args s=f32[64]:uniform(low=20.0,high=60.0) k=f32[64]:uniform(low=20.0,high=60.0) t=f32[64]:uniform(low=0.2,high=3.0) call=f32[64]:zeros put=f32[64]:zeros
//! out call:1e-3:1e-2 put:1e-3:1e-2 -> simulation.black_scholes
__device__ float normal_cdf(float d) { return 0.5f * erfcf(-0.70710678f * d); }
KERNEL black_scholes(const float *s, const float *k, const float *t, float *call, float *put) {
  int i = threadIdx.x;
  float sigma = 0.3f * sqrtf(t[i]), d1 = (logf(s[i] / k[i]) + (0.02f + 0.045f) * t[i]) / sigma, d2 = d1 - sigma;
  float discounted = k[i] * expf(-0.02f * t[i]);
  call[i] = s[i] * normal_cdf(d1) - discounted * normal_cdf(d2);
  put[i] = discounted * normal_cdf(-d2) - s[i] * normal_cdf(-d1);
}

//! kernel binomial_option binomial-tree
//! launch 1 33
//! args spot=f32:40.0 strike=f32:38.0 out=f32[1]:zeros
//! out out:1e-3:1e-3 -> simulation.binomial
KERNEL binomial_option(float spot, float strike, float *out) {
  __shared__ float value[33];
  int t = threadIdx.x;
  float up = 1.05f, p = (1.001f - 1.0f / up) / (up - 1.0f / up);
  value[t] = fmaxf(spot * powf(up, 2.0f * t - 32.0f) - strike, 0.0f);
  for (int step = 32; step > 0; --step) {
    __syncthreads();
    float v = t < step ? (p * value[t + 1] + (1 - p) * value[t]) / 1.001f : 0;
    __syncthreads();
    if (t < step) value[t] = v;
  }
  if (t == 0) *out = value[0];
}

//! kernel ising_sweep ising-model
//! launch 1 8x16
//! args beta=f32:0.4 spin=i8[16,16]:values(values=[1,-1,-1,1,1,1,-1]) u=f32[16,16]:uniform
//! out spin -> simulation.ising
KERNEL ising_sweep(float beta, signed char *spin, const float *u) {
  int j = threadIdx.y;
  for (int colour = 0; colour < 2; ++colour) {
    int i = 2 * threadIdx.x + ((j + colour) & 1);
    int field = spin[j * 16 + ((i + 1) & 15)] + spin[j * 16 + ((i - 1) & 15)] + spin[((j + 1) & 15) * 16 + i] +
                spin[((j - 1) & 15) * 16 + i];
    int s = spin[j * 16 + i];
    if (u[j * 16 + i] < expf(-2.0f * beta * s * field)) spin[j * 16 + i] = -s;
    __syncthreads();
  }
}

//! kernel runge_kutta ode-integration
//! launch 1 16
//! args y=f64[16,2]:normal
//! out y:1e-11:1e-11 -> simulation.pendulum
KERNEL runge_kutta(double *y) {
  double a = y[2 * threadIdx.x], v = y[2 * threadIdx.x + 1];
  const double h = 0.05;
  for (int i = 0; i < 10; ++i) {
    double k1 = v, l1 = -sin(a);
    double k2 = v + 0.5 * h * l1, l2 = -sin(a + 0.5 * h * k1);
    double k3 = v + 0.5 * h * l2, l3 = -sin(a + 0.5 * h * k2);
    double k4 = v + h * l3, l4 = -sin(a + h * k3);
    a += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
    v += h / 6 * (l1 + 2 * l2 + 2 * l3 + l4);
  }
  y[2 * threadIdx.x] = a;
  y[2 * threadIdx.x + 1] = v;
}

//! kernel verlet_chain mass-spring
//! launch 1 32
//! args x=f32[32]:normal before=f32[32]:normal out=f32[32]:zeros
//! out out:1e-4:1e-5 -> simulation.verlet
KERNEL verlet_chain(const float *x, const float *before, float *out) {
  int t = threadIdx.x;
  float now = x[t], old = before[t];
  for (int i = 0; i < 4; ++i) {
    float left = __shfl_up_sync(~0u, now, 1), right = __shfl_down_sync(~0u, now, 1);
    float force = (t ? left - now : 0.0f) + (t < 31 ? right - now : 0.0f), next = 2 * now - old + 0.1f * force;
    old = now;
    now = next;
  }
  out[t] = now;
}

//! kernel ray_march distance-field
//! launch 1 8x8
//! args depth=f32[8,8]:zeros
//! out depth:1e-3:1e-3 -> simulation.ray_march
KERNEL ray_march(float *depth) {
  float x = (threadIdx.x - 3.5f) * 0.2f, y = (threadIdx.y - 3.5f) * 0.2f, t = 0;
  float inverse = rsqrtf(x * x + y * y + 1);
  for (int i = 0; i < 32 && t < 10.0f; ++i) {
    float a = x * inverse * t, b = y * inverse * t, c = inverse * t - 3.0f;
    float q = sqrtf(a * a + b * b) - 0.8f, d = sqrtf(q * q + c * c) - 0.3f;
    t += 0.9f * d;
  }
  depth[threadIdx.y * 8 + threadIdx.x] = fminf(t, 10.0f);
}

//! kernel metropolis_integral numerical-integration
//! launch 1 64
//! args n=i32:256 out=f64[1]:zeros
//! out out:1e-10:1e-10 -> simulation.simpson
KERNEL metropolis_integral(int n, double *out) {
  __shared__ double part[64];
  double acc = 0, h = 2.0 / n;
  for (int i = threadIdx.x; i <= n; i += 64) {
    double x = i * h, w = i == 0 || i == n ? 1 : i & 1 ? 4 : 2;
    acc += w * exp(-x * x);
  }
  part[threadIdx.x] = acc * h / 3;
  __syncthreads();
  for (int s = 32; s; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}
