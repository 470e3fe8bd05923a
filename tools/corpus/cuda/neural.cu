// Layers of neural networks in single precision.
//! build nvrtc 12.8.93 sm_90
#define KERNEL extern "C" __global__ void
#define FULL 0xffffffffu

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(FULL, v, d);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(FULL, v, d));
  return v;
}

//! kernel softmax_rows softmax
//! launch 8 32
//! args n=i32:50 x=f32[8,50]:normal y=f32[8,50]:zeros
//! out y:1e-5:1e-6 -> neural.softmax
KERNEL softmax_rows(int n, const float *x, float *y) {
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  float top = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) top = fmaxf(top, x[i]);
  top = warp_max(top);
  for (int i = threadIdx.x; i < n; i += 32) sum += __expf(x[i] - top);
  sum = warp_sum(sum);
  for (int i = threadIdx.x; i < n; i += 32) y[i] = __expf(x[i] - top) / sum;
}

//! kernel softmax_online softmax
//! launch 1 16
//! args x=f32[16,24]:normal y=f32[16,24]:zeros
//! out y:1e-5:1e-6 -> neural.softmax
KERNEL softmax_online(const float *x, float *y) {
  int row = threadIdx.x * 24;
  float top = x[row], sum = 1;
  for (int i = 1; i < 24; ++i) {
    float v = x[row + i], next = fmaxf(top, v);
    sum = sum * expf(top - next) + expf(v - next);
    top = next;
  }
  for (int i = 0; i < 24; ++i) y[row + i] = expf(x[row + i] - top) / sum;
}

//! kernel layer_norm layer-norm
//! launch 4 32
//! args x=f32[4,64]:normal gain=f32[64]:normal bias=f32[64]:normal y=f32[4,64]:zeros
//! out y:1e-4:1e-5 -> neural.layer_norm
KERNEL layer_norm(const float2 *x, const float2 *gain, const float2 *bias, float2 *y) {
  int t = threadIdx.x;
  float2 v = x[blockIdx.x * 32 + t];
  float mean = warp_sum(v.x + v.y) / 64;
  v.x -= mean;
  v.y -= mean;
  float scale = rsqrtf(warp_sum(v.x * v.x + v.y * v.y) / 64 + 1e-5f);
  y[blockIdx.x * 32 + t] = make_float2(v.x * scale * gain[t].x + bias[t].x, v.y * scale * gain[t].y + bias[t].y);
}

//! kernel rms_norm rms-norm
//! launch 4 64
//! args x=f32[4,128]:normal gain=f32[128]:normal y=f32[4,128]:zeros
//! out y:1e-4:1e-5 -> neural.rms_norm
KERNEL rms_norm(const float *x, const float *gain, float *y) {
  __shared__ float parts[2];
  int t = threadIdx.x;
  float a = x[blockIdx.x * 128 + t], b = x[blockIdx.x * 128 + 64 + t], s = warp_sum(a * a + b * b);
  if ((t & 31) == 0) parts[t >> 5] = s;
  __syncthreads();
  float scale = rsqrtf((parts[0] + parts[1]) / 128 + 1e-6f);
  y[blockIdx.x * 128 + t] = a * scale * gain[t];
  y[blockIdx.x * 128 + 64 + t] = b * scale * gain[64 + t];
}

//! kernel attention_row attention
//! launch 8 32
//! args q=f32[8,16]:normal k=f32[32,16]:normal v=f32[32,16]:normal o=f32[8,16]:zeros
//! out o:1e-4:1e-5 -> neural.attention
KERNEL attention_row(const float *q, const float *k, const float *v, float *o) {
  __shared__ float p[32];
  int t = threadIdx.x;
  float s = 0;
  for (int i = 0; i < 16; ++i) s += q[blockIdx.x * 16 + i] * k[t * 16 + i];
  s *= 0.25f;
  float e = __expf(s - warp_max(s));
  p[t] = e / warp_sum(e);
  __syncwarp();
  if (t < 16) {
    float acc = 0;
    for (int j = 0; j < 32; ++j) acc += p[j] * v[j * 16 + t];
    o[blockIdx.x * 16 + t] = acc;
  }
}

//! kernel flash_attention causal-attention
//! launch 1 32
//! args q=f32[32,16]:normal k=f32[32,16]:normal v=f32[32,16]:normal o=f32[32,16]:zeros
//! out o:1e-4:1e-5 -> neural.causal_attention
KERNEL flash_attention(const float *q, const float *k, const float *v, float *o) {
  __shared__ float ks[8][16], vs[8][16];
  int row = threadIdx.x;
  float mine[16], acc[16], top = -1e30f, sum = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) mine[i] = q[row * 16 + i] * 0.25f, acc[i] = 0;
  for (int base = 0; base < 32; base += 8) {
    __syncthreads();
    for (int i = row; i < 128; i += 32) ks[i >> 4][i & 15] = k[base * 16 + i], vs[i >> 4][i & 15] = v[base * 16 + i];
    __syncthreads();
    for (int j = 0; j < 8 && base + j <= row; ++j) {
      float s = 0;
#pragma unroll
      for (int i = 0; i < 16; ++i) s += mine[i] * ks[j][i];
      float next = fmaxf(top, s), shrink = __expf(top - next), p = __expf(s - next);
      sum = sum * shrink + p;
#pragma unroll
      for (int i = 0; i < 16; ++i) acc[i] = acc[i] * shrink + p * vs[j][i];
      top = next;
    }
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) o[row * 16 + i] = acc[i] / sum;
}

//! kernel conv2d convolution
//! launch 4 8x8
//! args x=f32[3,10,10]:normal w=f32[4,3,3,3]:normal y=f32[4,8,8]:zeros
//! out y:1e-5:1e-4 -> neural.conv2d
KERNEL conv2d(const float *x, const float *w, float *y) {
  float acc = 0;
  for (int c = 0; c < 3; ++c)
#pragma unroll
    for (int r = 0; r < 3; ++r)
#pragma unroll
      for (int s = 0; s < 3; ++s)
        acc += x[(c * 10 + threadIdx.y + r) * 10 + threadIdx.x + s] * w[((blockIdx.x * 3 + c) * 3 + r) * 3 + s];
  y[(blockIdx.x * 8 + threadIdx.y) * 8 + threadIdx.x] = acc;
}

//! kernel depthwise_conv1d depthwise-convolution
//! launch 8 32
//! args x=f32[8,34]:normal w=f32[8,3]:normal y=f32[8,32]:zeros
//! out y:1e-5:1e-5 -> neural.depthwise
KERNEL depthwise_conv1d(const float *x, const float *w, float *y) {
  int c = blockIdx.x, t = threadIdx.x;
  y[c * 32 + t] = x[c * 34 + t] * w[c * 3] + x[c * 34 + t + 1] * w[c * 3 + 1] + x[c * 34 + t + 2] * w[c * 3 + 2];
}

//! kernel max_pool max-pooling
//! launch 1 8x8
//! args x=f32[16,16]:normal y=f32[8,8]:zeros which=i32[8,8]:zeros
//! out y which -> neural.max_pool
KERNEL max_pool(const float *x, float *y, int *which) {
  int base = threadIdx.y * 32 + threadIdx.x * 2, best = 0;
  float top = x[base];
  for (int k = 1; k < 4; ++k) {
    float v = x[base + (k >> 1) * 16 + (k & 1)];
    if (v > top) top = v, best = k;
  }
  y[threadIdx.y * 8 + threadIdx.x] = top;
  which[threadIdx.y * 8 + threadIdx.x] = best;
}

//! kernel cross_entropy cross-entropy
//! launch 8 32
//! args x=f32[8,32]:normal label=i32[8]:integers(low=0,high=32) loss=f32[8]:zeros
//! out loss:1e-4:1e-5 -> neural.cross_entropy
KERNEL cross_entropy(const float *x, const int *label, float *loss) {
  float v = x[blockIdx.x * 32 + threadIdx.x], top = warp_max(v);
  float sum = warp_sum(__expf(v - top));
  if (threadIdx.x == label[blockIdx.x]) loss[blockIdx.x] = logf(sum) + top - v;
}

//! kernel embedding_lookup embedding
//! launch 10 16
//! args token=i64[10]:integers(low=0,high=30) table=f32[30,64]:normal y=f32[10,64]:zeros
//! out y -> neural.embedding
KERNEL embedding_lookup(const long long *token, const float4 *table, float4 *y) {
  y[blockIdx.x * 16 + threadIdx.x] = table[token[blockIdx.x] * 16 + threadIdx.x];
}

//! kernel rotary rotary-embedding
//! launch 8 16
//! args x=f32[8,32]:normal y=f32[8,32]:zeros
//! out y:1e-4:1e-4 -> neural.rotary
KERNEL rotary(const float2 *x, float2 *y) {
  float angle = blockIdx.x * exp2f(-0.75f * threadIdx.x), s = sinf(angle), c = cosf(angle);
  float2 v = x[blockIdx.x * 16 + threadIdx.x];
  y[blockIdx.x * 16 + threadIdx.x] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

//! kernel adam_step adam
//! launch 1 64
//! args lr=f32:0.01 w=f32[64]:normal g=f32[64]:normal m=f32[64]:normal v=f32[64]:uniform
//! out w:1e-5:1e-5 m:1e-5:1e-6 v:1e-5:1e-6 -> neural.adam
KERNEL adam_step(float lr, float *w, const float *g, float *m, float *v) {
  int i = threadIdx.x;
  m[i] = 0.9f * m[i] + 0.1f * g[i];
  v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
  w[i] -= lr * m[i] / (sqrtf(v[i]) + 1e-8f);
}

//! kernel batch_norm_train batch-norm
//! launch 4 32
//! args x=f32[32,4]:normal y=f32[32,4]:zeros
//! out y:1e-4:1e-5 -> neural.batch_norm
KERNEL batch_norm_train(const float *x, float *y) {
  int i = threadIdx.x * 4 + blockIdx.x;
  float mean = warp_sum(x[i]) * (1.0f / 32), d = x[i] - mean, var = warp_sum(d * d) * (1.0f / 32);
  y[i] = d / sqrtf(var + 1e-5f);
}

//! kernel lstm_cell lstm
//! launch 1 32
//! args gates=f32[4,32]:normal c=f32[32]:normal h=f32[32]:zeros
//! out c:1e-4:1e-5 h:1e-4:1e-5 -> neural.lstm
__device__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
KERNEL lstm_cell(const float *gates, float *c, float *h) {
  int i = threadIdx.x;
  float next = sigmoid(gates[32 + i]) * c[i] + sigmoid(gates[i]) * tanhf(gates[64 + i]);
  c[i] = next;
  h[i] = sigmoid(gates[96 + i]) * tanhf(next);
}

//! kernel dropout_hash dropout
//! launch 1 128
//! args seed=u32:17 keep=f32:0.75 x=f32[128]:normal y=f32[128]:zeros
//! out y:1e-6:0 -> neural.dropout
KERNEL dropout_hash(unsigned seed, float keep, const float *x, float *y) {
  unsigned h = (threadIdx.x + seed) * 0x9e3779b9u;
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  y[threadIdx.x] = (h >> 8) * (1.0f / 16777216.0f) < keep ? x[threadIdx.x] / keep : 0.0f;
}

//! kernel moe_route expert-routing
//! launch 1 32
//! args logits=f32[32,8]:normal expert=i32[32]:zeros slot=i32[32]:zeros count=i32[8]:zeros
//! out expert count -> neural.route
KERNEL moe_route(const float *logits, int *expert, int *slot, int *count) {
  int t = threadIdx.x, best = 0;
  for (int e = 1; e < 8; ++e)
    if (logits[t * 8 + e] > logits[t * 8 + best]) best = e;
  expert[t] = best;
  slot[t] = atomicAdd(&count[best], 1);
}
