// The way out of a WMMA kernel: accumulators to C, at any edge, stride and alignment.
#pragma once
#include "tile.cuh"
#include "wmma.cuh"

namespace tcgemm {

constexpr int kFragmentElements = kWmmaDim * kWmmaDim;

struct OutputMatrix {
  Global<float> data;
  int64_t rows, cols, row_stride, col_stride;
  bool by_fragment;  // store_fragment may write straight to it: row-major, base a multiple of 32 bytes, rows of 16
};

inline OutputMatrix output_matrix(const GemmProblem& p) {
  const bool aligned = reinterpret_cast<uintptr_t>(p.c.data) % 32 == 0 && p.c.row_stride % 4 == 0;
  return {global_operand<float>(p.c, p.m, p.n), p.m, p.n, p.c.row_stride, p.c.col_stride,
          aligned && p.c.col_stride == 1};
}

// Writes one accumulator to c(row0.., col0..). `scratch` holds kFragmentElements floats of this warp's own.
__device__ __forceinline__ void store_accumulator(const OutputMatrix& c, int64_t row0, int64_t col0,
                                                  const FragmentC& acc, SharedSpan<float> scratch, int lane) {
  if (c.by_fragment && row0 + kWmmaDim <= c.rows && col0 + kWmmaDim <= c.cols) {
    store_fragment(c.data, row0 * c.row_stride + col0, acc, c.row_stride);
    return;
  }
  store_fragment(scratch, 0, acc, kWmmaDim);
  __syncwarp();  // the scratch tile is full
#pragma unroll 1
  for (int e = lane; e < kFragmentElements; e += 32) {
    const int64_t row = row0 + e / kWmmaDim, col = col0 + e % kWmmaDim;
    store_if(c.data, row * c.row_stride + col * c.col_stride, row < c.rows && col < c.cols, scratch[e]);
  }
  __syncwarp();  // all reads done; the next accumulator may overwrite
}

// The same for a warp's M x N accumulators, whose first element is c(row0, col0).
template <int M, int N>
__device__ __forceinline__ void store_accumulators(const OutputMatrix& c, int64_t row0, int64_t col0,
                                                   const FragmentC (&acc)[M][N], SharedSpan<float> scratch, int lane) {
#pragma unroll
  for (int i = 0; i < M; ++i) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      store_accumulator(c, row0 + i * kWmmaDim, col0 + j * kWmmaDim, acc[i][j], scratch, lane);
    }
  }
}

}  // namespace tcgemm
