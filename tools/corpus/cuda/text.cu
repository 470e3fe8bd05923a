// Strings, histograms, dynamic programming.
//! build nvrtc 12.0.140 sm_80 -G as=debug
//! build nvrtc 12.4.127 sm_86 -DMORE
typedef unsigned char u8;
#define KERNEL extern "C" __global__ void

//! kernel substring_count substring-search
//! launch 1 64
//! args n=i32:200 m=i32:2 text=u8[200]:integers(low=97,high=100) pattern=u8[2]:integers(low=97,high=100) count=i32[1]:zeros
//! out count -> text.substring_count
KERNEL substring_count(int n, int m, const u8 *text, const u8 *pattern, int *count) {
  int found = 0;
  for (int i = threadIdx.x; i + m <= n; i += blockDim.x) {
    int j = 0;
    while (j < m && text[i + j] == pattern[j]) ++j;
    found += j == m;
  }
  if (found) atomicAdd(count, found);
}
#ifdef MORE

//! kernel edit_distance edit-distance
//! launch 4 16
//! args a=u8[4,16]:integers(low=97,high=101) b=u8[4,16]:integers(low=97,high=101) d=i32[4]:zeros
//! out d -> text.edit_distance
KERNEL edit_distance(const u8 *a, const u8 *b, int *d) {
  __shared__ int s[17][17];
  int t = threadIdx.x;
  a += blockIdx.x * 16;
  b += blockIdx.x * 16;
  s[0][t] = t;
  s[t][0] = t;
  if (t == 15) s[0][16] = s[16][0] = 16;
  for (int wave = 0; wave < 31; ++wave) {
    __syncthreads();
    int i = t + 1, j = wave - t + 1;
    if (j >= 1 && j <= 16)
      s[i][j] = min(min(s[i - 1][j], s[i][j - 1]) + 1, s[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
  }
  __syncthreads();
  if (t == 0) d[blockIdx.x] = s[16][16];
}

//! kernel longest_common_subsequence common-subsequence
//! launch 1 8
//! args a=u8[8,24]:integers(low=97,high=101) b=u8[8,24]:integers(low=97,high=101) n=i32[8]:zeros
//! out n -> text.common_subsequence
KERNEL longest_common_subsequence(const u8 *a, const u8 *b, int *n) {
  unsigned state = ~0u;
  a += threadIdx.x * 24;
  b += threadIdx.x * 24;
  for (int j = 0; j < 24; ++j) {
    unsigned matches = 0;
    for (int i = 0; i < 24; ++i) matches |= (unsigned)(a[i] == b[j]) << i;
    unsigned hit = state & matches;
    state = (state + hit) | (state & ~matches);
  }
  n[threadIdx.x] = __popc(~state & 0xffffff);
}

//! kernel histogram_shared histogram
//! launch 4 64
//! args x=u8[1024]:bits bins=u32[256]:zeros
//! out bins -> text.histogram
KERNEL histogram_shared(const uchar4 *x, unsigned *bins) {
  __shared__ unsigned s[256];
  for (int i = threadIdx.x; i < 256; i += 64) s[i] = 0;
  __syncthreads();
  uchar4 v = x[blockIdx.x * 64 + threadIdx.x];
  atomicAdd(&s[v.x], 1u);
  atomicAdd(&s[v.y], 1u);
  atomicAdd(&s[v.z], 1u);
  atomicAdd(&s[v.w], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 64)
    if (s[i]) atomicAdd(&bins[i], s[i]);
}

//! kernel histogram_match histogram
//! launch 1 64
//! args x=i32[64]:integers(low=0,high=8) bins=i32[8]:zeros
//! out bins -> text.histogram
KERNEL histogram_match(const int *x, int *bins) {
  int v = x[threadIdx.x];
  unsigned same = __match_any_sync(0xffffffffu, v);
  if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(&bins[v], __popc(same));
}

//! kernel count_words word-count
//! launch 1 128
//! args text=u8[128]:values(values=[32,97,98,32,99,10,100,101,32,32,102]) words=i32[1]:zeros
//! out words -> text.word_count
KERNEL count_words(const u8 *text, int *words) {
  bool space = text[threadIdx.x] <= 32, before = threadIdx.x == 0 || text[threadIdx.x - 1] <= 32;
  int n = __syncthreads_count(!space && before);
  if (threadIdx.x == 0) *words = n;
}

//! kernel upper_case case-mapping
//! launch 1 64
//! args x=u8[256]:integers(low=32,high=127) y=u8[256]:zeros
//! out y -> text.upper_case
KERNEL upper_case(const unsigned *x, unsigned *y) {
  unsigned v = x[threadIdx.x], heavy = v & 0x80808080u, low = v & 0x7f7f7f7fu;
  unsigned at_least_a = low + 0x1f1f1f1fu, past_z = low + 0x05050505u;
  y[threadIdx.x] = v ^ ((at_least_a & ~past_z & ~heavy & 0x80808080u) >> 2);
}

//! kernel glob_match wildcard-match
//! launch 1 32
//! args text=u8[32,12]:integers(low=97,high=100) pattern=u8[5]:values(values=[97,42,98,63,42]) m=i32:5 hit=i32[32]:zeros
//! out hit -> text.wildcard_match
KERNEL glob_match(const u8 *text, const u8 *pattern, int m, int *hit) {
  const u8 *s = text + threadIdx.x * 12;
  int i = 0, j = 0, star = -1, mark = 0;
  while (i < 12) {
    if (j < m && (pattern[j] == '?' || pattern[j] == s[i])) ++i, ++j;
    else if (j < m && pattern[j] == '*') star = j++, mark = i;
    else if (star >= 0) j = star + 1, i = ++mark;
    else break;
  }
  while (j < m && pattern[j] == '*') ++j;
  hit[threadIdx.x] = i == 12 && j == m;
}

//! kernel count_code_points utf8
//! launch 1 32
//! args x=u8[256]:bits n=i32[1]:zeros
//! out n -> text.code_points
KERNEL count_code_points(const unsigned long long *x, int *n) {
  unsigned long long v = x[threadIdx.x], follow = v >> 7 & ~v >> 6 & 0x0101010101010101ull;
  atomicAdd(n, 8 - __popcll(follow));
}

//! kernel parse_decimals number-parsing
//! launch 1 16
//! args text=u8[16,6]:integers(low=48,high=58) value=i32[16]:zeros
//! out value -> text.decimals
KERNEL parse_decimals(const u8 *text, int *value) {
  int v = 0;
#pragma unroll 3
  for (int i = 0; i < 6; ++i) v = v * 10 + text[threadIdx.x * 6 + i] - '0';
  value[threadIdx.x] = v;
}

//! kernel knapsack_rows knapsack
//! launch 1 64
//! args weight=i32[8]:integers(low=3,high=20) value=i32[8]:integers(low=1,high=50) best=i32[64]:zeros
//! out best -> text.knapsack
KERNEL knapsack_rows(const int *weight, const int *value, int *best) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = 0;
  for (int i = 0; i < 8; ++i) {
    __syncthreads();
    int take = t >= weight[i] ? s[t - weight[i]] + value[i] : 0, v = max(s[t], take);
    __syncthreads();
    s[t] = v;
  }
  best[t] = s[t];
}

//! kernel brackets_depth bracket-matching
//! launch 1 32
//! args text=u8[32]:integers(low=40,high=42) depth=i32[32]:zeros
//! out depth -> text.bracket_depth
KERNEL brackets_depth(const u8 *text, int *depth) {
  unsigned open = __ballot_sync(0xffffffffu, text[threadIdx.x] == '(');
  unsigned upto = 0xffffffffu >> (31 - threadIdx.x);
  depth[threadIdx.x] = 2 * __popc(open & upto) - (threadIdx.x + 1);
}
#endif
