// Reverses an array through shared memory. A planted error: no barrier between writes and reads.
extern "C" __global__ void reverse(const float *x, float *out) {
    __shared__ float tile[64];
    int i = threadIdx.x;
    tile[i] = x[i];
    out[i] = tile[63 - i];
}
