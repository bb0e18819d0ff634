// From the accumulators of a warpgroup to C, without shared memory.
#pragma once
#include "tile.cuh"
#include "wgmma.cuh"

namespace tcgemm {

// Where the result goes.
struct WgmmaResult {
  Global<float> data;
  int64_t rows, cols, row_stride, col_stride;
  bool by_16_bytes;  // rows are contiguous, start at multiples of 16 bytes, and cols is a multiple of 4
  bool accumulate;   // c += instead of c =
};

inline WgmmaResult wgmma_result(const GemmProblem& p) {
  const bool aligned = reinterpret_cast<uintptr_t>(p.c.data) % 16 == 0 && (p.m == 1 || p.c.row_stride % 4 == 0);
  return {global_operand<float>(p.c, p.m, p.n), p.m, p.n, p.c.row_stride, p.c.col_stride,
          aligned && p.c.col_stride == 1 && p.n % 4 == 0, p.accumulate};
}

template <bool ADD>
__device__ __forceinline__ void store_four(Global<float> c, int64_t i, bool in, Vec<float, 4> x) {
  if (!in) return;
  if constexpr (ADD) {
    const Vec<float, 4> old = load_vec<4>(Global<const float>{c.data}, i);
#pragma unroll
    for (int e = 0; e < 4; ++e) x.v[e] += old.v[e];
  }
  store_vec(c, i, x);
}

// 16 rows x N columns of a warp, by 16-byte stores. A lane holds two neighbouring floats of each group of 8 columns;
// it swaps with its neighbour so that even lanes hold four floats of one group and odd lanes four of the next one:
// a quad then writes 64 contiguous bytes of a row.
template <bool ADD, int N>
__device__ __forceinline__ void store_by_16_bytes(const WgmmaResult& c, const float (&acc)[N / 2], int64_t row0,
                                                  int64_t col0) {
  const int lane = threadIdx.x % 32, in_quad = lane % 4;
  const bool odd = in_quad % 2 != 0;
  const int64_t col = col0 + 2 * in_quad + (odd ? 6 : 0);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t row = row0 + lane / 4 + 8 * half;
    const int64_t start = row * c.row_stride + col;
    const int64_t cols_left = row < c.rows ? c.cols - col : 0;
    const int left = cols_left < N ? static_cast<int>(cols_left) : N;
#pragma unroll
    for (int j = 0; j < N / 16; ++j) {
      const float* x = acc + 8 * j + 2 * half;  // x[0], x[1] lie in group 2 j; x[4], x[5] in group 2 j + 1
      const float got0 = __shfl_xor_sync(~0u, odd ? x[0] : x[4], 1);
      const float got1 = __shfl_xor_sync(~0u, odd ? x[1] : x[5], 1);
      const Vec<float, 4> four = {odd ? got0 : x[0], odd ? got1 : x[1], odd ? x[4] : got0, odd ? x[5] : got1};
      store_four<ADD>(c.data, start + 16 * j, 16 * j < left, four);
    }
  }
}

// The same element by element, for any strides and any number of columns.
template <bool ADD, int N>
__device__ __forceinline__ void store_by_element(const WgmmaResult& c, const float (&acc)[N / 2], int64_t row0,
                                                 int64_t col0) {
  const int lane = threadIdx.x % 32;
  const int64_t col = col0 + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t row = row0 + lane / 4 + 8 * half;
    int64_t at = row * c.row_stride + col * c.col_stride;
    const int64_t cols_left = row < c.rows ? c.cols - col : 0;
    const int left = cols_left < N ? static_cast<int>(cols_left) : N;
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int64_t i = at + e * c.col_stride;
        const bool in = 8 * j + e < left;
        float x = acc[4 * j + 2 * half + e];
        if constexpr (ADD) x += load_or(Global<const float>{c.data.data}, i, in, 0.0f);
        store_if(c.data, i, in, x);
      }
      at += 8 * c.col_stride;
      // One index that moves on: seen through, the compiler keeps all N / 4 offsets at once and spills.
      asm volatile("" : "+l"(at));
    }
  }
}

// One 64 x N block of a warpgroup; row0 is the warp's first row. All 32 lanes call it.
template <int N>
__device__ __forceinline__ void store_accumulators(const WgmmaResult& c, const float (&acc)[N / 2], int64_t row0,
                                                   int64_t col0, bool add) {
  if (c.by_16_bytes) {
    if (add) {
      store_by_16_bytes<true, N>(c, acc, row0, col0);
    } else {
      store_by_16_bytes<false, N>(c, acc, row0, col0);
    }
  } else if (add) {
    store_by_element<true, N>(c, acc, row0, col0);
  } else {
    store_by_element<false, N>(c, acc, row0, col0);
  }
}

}  // namespace tcgemm
