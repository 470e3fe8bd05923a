/* Runs kernels on NVIDIA GPUs for XLA: the handler of its foreign function interface for the platform CUDA.

   A custom call's attributes (pyptx/runtime/jax_attributes.py writes them) become a launch configuration once; a call
   fills in addresses and launches on XLA's stream. Needs neither Python nor headers of XLA or CUDA: the structures below
   are the parts of both C interfaces that keep their layout, and the driver is the one that the process has loaded. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* XLA's interface, major version 0 */

enum { METADATA = 1, INITIALIZE = 2, EXECUTE = 3, INTERNAL = 13, COMMAND_BUFFER_COMPATIBLE = 1 };

typedef struct Error Error;

typedef struct {
    size_t size;
    void *extension;
    int major, minor;
} Version;

typedef struct {
    size_t size;
    Version version;
    uint32_t traits;
} Metadata;

typedef struct {
    size_t size;
    int type;
    void *next;
    Metadata *metadata;
} Extension;

typedef struct {
    size_t size;
    void *extension;
    const char *message;
    int code;
} ErrorArguments;

typedef struct {
    size_t size;
    void *extension, *context, *stream;
} StreamArguments;

typedef struct {
    size_t size;
    void *extension;
    Version version;
    void *internal;
    Error *(*create_error)(ErrorArguments *);
    void *get_message, *destroy_error, *register_handler;
    Error *(*get_stream)(StreamArguments *);
} Api;

typedef struct {
    size_t size;
    void *extension;
    int dtype;
    void *data;
    int64_t rank, *dims;
} Buffer;

typedef struct {
    size_t size;
    void *extension;
    int64_t count;
    int *types;
    Buffer **items;
} Buffers;

typedef struct {
    const char *data;
    size_t size;
} Span;

typedef struct {
    int dtype;
    size_t size;
    const void *data;
} Array;

typedef struct {
    size_t size;
    void *extension;
    int64_t count;
    int *types;
    Span **names;
    void **items;
} Attributes;

typedef struct {
    size_t size;
    Extension *extension;
    const Api *api;
    void *context;
    int stage;
    Buffers inputs, results;
    Attributes attributes;
} CallFrame;

/* The driver's interface */

enum { COOPERATIVE = 2, CLUSTER = 4, PROGRAMMATIC = 6 };
enum { MOST_DYNAMIC_SHARED = 8, ANY_CLUSTER_SIZE = 14 };
enum { ERROR_LOG = 5, ERROR_LOG_SIZE = 6 };
enum { PORTABLE_CLUSTER = 8, MAX_DEVICES = 64, LOG_SIZE = 4096 };

typedef struct {
    int id, padding;
    union {
        uint32_t numbers[3];
        char bytes[64];
    } value;
} LaunchAttribute;

typedef struct {
    uint32_t grid[3], block[3], shared;
    void *stream;
    LaunchAttribute *attributes;
    uint32_t count;
} LaunchConfig;

static struct {
    int (*load)(void **, const void *, int *, void **, unsigned, int *, void **, unsigned);
    int (*get_kernel)(void **, void *, const char *);
    int (*set_attribute)(int, int, void *, int);
    int (*get_device)(int *);
    int (*launch)(const LaunchConfig *, void *, void **, void **);
    int (*encode)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                  const uint32_t *, int, int, int, int);
    int (*get_name)(int, const char **);
} driver;

/* A custom call */

enum { GRID = 0, BLOCK = 3, CLUSTER_SIZE = 6, SHARED = 9, TENSORS, OUTPUTS, IS_COOPERATIVE, IS_PROGRAMMATIC, SHAPE_SIZE };
enum { DIGEST_SIZE = 16, MAX_RANK = 5, MAX_PARAMETERS = 32764, ALIGNMENT = 128 };

typedef struct {
    int64_t offset, size, tensor;
} Parameter;

typedef struct {
    uint64_t offset, tensor, element, rank, dims[MAX_RANK], strides[MAX_RANK], box[MAX_RANK], steps[MAX_RANK];
    uint64_t interleave, swizzle, promotion, fill;
} Map;

typedef struct Call {
    unsigned char digest[DIGEST_SIZE];
    struct Call *next;
    void *kernel;
    LaunchConfig config;
    LaunchAttribute attributes[3];
    int64_t inputs, outputs;
    size_t count, size, map_count;
    Parameter *parameters;
    unsigned char *values;
    Map *maps;
    int raises_limits;
    atomic_uint_least64_t ready; /* devices on which its limits are raised */
} Call;

/* Calls are never freed: XLA does not tell when the last program with one is gone. */
enum { BUCKETS = 1024 };
static _Atomic(Call *) calls[BUCKETS];
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static Error *fail(const CallFrame *frame, const char *format, ...) {
    char text[LOG_SIZE + 1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    ErrorArguments arguments = {sizeof arguments, NULL, text, INTERNAL};
    return frame->api->create_error(&arguments);
}

static const void *find_attribute(const Attributes *attributes, const char *name) {
    for (int64_t i = 0; i < attributes->count; i++) {
        const Span *span = attributes->names[i];
        if (span->size == strlen(name) && !memcmp(span->data, name, span->size)) return attributes->items[i];
    }
    return NULL;
}

#define SIMULATE "with PYPTX_SIMULATE=1 in the environment while JAX compiles the function, it runs on the simulator, which "
#define UNLIMITED "; " SIMULATE "has no such limit"

enum { NO_MEMORY = 2, OUT_OF_RESOURCES = 701, COOPERATIVE_TOO_LARGE = 720, INVALID_CLUSTER_SIZE = 912 };

/* Says what to do about a code. */
static const char *find_remedy(int code, int is_loading) {
    switch (code) {
    case NO_MEMORY:
        return "free memory of the device: JAX takes most of it at its start, unless XLA_PYTHON_CLIENT_PREALLOCATE is false";
    case OUT_OF_RESOURCES:
        return "use a smaller block, or fewer registers per thread by the directive maxntid; resources(...) of the kernel "
               "lists them" UNLIMITED;
    case COOPERATIVE_TOO_LARGE:
        return "use a smaller grid: a cooperative launch runs all its CTAs at the same time" UNLIMITED;
    case INVALID_CLUSTER_SIZE:
        return "use a smaller cluster: more than 8 CTAs fit on few GPUs only" UNLIMITED;
    }
    return is_loading ? "check(...) and cubin(...) of the kernel, which needs ptxas, report what is wrong with its PTX, by "
                        "lines of Python; its version must be known to the driver, and its target fit the device"
                      : SIMULATE "finds the cause";
}

/* Says what the driver refused for which kernel, and what to do. */
static Error *fail_driver(const CallFrame *frame, const char *function, int code, const char *log) {
    const Span *entry = find_attribute(&frame->attributes, "entry");
    const char *name = NULL, *remedy = find_remedy(code, !strcmp(function, "cuLibraryLoadData"));
    driver.get_name(code, &name);
    return fail(frame, "`%.*s`: %s returned %s (%d)%s%s%s%s", entry ? (int)entry->size : 0, entry ? entry->data : "",
                function, name ? name : "an unknown error", code, *log ? ": " : "; ", log, *log ? "\n  help: " : "", remedy);
}

static Error *find_driver(const CallFrame *frame) {
    if (driver.launch) return NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) return fail(frame, "no CUDA driver: %s", dlerror());
    struct {
        const char *name;
        void *place;
    } functions[] = {
        {"cuLibraryLoadData", &driver.load},      {"cuLibraryGetKernel", &driver.get_kernel},
        {"cuKernelSetAttribute", &driver.set_attribute}, {"cuCtxGetDevice", &driver.get_device},
        {"cuTensorMapEncodeTiled", &driver.encode}, {"cuGetErrorName", &driver.get_name},
        {"cuLaunchKernelEx", &driver.launch},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function) return fail(frame, "the CUDA driver has no %s: CUDA 12 or newer is needed", functions[i].name);
        memcpy(functions[i].place, &function, sizeof function);
    }
    return NULL;
}

static void *copy(const void *data, size_t size) {
    char *target = malloc(size + 1);
    if (target && size) memcpy(target, data, size);
    if (target) target[size] = 0;
    return target;
}

static Error *load_kernel(const CallFrame *frame, Call *call, const Span *module, const Span *entry) {
    char log[LOG_SIZE] = "", *text = copy(module->data, module->size), *name = copy(entry->data, entry->size);
    int options[] = {ERROR_LOG, ERROR_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)sizeof log}, *library;
    Error *error = text && name ? NULL : fail(frame, "not enough memory");
    int code = error ? 0 : driver.load(&library, text, options, values, 2, NULL, NULL, 0);
    if (code) error = fail_driver(frame, "cuLibraryLoadData", code, log);
    if (!error) code = driver.get_kernel(&call->kernel, library, name);
    if (!error && code) error = fail_driver(frame, "cuLibraryGetKernel", code, "");
    free(text), free(name);
    return error;
}

static void configure(Call *call, const int64_t *shape) {
    LaunchConfig *config = &call->config;
    for (int i = 0; i < 3; i++) config->grid[i] = shape[GRID + i], config->block[i] = shape[BLOCK + i];
    const int64_t *cluster = shape + CLUSTER_SIZE;
    int64_t size = cluster[0] * cluster[1] * cluster[2];
    config->shared = shape[SHARED];
    config->attributes = call->attributes;
    if (size != 1) {
        LaunchAttribute *attribute = &call->attributes[config->count++];
        attribute->id = CLUSTER;
        for (int i = 0; i < 3; i++) attribute->value.numbers[i] = cluster[i];
    }
    if (shape[IS_COOPERATIVE]) call->attributes[config->count++] = (LaunchAttribute){COOPERATIVE, 0, {{1}}};
    if (shape[IS_PROGRAMMATIC]) call->attributes[config->count++] = (LaunchAttribute){PROGRAMMATIC, 0, {{1}}};
    call->outputs = shape[OUTPUTS];
    call->inputs = shape[TENSORS] - call->outputs;
    call->raises_limits = config->shared || size > PORTABLE_CLUSTER;
}

static Error *create(const CallFrame *frame, const unsigned char *digest, Call **result) {
    const Attributes *attributes = &frame->attributes;
    const Span *entry = find_attribute(attributes, "entry"), *module = find_attribute(attributes, "module");
    const Array *shape = find_attribute(attributes, "shape"), *parameters = find_attribute(attributes, "params");
    const Array *maps = find_attribute(attributes, "maps"), *values = find_attribute(attributes, "values");
    if (!entry || !module || !shape || !parameters || !maps || !values || shape->size != SHAPE_SIZE ||
        values->size > MAX_PARAMETERS)
        return fail(frame, "the attributes are not those of a kernel");
    Call *call = calloc(1, sizeof *call);
    if (!call) return fail(frame, "not enough memory");
    memcpy(call->digest, digest, DIGEST_SIZE);
    configure(call, shape->data);
    call->count = parameters->size * sizeof(int64_t) / sizeof(Parameter);
    call->parameters = copy(parameters->data, parameters->size * sizeof(int64_t));
    call->map_count = maps->size * sizeof(uint64_t) / sizeof(Map);
    call->maps = copy(maps->data, maps->size * sizeof(uint64_t));
    call->size = values->size;
    call->values = copy(values->data, values->size);
    Error *error = call->parameters && call->maps && call->values ? load_kernel(frame, call, module, entry)
                                                                  : fail(frame, "not enough memory");
    if (error) {
        free(call->parameters), free(call->maps), free(call->values), free(call);
        return error;
    }
    *result = call;
    return NULL;
}

static Call *search(Call *call, const unsigned char *digest) {
    while (call && memcmp(call->digest, digest, DIGEST_SIZE)) call = call->next;
    return call;
}

static Error *find(const CallFrame *frame, Call **result) {
    /* XLA sorts attributes by name: the digest is the first. */
    const Array *digest = frame->attributes.count ? frame->attributes.items[0] : NULL;
    if (!digest || digest->size != DIGEST_SIZE) return fail(frame, "the attributes are not those of a kernel");
    uint16_t number;
    memcpy(&number, digest->data, sizeof number);
    _Atomic(Call *) *bucket = &calls[number % BUCKETS];
    *result = search(atomic_load_explicit(bucket, memory_order_acquire), digest->data);
    if (*result) return NULL;
    pthread_mutex_lock(&loading);
    Error *error = find_driver(frame);
    *result = search(atomic_load(bucket), digest->data);
    if (!error && !*result) {
        error = create(frame, digest->data, result);
        if (!error) {
            (*result)->next = atomic_load(bucket);
            atomic_store_explicit(bucket, *result, memory_order_release);
        }
    }
    pthread_mutex_unlock(&loading);
    return error;
}

static Error *raise_limits(const CallFrame *frame, Call *call) {
    int device, code = driver.get_device(&device);
    if (code) return fail_driver(frame, "cuCtxGetDevice", code, "");
    uint64_t bit = device < MAX_DEVICES ? UINT64_C(1) << device : 0;
    if (atomic_load(&call->ready) & bit) return NULL;
    if (call->config.shared) /* static shared memory lowers the limit of dynamic memory */
        code = driver.set_attribute(MOST_DYNAMIC_SHARED, call->config.shared, call->kernel, device);
    if (!code) code = driver.set_attribute(ANY_CLUSTER_SIZE, 1, call->kernel, device);
    if (code) return fail_driver(frame, "cuKernelSetAttribute", code, "");
    atomic_fetch_or(&call->ready, bit);
    return NULL;
}

static void *find_address(const CallFrame *frame, const Call *call, int64_t tensor) {
    return tensor < call->inputs ? frame->inputs.items[tensor]->data : frame->results.items[tensor - call->inputs]->data;
}

static Error *encode_maps(const CallFrame *frame, const Call *call, unsigned char *values) {
    for (size_t i = 0; i < call->map_count; i++) {
        const Map *map = &call->maps[i];
        uint32_t box[MAX_RANK], steps[MAX_RANK];
        for (int d = 0; d < MAX_RANK; d++) box[d] = map->box[d], steps[d] = map->steps[d];
        void *address = find_address(frame, call, map->tensor);
        int code = driver.encode(values + map->offset, map->element, map->rank, address, map->dims, map->strides, box,
                                 steps, map->interleave, map->swizzle, map->promotion, map->fill);
        if (code) return fail_driver(frame, "cuTensorMapEncodeTiled", code, "");
    }
    return NULL;
}

static Error *launch(const CallFrame *frame, Call *call) {
    /* Further inputs are the initial values of the outputs, which XLA has put where the outputs are. */
    int64_t extra = frame->inputs.count - call->inputs;
    if (frame->results.count != call->outputs || (extra && extra != call->outputs))
        return fail(frame, "the buffers are not those of the kernel");
    unsigned char space[call->size + ALIGNMENT], *values = space + (-(uintptr_t)space & (ALIGNMENT - 1));
    void *pointers[call->count + 1];
    memcpy(values, call->values, call->size);
    for (size_t i = 0; i < call->count; i++) {
        const Parameter *parameter = &call->parameters[i];
        pointers[i] = values + parameter->offset;
        if (parameter->tensor >= 0 && parameter->size == sizeof(void *))
            memcpy(pointers[i], &(void *){find_address(frame, call, parameter->tensor)}, sizeof(void *));
    }
    Error *error = encode_maps(frame, call, values);
    if (error) return error;
    StreamArguments arguments = {sizeof arguments, NULL, frame->context, NULL};
    error = frame->api->get_stream(&arguments);
    if (error) return error;
    LaunchConfig config = call->config;
    config.stream = arguments.stream;
    int code = driver.launch(&config, call->kernel, pointers, NULL);
    return code ? fail_driver(frame, "cuLaunchKernelEx", code, "") : NULL;
}

/* Answer a call by XLA: describe the handler, load the kernel, or launch it. */
Error *pyptx_xla_handler(CallFrame *frame) {
    if (frame->extension && frame->extension->type == METADATA) {
        Metadata *metadata = frame->extension->metadata;
        /* It suits any minor version, hence XLA's own. XLA of minor version 1 asks without saying it. */
        metadata->version.major = 0;
        metadata->version.minor = frame->api ? frame->api->version.minor : 1;
        metadata->traits = COMMAND_BUFFER_COMPATIBLE;
        return NULL;
    }
    if (frame->stage != INITIALIZE && frame->stage != EXECUTE) return NULL;
    Call *call = NULL;
    Error *error = find(frame, &call);
    if (!error && call->raises_limits) error = raise_limits(frame, call);
    return error || frame->stage == INITIALIZE ? error : launch(frame, call);
}
