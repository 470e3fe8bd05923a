/* What the runtime library remembers for each thread: its device, and the last error. */
#include "runtime.h"

enum { LEGACY_ENTRY = 1, PER_THREAD_ENTRY = 2, DEFAULT_ENTRY = 0 };

static _Thread_local int last_error, device, is_ready;
_Thread_local int runtime_per_thread;

static int use(int ordinal) {
    uintptr_t context;
    int code = cuDevicePrimaryCtxRetain((uintptr_t)&context, ordinal);
    return code ? code : cuCtxSetCurrent(context);
}

int runtime_begin(void) {
    if (is_ready)
        return SUCCESS;
    uintptr_t context = 0;
    int code = cuInit(0);
    if (!code)
        code = cuCtxGetCurrent((uintptr_t)&context);
    if (!code)
        code = context ? cuCtxGetDevice((uintptr_t)&device) : use(device);
    is_ready = !code;
    return code;
}

int runtime_end(int code) {
    if (code)
        last_error = code;
    return code;
}

uintptr_t runtime_stream(uintptr_t stream) {
    return stream || !runtime_per_thread ? stream : PER_THREAD_STREAM;
}

int cudaPeekAtLastError(void) {
    return last_error;
}

/* An error that makes the context unusable stays. */
int cudaGetLastError(void) {
    int code = last_error;
    if (code && cuMemGetInfo_v2(0, 0) != code)
        last_error = SUCCESS;
    return code;
}

int cudaRuntimeGetVersion(int *version) {
    if (!version)
        return runtime_end(INVALID_VALUE);
    *version = RUNTIME_VERSION;
    return SUCCESS;
}

int cudaGetDeviceCount(uintptr_t result) {
    int code = cuInit(0);
    return runtime_end(code ? code : cuDeviceGetCount(result));
}

int cudaGetDevice(int *result) {
    if (!result)
        return runtime_end(INVALID_VALUE);
    int code = runtime_begin();
    *result = device;
    return runtime_end(code);
}

int cudaSetDevice(int ordinal) {
    int count = 0, code = cuInit(0);
    if (!code)
        code = cuDeviceGetCount((uintptr_t)&count);
    if (!code)
        code = 0 <= ordinal && ordinal < count ? use(ordinal) : INVALID_DEVICE;
    if (!code)
        device = ordinal, is_ready = 1;
    return runtime_end(code);
}

int cudaInitDevice(int ordinal, unsigned device_flags, unsigned flags) {
    uintptr_t context;
    int code = cuInit(0);
    return runtime_end(code ? code : cuDevicePrimaryCtxRetain((uintptr_t)&context, ordinal));
}

int cudaGetDeviceFlags(uintptr_t flags) {
    int active, code = runtime_begin();
    return runtime_end(code ? code : cuDevicePrimaryCtxGetState(device, flags, (uintptr_t)&active));
}

int cudaSetDeviceFlags(unsigned flags) {
    int code = cuInit(0);
    return runtime_end(code ? code : cuDevicePrimaryCtxSetFlags_v2(device, flags));
}

int cudaDeviceReset(void) {
    int code = runtime_begin();
    if (!code)
        code = cuDevicePrimaryCtxReset_v2(device);
    runtime_forget_modules(device);
    last_error = SUCCESS;
    return runtime_end(code);
}

int cudaThreadExit(void) {
    return cudaDeviceReset();
}

static int find_peer(int ordinal, uintptr_t *context) {
    return cuDevicePrimaryCtxRetain((uintptr_t)context, ordinal);
}

int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    uintptr_t context;
    int code = runtime_begin();
    if (!code)
        code = find_peer(peer, &context);
    return runtime_end(code ? code : cuCtxEnablePeerAccess(context, flags));
}

int cudaDeviceDisablePeerAccess(int peer) {
    uintptr_t context;
    int code = runtime_begin();
    if (!code)
        code = find_peer(peer, &context);
    return runtime_end(code ? code : cuCtxDisablePeerAccess(context));
}

int cudaStreamCreate(uintptr_t result) {
    ANSWER(cuStreamCreate(result, 0));
}

int cudaEventCreate(uintptr_t result) {
    ANSWER(cuEventCreate(result, 0));
}

int cudaGetDriverEntryPointByVersion(const char *name, void **result, unsigned version, uint64_t flags, int *status) {
    int code = runtime_begin(), found = 0;
    if (code)
        return runtime_end(code);
    if (flags == DEFAULT_ENTRY)
        flags = runtime_per_thread ? PER_THREAD_ENTRY : LEGACY_ENTRY;
    code = cuGetProcAddress_v2(name, result, (int)version, flags, &found);
    if (status)
        *status = found;
    return runtime_end(code == NOT_FOUND ? SUCCESS : code);
}

int cudaGetDriverEntryPoint(const char *name, void **result, uint64_t flags, int *status) {
    return cudaGetDriverEntryPointByVersion(name, result, RUNTIME_VERSION, flags, status);
}
