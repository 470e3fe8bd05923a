/* The properties of a device: its attributes, in the order of the members of `cudaDeviceProp`. */
#include "properties.h"
#include "runtime.h"

#include <string.h>

enum { NAME_SIZE = 256, UUID_SIZE = 16, LUID_SIZE = 8, START = NAME_SIZE + UUID_SIZE + LUID_SIZE };

#if RUNTIME_VERSION < 13000
#define GET_PROPERTIES cudaGetDeviceProperties_v2
#else
#define GET_PROPERTIES cudaGetDeviceProperties
#endif

int GET_PROPERTIES(char *result, int device) {
    int code = result ? cuInit(0) : INVALID_VALUE;
    if (!code) {
        memset(result, 0, START);
        code = cuDeviceGetName((uintptr_t)result, NAME_SIZE, device);
    }
    if (!code)
        code = cuDeviceGetUuid_v2((uintptr_t)result + NAME_SIZE, device);
    size_t offset = START;
    for (size_t i = 0; !code && i < sizeof runtime_properties / sizeof *runtime_properties; i++) {
        const Property *property = &runtime_properties[i];
        int number = 0;
        if (property->attribute)
            code = cuDeviceGetAttribute((uintptr_t)&number, property->attribute, device);
        offset = (offset + property->width - 1) / property->width * property->width;
        size_t value = (unsigned)number;
        if (property->is_memory && !code)
            code = cuDeviceTotalMem_v2((uintptr_t)&value, device);
        memcpy(result + offset, &value, property->width);
        offset += property->width;
    }
    return runtime_end(code);
}
