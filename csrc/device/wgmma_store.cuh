// From the accumulators of a warpgroup straight to C, by 16 bytes. Lane l of warp w holds, of each group of 8 columns,
// two neighbouring floats of row 16 w + l / 4 and two of the row 8 below (wgmma.cuh).
#pragma once
#include "memory.cuh"
#include "tma.cuh"
#include "wgmma.cuh"
#include "wgmma_result.h"

namespace tcgemm {

// A lane's share of 16 columns (groups 2 j and 2 j + 1) of one of its rows, as four neighbouring floats: it swaps with
// its neighbour so that even lanes hold floats of the first group and odd lanes of the second. The four lanes of a row
// then hold 64 contiguous bytes. All 32 lanes call it.
template <int COUNT>
__device__ __forceinline__ Vec<float, 4> four_neighbours(const float (&acc)[COUNT], int j, int half) {
  const bool odd = threadIdx.x % 2 != 0;
  const float* x = acc + 8 * j + 2 * half;  // x[0], x[1] lie in group 2 j; x[4], x[5] in group 2 j + 1
  const float got0 = __shfl_xor_sync(~0u, odd ? x[0] : x[4], 1);
  const float got1 = __shfl_xor_sync(~0u, odd ? x[1] : x[5], 1);
  return {odd ? got0 : x[0], odd ? got1 : x[1], odd ? x[4] : got0, odd ? x[5] : got1};
}

// The first of those four columns, within the 16.
__device__ __forceinline__ int four_neighbours_column() {
  const int in_quad = threadIdx.x % 4;
  return 2 * in_quad + (in_quad % 2 != 0 ? 6 : 0);
}

// A lane's place in C for the block of `width` columns whose first row, for this warp, is row0: index, and the columns
// left for its row and the row 8 below. `col` is the lane's first column.
struct LanePlace {
  int64_t at;
  int64_t below;  // the same 8 rows down is at + below
  int cols[2];
};

__device__ __forceinline__ LanePlace lane_place(const WgmmaResult& c, int64_t row0, int64_t col, int width) {
  const int64_t row = row0 + threadIdx.x % 32 / 4;
  const int cols = static_cast<int>(min(c.cols - col, int64_t{width}));
  return {row * c.row_stride + col, 8 * c.row_stride, {row < c.rows ? cols : 0, row + 8 < c.rows ? cols : 0}};
}

__device__ __forceinline__ bool stores_directly(const WgmmaResult& c) {
  return c.by_16_bytes && !c.across && !c.accumulate;
}

// Columns 16 FROM to 16 TO of a block, where stores_directly.
template <int FROM, int TO, int COUNT>
__device__ __forceinline__ void store_columns(const WgmmaResult& c, const LanePlace& place, const float (&acc)[COUNT]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j = FROM; j < TO; ++j) {
      store_vec_if(c.data, place.at + half * place.below + 16 * j, 16 * j < place.cols[half],
                   four_neighbours(acc, j, half));
    }
  }
}

// Blocks of 64 x N, one below the other, straight from registers, where stores_directly. row0 is the warp's first row.
// All 32 lanes call it.
template <int BLOCKS, int COUNT>
__device__ __forceinline__ void store_directly(const WgmmaResult& c, const float (&acc)[BLOCKS][COUNT], int64_t row0,
                                               int64_t col0) {
#pragma unroll
  for (int block = 0; block < BLOCKS; ++block) {
    const LanePlace place = lane_place(c, row0 + block * kWgmmaM, col0 + four_neighbours_column(), 2 * COUNT);
    store_columns<0, COUNT / 8>(c, place, acc[block]);
  }
}

// The deferred store of a 64 x 256 block. Columns 0-159 wait in registers, and are stored one float4 at a time behind
// the next tile's first k-blocks; columns 160-223 go to shared memory, and the copy engine stores them; only columns
// 224-255 are stored on the spot. c.by_16_bytes, and no adding.
struct DeferredStore {
  static constexpr int kHeldFours = 20;                             // of a lane: 160 columns x 2 rows / 4 lanes / 4
  static constexpr int kStagedFrom = 10, kStagedTo = 14, kTo = 16;  // in units of 16 columns
  static constexpr int kBoxBytes = 16 * kSwizzleBytes;              // 16 rows of 32 floats
  static constexpr int kWarpBytes = 2 * kBoxBytes;                  // of shared memory

  Vec<float, 4> held[kHeldFours];
  LanePlace place;

  // Piece `h`, a compile-time constant once unrolled.
  __device__ __forceinline__ void store(const WgmmaResult& c, int h) const {
    const int j = h / 2, half = h % 2;
    store_vec_if(c.data, place.at + half * place.below + 16 * j, 16 * j < place.cols[half], held[h]);
  }

  // Takes over the block whose first row, for this warp, is row0. `shared` is the warp's own, 1024-byte aligned.
  __device__ __forceinline__ void take(const WgmmaResult& c, const CUtensorMap& map_c, uint32_t shared,
                                       const float (&acc)[128], int row0, int col0) {
    stage(map_c, shared, acc, row0, col0);
    place = lane_place(c, row0, col0 + four_neighbours_column(), 16 * kTo);
    store_columns<kStagedTo, kTo>(c, place, acc);
#pragma unroll
    for (int h = 0; h < kHeldFours; ++h) held[h] = four_neighbours(acc, h / 2, h % 2);
  }

 private:
  // Two boxes of 16 rows x 32 floats, rows of 128 bytes, 16-byte chunks swizzled by row as the tensor map says.
  // Eight lanes store at a time, two rows of the same 16 columns: odd rows take the box's other 16 columns first, or
  // the two rows would share banks.
  __device__ __forceinline__ static void stage(const CUtensorMap& map_c, uint32_t shared, const float (&acc)[128],
                                               int row0, int col0) {
    const int lane = threadIdx.x % 32, row = lane / 4;
    tma_store_wait_read();  // the copy engine has read what this lane asked it to store before
    __syncwarp();
#pragma unroll
    for (int box = 0; box < 2; ++box) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Vec<float, 4> low = four_neighbours(acc, kStagedFrom + 2 * box, half);
        const Vec<float, 4> high = four_neighbours(acc, kStagedFrom + 2 * box + 1, half);
#pragma unroll
        for (int turn = 0; turn < 2; ++turn) {
          const bool take_high = (row + turn) % 2 != 0;
          const int chunk = (take_high ? 4 : 0) + four_neighbours_column() / 4;
          Vec<float, 4> four;
#pragma unroll
          for (int e = 0; e < 4; ++e) four.v[e] = take_high ? high.v[e] : low.v[e];
          store_shared_16(shared + box * kBoxBytes + (row + 8 * half) * kSwizzleBytes + (chunk ^ row) * 16, four);
        }
      }
    }
    fence_shared_for_tma();
    __syncwarp();
    if (lane == 0) {
#pragma unroll
      for (int box = 0; box < 2; ++box) {
        tma_store(map_c, shared + box * kBoxBytes, col0 + 16 * kStagedFrom + 32 * box, row0);
      }
      tma_store_commit();
    }
  }
};

}  // namespace tcgemm
