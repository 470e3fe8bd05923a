/* Launches of a kernel that writes beyond its memory: directly, from an inlined function, and as nvcc's code does. */
#include <stdint.h>
#include <stdlib.h>

int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
int cuMemAlloc_v2(uint64_t *, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static const char PTX[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry store(.param .u64 out)\n"
    "{\n"
    "    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    st.global.u32 [%rd1+400], 0;\n"
    "    ret;\n"
    "}\n";
static void *function;
static uint64_t memory;

static inline __attribute__((always_inline)) int launch(void) {
    void *parameters[] = {&memory};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0); /* inlined */
}

__attribute__((noinline)) int __device_stub__Z5storePv(void) {
    return launch();
}

__attribute__((noinline)) int _Z5storePv(void) {
    return __device_stub__Z5storePv() + 0;
}

int main(int count, char **words) {
    void *context, *module;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    cuModuleLoadData(&module, PTX);
    cuModuleGetFunction(&function, module, "store");
    cuMemAlloc_v2(&memory, 400); /* allocation */
    if (count > 2)
        return __device_stub__Z5storePv() != 700; /* of a stub */
    if (count > 1)
        return _Z5storePv() != 700; /* as nvcc */
    return launch() != 700;
}
