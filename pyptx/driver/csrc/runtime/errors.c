/* The names of errors. */
#include "errors.h"

#include <stddef.h>

static const char UNKNOWN[] = "unrecognized error code";

static const Error *find(int code) {
    for (size_t i = 0; i < sizeof runtime_errors / sizeof *runtime_errors; i++)
        if (runtime_errors[i].code == code)
            return &runtime_errors[i];
    return NULL;
}

const char *cudaGetErrorName(int code) {
    const Error *error = find(code);
    return error ? error->name : UNKNOWN;
}

const char *cudaGetErrorString(int code) {
    const Error *error = find(code);
    return error ? error->meaning : UNKNOWN;
}
