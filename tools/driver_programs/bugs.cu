// Launches a kernel with a planted error: `bugs NAME`.
#include "bugs.cuh"
#include <cstring>

int main(int, char **words) {
    const int size = 64;
    float *x, *y, *z;
    cudaStream_t first, second;
    for (float **array : {&x, &y, &z}) {
        cudaMalloc(array, size * sizeof(float));
        cudaMemset(*array, 0, size * sizeof(float));
    }
    cudaStreamCreate(&first);
    cudaStreamCreate(&second);
    if (!std::strcmp(words[1], "scale"))
        scale<<<1, 2 * size>>>(x, size);
    else if (!std::strcmp(words[1], "sum"))
        sum<<<1, size>>>(x, y, size);
    else if (!std::strcmp(words[1], "reverse"))
        reverse<<<1, size>>>(x, y);
    else if (!std::strcmp(words[1], "load"))
        load<<<1, size>>>(x, y);
    else if (!std::strcmp(words[1], "early")) {
        cudaMallocManaged(&x, size * sizeof(float));
        shift<<<1, size>>>(y, x);
        return x[1] == 2;  // planted: the kernel may not have run
    } else {
        shift<<<1, size, 0, first>>>(x, y);
        shift<<<1, size, 0, second>>>(y, z);
    }
    return cudaDeviceSynchronize();
}
