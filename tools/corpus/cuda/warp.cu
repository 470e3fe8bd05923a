// Votes, matches, reductions and shuffles of a warp.
//! build nvrtc 12.6.85 sm_80
#define KERNEL extern "C" __global__ void
#define ALL 0xffffffffu

//! kernel votes warp-vote
//! launch 1 64
//! args x=i32[64]:integers(low=0,high=4) y=u32[64,4]:zeros
//! out y -> warps.votes
KERNEL votes(const int *x, unsigned *y) {
  int v = x[threadIdx.x];
  unsigned *out = y + 4 * threadIdx.x;
  out[0] = __any_sync(ALL, v == 3);
  out[1] = __all_sync(ALL, v < 4);
  out[2] = __ballot_sync(ALL, v & 1);
  out[3] = __popc(__activemask());
}

//! kernel matches warp-match
//! launch 1 32
//! args x=i32[32]:integers(low=0,high=5) z=u64[32]:integers(low=0,high=3) y=u32[32,4]:zeros
//! out y -> warps.matches
KERNEL matches(const int *x, const unsigned long long *z, unsigned *y) {
  unsigned *out = y + 4 * threadIdx.x;
  int same;
  out[0] = __match_any_sync(ALL, x[threadIdx.x]);
  out[1] = __match_any_sync(ALL, z[threadIdx.x]);
  out[2] = __match_all_sync(ALL, x[0], &same);
  out[3] = same;
}

//! kernel integer_reductions warp-reduction
//! launch 1 32
//! args x=i32[32]:bits y=i32[8]:zeros
//! out y -> warps.reductions
KERNEL integer_reductions(const int *x, int *y) {
  int v = x[threadIdx.x];
  unsigned u = v;
  int r[6] = {(int)__reduce_add_sync(ALL, u), (int)__reduce_or_sync(ALL, u), (int)__reduce_and_sync(ALL, u),
              (int)__reduce_xor_sync(ALL, u), __reduce_min_sync(ALL, v), __reduce_max_sync(ALL, v)};
  if (threadIdx.x < 6) y[threadIdx.x] = r[threadIdx.x];
}

//! kernel shuffle_widths warp-shuffle
//! launch 1 32
//! args x=i32[32]:permutation d=f64[32]:normal y=i32[32,4]:zeros z=f64[32]:zeros
//! out y z -> warps.shuffles
KERNEL shuffle_widths(const int *x, const double *d, int *y, double *z) {
  int v = x[threadIdx.x], *out = y + 4 * threadIdx.x;
  out[0] = __shfl_sync(ALL, v, 3, 8);
  out[1] = __shfl_up_sync(ALL, v, 2, 16);
  out[2] = __shfl_down_sync(ALL, v, 5, 8);
  out[3] = __shfl_xor_sync(ALL, v, 9);
  z[threadIdx.x] = __shfl_xor_sync(ALL, d[threadIdx.x], 1);
}

//! kernel half_warp_masks warp-synchronisation
//! launch 1 32
//! args x=i32[32]:integers(low=0,high=100) y=i32[32]:zeros
//! out y -> warps.half_sums
KERNEL half_warp_masks(const int *x, int *y) {
  int v = x[threadIdx.x];
  if (threadIdx.x < 16)
    for (int d = 8; d; d >>= 1) v += __shfl_xor_sync(0xffffu, v, d);
  else
    for (int d = 8; d; d >>= 1) v = max(v, __shfl_xor_sync(0xffff0000u, v, d));
  __syncwarp();
  y[threadIdx.x] = v;
}

//! kernel block_votes barrier-reduction
//! launch 1 96
//! args x=i32[96]:integers(low=0,high=50) y=i32[3]:zeros
//! out y -> warps.block_votes
KERNEL block_votes(const int *x, int *y) {
  int v = x[threadIdx.x], n = __syncthreads_count(v < 25), any = __syncthreads_or(v == 49), all = __syncthreads_and(v < 50);
  if (threadIdx.x == 0) y[0] = n, y[1] = any, y[2] = all;
}

//! kernel rotate_transpose transpose
//! launch 1 32
//! args a=i32[32,4]:permutation b=i32[4,32]:zeros
//! out b -> linear.transpose
KERNEL rotate_transpose(const int4 *a, int *b) {
  int4 v = a[threadIdx.x];
  int r[4] = {v.x, v.y, v.z, v.w};
  for (int i = 0; i < 4; ++i) {
    int lane = (threadIdx.x >> 2) + 8 * i, got = 0;
    for (int k = 0; k < 4; ++k) {
      int w = __shfl_sync(ALL, r[k], lane);
      if ((threadIdx.x & 3) == k) got = w;
    }
    b[(threadIdx.x & 3) * 32 + lane] = got;
  }
}
