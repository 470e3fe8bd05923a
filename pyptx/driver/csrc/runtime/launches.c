/* Launches, and what a kernel needs. */
#include "runtime.h"

#include <limits.h>

typedef struct {
    Dim3 grid, block;
    size_t shared;
    uintptr_t stream;
} Configuration;

/* `cudaLaunchConfig_t`. The driver's structure has the same layout, if the shared memory has 32 bits. */
typedef struct {
    Dim3 grid, block;
    size_t shared;
    uintptr_t stream, attributes;
    unsigned attribute_count;
} LaunchConfig;

typedef struct {
    size_t static_shared, constant, local;
    int threads, registers, ptx_version, binary_version, cache_mode, dynamic_shared, carveout, needs_cluster, width, height,
        depth, scheduling, allows_large_clusters, reserved[16];
} FunctionAttributes;

enum { MOST_CONFIGURATIONS = 64, MAX_THREADS = 1, MAX_BLOCK_X = 2, MAX_GRID_X = 5 };

static _Thread_local Configuration configurations[MOST_CONFIGURATIONS];
static _Thread_local int depth;

/* `<<<…>>>` pushes what the stub of the kernel pops; arguments of the call may launch other kernels in between. */
unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared, uintptr_t stream) {
    if (depth == MOST_CONFIGURATIONS)
        return runtime_end(INVALID_CONFIGURATION);
    configurations[depth++] = (Configuration){grid, block, shared, stream};
    return SUCCESS;
}

int __cudaPopCallConfiguration(Dim3 *grid, Dim3 *block, size_t *shared, uintptr_t *stream) {
    if (!depth)
        return runtime_end(INVALID_CONFIGURATION);
    Configuration *top = &configurations[--depth];
    *grid = top->grid, *block = top->block, *shared = top->shared, *stream = top->stream;
    return SUCCESS;
}

static int exceeds(Dim3 size, int first_attribute) {
    unsigned sizes[] = {size.x, size.y, size.z};
    int device, limit;
    if (cuCtxGetDevice((uintptr_t)&device))
        return 0;
    for (int axis = 0; axis < 3; axis++)
        if (!sizes[axis] || cuDeviceGetAttribute((uintptr_t)&limit, first_attribute + axis, device) ||
            sizes[axis] > (unsigned)limit)
            return 1;
    return first_attribute == MAX_BLOCK_X && !cuDeviceGetAttribute((uintptr_t)&limit, MAX_THREADS, device) &&
           (uint64_t)size.x * size.y * size.z > (uint64_t)limit;
}

/* The driver calls every invalid launch an invalid value. */
static int explain(int code, Dim3 grid, Dim3 block) {
    if (code == INVALID_VALUE && (exceeds(grid, MAX_GRID_X) || exceeds(block, MAX_BLOCK_X)))
        return INVALID_CONFIGURATION;
    return code;
}

static int launch(uintptr_t function, LaunchConfig config, uintptr_t arguments) {
    uintptr_t kernel;
    int code = runtime_begin();
    if (!code)
        code = runtime_find_kernel(function, &kernel);
    if (!code && config.shared > UINT_MAX)
        code = INVALID_VALUE;
    config.stream = runtime_stream(config.stream);
    if (!code)
        code = explain(cuLaunchKernelEx((uintptr_t)&config, kernel, arguments, 0), config.grid, config.block);
    return runtime_end(code);
}

int cudaLaunchKernel(uintptr_t function, Dim3 grid, Dim3 block, uintptr_t arguments, size_t shared, uintptr_t stream) {
    return launch(function, (LaunchConfig){grid, block, shared, stream, 0, 0}, arguments);
}

int cudaLaunchKernelExC(const LaunchConfig *config, uintptr_t function, uintptr_t arguments) {
    return config ? launch(function, *config, arguments) : runtime_end(INVALID_VALUE);
}

int cudaLaunchCooperativeKernel(uintptr_t function, Dim3 grid, Dim3 block, uintptr_t arguments, size_t shared,
                                uintptr_t stream) {
    struct {
        unsigned id, padding;
        int value[16];
    } cooperative = {2, 0, {1}};
    return launch(function, (LaunchConfig){grid, block, shared, stream, (uintptr_t)&cooperative, 1}, arguments);
}

/* The functions that code of nvcc 13 calls for `<<<…>>>`. A handle is the function on the host: it serves every device. */
int __cudaGetKernel(uintptr_t *kernel, uintptr_t function) {
    *kernel = function;
    return SUCCESS;
}

int __cudaLaunchKernel(uintptr_t function, Dim3 grid, Dim3 block, uintptr_t arguments, size_t shared, uintptr_t stream) {
    return cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}

int cudaFuncGetAttributes(FunctionAttributes *result, uintptr_t function) {
    uintptr_t kernel;
    int code = result ? runtime_begin() : INVALID_VALUE;
    if (!code)
        code = runtime_find_kernel(function, &kernel);
    if (code)
        return runtime_end(code);
    *result = (FunctionAttributes){0};
    int sizes[3] = {0};
    int *numbers[] = {
        &result->threads, &sizes[0], &sizes[1], &sizes[2], &result->registers, &result->ptx_version,
        &result->binary_version, &result->cache_mode, &result->dynamic_shared, &result->carveout, &result->needs_cluster,
        &result->width, &result->height, &result->depth, &result->allows_large_clusters, &result->scheduling,
    };
    for (int attribute = 0; !code && attribute < (int)(sizeof numbers / sizeof *numbers); attribute++)
        code = cuFuncGetAttribute((uintptr_t)numbers[attribute], attribute, kernel);
    result->static_shared = sizes[0], result->constant = sizes[1], result->local = sizes[2];
    return runtime_end(code);
}

int cudaKernelSetAttributeForDevice(uintptr_t kernel, int attribute, int value, int device) {
    ANSWER(cuKernelSetAttribute(attribute, value, kernel, device));
}
