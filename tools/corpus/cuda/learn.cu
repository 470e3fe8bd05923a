// Clustering, neighbours, trees, quantisation.
//! build nvcc 13.0.88 sm_121a
typedef unsigned char u8;
#define KERNEL extern "C" __global__ void

//! kernel kmeans_assign k-means
//! launch 1 64
//! args point=f32[64,2]:normal centre=f32[4,2]:normal sum=f32[4,2]:zeros count=i32[4]:zeros
//! out sum:1e-4:1e-4 count -> learning.kmeans
KERNEL kmeans_assign(const float2 *point, const float2 *centre, float *sum, int *count) {
  float2 p = point[threadIdx.x];
  float best = 1e30f;
  int where = 0;
  for (int k = 0; k < 4; ++k) {
    float x = p.x - centre[k].x, y = p.y - centre[k].y, d = x * x + y * y;
    if (d < best) best = d, where = k;
  }
  atomicAdd(&sum[2 * where], p.x);
  atomicAdd(&sum[2 * where + 1], p.y);
  atomicAdd(&count[where], 1);
}

//! kernel nearest_neighbour nearest-neighbour
//! launch 8 32
//! args q=f32[8,4]:normal base=f32[32,4]:normal index=i32[8]:zeros
//! out index -> learning.nearest
KERNEL nearest_neighbour(const float4 *q, const float4 *base, int *index) {
  float4 a = q[blockIdx.x], b = base[threadIdx.x];
  float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z, w = a.w - b.w, d = x * x + y * y + z * z + w * w;
  int who = threadIdx.x;
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) {
    float other = __shfl_xor_sync(~0u, d, s);
    int k = __shfl_xor_sync(~0u, who, s);
    if (other < d) d = other, who = k;
  }
  if (threadIdx.x == 0) index[blockIdx.x] = who;
}

//! kernel decision_tree decision-tree
//! launch 1 64
//! args x=f32[64,4]:uniform feature=i32[7]:values(values=[0,1,2,3,0,1,2]) threshold=f32[7]:values(values=[0.5,0.3,0.7,0.2,0.4,0.6,0.8]) leaf=i32[64]:zeros
//! out leaf -> learning.decision_tree
KERNEL decision_tree(const float *x, const int *feature, const float *threshold, int *leaf) {
  int node = 0;
  while (node < 7) node = 2 * node + 1 + (x[threadIdx.x * 4 + feature[node]] > threshold[node]);
  leaf[threadIdx.x] = node - 7;
}

//! kernel quantise_rows quantisation
//! launch 4 32
//! args x=f32[4,32]:normal q=i8[4,32]:zeros scale=f32[4]:zeros
//! out scale:1e-6:0 q:0:1 -> learning.quantise
KERNEL quantise_rows(const float *x, signed char *q, float *scale) {
  float v = x[blockIdx.x * 32 + threadIdx.x], top = fabsf(v);
  for (int s = 16; s > 0; s >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, s));
  int r = __float2int_rn(v * (127.0f / top));
  q[blockIdx.x * 32 + threadIdx.x] = max(-127, min(127, r));
  if (threadIdx.x == 0) scale[blockIdx.x] = top / 127.0f;
}

//! kernel dequantise_int4 dequantisation
//! launch 1 32
//! args packed=u32[32]:bits scale=f32[32]:uniform y=f32[32,8]:zeros
//! out y:1e-6:0 -> learning.dequantise_int4
KERNEL dequantise_int4(const unsigned *packed, const float *scale, float *y) {
  unsigned v = packed[threadIdx.x];
  for (int i = 0; i < 8; ++i) y[threadIdx.x * 8 + i] = ((int)(v << (28 - 4 * i)) >> 28) * scale[threadIdx.x];
}

//! kernel hamming_distances hamming-distance
//! launch 1 16x16
//! args a=u64[16]:bits b=u64[16]:bits d=i32[16,16]:zeros
//! out d -> learning.hamming
KERNEL hamming_distances(const unsigned long long *a, const unsigned long long *b, int *d) {
  d[threadIdx.y * 16 + threadIdx.x] = __popcll(a[threadIdx.y] ^ b[threadIdx.x]);
}

//! kernel cosine_similarity cosine-similarity
//! launch 4 32
//! args a=f32[4,64]:normal b=f32[4,64]:normal s=f32[4]:zeros
//! out s:1e-4:1e-5 -> learning.cosine
KERNEL cosine_similarity(const float2 *a, const float2 *b, float *s) {
  float2 p = a[blockIdx.x * 32 + threadIdx.x], q = b[blockIdx.x * 32 + threadIdx.x];
  float pq = p.x * q.x + p.y * q.y, pp = p.x * p.x + p.y * p.y, qq = q.x * q.x + q.y * q.y;
  for (int d = 16; d; d >>= 1) {
    pq += __shfl_xor_sync(~0u, pq, d);
    pp += __shfl_xor_sync(~0u, pp, d);
    qq += __shfl_xor_sync(~0u, qq, d);
  }
  if (threadIdx.x == 0) s[blockIdx.x] = pq * rsqrtf(pp * qq);
}

//! kernel logistic_step logistic-regression
//! launch 1 64
//! args x=f32[64,3]:normal label=f32[64]:integers(low=0,high=2) w=f32[3]:normal g=f32[3]:zeros
//! out g:1e-4:1e-4 -> learning.logistic
KERNEL logistic_step(const float *x, const float *label, const float *w, float *g) {
  const float *row = x + 3 * threadIdx.x;
  float z = row[0] * w[0] + row[1] * w[1] + row[2] * w[2], error = 1.0f / (1.0f + expf(-z)) - label[threadIdx.x];
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    float v = error * row[k];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    if ((threadIdx.x & 31) == 0) atomicAdd(&g[k], v);
  }
}

//! kernel viterbi_step hidden-markov
//! launch 1 8
//! args steps=i32:10 move=f32[8,8]:normal emit=f32[10,8]:normal score=f32[8]:zeros path=i32[10,8]:zeros
//! out score:1e-5:1e-5 path -> learning.viterbi
KERNEL viterbi_step(int steps, const float *move, const float *emit, float *score, int *path) {
  __shared__ float s[8];
  int t = threadIdx.x;
  s[t] = emit[t];
  path[t] = t;
  for (int i = 1; i < steps; ++i) {
    __syncthreads();
    float best = -1e30f;
    int from = 0;
    for (int k = 0; k < 8; ++k)
      if (s[k] + move[k * 8 + t] > best) best = s[k] + move[k * 8 + t], from = k;
    __syncthreads();
    s[t] = best + emit[i * 8 + t];
    path[i * 8 + t] = from;
  }
  score[t] = s[t];
}
