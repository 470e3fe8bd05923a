// Images: filters, colours, geometry.
//! build nvcc 13.5.37 sm_86
typedef unsigned char u8;
#define KERNEL extern "C" __global__ void

//! kernel rgb_to_gray colour-conversion
//! launch 2 64
//! args rgb=u8[128,3]:bits gray=u8[128]:zeros
//! out gray -> image.gray
KERNEL rgb_to_gray(const u8 *rgb, u8 *gray) {
  int i = blockIdx.x * 64 + threadIdx.x;
  gray[i] = (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2] + 128) >> 8;
}

//! kernel rgb_to_yuv colour-conversion
//! launch 1 64
//! args rgb=u8[64,4]:bits yuv=f32[64,3]:zeros
//! out yuv:1e-4:1e-3 -> image.yuv
KERNEL rgb_to_yuv(const uchar4 *rgb, float *yuv) {
  uchar4 p = rgb[threadIdx.x];
  float y = 0.299f * p.x + 0.587f * p.y + 0.114f * p.z;
  yuv[3 * threadIdx.x] = y;
  yuv[3 * threadIdx.x + 1] = 0.492f * (p.z - y);
  yuv[3 * threadIdx.x + 2] = 0.877f * (p.x - y);
}

//! kernel hsv_to_rgb hsv
//! launch 1 64
//! args hsv=f32[64,3]:uniform rgb=f32[64,3]:zeros
//! out rgb:1e-4:1e-4 -> image.hsv_to_rgb
KERNEL hsv_to_rgb(const float *hsv, float *rgb) {
  float h = hsv[3 * threadIdx.x] * 6, s = hsv[3 * threadIdx.x + 1], v = hsv[3 * threadIdx.x + 2], r, g, b;
  int sector = (int)h;
  float f = h - sector, p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
  switch (sector) {
    case 0: r = v, g = t, b = p; break;
    case 1: r = q, g = v, b = p; break;
    case 2: r = p, g = v, b = t; break;
    case 3: r = p, g = q, b = v; break;
    case 4: r = t, g = p, b = v; break;
    default: r = v, g = p, b = q;
  }
  rgb[3 * threadIdx.x] = r, rgb[3 * threadIdx.x + 1] = g, rgb[3 * threadIdx.x + 2] = b;
}

//! kernel sobel edge-detection
//! launch 2x2 8x8
//! args x=u8[18,18]:bits y=i32[16,16]:zeros
//! out y -> image.sobel
KERNEL sobel(const u8 *x, int *y) {
  int c = blockIdx.x * 8 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  const u8 *a = x + r * 18 + c, *b = a + 18, *d = b + 18;
  int gx = a[2] - a[0] + 2 * (b[2] - b[0]) + d[2] - d[0], gy = d[0] - a[0] + 2 * (d[1] - a[1]) + d[2] - a[2];
  y[r * 16 + c] = abs(gx) + abs(gy);
}

//! kernel gaussian_rows gaussian-blur
//! launch 8 32
//! args x=f32[8,32]:uniform y=f32[8,32]:zeros
//! out y:1e-5:1e-5 -> image.gaussian_rows
KERNEL gaussian_rows(const float *x, float *y) {
  __shared__ float s[36];
  const float w[3] = {0.375f, 0.25f, 0.0625f};
  int t = threadIdx.x, row = blockIdx.x * 32;
  s[t + 2] = x[row + t];
  if (t < 2) s[t] = x[row], s[34 + t] = x[row + 31];
  __syncthreads();
  y[row + t] = w[0] * s[t + 2] + w[1] * (s[t + 1] + s[t + 3]) + w[2] * (s[t] + s[t + 4]);
}

//! kernel median_3x3 median-filter
//! launch 2x2 8x8
//! args x=i32[18,18]:integers(low=0,high=256) y=i32[16,16]:zeros
//! out y -> image.median
#define ORDER(a, b) { int lo = min(v[a], v[b]); v[b] = max(v[a], v[b]); v[a] = lo; }
KERNEL median_3x3(const int *x, int *y) {
  int c = blockIdx.x * 8 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y, v[9];
#pragma unroll
  for (int i = 0; i < 9; ++i) v[i] = x[(r + i / 3) * 18 + c + i % 3];
#pragma unroll
  for (int i = 0; i < 5; ++i)
#pragma unroll
    for (int j = 0; j < 8 - i; ++j) ORDER(j, j + 1)
  y[r * 16 + c] = v[4];
}

//! kernel bilateral bilateral-filter
//! launch 1 16x8
//! args x=f32[10,18]:uniform y=f32[8,16]:zeros
//! out y:1e-3:1e-4 -> image.bilateral
KERNEL bilateral(const float *x, float *y) {
  float centre = x[(threadIdx.y + 1) * 18 + threadIdx.x + 1], sum = 0, total = 0;
  for (int dy = 0; dy < 3; ++dy)
    for (int dx = 0; dx < 3; ++dx) {
      float v = x[(threadIdx.y + dy) * 18 + threadIdx.x + dx], d = v - centre;
      float w = __expf(-4.0f * d * d - 0.5f * ((dx - 1) * (dx - 1) + (dy - 1) * (dy - 1)));
      sum += w;
      total += w * v;
    }
  y[threadIdx.y * 16 + threadIdx.x] = total / sum;
}

//! kernel bilinear_resize bilinear-interpolation
//! launch 2x2 8x8
//! args x=f32[8,8]:uniform y=f32[16,16]:zeros
//! out y:1e-4:1e-5 -> image.resize
KERNEL bilinear_resize(const float *x, float *y) {
  int c = blockIdx.x * 8 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  float u = c * (7.0f / 15), v = r * (7.0f / 15);
  int i = min((int)u, 6), j = min((int)v, 6);
  float f = u - i, g = v - j;
  const float *p = x + j * 8 + i;
  y[r * 16 + c] = (1 - g) * ((1 - f) * p[0] + f * p[1]) + g * ((1 - f) * p[8] + f * p[9]);
}

//! kernel erode morphology
//! launch 1 32
//! args x=u32[32]:bits y=u32[32]:zeros
//! out y -> image.erode
KERNEL erode(const unsigned *x, unsigned *y) {
  unsigned v = x[threadIdx.x], wide = v & v << 1 & v >> 1;
  unsigned above = __shfl_up_sync(~0u, v, 1), below = __shfl_down_sync(~0u, v, 1);
  y[threadIdx.x] = wide & (threadIdx.x ? above : 0) & (threadIdx.x < 31 ? below : 0);
}

//! kernel alpha_blend alpha-blending
//! launch 1 64
//! args a=u8[64,4]:bits b=u8[64,4]:bits out=u8[64,4]:zeros
//! out out -> image.blend
KERNEL alpha_blend(const uchar4 *a, const uchar4 *b, uchar4 *out) {
  uchar4 p = a[threadIdx.x], q = b[threadIdx.x];
  int w = p.w, rest = 255 - w;
  out[threadIdx.x] = make_uchar4((p.x * w + q.x * rest) / 255, (p.y * w + q.y * rest) / 255,
                                 (p.z * w + q.z * rest) / 255, (255 * w + q.w * rest) / 255);
}

//! kernel ordered_dither dithering
//! launch 1 16x16
//! args x=u8[16,16]:bits y=u8[16,16]:zeros
//! out y -> image.dither
__constant__ u8 bayer[16] = {0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5};
KERNEL ordered_dither(const u8 *x, u8 *y) {
  int i = threadIdx.y * 16 + threadIdx.x;
  y[i] = x[i] > bayer[(threadIdx.y & 3) * 4 + (threadIdx.x & 3)] * 16 + 8 ? 255 : 0;
}

//! kernel equalise histogram-equalisation
//! launch 1 64
//! args x=u8[256]:integers(low=40,high=104) y=u8[256]:zeros
//! out y -> image.equalise
KERNEL equalise(const u8 *x, u8 *y) {
  __shared__ int count[256];
  for (int i = threadIdx.x; i < 256; i += 64) count[i] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 64) atomicAdd(&count[x[i]], 1);
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < 256; ++i) count[i] += count[i - 1];
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 64) y[i] = (count[x[i]] * 255 + 128) >> 8;
}

//! kernel rotate_quarter rotation
//! launch 1 16x16
//! args x=u32[16,16]:bits y=u32[16,16]:zeros
//! out y -> image.rotate
KERNEL rotate_quarter(const unsigned *x, unsigned *y) { y[threadIdx.x * 16 + 15 - threadIdx.y] = x[threadIdx.y * 16 + threadIdx.x]; }

//! kernel distance_transform distance-transform
//! launch 1 32
//! args x=u8[32]:values(values=[0,0,0,1,0,0,0,0,0,0,1,0,0]) d=i32[32]:zeros
//! out d -> image.distance
KERNEL distance_transform(const u8 *x, int *d) {
  unsigned set = __ballot_sync(~0u, x[threadIdx.x]), t = threadIdx.x;
  unsigned right = set >> t, left = set << (31 - t);
  int to_right = right ? __ffs(right) - 1 : 99, to_left = left ? __clz(left) : 99;
  d[t] = min(to_right, to_left);
}
