// From the accumulators of a warpgroup to C through shared memory, whichever way C lies and with any number of columns.
#pragma once
#include "memory.cuh"
#include "tma.cuh"
#include "wgmma_result.h"

namespace tcgemm {

// Stores blocks of 64 x N, one below the other, through shared memory, 32 columns at a time: 16 registers of a lane go
// in, and out come lines of C, so that 16-byte stores fill whole sectors whichever way C lies. One loop, since its code
// is read once, and from memory: with a store for each four registers 128 x 192 came to 91 KB, and cost 1 to 3 us.
//
// A piece lies in shared memory as 16-byte chunks in the order of C's lines: 16 lines of 8 chunks, or, across, 32 of 4.
// Chunk x is kept at x ^ 2 (x / 8 % 4): so the lanes that store together, and those that load, touch each bank once.
struct StagedStore {
  static constexpr int kWarpBytes = kStagedBytes / 4, kChunks = kWarpBytes / 16;

  WgmmaResult c;
  uint32_t shared;  // kWarpBytes of this warp's own

  // Where a piece goes: from index `at` of C on, as far as there are rows and columns.
  struct Part {
    int64_t at;
    int rows, cols;

    __device__ __forceinline__ bool holds(int row, int col) const { return row < rows && col < cols; }
    __device__ __forceinline__ void move(int down, int right, const WgmmaResult& c) {
      at += down * c.row_stride + right * c.col_stride;
      rows -= down;
      cols -= right;
    }
  };

  // row0 is the warp's first row. All 32 lanes call it.
  template <int BLOCKS, int COUNT>
  __device__ __forceinline__ void store(const float (&acc)[BLOCKS][COUNT], int64_t row0, int64_t col0) const {
    if (c.across) {
      pieces<true>(acc, row0, col0);
    } else {
      pieces<false>(acc, row0, col0);
    }
  }

 private:
  __device__ __forceinline__ uint32_t place(int chunk) const { return shared + (chunk ^ chunk / 8 % 4 * 2) * 16; }

  template <bool ACROSS, int BLOCKS, int COUNT>
  __device__ __forceinline__ void pieces(const float (&acc)[BLOCKS][COUNT], int64_t row0, int64_t col0) const {
    constexpr int kSixteens = COUNT / 8, kPieces = (kSixteens + 1) / 2;
    // Of 240 registers the sums of 128 x 192 leave few, so fewer loads are under way at a time.
    constexpr int kTogether = BLOCKS * COUNT < 192 ? 4 : 2;
    Part part = {row0 * c.row_stride + col0 * c.col_stride, static_cast<int>(min(c.rows - row0, int64_t{64 * BLOCKS})),
                 static_cast<int>(min(c.cols - col0, int64_t{2 * COUNT}))};
#pragma unroll 1
    for (int block = 0; block < BLOCKS; ++block) {
#pragma unroll 1
      for (int piece = 0; piece < kPieces; ++piece) {
        __syncwarp();  // the piece before has been read
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
#pragma unroll
          for (int p = 0; p < kPieces; ++p) {
            // Registers have no index: each piece has code of its own here.
            if (block == b && piece == p) stage<ACROSS>(acc[b] + 16 * p, 2 * min(kSixteens - 2 * p, 2));
          }
        }
        __syncwarp();
        if (c.by_16_bytes) {
          copy_by_16_bytes<ACROSS, kTogether>(part);
        } else {
          copy_by_element<ACROSS>(part);
        }
        part.move(0, 32, c);
      }
      part.move(64, -32 * kPieces, c);
    }
  }

  // Groups of 8 columns, of which lane l holds two of row l / 4 and two of the row 8 below.
  template <bool ACROSS>
  __device__ __forceinline__ void stage(const float* x, int groups) const {
    const int lane = threadIdx.x % 32, row = lane / 4, col = lane % 4 * 2;
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      if (group >= groups) continue;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* pair = x + 4 * group + 2 * half;
        if constexpr (ACROSS) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            // (8 group + col + e) * 4 chunks a line, and that of row + 8 half
            store_shared(place(col * 4 + 4 * e + row / 4 + 2 * half) + group * 512 + row % 4 * 4, pair[e]);
          }
        } else {
          store_shared(place(row * 8 + 2 * group + col / 4) + half * 1024 + col % 4 * 4, pair[0], pair[1]);
        }
      }
    }
  }

  template <bool ACROSS, int TOGETHER>
  __device__ __forceinline__ void copy_by_16_bytes(const Part& part) const {
    constexpr int kLineChunks = ACROSS ? 4 : 8, kTurns = kChunks / 32, kTurnLines = 32 / kLineChunks;
    const int64_t line_stride = ACROSS ? c.col_stride : c.row_stride;
    int lane = threadIdx.x % 32;
    asm volatile("" : "+r"(lane));  // what follows is worked out anew: kept through the loop, it makes 128 x 192 spill
    const int line0 = lane / kLineChunks, in_line = lane % kLineChunks * 4;
    const int64_t at = part.at + line0 * line_stride + in_line;
#pragma unroll
    for (int first = 0; first < kTurns; first += TOGETHER) {
      Vec<float, 4> x[TOGETHER];
#pragma unroll
      for (int i = 0; i < TOGETHER; ++i) x[i] = load_shared_16<Vec<float, 4>>(place(lane) + (first + i) * 512);
#pragma unroll
      for (int i = 0; i < TOGETHER; ++i) {
        const int line = line0 + (first + i) * kTurnLines;
        if (!part.holds(ACROSS ? in_line : line, ACROSS ? line : in_line)) continue;
        const int64_t there = at + (first + i) * kTurnLines * line_stride;
        if (c.accumulate) {
          const Vec<float, 4> old = load_vec<4>(Global<const float>{c.data.data}, there);
#pragma unroll
          for (int e = 0; e < 4; ++e) x[i].v[e] += old.v[e];
        }
        store_vec(c.data, there, x[i]);
      }
    }
  }

  template <bool ACROSS>
  __device__ __forceinline__ void copy_by_element(const Part& part) const {
    constexpr int kLength = ACROSS ? 16 : 32, kTurns = kWarpBytes / 128;
    const int lane = threadIdx.x % 32, in_line = lane % kLength;
#pragma unroll 4
    for (int turn = 0; turn < kTurns; ++turn) {
      const int line = (turn * 32 + lane) / kLength, row = ACROSS ? in_line : line, col = ACROSS ? line : in_line;
      float x = load_shared(place(turn * 8 + lane / 4) + lane % 4 * 4);
      const int64_t i = part.at + row * c.row_stride + col * c.col_stride;
      const bool in = part.holds(row, col);
      if (c.accumulate) x += load_or(Global<const float>{c.data.data}, i, in, 0.0f);
      store_if(c.data, i, in, x);
    }
  }
};

}  // namespace tcgemm
