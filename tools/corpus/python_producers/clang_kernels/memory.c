/* Shared memory, asynchronous copies, mbarriers, scoped atomics, votes and clusters. */
#include "nvptx.h"

static SHARED float tile[128];
static SHARED __attribute__((aligned(16))) float landed[128];
static SHARED long long barrier;

KERNEL void reverse_block(const float *x, float *out) {
  int i = thread_id();
  tile[i] = x[i];
  __syncthreads();
  out[i] = tile[127 - i];
}

KERNEL void copy_async(const float *x, float *out) {
  int i = thread_id();
  __nvvm_cp_async_ca_shared_global_4((SHARED void *)&landed[i], (const __attribute__((address_space(1))) void *)&x[i]);
  __nvvm_cp_async_commit_group();
  __nvvm_cp_async_wait_all();
  __syncthreads();
  out[i] = 2.0f * landed[i ^ 1];
}

KERNEL void barrier_object(const float *x, float *out) {
  int i = thread_id();
  if (i == 0) __nvvm_mbarrier_init_shared(&barrier, 128);
  __syncthreads();
  tile[i] = x[i];
  long long state = __nvvm_mbarrier_arrive_shared(&barrier);
  while (!__nvvm_mbarrier_test_wait_shared(&barrier, state)) {
  }
  out[i] = tile[(i + 5) % 128];
}

KERNEL void scoped_counters(int *counters, const int *x) {
  int value = x[thread_id()];
  __scoped_atomic_fetch_add(&counters[0], value, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  __scoped_atomic_fetch_max(&counters[1], value, __ATOMIC_ACQ_REL, __MEMORY_SCOPE_DEVICE);
  __scoped_atomic_fetch_or(&counters[2], value, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
  __scoped_atomic_fetch_xor(&counters[3], value, __ATOMIC_SEQ_CST, __MEMORY_SCOPE_DEVICE);
  int expected = 0;
  __scoped_atomic_compare_exchange_n(&counters[4], &expected, 7, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

KERNEL void message_passing(int *data, int *flag, int *out) {
  if (thread_id() == 0) {
    *data = 42;
    __scoped_atomic_store_n(flag, 1, __ATOMIC_RELEASE, __MEMORY_SCOPE_WRKGRP);
  } else {
    while (!__scoped_atomic_load_n(flag, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_WRKGRP)) {
    }
    out[thread_id()] = *data;
  }
}

KERNEL void votes(const int *x, u32 *out) {
  int i = global_id();
  int odd = x[i] & 1;
  u32 mask = __nvvm_vote_ballot_sync(-1, odd);
  int all = __nvvm_vote_all_sync(-1, x[i] > -1000), any = __nvvm_vote_any_sync(-1, x[i] > 98);
  int next = __nvvm_shfl_sync_down_i32(-1, x[i], 1, 31), before = __nvvm_shfl_sync_up_i32(-1, x[i], 2, 0);
  out[3 * i] = mask;
  out[3 * i + 1] = all * 2 + any;
  out[3 * i + 2] = next ^ before;
}

KERNEL void barrier_counts(const int *x, int *out) {
  int i = thread_id();
  int count = __nvvm_bar0_popc(x[i] > 0), every = __nvvm_bar0_and(x[i] > -100), some = __nvvm_bar0_or(x[i] > 97);
  out[i] = count * 4 + (every != 0) * 2 + (some != 0);
}
