// CUTLASS device-level products, explicitly instantiated.
//! build cutlass 13.0.88 sm_75 -DSIMT as=simt
//! build cutlass 13.0.88 sm_80 -DAMPERE as=ampere
//! build cutlass 13.1.115 sm_90a -DHOPPER -DNDEBUG as=hopper
//! build cutlass 13.1.115 sm_100a -DBLACKWELL -DNDEBUG as=blackwell
//! kernel cutlass6Kernel gemm
//! norun takes CUTLASS's parameter structure by value
//! kernel cutlass13device_kernel gemm
//! norun takes CUTLASS's parameter structure by value
#if defined(SIMT) || defined(AMPERE)
#include <cutlass/gemm/device/gemm.h>
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
#ifdef SIMT
using Epilogue = cutlass::epilogue::thread::LinearCombination<float, 1, float, float>;
using Gemm = cutlass::gemm::device::Gemm<
    float, Row, float, Column, float, Row, float, cutlass::arch::OpClassSimt, cutlass::arch::Sm70,
    cutlass::gemm::GemmShape<32, 32, 8>, cutlass::gemm::GemmShape<32, 32, 8>, cutlass::gemm::GemmShape<1, 1, 1>, Epilogue>;
#else
using Epilogue = cutlass::epilogue::thread::LinearCombination<cutlass::half_t, 8, float, float>;
using Gemm = cutlass::gemm::device::Gemm<
    cutlass::half_t, Row, cutlass::half_t, Column, cutlass::half_t, Row, float, cutlass::arch::OpClassTensorOp,
    cutlass::arch::Sm80, cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<32, 32, 32>,
    cutlass::gemm::GemmShape<16, 8, 16>, Epilogue>;
#endif
template __global__ void cutlass::Kernel<Gemm::GemmKernel>(Gemm::GemmKernel::Params);
#else
#include <cutlass/cutlass.h>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/device_kernel.h>
using namespace cute;
#ifdef HOPPER
using Architecture = cutlass::arch::Sm90;
using TileShape = Shape<_64, _64, _64>;
#else
using Architecture = cutlass::arch::Sm100;
using TileShape = Shape<_128, _64, _64>;
#endif
using Half = cutlass::half_t;
using Cluster = Shape<_1, _1, _1>;
using Store = cutlass::epilogue::collective::CollectiveBuilder<
    Architecture, cutlass::arch::OpClassTensorOp, TileShape, Cluster, cutlass::epilogue::collective::EpilogueTileAuto, float,
    float, Half, cutlass::layout::RowMajor, 8, Half, cutlass::layout::RowMajor, 8,
    cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
using Loop = cutlass::gemm::collective::CollectiveBuilder<
    Architecture, cutlass::arch::OpClassTensorOp, Half, cutlass::layout::RowMajor, 8, Half, cutlass::layout::ColumnMajor, 8,
    float, TileShape, Cluster, cutlass::gemm::collective::StageCount<3>, cutlass::gemm::collective::KernelScheduleAuto>::CollectiveOp;
using Gemm = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Loop, Store>;
template __global__ void cutlass::device_kernel<Gemm>(CUTLASS_GRID_CONSTANT Gemm::Params const);
#endif
