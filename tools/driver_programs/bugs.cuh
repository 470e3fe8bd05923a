// Kernels with one planted error each, for the programs of nvcc and of NVRTC.
#pragma once
#include "reverse.cu"

// Doubles n elements, and one more.
extern "C" __global__ void scale(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        x[i] *= 2;
}

// Adds to one number from all threads, without an atomic operation.
extern "C" __global__ void sum(const float *x, float *total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        *total += x[i];
}

// Has nothing wrong: two launches in two streams race.
extern "C" __global__ void shift(const float *x, float *out) { out[threadIdx.x] = x[threadIdx.x] + 1; }

// Copies a tile of 64 elements to shared memory by the copy engine, and waits for it only after it has read it.
extern "C" __global__ void load(const float *x, float *out) {
    __shared__ __align__(16) float tile[64];
    __shared__ unsigned long long arrival;
    unsigned to = __cvta_generic_to_shared(tile), barrier = __cvta_generic_to_shared(&arrival);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(barrier) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(to),
                     "l"(__cvta_generic_to_global(x)), "r"(barrier)
                     : "memory");
    }
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
    for (unsigned done = 0; !done;)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(barrier)
                     : "memory");
}
