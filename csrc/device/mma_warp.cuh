// What one warp does in an mma.sync kernel: its part of C in registers, from fragments that ldmatrix brings.
#pragma once
#include "mma.cuh"
#include "swizzle.cuh"

namespace tcgemm {

// One warp's part of C, in registers.
template <class T, class Form, class TileA, class TileB>
struct WarpProduct {
  Reg<float, 4> acc[Form::kBlocksM][Form::kBlocksN * 2];
  BlockReader<TileA, false> read_a;
  BlockReader<TileB, true> read_b;

  // The operands of one step of 16 along k. Rows of A are reloaded as soon as they have been multiplied; B has a set
  // for this step and, where registers allow, one for the next.
  Reg<unsigned, 4> frag_a[Form::kBlocksM], frag_b[Form::kSetsB][Form::kBlocksN];

  __device__ __forceinline__ WarpProduct(int warp_m, int warp_n, int lane)
      : read_a(warp_m, lane), read_b(warp_n, lane) {
#pragma unroll
    for (int i = 0; i < Form::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < Form::kBlocksN * 2; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;
      }
    }
  }

  // Fragments at k of the stage that begins at element `stage` of `ring`.
  __device__ __forceinline__ void load_a(int i, SharedSpan<T> ring, int stage, int k) {
    read_a.load(frag_a[i], ring, stage, i * 16, k);
  }
  __device__ __forceinline__ void load_b(int set, SharedSpan<T> ring, int stage, int k) {
#pragma unroll
    for (int j = 0; j < Form::kBlocksN; ++j) read_b.load(frag_b[set][j], ring, stage + TileA::kElements, j * 16, k);
  }
  // The first step's.
  __device__ __forceinline__ void load(SharedSpan<T> ring, int stage, int k) {
#pragma unroll
    for (int i = 0; i < Form::kBlocksM; ++i) load_a(i, ring, stage, k);
    load_b(0, ring, stage, k);
  }

  // Multiplies the step whose B is in `set`, and loads the next one's fragments.
  __device__ __forceinline__ void multiply_and_load(int set, SharedSpan<T> ring, int stage, int k) {
    if constexpr (Form::kSetsB == 2) load_b(1 - set, ring, stage, k);
#pragma unroll
    for (int i = 0; i < Form::kBlocksM; ++i) {
      multiply_row(i, set);
      load_a(i, ring, stage, k);
    }
    if constexpr (Form::kSetsB == 1) load_b(0, ring, stage, k);
  }

  __device__ __forceinline__ void multiply() {
#pragma unroll
    for (int i = 0; i < Form::kBlocksM; ++i) multiply_row(i, 0);
  }
  __device__ __forceinline__ void multiply_row(int i, int set) {
#pragma unroll
    for (int j = 0; j < Form::kBlocksN * 2; ++j) {
      const Reg<unsigned, 4>&a = frag_a[i], &b = frag_b[set][j / 2];
      if constexpr (Form::kMmaK == 16) {
        mma_m16n8k16<T>(acc[i][j], a, b[j % 2 * 2], b[j % 2 * 2 + 1]);
      } else {
        mma_m16n8k8<T>(acc[i][j], a[0], a[1], b[j % 2 * 2]);
        mma_m16n8k8<T>(acc[i][j], a[2], a[3], b[j % 2 * 2 + 1]);
      }
    }
  }
};

}  // namespace tcgemm
