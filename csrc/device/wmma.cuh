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

// 16x16 elements whose first is at index i, rows (or columns, by the fragment's layout) ld apart.
// The address must be a multiple of 32 bytes and ld of 8 elements.
template <class Fragment, class T>
__device__ __forceinline__ void load_fragment(Fragment& frag, SharedSpan<T> tile, int i, int ld) {
  using Element = typename WmmaElement<T>::type;
  nvcuda::wmma::load_matrix_sync(frag, reinterpret_cast<const Element*>(tile.data + i), ld);
}
template <class Fragment, class T>
__device__ __forceinline__ void load_fragment(Fragment& frag, Global<const T> a, int64_t i, int64_t ld) {
  using Element = typename WmmaElement<T>::type;
  nvcuda::wmma::load_matrix_sync(frag, reinterpret_cast<const Element*>(a.data + i), static_cast<unsigned>(ld));
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
