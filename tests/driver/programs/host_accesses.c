/* Reads and writes managed memory before the launch that uses it has been waited for. */
#include <stdio.h>
#include <string.h>

#define CHECK(call) do { int code_ = (call); if (code_) { printf("%s: %d\n", #call, code_); return 1; } } while (0)

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuCtxSynchronize(void);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuMemAllocManaged(void **, size_t, unsigned);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static const char TEXT[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry negate(.param .u64 x)\n{\n"
    "    .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
    "    ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
    "    ld.global.u32 %r2, [%rd1]; neg.s32 %r2, %r2; st.global.u32 [%rd1], %r2; ret;\n}\n";

static int copy(const int *from) {
    int values[64];
    memcpy(values, from, sizeof values); /* copied by the C library */
    return values[1];
}

int main(void) {
    void *context, *module, *function;
    int *x;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, TEXT));
    CHECK(cuModuleGetFunction(&function, module, "negate"));
    CHECK(cuMemAllocManaged((void **)&x, 256, 1));
    for (int i = 0; i < 64; i++)
        x[i] = i;
    CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&x}, NULL));
    int early = x[1]; /* read */
    CHECK(cuCtxSynchronize());
    CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&x}, NULL));
    x[2] = 7; /* written */
    CHECK(cuCtxSynchronize());
    CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&x}, NULL));
    int copied = copy(x);
    CHECK(cuCtxSynchronize());
    printf("%d %d %d\n", early, copied, copy(x));
    return 0;
}
