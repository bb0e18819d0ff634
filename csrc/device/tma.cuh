// TMA: one thread asks, the copy engine moves a box of a matrix into shared memory (or back) and reports the bytes
// to an mbarrier. The matrix is described by a tensor map, made on the host and passed as a __grid_constant__
// argument. What lies outside the matrix arrives as zeros and counts as bytes; nothing outside is written.
#pragma once
#include <cuda.h>  // CUtensorMap; libcuda itself is not linked
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "../gemm.h"
#include "mbarrier.cuh"

namespace tcgemm {

__device__ __forceinline__ void tma_prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(&map) : "memory");
}

// The box whose first element is (inner, outer). The destination is a multiple of 1024 bytes.
__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap& map, int inner, int outer, Mbarrier full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" ::"r"(
          to),
      "l"(&map), "r"(inner), "r"(outer), "r"(full.address)
      : "memory");
}

// The same for several blocks of the cluster, a bit for each rank: into the same place of each, and to the barrier of
// each.
__device__ __forceinline__ void tma_load_to(uint16_t blocks, uint32_t to, const CUtensorMap& map, int inner, int outer,
                                            Mbarrier full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;\n" ::"r"(to),
      "l"(&map), "r"(inner), "r"(outer), "r"(full.address), "h"(blocks)
      : "memory");
}

// The way back: shared memory to the box at (inner, outer), clipped at the matrix's edges. Ordinary stores to shared
// memory must be fenced by their threads before one thread, behind a barrier, asks for the copy.
__device__ __forceinline__ void fence_shared_for_tma() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
__device__ __forceinline__ void tma_store(const CUtensorMap& map, uint32_t from, int inner, int outer) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n" ::"l"(&map), "r"(from),
               "r"(inner), "r"(outer)
               : "memory");
}
__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;\n" ::: "memory"); }
// Until the copies that this thread asked for have read shared memory.
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");
}

__device__ __forceinline__ void store_shared(uint32_t to, float x) {
  asm volatile("st.shared.f32 [%0], %1;\n" ::"r"(to), "f"(x) : "memory");
}
__device__ __forceinline__ void store_shared(uint32_t to, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(to), "f"(x), "f"(y) : "memory");
}
__device__ __forceinline__ float load_shared(uint32_t from) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];\n" : "=f"(x) : "r"(from) : "memory");
  return x;
}

template <class V>
__device__ __forceinline__ void store_shared_16(uint32_t to, const V& x) {
  static_assert(sizeof(V) == 16);
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(to), "f"(x.v[0]), "f"(x.v[1]), "f"(x.v[2]),
               "f"(x.v[3])
               : "memory");
}

// From this block's shared memory to `to` in that of the cluster's block `rank`, whose `arrived` counts the bytes.
// Ordinary stores to it would take four times as long.
__device__ __forceinline__ void copy_to_block(int rank, uint32_t to, uint32_t from, int bytes, Mbarrier arrived) {
  asm volatile(
      "{\n"
      ".reg .b32 there, barrier;\n"
      "mapa.shared::cluster.u32 there, %0, %4;\n"
      "mapa.shared::cluster.u32 barrier, %3, %4;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], [%1], %2, [barrier];\n"
      "}\n" ::"r"(to),
      "r"(from), "r"(bytes), "r"(arrived.address), "r"(rank)
      : "memory");
}

template <class V>
__device__ __forceinline__ V load_shared_16(uint32_t from) {
  static_assert(sizeof(V) == 16);
  V x;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
               : "=f"(x.v[0]), "=f"(x.v[1]), "=f"(x.v[2]), "=f"(x.v[3])
               : "r"(from)
               : "memory");
  return x;
}

// A matrix as TMA sees it: `outer` lines of `inner` elements, `stride` elements apart.
struct TmaView {
  const void* data = nullptr;
  int64_t inner = 0, outer = 0, stride = 0;
  bool along_cols = false;  // a line runs along the column index, as in a row-major matrix
  std::string refusal;      // empty, or why TMA cannot address the matrix
};

constexpr int64_t kTmaAlignment = 16;                // bytes, of the base and of the stride
constexpr int64_t kTmaStrideEnd = int64_t{1} << 40;  // bytes
// Coordinates are 32-bit and signed, and a tile of up to 256 may stand out over the end.
constexpr int64_t kTmaExtentEnd = (int64_t{1} << 31) - 256;

// One of the two ways to read x (rows x cols of 2-byte elements, neither 0) as lines.
inline TmaView tma_view_along(const Operand& x, int64_t rows, int64_t cols, bool along_cols, const char* name) {
  TmaView view;
  view.data = x.data;
  view.along_cols = along_cols;
  view.inner = along_cols ? cols : rows;
  view.outer = along_cols ? rows : cols;
  view.stride = along_cols ? x.row_stride : x.col_stride;
  const int64_t step = along_cols ? x.col_stride : x.row_stride;
  // The stride of a dimension of size 1 is never used, so any value will do: take the next legal one.
  if (view.outer == 1) view.stride = (view.inner + 7) / 8 * 8;
  const std::string what = std::string(name) + " (" + std::to_string(rows) + "x" + std::to_string(cols) + ", strides " +
                           std::to_string(x.row_stride) + ", " + std::to_string(x.col_stride) + ")";
  const auto refuse = [&](const std::string& why) { view.refusal = what + " " + why; };
  const int64_t past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(x.data) % kTmaAlignment);
  if (view.inner > 1 && step != 1) {
    refuse("has no contiguous dimension");
  } else if (view.inner >= kTmaExtentEnd || view.outer >= kTmaExtentEnd) {
    refuse("has an extent of " + std::to_string(std::max(rows, cols)) + ", and TMA's coordinates are 32-bit");
  } else if (past != 0) {
    refuse("starts " + std::to_string(past) + " bytes past a multiple of 16, TMA needs a multiple");
  } else if (view.stride < view.inner) {
    refuse("has lines of " + std::to_string(view.inner) + " elements that overlap, TMA is not asked to read them");
  } else if (view.stride * 2 % kTmaAlignment != 0) {
    refuse("has lines " + std::to_string(view.stride * 2) + " bytes apart, TMA needs a multiple of 16");
  } else if (view.stride * 2 >= kTmaStrideEnd) {
    refuse("has lines " + std::to_string(view.stride * 2) + " bytes apart, TMA takes less than 2^40");
  }
  return view;
}

// How TMA reads x, or why it cannot. With one row or one column both ways may do: row-major lines come first.
inline TmaView tma_view(const Operand& x, int64_t rows, int64_t cols, const char* name) {
  const TmaView by_row = tma_view_along(x, rows, cols, true, name);
  if (by_row.refusal.empty()) return by_row;
  const TmaView by_col = tma_view_along(x, rows, cols, false, name);
  // Of two refusals the one that speaks about the operand's real layout says more.
  return by_col.refusal.empty() || (x.row_stride == 1 && x.col_stride != 1) ? by_col : by_row;
}

// The driver's encoder, found through the runtime so that libcuda is not linked; nullptr without a driver.
inline decltype(&cuTensorMapEncodeTiled) tma_encoder() {
  static const auto encoder = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    constexpr unsigned kSince = 12000;  // the CUDA version whose signature this is
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, kSince, cudaEnableDefault, &status) !=
            cudaSuccess ||
        status != cudaDriverEntryPointSuccess) {
      found = nullptr;
    }
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  return encoder;
}

// Encodes a map of 2-D boxes, `lines` lines of 128 bytes, with 128-byte swizzle. A cudaError_t.
// L2 is not asked to fetch more than the box (promotion): on an H200 that gained nothing, and cost half a percent on
// large problems.
inline int tma_encode(CUtensorMap* map, const TmaView& view, DType dtype, int lines) {
  const auto encode = tma_encoder();
  if (encode == nullptr) return cudaErrorNotSupported;
  constexpr CUtensorMapDataType kTypes[] = {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                            CU_TENSOR_MAP_DATA_TYPE_FLOAT32};
  const int64_t bytes = element_size(dtype);
  const cuuint64_t extents[2] = {static_cast<cuuint64_t>(view.inner), static_cast<cuuint64_t>(view.outer)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(view.stride * bytes)};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(128 / bytes), static_cast<cuuint32_t>(lines)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult result = encode(map, kTypes[static_cast<int>(dtype)], 2, const_cast<void*>(view.data), extents,
                                 strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace tcgemm
