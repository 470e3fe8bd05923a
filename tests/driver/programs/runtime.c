/* A program that calls the runtime API as nvcc's code does: compiled with NVIDIA's header, which has the structures. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

static const char PTX[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .const .align 4 .f32 scale;\n"
    ".visible .global .align 4 .u32 count;\n"
    ".visible .global .attribute(.managed) .align 4 .u32 last;\n"
    ".visible .entry multiply(.param .u64 values, .param .u32 n)\n"
    "{\n"
    "    .reg .pred %p<2>;\n"
    "    .reg .b32 %r<9>;\n"
    "    .reg .f32 %f<4>;\n"
    "    .reg .b64 %rd<5>;\n"
    "    ld.param.u64 %rd1, [values];\n"
    "    ld.param.u32 %r1, [n];\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    mov.u32 %r3, %ntid.x;\n"
    "    mov.u32 %r4, %tid.x;\n"
    "    mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "    setp.ge.s32 %p1, %r5, %r1;\n"
    "    @%p1 bra DONE;\n"
    "    mul.wide.s32 %rd2, %r5, 4;\n"
    "    add.s64 %rd3, %rd1, %rd2;\n"
    "    ld.global.f32 %f1, [%rd3];\n"
    "    ld.const.f32 %f2, [scale];\n"
    "    mul.f32 %f3, %f1, %f2;\n"
    "    st.global.f32 [%rd3], %f3;\n"
    "    atom.global.add.u32 %r6, [count], 1;\n"
    "    setp.ne.s32 %p1, %r5, 0;\n"
    "    @%p1 bra DONE;\n"
    "    st.global.u32 [last], %r1;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"
    ".visible .entry rank(.param .u64 out)\n"
    "{\n"
    "    .reg .b32 %r<3>;\n"
    "    .reg .b64 %rd<4>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    mov.u32 %r1, %cluster_ctarank;\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    mul.wide.u32 %rd2, %r2, 4;\n"
    "    add.s64 %rd3, %rd1, %rd2;\n"
    "    st.global.u32 [%rd3], %r1;\n"
    "    ret;\n"
    "}\n";

void **__cudaRegisterFatBinary(const void *);
void __cudaRegisterFatBinaryEnd(void **), __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterVar(void **, const void *, char *, const char *, int, size_t, int, int);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
char __cudaInitModule(void **);
unsigned __cudaPushCallConfiguration(struct dim3, struct dim3, size_t, cudaStream_t);
cudaError_t __cudaPopCallConfiguration(struct dim3 *, struct dim3 *, size_t *, void *);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
cudaError_t __cudaLaunchKernel(cudaKernel_t, struct dim3, struct dim3, void **, size_t, cudaStream_t);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(
    const char *, void **, unsigned, unsigned long long, enum cudaDriverEntryPointQueryResult *);
cudaError_t cudaMemcpy_ptds(void *, const void *, size_t, enum cudaMemcpyKind);

enum { N = 1000, BYTES = 4 * N };
static float scale, values[N];
static int count, *last;
static void **binary;

static void multiply(void) {}
static void rank(void) {}
static void unknown(void) {}

#define SAY(call) say(#call, call)

static int say(const char *call, cudaError_t code) {
    if (code)
        printf("%s: %s\n", call, cudaGetErrorName(code));
    return code;
}

static struct dim3 make(unsigned x) {
    struct dim3 size = {x, 1, 1};
    return size;
}

/* What `multiply<<<grid, block, shared, stream>>>(array, n)` becomes. */
static cudaError_t launch(unsigned grid, unsigned block, size_t shared, cudaStream_t stream, float *array, int n) {
    struct dim3 grid_size, block_size;
    cudaKernel_t kernel;
    void *arguments[] = {&array, &n};
    if (__cudaPushCallConfiguration(make(grid), make(block), shared, stream))
        return cudaErrorUnknown;
    if (__cudaGetKernel(&kernel, (void *)multiply) || __cudaPopCallConfiguration(&grid_size, &block_size, &shared, &stream))
        return cudaErrorUnknown;
    return __cudaLaunchKernel(kernel, grid_size, block_size, arguments, shared, stream);
}

static void register_all(void) {
    binary = __cudaRegisterFatBinary(PTX);
    __cudaRegisterFunction(binary, (void *)multiply, "multiply", "multiply", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFunction(binary, (void *)rank, "rank", "rank", -1, 0, 0, 0, 0, 0);
    __cudaRegisterVar(binary, &scale, "scale", "scale", 0, 4, 1, 0);
    __cudaRegisterVar(binary, &count, "count", "count", 0, 4, 0, 1);
    __cudaRegisterManagedVar(binary, (void **)&last, "last", "last", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(binary);
}

static void test_device(void) {
    struct cudaDeviceProp properties;
    int device, devices, version, threads, number;
    memset(&properties, 0xFF, sizeof properties);
    SAY(cudaGetDeviceCount(&devices));
    SAY(cudaSetDevice(1));
    SAY(cudaGetDevice(&device));
    SAY(cudaRuntimeGetVersion(&version));
    SAY(cudaGetDeviceProperties(&properties, 0));
    SAY(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
    printf("%d %d %d | %s %d.%d %zu %d %d %d %d\n", devices, device, version >= 12000, properties.name, properties.major,
           properties.minor, properties.totalGlobalMem >> 30, properties.multiProcessorCount,
           properties.maxThreadsPerMultiProcessor == threads, properties.clusterLaunch, properties.unifiedFunctionPointers);
    for (size_t i = 0; i < sizeof properties.reserved / 4; i++)
        if (properties.reserved[i])
            printf("reserved %zu is %x\n", i, properties.reserved[i]);
    SAY(cudaDeviceGetAttribute(&number, 999, 0));
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
}

static void test_launches(float *array, cudaStream_t stream) {
    cudaEvent_t start, end;
    float time = 0, two = 2;
    int result = 0;
    size_t size;
    SAY(cudaEventCreate(&start));
    SAY(cudaEventCreateWithFlags(&end, cudaEventDefault));
    printf("managed: %d", __cudaInitModule(binary));
    printf(" %d\n", *last);
    SAY(cudaGetSymbolSize(&size, &scale));
    SAY(cudaMemcpyToSymbol(&scale, &two, size, 0, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToSymbol(&scale, &two, size, 1, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyAsync(array, values, BYTES, cudaMemcpyHostToDevice, stream));
    SAY(cudaEventRecord(start, stream));
    SAY(launch(4, 256, 0, stream, array, N));
    SAY(cudaEventRecord(end, stream));
    SAY(cudaStreamSynchronize(stream));
    SAY(cudaEventElapsedTime(&time, start, end));
    SAY(cudaMemcpyFromSymbol(&result, &count, 4, 0, cudaMemcpyDefault));
    SAY(cudaMemcpy_ptds(values, array, BYTES, cudaMemcpyDeviceToHost));
    printf("launch: %g %g, %d threads, %d, %d\n", values[1], values[N - 1], result, *last, time > 0);
}

static cudaError_t prefetch(void *address, size_t size) {
#if CUDART_VERSION < 13000
    return cudaMemPrefetchAsync(address, size, 0, 0);
#else
    struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = 0};
    return cudaMemPrefetchAsync(address, size, location, 0, 0);
#endif
}

static void test_clusters(void) {
    int *ranks;
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension, .val.clusterDim = {4, 1, 1}};
    cudaLaunchConfig_t config = {make(8), make(1), 0, 0, &attribute, 1};
    struct cudaPointerAttributes pointer;
    SAY(cudaMallocManaged((void **)&ranks, 32, cudaMemAttachGlobal));
    SAY(cudaLaunchKernelExC(&config, (void *)rank, (void *[]){&ranks}));
    SAY(cudaDeviceSynchronize());
    SAY(prefetch(ranks, 32));
    SAY(prefetch(ranks, 33));
    for (int i = 0; i < 8; i++)
        printf("%d ", ranks[i]);
    SAY(cudaPointerGetAttributes(&pointer, ranks + 1));
    printf("%d %d", pointer.type, pointer.devicePointer == (void *)(ranks + 1));
    SAY(cudaPointerGetAttributes(&pointer, values));
    printf(" %d %d\n", pointer.type, pointer.device);
    SAY(cudaLaunchCooperativeKernel((void *)rank, make(4), make(1), (void *[]){&ranks}, 0, 0));
    SAY(cudaFree(ranks));
}

static void test_attributes(void) {
    struct cudaFuncAttributes attributes;
    int resident, offset;
    cudaKernel_t kernel;
    size_t position = 0, size = 0;
    SAY(cudaFuncSetAttribute((void *)multiply, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    SAY(cudaFuncGetAttributes(&attributes, (void *)multiply));
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, (void *)multiply, 256, 0));
    SAY(cudaGetKernel(&kernel, (void *)multiply));
    SAY(cudaFuncGetParamInfo((void *)kernel, 1, &position, &size));
    offset = (int)position;
    printf("attributes: %d %d %d %d, %d, %d %zu\n", attributes.maxThreadsPerBlock, attributes.ptxVersion,
           attributes.binaryVersion, attributes.nonPortableClusterSizeAllowed, resident, offset, size);
}

static void test_rows(void) {
    void *rows;
    size_t pitch;
    char text[] = "abcdefghijkl", result[] = "............";
    struct cudaMemcpy3DParms copy = {0};
    struct cudaPitchedPtr box;
    SAY(cudaMallocPitch(&rows, &pitch, 3, 4));
    SAY(cudaMemset2D(rows, pitch, '-', 3, 4));
    SAY(cudaMemcpy2D((char *)rows + pitch, pitch, text, 4, 2, 3, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DAsync(result, 3, rows, pitch, 3, 4, cudaMemcpyDeviceToHost, 0));
    printf("rows: %s", result);
    SAY(cudaMalloc3D(&box, (struct cudaExtent){3, 2, 2}));
    SAY(cudaMemset3D(box, '+', (struct cudaExtent){2, 2, 2}));
    copy.srcPtr = box, copy.dstPtr = (struct cudaPitchedPtr){result, 3, 3, 2};
    copy.extent = (struct cudaExtent){2, 1, 2}, copy.kind = cudaMemcpyDefault;
    SAY(cudaMemcpy3D(&copy));
    printf(" %s\n", result);
    SAY(cudaMemcpy2D(rows, 2, text, 4, 3, 1, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(rows, text, 1, (enum cudaMemcpyKind)7));
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
}

static void test_graphs(float *array, cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t first, second;
    int n = N, one = 1, result;
    struct cudaMemsetParams fill = {array, 0, 0x3F800000, 4, N, 1};
    struct cudaKernelNodeParams node = {(void *)multiply, make(4), make(256), 0, (void *[]){&array, &n}, 0};
    SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    SAY(launch(4, 256, 0, stream, array, N));
    SAY(cudaStreamEndCapture(stream, &graph));
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    SAY(cudaGraphLaunch(exec, stream));
    SAY(cudaStreamSynchronize(stream));
    SAY(cudaMemcpy(values, array, BYTES, cudaMemcpyDeviceToHost));
    printf("graphs: %g", values[3]);
    SAY(cudaGraphCreate(&graph, 0));
    SAY(cudaGraphAddMemsetNode(&first, graph, 0, 0, &fill));
    SAY(cudaGraphAddKernelNode(&second, graph, &first, 1, &node));
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    SAY(cudaGraphLaunch(exec, stream));
    SAY(cudaStreamSynchronize(stream));
    SAY(cudaMemcpy(values, array, BYTES, cudaMemcpyDeviceToHost));
    printf(" %g", values[3]);
    node.kernelParams = (void *[]){&array, &one};
    SAY(cudaGraphExecKernelNodeSetParams(exec, second, &node));
    SAY(cudaGraphLaunch(exec, stream));
    SAY(cudaStreamSynchronize(stream));
    SAY(cudaMemcpy(values, array, BYTES, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpyFromSymbol(&result, &count, 4, 0, cudaMemcpyDefault));
    printf(" %g %g, %d threads\n", values[0], values[3], result);
}

static void test_errors(float *array) {
    void *entry = &entry, *other = 0;
    float *null = array;
    enum cudaDriverEntryPointQueryResult found;
    SAY(cudaMalloc((void **)&null, 0));
    printf("%d %s\n", null == 0, cudaGetErrorString((cudaError_t)12345));
    SAY(cudaGetDriverEntryPointByVersion("cuNothing", &entry, 12000, 0, &found));
    printf("%d %d", entry == 0, found);
    SAY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    printf(" %d %d", entry != 0, found);
    SAY(cudaGetDriverEntryPointByVersion("cuStreamQuery", &entry, 12000, cudaEnableDefault, &found));
    SAY(cudaGetDriverEntryPointByVersion_ptsz("cuStreamQuery", &other, 12000, cudaEnableDefault, &found));
    printf(" %d\n", entry != other);
    SAY(cudaGetDriverEntryPointByVersion("cuGetExportTable", &entry, 12000, cudaEnableDefault, &found));
    int (*get_table)(void **, const void *) = (int (*)(void **, const void *))entry;
    printf("%d %d\n", get_table(&entry, "NVIDIA's library"), get_table(&entry, "NVIDIA's library"));
    SAY(launch(1, 2048, 0, 0, array, N));
    SAY(launch(1, 32, 1 << 20, 0, array, N));
    SAY(cudaLaunchKernel((void *)unknown, make(1), make(1), 0, 0, 0));
    SAY(cudaMemcpyToSymbol(values, &null, 4, 0, cudaMemcpyHostToDevice));
    printf("%s", cudaGetErrorName(cudaPeekAtLastError()));
    printf(" %s", cudaGetErrorName(cudaGetLastError()));
    printf(" %s\n", cudaGetErrorName(cudaGetLastError()));
    SAY(launch(4, 256, 0, 0, array, N + 1));
    printf("%s", cudaGetErrorName(cudaGetLastError()));
    printf(" %s", cudaGetErrorName(cudaGetLastError()));
    printf(" %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    SAY(cudaDeviceReset());
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    SAY(cudaMalloc((void **)&array, BYTES));
    SAY(cudaMemset(array, 0, BYTES));
    SAY(launch(4, 256, 0, 0, array, N));
    SAY(cudaFree(array));
    SAY(cudaArrayGetPlane(0, 0, 0));
}

int main(void) {
    float *array;
    cudaStream_t stream;
    setvbuf(stdout, 0, _IONBF, 0);
    register_all();
    for (int i = 0; i < N; i++)
        values[i] = (float)i;
    test_device();
    SAY(cudaMalloc((void **)&array, BYTES));
    SAY(cudaStreamCreateWithFlags(&stream, cudaStreamDefault));
    test_launches(array, stream);
    test_clusters();
    test_attributes();
    test_rows();
    test_graphs(array, stream);
    test_errors(array);
    __cudaUnregisterFatBinary(binary);
    SAY(launch(4, 256, 0, 0, array, N));
    return 0;
}
