// A C++ program of the runtime API: `runtime_add N` adds N elements of vectors of 1,000, and uses what nvcc adds to
// C++: launches in templates, symbols, managed variables, printf in kernels, clusters, graphs.

#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int SIZE = 1000;
__constant__ float bias;
__device__ int count;
__managed__ int last;

template <class T> __global__ void add(const T *a, const T *b, T *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i] + bias;
        atomicAdd(&count, 1);
    }
    if (i == 0) {
        last = n;
        printf("adding %d\n", n);
    }
}

__global__ void __cluster_dims__(2, 1, 1) rank(int *out) {
    int number;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(number));
    out[blockIdx.x] = number;
}

template <int> __global__ void ranks(int *out) {
    int number;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(number));
    out[blockIdx.x] = number;
}

static void expect(bool is_true, const char *text, int line) {
    if (!is_true) {
        std::printf("line %d: not so: %s; the last error is %s\n", line, text, cudaGetErrorName(cudaGetLastError()));
        std::exit(2);
    }
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)
#define CALL(call) EXPECT((call) == cudaSuccess)

static void test_clusters(cudaStream_t stream) {
    int *out;
    CALL(cudaMallocManaged(&out, 8 * sizeof(int)));
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim = {4, 1, 1};
    cudaLaunchConfig_t config = {dim3(8), dim3(1), 0, stream, attribute, 1};
    CALL(cudaLaunchKernelEx(&config, ranks<4>, out));
    CALL(cudaStreamSynchronize(stream));
    for (int i = 0; i < 8; i++)
        EXPECT(out[i] == i % 4);
    rank<<<8, 1, 0, stream>>>(out);
    CALL(cudaStreamSynchronize(stream));
    for (int i = 0; i < 8; i++)
        EXPECT(out[i] == i % 2);
    CALL(cudaFree(out));
}

static float failing;

static void test_errors(float *array) {
    add<<<1, 2048>>>(array, array, array, 1);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(cudaMemcpyToSymbol(failing, &bias, 4) == cudaErrorInvalidSymbol);
    cudaGetLastError();
}

static void test_occupancy() {
    int grid, block, resident;
    cudaFuncAttributes attributes;
    cudaDeviceProp properties;
    CALL(cudaGetDeviceProperties(&properties, 0));
    CALL(cudaFuncGetAttributes(&attributes, add<float>));
    EXPECT(attributes.maxThreadsPerBlock == properties.maxThreadsPerBlock);
    CALL(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add<float>));
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, add<float>, block, 0));
    EXPECT(grid == resident * properties.multiProcessorCount);
    EXPECT(resident * block == properties.maxThreadsPerMultiProcessor);
}

int main(int words, char **word) {
    int n = words > 1 ? std::atoi(word[1]) : SIZE;
    std::vector<float> a(SIZE), b(SIZE, 0.25f), c(SIZE);
    for (int i = 0; i < SIZE; i++)
        a[i] = i;
    float *arrays[3], quarter = 0.25f, time;
    for (float *&array : arrays)
        CALL(cudaMalloc(&array, SIZE * sizeof(float)));
    cudaStream_t stream;
    cudaEvent_t start, end;
    CALL(cudaStreamCreate(&stream));
    CALL(cudaEventCreate(&start));
    CALL(cudaEventCreate(&end));
    CALL(cudaMemcpyToSymbol(bias, &quarter, sizeof quarter));
    CALL(cudaMemcpyAsync(arrays[0], a.data(), SIZE * sizeof(float), cudaMemcpyHostToDevice, stream));
    CALL(cudaMemcpyAsync(arrays[1], b.data(), SIZE * sizeof(float), cudaMemcpyHostToDevice, stream));
    test_clusters(stream);
    test_occupancy();
    test_errors(arrays[0]);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<4, 256, 0, stream>>>(arrays[0], arrays[1], arrays[2], SIZE);
    CALL(cudaStreamEndCapture(stream, &graph));
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphLaunch(exec, stream));
    CALL(cudaEventRecord(start, stream));
    add<<<4, 256, 0, stream>>>(arrays[0], arrays[1], arrays[2], n);
    CALL(cudaEventRecord(end, stream));
    CALL(cudaStreamSynchronize(stream));
    CALL(cudaEventElapsedTime(&time, start, end));
    CALL(cudaMemcpy(c.data(), arrays[2], SIZE * sizeof(float), cudaMemcpyDefault));
    for (int i = 0; i < SIZE; i++)
        EXPECT(c[i] == i + 0.5f);
    int counted;
    CALL(cudaMemcpyFromSymbol(&counted, count, sizeof counted));
    EXPECT(counted == SIZE + n);
    EXPECT(last == n);
    EXPECT(time > 0);
    return 0;
}
