// Transforms and filters of signals.
//! build nvrtc 12.9.86 sm_120a -use_fast_math
#define KERNEL extern "C" __global__ void

//! kernel fft_radix2 fft
//! launch 1 32
//! args x=f32[64,2]:normal y=f32[64,2]:zeros
//! out y:1e-3:1e-3 -> signal.fft
KERNEL fft_radix2(const float2 *x, float2 *y) {
  __shared__ float2 s[64];
  int t = threadIdx.x;
  for (int i = t; i < 64; i += 32) s[__brev(i) >> 26] = x[i];
  for (int half = 1; half < 64; half *= 2) {
    __syncthreads();
    int k = t & (half - 1), i = 2 * t - k;
    float angle = -3.14159265f * k / half, wr = cosf(angle), wi = sinf(angle);
    float2 a = s[i], b = s[i + half];
    float re = b.x * wr - b.y * wi, im = b.x * wi + b.y * wr;
    s[i] = make_float2(a.x + re, a.y + im);
    s[i + half] = make_float2(a.x - re, a.y - im);
  }
  __syncthreads();
  y[t] = s[t];
  y[t + 32] = s[t + 32];
}

//! kernel fft_stockham fft
//! launch 1 16
//! args x=f32[64,2]:normal y=f32[64,2]:zeros
//! out y:1e-3:1e-3 -> signal.fft
KERNEL fft_stockham(const float2 *x, float2 *y) {
  __shared__ float2 s[64];
  int t = threadIdx.x;
  float2 v[4];
  for (int i = 0; i < 4; ++i) v[i] = x[t + 16 * i];
  for (int span = 1; span < 64; span *= 4) {
    int k = t & (span - 1);
    for (int i = 1; i < 4; ++i) {
      float angle = -1.57079633f * i * k / span, c = cosf(angle), d = sinf(angle);
      v[i] = make_float2(v[i].x * c - v[i].y * d, v[i].x * d + v[i].y * c);
    }
    float2 a = make_float2(v[0].x + v[2].x, v[0].y + v[2].y), b = make_float2(v[0].x - v[2].x, v[0].y - v[2].y);
    float2 c = make_float2(v[1].x + v[3].x, v[1].y + v[3].y), d = make_float2(v[1].y - v[3].y, v[3].x - v[1].x);
    int base = (t - k) * 4 + k;
    __syncthreads();
    s[base] = make_float2(a.x + c.x, a.y + c.y);
    s[base + span] = make_float2(b.x + d.x, b.y + d.y);
    s[base + 2 * span] = make_float2(a.x - c.x, a.y - c.y);
    s[base + 3 * span] = make_float2(b.x - d.x, b.y - d.y);
    __syncthreads();
    for (int i = 0; i < 4; ++i) v[i] = s[t + 16 * i];
  }
  for (int i = 0; i < 4; ++i) y[t + 16 * i] = v[i];
}

//! kernel dft_direct dft
//! launch 1 24
//! args n=i32:24 x=f32[24]:normal y=f32[24,2]:zeros
//! out y:1e-3:1e-3 -> signal.dft_real
KERNEL dft_direct(int n, const float *x, float2 *y) {
  float re = 0, im = 0;
  for (int i = 0; i < n; ++i) {
    float angle = 6.28318531f * ((i * threadIdx.x) % n) / n;
    re += x[i] * cosf(angle);
    im -= x[i] * sinf(angle);
  }
  y[threadIdx.x] = make_float2(re, im);
}

//! kernel dct_8x8 dct
//! launch 1 8x8
//! args x=f32[8,8]:normal y=f32[8,8]:zeros
//! out y:1e-3:1e-4 -> signal.dct
KERNEL dct_8x8(const float *x, float *y) {
  __shared__ float s[8][8];
  int u = threadIdx.x, v = threadIdx.y;
  float acc = 0;
  for (int i = 0; i < 8; ++i) acc += x[v * 8 + i] * cosf(0.19634954f * (2 * i + 1) * u);
  s[v][u] = acc * (u ? 0.5f : 0.35355339f);
  __syncthreads();
  acc = 0;
  for (int i = 0; i < 8; ++i) acc += s[i][u] * cosf(0.19634954f * (2 * i + 1) * v);
  y[v * 8 + u] = acc * (v ? 0.5f : 0.35355339f);
}

//! kernel haar_wavelet wavelet
//! launch 1 32
//! args x=f32[64]:normal y=f32[64]:zeros
//! out y:1e-5:1e-5 -> signal.haar
KERNEL haar_wavelet(const float *x, float *y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  s[t + 32] = x[t + 32];
  for (int n = 32; n > 0; n >>= 1) {
    __syncthreads();
    float a = 0, b = 0;
    if (t < n) a = s[2 * t], b = s[2 * t + 1];
    __syncthreads();
    if (t < n) s[t] = (a + b) * 0.70710678f, y[n + t] = (a - b) * 0.70710678f;
  }
  if (t == 0) y[0] = s[0];
}

//! kernel walsh_hadamard walsh-hadamard
//! launch 1 32
//! args x=i32[32]:integers(low=-50,high=50) y=i32[32]:zeros
//! out y -> signal.walsh
KERNEL walsh_hadamard(const int *x, int *y) {
  int v = x[threadIdx.x];
  for (int d = 1; d < 32; d *= 2) {
    int other = __shfl_xor_sync(0xffffffffu, v, d);
    v = threadIdx.x & d ? other - v : v + other;
  }
  y[threadIdx.x] = v;
}

__constant__ float taps[5] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};

//! kernel fir_filter fir-filter
//! launch 2 64
//! args x=f32[132]:normal y=f32[128]:zeros
//! out y:1e-5:1e-5 -> signal.fir
KERNEL fir_filter(const float *x, float *y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float acc = 0;
#pragma unroll
  for (int k = 0; k < 5; ++k) acc += taps[k] * x[i + k];
  y[i] = acc;
}

//! kernel iir_biquad iir-filter
//! launch 1 8
//! args x=f32[8,40]:normal y=f32[8,40]:zeros
//! out y:1e-4:1e-4 -> signal.biquad
KERNEL iir_biquad(const float *x, float *y) {
  float z1 = 0, z2 = 0;
  for (int i = 0; i < 40; ++i) {
    float v = x[threadIdx.x * 40 + i], out = 0.2f * v + z1;
    z1 = 0.4f * v + 0.5f * out + z2;
    z2 = 0.2f * v - 0.3f * out;
    y[threadIdx.x * 40 + i] = out;
  }
}

//! kernel goertzel goertzel
//! launch 1 16
//! args x=f32[50]:normal power=f32[16]:zeros
//! out power:1e-2:1e-2 -> signal.goertzel
KERNEL goertzel(const float *x, float *power) {
  float c = 2.0f * cosf(6.28318531f * threadIdx.x / 50.0f), a = 0, b = 0;
  for (int i = 0; i < 50; ++i) {
    float next = x[i] + c * a - b;
    b = a;
    a = next;
  }
  power[threadIdx.x] = a * a + b * b - c * a * b;
}

//! kernel autocorrelate autocorrelation
//! launch 1 32
//! args n=i32:80 x=f32[80]:normal r=f32[32]:zeros
//! out r:1e-4:1e-4 -> signal.autocorrelation
KERNEL autocorrelate(int n, const float *x, float *r) {
  float acc = 0;
  for (int i = 0; i + threadIdx.x < n; ++i) acc += x[i] * x[i + threadIdx.x];
  r[threadIdx.x] = acc;
}

//! kernel linear_resample resampling
//! launch 1 64
//! args ratio=f32:0.4375 x=f32[32]:normal y=f32[64]:zeros
//! out y:1e-4:1e-5 -> signal.resample
KERNEL linear_resample(float ratio, const float *x, float *y) {
  float at = threadIdx.x * ratio, floor_at = floorf(at), f = at - floor_at;
  int i = (int)floor_at;
  y[threadIdx.x] = x[i] + f * (x[min(i + 1, 31)] - x[i]);
}
