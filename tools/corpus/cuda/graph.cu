// Graphs, in compressed rows or as matrices of distances.
//! build nvcc 13.1.115 sm_90
#define KERNEL extern "C" __global__ void

//! kernel bfs_frontier breadth-first-search
//! launch 1 64
//! args start=i32[65]:offsets(low=1,high=5) edge=i32[320]:integers(low=0,high=64) level=i32[64]:fill(value=-1)
//! out level -> graphs.bfs_levels
KERNEL bfs_frontier(const int *start, const int *edge, int *level) {
  __shared__ int changed;
  int v = threadIdx.x;
  if (v == 0) level[0] = 0;
  for (int depth = 0;; ++depth) {
    __syncthreads();
    if (v == 0) changed = 0;
    __syncthreads();
    if (level[v] == depth)
      for (int e = start[v]; e < start[v + 1]; ++e)
        if (level[edge[e]] < 0) {
          level[edge[e]] = depth + 1;
          changed = 1;
        }
    __syncthreads();
    if (!changed) break;
  }
}

//! kernel pagerank_step pagerank
//! launch 1 64
//! args start=i32[65]:offsets(low=1,high=5) edge=i32[320]:integers(low=0,high=64) rank=f32[64]:uniform next=f32[64]:zeros
//! out next:1e-4:1e-5 -> graphs.pagerank_step
KERNEL pagerank_step(const int *start, const int *edge, const float *rank, float *next) {
  int v = threadIdx.x;
  float share = 0.85f * rank[v] / (start[v + 1] - start[v]);
  atomicAdd(&next[v], 0.15f / 64);
  for (int e = start[v]; e < start[v + 1]; ++e) atomicAdd(&next[edge[e]], share);
}

//! kernel union_find connected-components
//! launch 1 64
//! args a=i32[64]:integers(low=0,high=96) b=i32[64]:integers(low=0,high=96) parent=i32[96]:arange
//! out parent -> graphs.components
__device__ int find(int *parent, int x) {
  while (parent[x] != x) x = parent[x] = parent[parent[x]];
  return x;
}
KERNEL union_find(const int *a, const int *b, int *parent) {
  int x = a[threadIdx.x], y = b[threadIdx.x];
  for (;;) {
    x = find(parent, x);
    y = find(parent, y);
    if (x == y) break;
    if (x < y) {
      int t = x;
      x = y;
      y = t;
    }
    if (atomicCAS(&parent[x], x, y) == x) break;
  }
  __syncthreads();
  int roots[2], n = 0;
  for (int v = threadIdx.x; v < 96; v += 64) roots[n++] = find(parent, v);
  __syncthreads();
  n = 0;
  for (int v = threadIdx.x; v < 96; v += 64) parent[v] = roots[n++];
}

//! kernel bellman_ford bellman-ford
//! launch 1 128
//! args from=i32[128]:integers(low=0,high=32) to=i32[128]:integers(low=0,high=32) weight=i32[128]:integers(low=1,high=20) distance=i32[32]:values(values=[0,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000])
//! out distance -> graphs.bellman_ford
KERNEL bellman_ford(const int *from, const int *to, const int *weight, int *distance) {
  int e = threadIdx.x, moved;
  do {
    int through = distance[from[e]] + weight[e];
    __syncthreads();
    moved = through < distance[to[e]];
    if (moved) atomicMin(&distance[to[e]], through);
  } while (__syncthreads_or(moved));
}

//! kernel floyd_warshall floyd-warshall
//! launch 1 16x16
//! args d=i32[16,16]:integers(low=1,high=100)
//! out d -> graphs.floyd_warshall
KERNEL floyd_warshall(int *d) {
  int i = threadIdx.y, j = threadIdx.x;
  for (int k = 0; k < 16; ++k) {
    int v = min(d[i * 16 + j], d[i * 16 + k] + d[k * 16 + j]);
    __syncthreads();
    d[i * 16 + j] = v;
    __syncthreads();
  }
}

//! kernel count_triangles triangle-count
//! launch 1 32
//! args row=u32[32]:bits total=u32[1]:zeros
//! out total -> graphs.triangles
KERNEL count_triangles(const unsigned *row, unsigned *total) {
  unsigned mine = row[threadIdx.x], n = 0;
  for (unsigned rest = mine; rest; rest &= rest - 1) n += __popc(mine & row[__ffs(rest) - 1]);
  atomicAdd(total, n);
}

//! kernel transitive_closure transitive-closure
//! launch 1 32
//! args row=u32[32]:values(values=[2,8,4,16,32,1,128,256,64,2048,1024,4096,0,0,16384,65536,32768,0,262144,131072,1048576,0,4194304,8388608,0,33554432,67108864,0,268435456,536870912,2147483648,1])
//! out row -> graphs.closure
KERNEL transitive_closure(unsigned *row) {
  unsigned mine = row[threadIdx.x];
  for (int k = 0; k < 32; ++k) {
    unsigned other = __shfl_sync(0xffffffffu, mine, k);
    if (mine >> k & 1) mine |= other;
  }
  row[threadIdx.x] = mine;
}

//! kernel list_ranking list-ranking
//! launch 1 64
//! args next=i32[64]:values(values=[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,31]) rank=i32[64]:zeros
//! out rank -> graphs.list_ranks
KERNEL list_ranking(const int *next, int *rank) {
  __shared__ int link[64], hops[64];
  int t = threadIdx.x;
  link[t] = next[t];
  hops[t] = next[t] != t;
  for (int step = 0; step < 6; ++step) {
    __syncthreads();
    int h = hops[link[t]], l = link[link[t]];
    __syncthreads();
    hops[t] += h;
    link[t] = l;
  }
  rank[t] = hops[t];
}

//! kernel luby_independent_set independent-set
//! launch 1 32
//! args row=u32[32]:values(values=[2,5,10,20,40,80,160,320,640,1280,2560,5120,10240,20480,40960,81920,163840,327680,655360,1310720,2621440,5242880,10485760,20971520,41943040,83886080,167772160,335544320,671088640,1342177280,2684354560,1073741824]) weight=i32[32]:permutation chosen=u32[1]:zeros
//! out chosen -> graphs.local_maxima
KERNEL luby_independent_set(const unsigned *row, const int *weight, unsigned *chosen) {
  int mine = weight[threadIdx.x];
  bool top = true;
  for (unsigned rest = row[threadIdx.x]; rest; rest &= rest - 1) top &= mine > weight[__ffs(rest) - 1];
  unsigned votes = __ballot_sync(0xffffffffu, top);
  if (threadIdx.x == 0) *chosen = votes;
}
