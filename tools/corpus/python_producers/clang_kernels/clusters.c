/* Clusters: ranks, barriers, and the shared memory of a neighbour. */
#include "nvptx.h"

static SHARED int mine[32];

__attribute__((reqd_work_group_size(32, 1, 1))) KERNEL void cluster_ranks(int *out) {
  int i = global_id();
  mine[thread_id()] = 10 * i;
  __nvvm_barrier_cluster_arrive();
  __nvvm_barrier_cluster_wait();
  int rank = __nvvm_read_ptx_sreg_cluster_ctarank(), size = __nvvm_read_ptx_sreg_cluster_nctarank();
  int *theirs = (int *)__nvvm_mapa((void *)&mine[thread_id()], (rank + 1) % size);
  out[i] = *theirs + rank;
  __nvvm_barrier_cluster_arrive_relaxed();
  __nvvm_barrier_cluster_wait();
}
