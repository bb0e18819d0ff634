// WMMA, CUDA's C++ interface to the tensor cores: a warp multiplies 16x16x16 with FP32 accumulators.
// Which lane holds which element is unspecified, so fragments are only loaded, multiplied, filled and stored.
#pragma once
#include "memory.cuh"

namespace tcgemm {
constexpr int kWmmaDim = 16;  // m, n and k of one WMMA instruction
}

#ifndef __CUDACC__
#include "../emulator/wmma.h"
#else
#include <mma.h>

#include <type_traits>

namespace tcgemm {

// BF16 fragments exist from sm_80 on. Older code holds FP16 ones in their place so that it compiles;
// kernels.def keeps BF16 problems away from it, and multiply() traps.
template <class T>
struct WmmaElement {
  using type = T;
  static constexpr bool kSupported = true;
};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
template <>
struct WmmaElement<__nv_bfloat16> {
  using type = __half;
  static constexpr bool kSupported = false;
};
#endif

template <Major MAJOR>
struct WmmaLayout {
  using type = nvcuda::wmma::row_major;
};
template <>
struct WmmaLayout<Major::kCol> {
  using type = nvcuda::wmma::col_major;
};

template <class T, Major MAJOR>
using FragmentA = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kWmmaDim, kWmmaDim, kWmmaDim,
                                         typename WmmaElement<T>::type, typename WmmaLayout<MAJOR>::type>;
template <class T, Major MAJOR>
using FragmentB = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kWmmaDim, kWmmaDim, kWmmaDim,
                                         typename WmmaElement<T>::type, typename WmmaLayout<MAJOR>::type>;
using FragmentC = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kWmmaDim, kWmmaDim, kWmmaDim, float>;

__device__ __forceinline__ void fill_fragment(FragmentC& acc, float x) { nvcuda::wmma::fill_fragment(acc, x); }

// nvcc 13.0 compiles nvcuda's BF16 loads to generic loads, 4 LD a fragment where FP16 takes one LDSM, since only the
// FP16 ones have their address space inferred. So BF16 fragments are loaded by the PTX instruction that names it.
#define TCGEMM_WMMA_LOAD(operand, layout, space, constraint)                                                     \
  asm volatile("wmma.load." operand ".sync.aligned." layout ".m16n16k16." space ".bf16 {%0,%1,%2,%3}, [%4], %5;" \
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])                                                  \
               : constraint(from), "r"(ld)                                                                       \
               : "memory")
template <bool IS_A, Major MAJOR>
__device__ __forceinline__ void load_bf16(unsigned (&x)[4], const SharedSpan<__nv_bfloat16>& tile, int i, int ld) {
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile.data + i));
  if constexpr (IS_A && MAJOR == Major::kRow) TCGEMM_WMMA_LOAD("a", "row", "shared", "r");
  if constexpr (IS_A && MAJOR == Major::kCol) TCGEMM_WMMA_LOAD("a", "col", "shared", "r");
  if constexpr (!IS_A && MAJOR == Major::kRow) TCGEMM_WMMA_LOAD("b", "row", "shared", "r");
  if constexpr (!IS_A && MAJOR == Major::kCol) TCGEMM_WMMA_LOAD("b", "col", "shared", "r");
}
template <bool IS_A, Major MAJOR>
__device__ __forceinline__ void load_bf16(unsigned (&x)[4], const Global<const __nv_bfloat16>& a, int64_t i,
                                          int64_t ld64) {
  const size_t from = __cvta_generic_to_global(a.data + i);
  const int ld = static_cast<int>(ld64);
  if constexpr (IS_A && MAJOR == Major::kRow) TCGEMM_WMMA_LOAD("a", "row", "global", "l");
  if constexpr (IS_A && MAJOR == Major::kCol) TCGEMM_WMMA_LOAD("a", "col", "global", "l");
  if constexpr (!IS_A && MAJOR == Major::kRow) TCGEMM_WMMA_LOAD("b", "row", "global", "l");
  if constexpr (!IS_A && MAJOR == Major::kCol) TCGEMM_WMMA_LOAD("b", "col", "global", "l");
}
#undef TCGEMM_WMMA_LOAD

template <class Fragment>
struct FragmentTraits;
template <class Use, class Element, class Layout>
struct FragmentTraits<nvcuda::wmma::fragment<Use, kWmmaDim, kWmmaDim, kWmmaDim, Element, Layout>> {
  static constexpr bool kIsA = std::is_same_v<Use, nvcuda::wmma::matrix_a>;
  static constexpr bool kIsBf16 = std::is_same_v<Element, __nv_bfloat16>;
  static constexpr Major kMajor = std::is_same_v<Layout, nvcuda::wmma::row_major> ? Major::kRow : Major::kCol;
  using element = Element;
};

// 16x16 elements whose first is at index i of `from` (SharedSpan or Global), rows (or columns, by the fragment's
// layout) ld apart. The address must be a multiple of 32 bytes and ld of 8 elements.
template <class Fragment, class From, class Index>
__device__ __forceinline__ void load_fragment(Fragment& frag, From from, Index i, Index ld) {
  using Traits = FragmentTraits<Fragment>;
  if constexpr (Traits::kIsBf16) {
    static_assert(sizeof(frag) == 16, "a BF16 fragment is 4 registers a lane");
    load_bf16<Traits::kIsA, Traits::kMajor>(reinterpret_cast<unsigned(&)[4]>(frag), from, i, ld);
  } else {
    nvcuda::wmma::load_matrix_sync(frag, reinterpret_cast<const typename Traits::element*>(from.data + i),
                                   static_cast<unsigned>(ld));
  }
}

// acc += frag_a * frag_b
template <class T, Major MAJOR_A, Major MAJOR_B>
__device__ __forceinline__ void multiply(FragmentC& acc, const FragmentA<T, MAJOR_A>& frag_a,
                                         const FragmentB<T, MAJOR_B>& frag_b) {
  if constexpr (WmmaElement<T>::kSupported) {
    nvcuda::wmma::mma_sync(acc, frag_a, frag_b, acc);
  } else {
    __trap();
  }
}

// Row-major, rows ld apart. The address must be a multiple of 32 bytes and ld of 4 elements.
__device__ __forceinline__ void store_fragment(SharedSpan<float> tile, int i, const FragmentC& acc, int ld) {
  nvcuda::wmma::store_matrix_sync(tile.data + i, acc, ld, nvcuda::wmma::mem_row_major);
}
__device__ __forceinline__ void store_fragment(Global<float> c, int64_t i, const FragmentC& acc, int64_t ld) {
  nvcuda::wmma::store_matrix_sync(c.data + i, acc, static_cast<unsigned>(ld), nvcuda::wmma::mem_row_major);
}

}  // namespace tcgemm
#endif
