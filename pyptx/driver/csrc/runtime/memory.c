/* Allocations, copies and fills. */
#include "runtime.h"

typedef struct {
    int type, device;
    uintptr_t device_pointer, host_pointer;
#if RUNTIME_VERSION >= 13000
    long reserved[8];
#endif
} PointerAttributes;

enum { UNREGISTERED = 0, MANAGED = 3 };
enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, ORDINAL = 9 };
enum { SMALLEST_ELEMENT = 4 };

/* Nothing is allocated for no bytes. */
#define ALLOCATE(result, size, call)                                                                                   \
    do {                                                                                                               \
        int code = runtime_begin();                                                                                    \
        if (!code && !(result))                                                                                        \
            code = INVALID_VALUE;                                                                                      \
        if (!code && !(size))                                                                                          \
            *(result) = 0;                                                                                             \
        else if (!code)                                                                                                \
            code = (call);                                                                                             \
        return runtime_end(code);                                                                                      \
    } while (0)

int cudaMalloc(uintptr_t *result, size_t size) {
    ALLOCATE(result, size, cuMemAlloc_v2((uintptr_t)result, size));
}

int cudaMallocHost(uintptr_t *result, size_t size) {
    ALLOCATE(result, size, cuMemAllocHost_v2((uintptr_t)result, size));
}

int cudaHostAlloc(uintptr_t *result, size_t size, unsigned flags) {
    ALLOCATE(result, size, cuMemHostAlloc((uintptr_t)result, size, flags));
}

int cudaMallocManaged(uintptr_t *result, size_t size, unsigned flags) {
    ANSWER(cuMemAllocManaged((uintptr_t)result, size, flags));
}

int cudaMallocPitch(uintptr_t *result, size_t *pitch, size_t width, size_t height) {
    ALLOCATE(result, width && height, cuMemAllocPitch_v2((uintptr_t)result, (uintptr_t)pitch, width, height, SMALLEST_ELEMENT));
}

int cudaMalloc3D(Pitched *result, Extent extent) {
    if (!result)
        return runtime_end(INVALID_VALUE);
    *result = (Pitched){0, 0, extent.width, extent.height};
    return cudaMallocPitch(&result->address, &result->pitch, extent.width, extent.height * extent.depth);
}

int cudaFreeHost(uintptr_t address) {
    ANSWER(address ? cuMemFreeHost(address) : SUCCESS);
}

int cudaPointerGetAttributes(PointerAttributes *result, uintptr_t address) {
    int names[] = {MEMORY_TYPE, ORDINAL, DEVICE_POINTER, HOST_POINTER, IS_MANAGED};
    int type = 0;
    char is_managed = 0;
    if (!result)
        return runtime_end(INVALID_VALUE);
    *result = (PointerAttributes){0};
    uintptr_t values[] = {
        (uintptr_t)&type, (uintptr_t)&result->device, (uintptr_t)&result->device_pointer, (uintptr_t)&result->host_pointer,
        (uintptr_t)&is_managed,
    };
    int code = runtime_begin();
    if (!code)
        code = cuPointerGetAttributes(sizeof names / sizeof *names, (uintptr_t)names, (uintptr_t)values, address);
    result->type = is_managed ? MANAGED : type;
    if (result->type == UNREGISTERED)
        result->device = -2, result->host_pointer = address;
    return runtime_end(code);
}

typedef int (*CopyFunction)(uintptr_t to, uintptr_t from, size_t size);
typedef int (*CopyInOrder)(uintptr_t to, uintptr_t from, size_t size, uintptr_t stream);

static const struct {
    CopyFunction wait, wait_per_thread;
    CopyInOrder submit;
} COPIES[] = {
    {cuMemcpy, cuMemcpy_ptds, cuMemcpyAsync},
    {cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, cuMemcpyHtoDAsync_v2},
    {cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, cuMemcpyDtoHAsync_v2},
    {cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, cuMemcpyDtoDAsync_v2},
    {cuMemcpy, cuMemcpy_ptds, cuMemcpyAsync},
};

static int copy(uintptr_t to, uintptr_t from, size_t size, int direction) {
    if (direction < HOST_TO_HOST || direction > ANY_DIRECTION)
        return INVALID_DIRECTION;
    return (runtime_per_thread ? COPIES[direction].wait_per_thread : COPIES[direction].wait)(to, from, size);
}

static int submit_copy(uintptr_t to, uintptr_t from, size_t size, int direction, uintptr_t stream) {
    if (direction < HOST_TO_HOST || direction > ANY_DIRECTION)
        return INVALID_DIRECTION;
    return COPIES[direction].submit(to, from, size, runtime_stream(stream));
}

int cudaMemcpy(uintptr_t to, uintptr_t from, size_t size, int direction) {
    ANSWER(copy(to, from, size, direction));
}

int cudaMemcpyAsync(uintptr_t to, uintptr_t from, size_t size, int direction, uintptr_t stream) {
    ANSWER(submit_copy(to, from, size, direction, stream));
}

int cudaMemcpyPeer(uintptr_t to, int to_device, uintptr_t from, int from_device, size_t size) {
    ANSWER(copy(to, from, size, DEVICE_TO_DEVICE));
}

int cudaMemcpyPeerAsync(uintptr_t to, int to_device, uintptr_t from, int from_device, size_t size, uintptr_t stream) {
    ANSWER(submit_copy(to, from, size, DEVICE_TO_DEVICE, stream));
}

/* The address of bytes in a variable. */
static int find_bytes(uintptr_t symbol, size_t offset, size_t size, uintptr_t *address) {
    size_t whole;
    int code = runtime_begin();
    if (!code)
        code = runtime_find_variable(symbol, address, &whole);
    if (!code && (offset > whole || size > whole - offset))
        code = INVALID_VALUE;
    *address += offset;
    return code;
}

int cudaMemcpyToSymbol(uintptr_t symbol, uintptr_t from, size_t size, size_t offset, int direction) {
    uintptr_t address;
    int code = find_bytes(symbol, offset, size, &address);
    return runtime_end(code ? code : copy(address, from, size, direction));
}

int cudaMemcpyToSymbolAsync(uintptr_t symbol, uintptr_t from, size_t size, size_t offset, int direction, uintptr_t stream) {
    uintptr_t address;
    int code = find_bytes(symbol, offset, size, &address);
    return runtime_end(code ? code : submit_copy(address, from, size, direction, stream));
}

int cudaMemcpyFromSymbol(uintptr_t to, uintptr_t symbol, size_t size, size_t offset, int direction) {
    uintptr_t address;
    int code = find_bytes(symbol, offset, size, &address);
    return runtime_end(code ? code : copy(to, address, size, direction));
}

int cudaMemcpyFromSymbolAsync(uintptr_t to, uintptr_t symbol, size_t size, size_t offset, int direction, uintptr_t stream) {
    uintptr_t address;
    int code = find_bytes(symbol, offset, size, &address);
    return runtime_end(code ? code : submit_copy(to, address, size, direction, stream));
}

int cudaMemset(uintptr_t to, int value, size_t size) {
    ANSWER((runtime_per_thread ? cuMemsetD8_v2_ptds : cuMemsetD8_v2)(to, (unsigned char)value, size));
}

int cudaMemsetAsync(uintptr_t to, int value, size_t size, uintptr_t stream) {
    ANSWER(cuMemsetD8Async(to, (unsigned char)value, size, runtime_stream(stream)));
}

int cudaMemset2D(uintptr_t to, size_t pitch, int value, size_t width, size_t height) {
    ANSWER((runtime_per_thread ? cuMemsetD2D8_v2_ptds : cuMemsetD2D8_v2)(to, pitch, (unsigned char)value, width, height));
}

int cudaMemset2DAsync(uintptr_t to, size_t pitch, int value, size_t width, size_t height, uintptr_t stream) {
    ANSWER(cuMemsetD2D8Async(to, pitch, (unsigned char)value, width, height, runtime_stream(stream)));
}

int cudaMemset3DAsync(Pitched to, int value, Extent extent, uintptr_t stream) {
    int code = SUCCESS;
    for (size_t slice = 0; !code && slice < extent.depth; slice++)
        code = cudaMemset2DAsync(to.address + slice * to.pitch * to.height, to.pitch, value, extent.width, extent.height, stream);
    return code;
}

int cudaMemset3D(Pitched to, int value, Extent extent) {
    int code = cudaMemset3DAsync(to, value, extent, 0);
    return code ? code : runtime_end(cuStreamSynchronize(runtime_stream(0)));
}
