/* What the parts of the runtime library share. Handles and addresses are words, as in the functions of the driver. */
#pragma once
#include "driver_functions.h"
#include <stddef.h>
#include <stdint.h>

enum {
    SUCCESS = 0, INVALID_VALUE = 1, INVALID_CONFIGURATION = 9, INVALID_PITCH = 12, INVALID_SYMBOL = 13,
    INVALID_DIRECTION = 21, INVALID_DEVICE_FUNCTION = 98, INVALID_DEVICE = 101, NOT_FOUND = 500, NOT_SUPPORTED = 801,
};
enum { HOST_TO_HOST = 0, HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 3, ANY_DIRECTION = 4 };
enum { HOST_MEMORY = 1, DEVICE_MEMORY = 2, UNIFIED_MEMORY = 4 };
enum { MOST_DEVICES = 16, PER_THREAD_STREAM = 2 };

typedef struct {
    unsigned x, y, z;
} Dim3;

typedef struct {
    size_t width, height, depth;
} Extent;

typedef struct {
    uintptr_t address;
    size_t pitch, width, height;
} Pitched;

/* Initializes the driver and makes a context current; the first call in each thread does so. */
int runtime_begin(void);
/* Remembers an error, and returns it. */
int runtime_end(int code);
/* Whether stream 0 is the default stream of the thread, in this call. */
extern _Thread_local int runtime_per_thread;
uintptr_t runtime_stream(uintptr_t stream);
/* Forgets the modules in a context that was reset. */
void runtime_forget_modules(int device);
int runtime_find_kernel(uintptr_t function, uintptr_t *kernel);
int runtime_find_variable(uintptr_t symbol, uintptr_t *address, size_t *size);

#define ANSWER(call)                                                                                                    \
    do {                                                                                                               \
        int code_ = runtime_begin();                                                                                   \
        return runtime_end(code_ ? code_ : (call));                                                                    \
    } while (0)
