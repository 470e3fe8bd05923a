/* cuGetProcAddress: finds the version of a function that a program was built for. Needs no Python. */
#include "host.h"

#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_FOUND = 500 };
enum { FOUND = 0, UNKNOWN = 1, TOO_NEW = 2 };
enum { PER_THREAD_DEFAULT_STREAM = 2 };

static int find(const char *name, void **address, int version, uint64_t flags, int *status) {
    if (!name || !address)
        return INVALID_VALUE;
    int result = UNKNOWN;
    *address = NULL;
    size_t low = 0, high = pyptx_driver_symbol_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(pyptx_driver_symbols[middle].function, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < pyptx_driver_symbol_count && !strcmp(pyptx_driver_symbols[low].function, name); low++) {
        const Symbol *symbol = &pyptx_driver_symbols[low];
        if (symbol->version > version) {
            result = *address ? FOUND : TOO_NEW;
        } else if (!symbol->per_thread || flags & PER_THREAD_DEFAULT_STREAM) {
            *address = symbol->address;
            result = FOUND;
        }
    }
    if (status)
        *status = result;
    return result == FOUND ? SUCCESS : NOT_FOUND;
}

int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status) {
    return find(name, address, version, flags, status);
}

int cuGetProcAddress(const char *name, void **address, int version, uint64_t flags) {
    return find(name, address, version, flags, NULL);
}
