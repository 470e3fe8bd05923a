/* What the kernels of this directory share: names for attributes, address spaces and special registers. */
#pragma once
#define KERNEL __attribute__((nvptx_kernel))
#define NOINLINE __attribute__((noinline))
#define SHARED __attribute__((address_space(3)))
#define CONSTANT __attribute__((address_space(4)))
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned __int128 u128;
static inline int thread_id(void) { return __nvvm_read_ptx_sreg_tid_x(); }
static inline int global_id(void) {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
}
