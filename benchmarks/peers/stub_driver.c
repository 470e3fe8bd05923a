/* A CUDA driver that does nothing: every function succeeds, and objects are counted while they exist. It measures what a
 * launch costs the host, apart from the driver. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, SHARED_PER_BLOCK = 97, MOST_THREADS = 0, SUCCESS = 0 };
enum { MOST_WORDS = 8, PAUSE = 20 /* microseconds */ };

long stub_launches, stub_modules, stub_events, stub_allocations;
/* How many parameters of eight bytes a launch reads, after a pause in which other threads launch. */
long stub_words;
static _Thread_local uint64_t words[MOST_WORDS];

/* Returns a parameter of the latest launch by this thread. */
uint64_t stub_get_word(int at) { return words[at]; }

static int do_nothing(void) { return SUCCESS; }
static int write_handle(void **result) { *result = (void *)(uintptr_t)0x1000; return SUCCESS; }
static int write_zero(int *result) { *result = 0; return SUCCESS; }
static int write_one(int *result) { *result = 1; return SUCCESS; }
static int write_version(int *result) { *result = 13000; return SUCCESS; }

static int get_attribute(int *result, int attribute) {
    *result = attribute == CAPABILITY_MAJOR ? 9 : attribute == CAPABILITY_MINOR ? 0
              : attribute == SHARED_PER_BLOCK ? 227 << 10 : 1 << 30;
    return SUCCESS;
}

static int is_capturing(void *stream, int *status) { (void)stream; *status = 0; return SUCCESS; }
static int get_identity(void *context, unsigned long long *result) { (void)context; *result = 1; return SUCCESS; }
static int get_stream_device(void *stream, int *result) { (void)stream; *result = 0; return SUCCESS; }
static int load(void **module) { __atomic_add_fetch(&stub_modules, 1, __ATOMIC_RELAXED); return write_handle(module); }
static int unload(void) { __atomic_sub_fetch(&stub_modules, 1, __ATOMIC_RELAXED); return SUCCESS; }
static int create_event(void **event) { __atomic_add_fetch(&stub_events, 1, __ATOMIC_RELAXED); return write_handle(event); }
static int destroy_event(void) { __atomic_sub_fetch(&stub_events, 1, __ATOMIC_RELAXED); return SUCCESS; }
static int launch(void) { __atomic_add_fetch(&stub_launches, 1, __ATOMIC_RELAXED); return SUCCESS; }

static int launch_with_words(const void *config, void *function, void **parameters) {
    (void)config;
    (void)function;
    if (stub_words)
        usleep(PAUSE);
    for (long at = 0; at < stub_words; at++)
        memcpy(&words[at], parameters[at], sizeof *words);
    return launch();
}

static int allocate(void **result, size_t size) {
    __atomic_add_fetch(&stub_allocations, 1, __ATOMIC_RELAXED);
    *result = aligned_alloc(256, (size + 255) / 256 * 256);
    return *result ? SUCCESS : 2;
}

static int release(void *address) {
    __atomic_sub_fetch(&stub_allocations, 1, __ATOMIC_RELAXED);
    free(address);
    return SUCCESS;
}

static const struct { const char *name; void *function; } functions[] = {
    {"cuCtxGetCurrent", write_handle}, {"cuCtxGetId", get_identity}, {"cuStreamGetDevice", get_stream_device},
     {"cuDevicePrimaryCtxRetain", write_handle}, {"cuCtxGetDevice", write_zero},
    {"cuDeviceGet", write_zero}, {"cuDeviceGetCount", write_one}, {"cuDriverGetVersion", write_version},
    {"cuDeviceGetAttribute", get_attribute}, {"cuStreamIsCapturing", is_capturing}, {"cuModuleLoadDataEx", load},
    {"cuModuleUnload", unload}, {"cuModuleGetFunction", write_handle}, {"cuEventCreate", create_event},
    {"cuEventDestroy", destroy_event}, {"cuMemAllocAsync", allocate}, {"cuMemFreeAsync", release},
    {"cuLaunchKernelEx", launch_with_words}, {"cuLaunchKernel", launch}, {"cuLibraryLoadData", write_handle},
    {"cuLibraryGetKernel", write_handle}, {"cuStreamGetCtx", write_handle}, {"cuStreamCreateWithPriority", write_handle},
};

int cuGetProcAddress_v2(const char *name, void **result, int version, uint64_t flags, int *status) {
    (void)version;
    (void)flags;
    *result = do_nothing;
    for (size_t at = 0; at < sizeof functions / sizeof *functions; at++)
        if (!strcmp(functions[at].name, name))
            *result = functions[at].function;
    if (!strcmp(name, "cuGetProcAddress"))
        *result = cuGetProcAddress_v2;
    if (status)
        *status = 0;
    return SUCCESS;
}

int cuCtxGetCurrent(void **result) { return write_handle(result); }
int cuStreamIsCapturing(void *stream, int *status) { return is_capturing(stream, status); }
int cuLaunchKernelEx(const void *config, void *function, void **parameters) {
    return launch_with_words(config, function, parameters);
}
int cuTensorMapEncodeTiled(void *result) { memset(result, 0, 128); return SUCCESS; }

/* What Triton's launcher is linked with. */
int cuInit(void) { return SUCCESS; }
int cuCtxSetCurrent(void) { return SUCCESS; }
int cuCtxGetId(void *context, unsigned long long *result) { return get_identity(context, result); }
int cuStreamGetDevice(void *stream, int *result) { return get_stream_device(stream, result); }
int cuCtxGetDevice(int *result) { return write_zero(result); }
int cuCtxGetLimit(int *result) { return write_zero(result); }
int cuCtxSetLimit(void) { return SUCCESS; }
int cuDeviceGet(int *result) { return write_zero(result); }
int cuDeviceGetAttribute(int *result, int attribute) { return get_attribute(result, attribute); }
int cuDeviceGetCount(int *result) { return write_one(result); }
int cuDevicePrimaryCtxRetain(void **result) { return write_handle(result); }
int cuDriverGetVersion(int *result) { return write_version(result); }
int cuFuncGetAttribute(int *result, int attribute) { *result = attribute == MOST_THREADS ? 1024 : 0; return SUCCESS; }
int cuFuncSetAttribute(void) { return SUCCESS; }
int cuFuncSetCacheConfig(void) { return SUCCESS; }
int cuGetErrorString(int code, const char **result) { (void)code; *result = "an error"; return SUCCESS; }
int cuModuleGetFunction(void **result) { return write_handle(result); }
int cuModuleLoadData(void **result) { return load(result); }
int cuModuleUnload(void) { return unload(); }
int cuOccupancyMaxActiveClusters(int *result) { return write_one(result); }
int cuPointerGetAttribute(uint64_t *result, int attribute, uint64_t pointer) {
    (void)attribute;
    *result = pointer;
    return SUCCESS;
}
int cuTensorMapEncodeIm2col(void *result) { memset(result, 0, 128); return SUCCESS; }
