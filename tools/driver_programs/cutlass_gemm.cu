// A product of two half matrices by CUTLASS for Hopper: warp-specialized ping-pong, clusters of 2 CTAs, tensor maps,
// wgmma, and an epilogue through tensor maps.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

constexpr int M = 256, N = 128, K = 128;
using Half = cutlass::half_t;
using TileShape = cute::Shape<cute::_64, cute::_128, cute::_64>;
using ClusterShape = cute::Shape<cute::_2, cute::_1, cute::_1>;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;

using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, float, RowMajor, 4, float, RowMajor, 4,
    cutlass::epilogue::TmaWarpSpecialized>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, RowMajor, 8, Half, ColumnMajor, 8, float, TileShape,
    ClusterShape, cutlass::gemm::collective::StageCountAutoCarveout<sizeof(Epilogue::SharedStorage)>,
    cutlass::gemm::KernelTmaWarpSpecializedPingpong>::CollectiveOp;
using GemmKernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<GemmKernel>;

static void expect(bool is_true, const char *text) {
    if (!is_true) {
        std::printf("not so: %s; the last error is %s\n", text, cudaGetErrorName(cudaGetLastError()));
        std::exit(2);
    }
}

#define EXPECT(condition) expect(condition, #condition)
#define CALL(call) EXPECT((call) == cudaSuccess)
#define RUN(call) EXPECT((call) == cutlass::Status::kSuccess)

template <class T> static T *copy_to_device(const std::vector<T> &values) {
    T *copy;
    CALL(cudaMalloc(&copy, values.size() * sizeof(T)));
    CALL(cudaMemcpy(copy, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return copy;
}

template <class Stride> static Stride pack(int rows, int columns) {
    return cutlass::make_cute_packed_stride(Stride{}, cute::make_shape(rows, columns, 1));
}

int main() {
    std::vector<Half> a(M * K), b(N * K);
    std::vector<float> c(M * N, 3.0f), d(M * N);
    for (int i = 0; i < M * K; i++)
        a[i] = Half(float(i * 7 % 5 - 2));
    for (int i = 0; i < N * K; i++)
        b[i] = Half(float(i * 3 % 7 - 3));
    Half *a_copy = copy_to_device(a), *b_copy = copy_to_device(b);
    float *c_copy = copy_to_device(c), *d_copy = copy_to_device(d);
    cutlass::KernelHardwareInfo hardware;
    hardware.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
    Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm, {M, N, K, 1},
        {a_copy, pack<GemmKernel::StrideA>(M, K), b_copy, pack<GemmKernel::StrideB>(N, K)},
        {{2.0f, 0.5f}, c_copy, pack<GemmKernel::StrideC>(M, N), d_copy, pack<GemmKernel::StrideD>(M, N)}, hardware};
    Gemm gemm;
    void *workspace;
    RUN(gemm.can_implement(arguments));
    CALL(cudaMalloc(&workspace, Gemm::get_workspace_size(arguments)));
    RUN(gemm.initialize(arguments, workspace));
    RUN(gemm.run());
    CALL(cudaDeviceSynchronize());
    CALL(cudaMemcpy(d.data(), d_copy, d.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += float(a[i * K + k]) * float(b[j * K + k]);
            EXPECT(d[i * N + j] == 2.0f * sum + 1.5f);
        }
    return 0;
}
