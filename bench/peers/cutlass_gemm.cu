// CUTLASS as a peer of the benchmark: C[m,n] = A[m,k] B[k,n], half or bfloat16 in, FP32 out, A row-major, B row-major
// or column-major, in the tiles below. bench/peers/cutlass.py compiles and calls it; no part of tcgemm needs it.
//
// Needs: CUTLASS 3 or 4, compute capability 9.0 (code for sm_90a). Pointers and line strides must be multiples of 16
// bytes, which the caller checks: can_implement looks at m, n and k alone, and a tensor map that cannot be made is
// launched all the same and ends the context.
#include <cuda_runtime.h>

#include <cstdint>

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/version.h"

// bench/peers/cutlass.py has the same struct.
struct PeerGemm {
  int32_t tile;
  int32_t max_swizzle;  // blocks of C side by side that are walked together, for the L2
  int32_t bfloat16;
  int32_t b_column_major;
  int32_t m, n, k;
  int32_t device, sm_count;
  const void* a;
  const void* b;
  float* c;
  int64_t lda, ldb, ldc;
  cudaStream_t stream;
};

namespace {

using namespace cute;  // the shapes are written _128 and so on

struct Pingpong {
  using MainLoop = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::TmaWarpSpecialized;
};

struct Cooperative {
  using MainLoop = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::TmaWarpSpecializedCooperative;
};

template <class T, class LayoutB, class Schedule, class TileShape>
struct Kernel {
  using RowMajor = cutlass::layout::RowMajor;
  using Cluster = Shape<_2, _1, _1>;
  static constexpr int kAlignAB = 16 / sizeof(T);
  static constexpr int kAlignC = 16 / sizeof(float);

  // No source operand: beta is 0, and its shared memory goes to stages of the main loop.
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, RowMajor, kAlignC, float, RowMajor, kAlignC,
      typename Schedule::Epilogue>::CollectiveOp;

  using MainLoop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, T, RowMajor, kAlignAB, T, LayoutB, kAlignAB, float,
      TileShape, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      typename Schedule::MainLoop>::CollectiveOp;

  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
      cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, MainLoop, Epilogue>>;
};

// Stride of one matrix (batch stride 0): the one of its two extents that is not 1 is `ld`.
template <class Stride>
Stride stride_of(int64_t ld) {
  Stride stride{};
  if constexpr (is_static<tuple_element_t<0, Stride>>::value) {
    get<1>(stride) = ld;
  } else {
    get<0>(stride) = ld;
  }
  return stride;
}

template <class K>
const char* run(const PeerGemm& p, bool launch) {
  using Gemm = typename K::Gemm;
  using Element = typename Gemm::ElementA;
  typename Gemm::Arguments arguments{};
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  arguments.problem_shape = {p.m, p.n, p.k, 1};
  arguments.mainloop.ptr_A = static_cast<const Element*>(p.a);
  arguments.mainloop.dA = stride_of<typename Gemm::GemmKernel::StrideA>(p.lda);
  arguments.mainloop.ptr_B = static_cast<const Element*>(p.b);
  arguments.mainloop.dB = stride_of<typename Gemm::GemmKernel::StrideB>(p.ldb);
  arguments.epilogue.ptr_D = p.c;
  arguments.epilogue.dD = stride_of<typename Gemm::GemmKernel::StrideD>(p.ldc);
  arguments.epilogue.thread.alpha = 1.0f;
  arguments.epilogue.thread.beta = 0.0f;
  arguments.hw_info.device_id = p.device;
  arguments.hw_info.sm_count = p.sm_count;
  arguments.scheduler.max_swizzle_size = p.max_swizzle;

  Gemm gemm;
  cutlass::Status status = gemm.can_implement(arguments);
  if (status == cutlass::Status::kSuccess && Gemm::get_workspace_size(arguments) != 0) return "it wants a workspace";
  if (status == cutlass::Status::kSuccess && launch) status = gemm.run(arguments, nullptr, p.stream);
  return status == cutlass::Status::kSuccess ? nullptr : cutlassGetStatusString(status);
}

template <class T, class LayoutB>
const char* with_tile(const PeerGemm& p, bool launch) {
  switch (p.tile) {
    case 0:
      return run<Kernel<T, LayoutB, Pingpong, Shape<_128, _128, _64>>>(p, launch);
    case 1:
      return run<Kernel<T, LayoutB, Pingpong, Shape<_128, _192, _64>>>(p, launch);
    case 2:
      return run<Kernel<T, LayoutB, Cooperative, Shape<_128, _256, _64>>>(p, launch);
    case 3:
      return run<Kernel<T, LayoutB, Cooperative, Shape<_256, _128, _64>>>(p, launch);
    default:
      return "no such tile";
  }
}

template <class T>
const char* with_layout(const PeerGemm& p, bool launch) {
  return p.b_column_major ? with_tile<T, cutlass::layout::ColumnMajor>(p, launch)
                          : with_tile<T, cutlass::layout::RowMajor>(p, launch);
}

const char* dispatch(const PeerGemm& p, bool launch) {
  return p.bfloat16 ? with_layout<cutlass::bfloat16_t>(p, launch) : with_layout<cutlass::half_t>(p, launch);
}

}  // namespace

// Null, or why CUTLASS does not take the problem in this tile.
extern "C" const char* tcgemm_peer_refusal(const PeerGemm* p) { return dispatch(*p, false); }

// Enqueues the product on the stream. Null, or what went wrong.
extern "C" const char* tcgemm_peer_launch(const PeerGemm* p) { return dispatch(*p, true); }

// 100 * major + 10 * minor + patch of the headers it was compiled with.
extern "C" int tcgemm_peer_version() { return CUTLASS_VERSION; }
