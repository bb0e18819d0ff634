// The way out of an mma.sync kernel: a warp's accumulators to C, at any edge, stride and alignment.
#pragma once
#include "memory.cuh"
#include "mma.cuh"

namespace tcgemm {

struct MmaOutput {
  Global<float> data;
  int64_t rows, cols, row_stride, col_stride;
  bool by_pairs;  // 8-byte stores are aligned, and no pair of columns straddles the edge
};

inline MmaOutput mma_output(const GemmProblem& p) {
  const bool by_pairs = reinterpret_cast<uintptr_t>(p.c.data) % 8 == 0 && p.c.col_stride == 1 &&
                        (p.c.row_stride % 2 == 0 || p.m == 1) && p.n % 2 == 0;
  return {global_operand<float>(p.c, p.m, p.n), p.m, p.n, p.c.row_stride, p.c.col_stride, by_pairs};
}

// M x N accumulators of 16x8, of which the first element is c(row0, col0).
template <int M, int N>
__device__ __forceinline__ void store_accumulators(const MmaOutput& c, int64_t row0, int64_t col0,
                                                   const Reg<float, 4> (&acc)[M][N], int lane) {
  const int64_t row_of_lane = row0 + lane / 4, col_of_lane = col0 + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < M; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t row = row_of_lane + i * kMmaM + half * 8;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const int64_t col = col_of_lane + j * kMmaN, at = row * c.row_stride + col * c.col_stride;
        const float x0 = acc[i][j][2 * half], x1 = acc[i][j][2 * half + 1];
        const bool in = row < c.rows && col < c.cols;
        if (c.by_pairs) {
          store_vec_if(c.data, at, in, Vec<float, 2>{{x0, x1}});
        } else {
          store_if(c.data, at, in, x0);
          store_if(c.data, at + c.col_stride, in && col + 1 < c.cols, x1);
        }
      }
    }
  }
}

}  // namespace tcgemm
