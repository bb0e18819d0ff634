// k in pieces, one in each block of a cluster: what the blocks have of a tile of C is added up through each other's
// shared memory, in the order of k. Every block adds up and stores its own slices of the columns.
#pragma once
#include "tile_schedule.cuh"
#include "tma.cuh"
#include "wgmma_staged_store.cuh"

namespace tcgemm {

// A thread has the same elements of the tile in every block, so they travel by thread: a slice of 16 columns is 8 of
// its registers. They take the place of the ring: first what this block has, slice by slice, then what has come in,
// block by block without this one; at the end is room to store from.
template <class R>
struct SplitSum {
  static constexpr int kSlices = R::BN / 16;  // block `rank` adds up those from rank kSlices / splits on
  static constexpr int kAdders = R::kConsumers * kGroupThreads;
  static constexpr int kFourBytes = kAdders * 16, kSliceBytes = 2 * kFourBytes;  // four registers, eight
  static constexpr int kBarrier = 1;                                             // of the threads that add

  R ring;
  int rank, splits;
  Divisor by_splits;

  // Sends what this block has of the others' slices, and waits for what they have of its own. Before and behind it the
  // cluster meets: first until no ring is read any more, at last until no copy is under way.
  __device__ __forceinline__ void exchange(const float (&acc)[R::BN / 2]) const {
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* x = acc + 8 * slice + 4 * half;
        store_shared_16(of_thread(slice * kSliceBytes + half * kFourBytes), Vec<float, 4>{x[0], x[1], x[2], x[3]});
      }
    }
    fence_shared_for_tma();
    named_barrier_sync(kBarrier, kAdders);
    if (threadIdx.x == kGroupThreads) send();
    ring.pieces().wait(0);
  }

  // Adds up this block's slices, and stores them. The tile starts at (row0, col0) for this warp.
  __device__ __forceinline__ void store(const WgmmaResult& c, int64_t row0, int64_t col0) const {
    // Behind the pieces: the copy engine may still be sending those that have gone out.
    constexpr int kBehind = R::kRingBytes - R::kConsumers * kStagedBytes;
    const int warp = static_cast<int>(threadIdx.x) / 32 - 4;
    const StagedStore result = {c, ring.base + kBehind + warp * StagedStore::kWarpBytes};
    const int mine = first_slice(rank), end = first_slice(rank + 1);
#pragma unroll 1
    for (int slice = mine; slice < end; ++slice) {
      float sum[1][8] = {};
      for (int from = 0; from < splits; ++from) {
        const int at = from == rank ? slice * kSliceBytes : place_of(from, rank) + (slice - mine) * kSliceBytes;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const auto x = load_shared_16<Vec<float, 4>>(of_thread(at + half * kFourBytes));
#pragma unroll
          for (int e = 0; e < 4; ++e) sum[0][4 * half + e] += x.v[e];
        }
      }
      result.store(sum, row0, col0 + 16 * slice);
    }
  }

 private:
  __device__ __forceinline__ int first_slice(int block) const { return by_splits.quotient(block * kSlices); }
  __device__ __forceinline__ int slices_of(int block) const { return first_slice(block + 1) - first_slice(block); }
  __device__ __forceinline__ uint32_t of_thread(int place) const {
    return ring.base + place + (static_cast<int>(threadIdx.x) - kGroupThreads) * 16;
  }
  // Where the slices lie, at block `to`, that came from block `from`.
  __device__ __forceinline__ int place_of(int from, int to) const {
    return (kSlices + (from < to ? from : from - 1) * slices_of(to)) * kSliceBytes;
  }

  __device__ __forceinline__ void send() const {
    ring.pieces().arrive_expect_bytes((splits - 1) * slices_of(rank) * kSliceBytes);
#pragma unroll 1
    for (int step = 1; step < splits; ++step) {  // each block starts with another one
      const int to = rank + step < splits ? rank + step : rank + step - splits;
      if (slices_of(to) == 0) continue;
      copy_to_block(to, ring.base + place_of(rank, to), ring.base + first_slice(to) * kSliceBytes,
                    slices_of(to) * kSliceBytes, ring.pieces());
    }
  }
};

}  // namespace tcgemm
