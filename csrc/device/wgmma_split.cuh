// k in pieces, one in each block that a cluster has for a tile: what they have of it is added up through each other's
// shared memory, in the order of k. Every block adds up and stores its own slices of the columns.
#pragma once
#include "tile_schedule.cuh"
#include "tma.cuh"
#include "wgmma_staged_store.cuh"
#include "wgmma_store.cuh"

namespace tcgemm {

// A thread has the same elements of the tile in every block, so they travel by thread: a slice of 16 columns is 8 of
// its registers. They take the place of the ring: first what this block has, slice by slice, then what has come in,
// block by block without this one; at the end is room to store from.
template <class R>
struct SplitSum {
  static constexpr int kSlices = R::BN / 16;  // the block of a piece adds up those from piece kSlices / splits on
  static constexpr int kAdders = R::kConsumers * kGroupThreads;
  static constexpr int kFourBytes = kAdders * 16, kSliceBytes = 2 * kFourBytes;  // four registers, eight
  static constexpr int kBarrier = 1;                                             // of the threads that add

  R ring;
  int piece, splits;
  Divisor by_splits;

  // Sends what this block has of the others' slices. Until the cluster has met, a ring may still be read.
  __device__ __forceinline__ void send(const float (&acc)[R::BN / 2]) const {
    if (R::kSharers > 1) {
      cluster_arrive();  // and the stages that this block gave back to others have arrived there
    } else {
      cluster_arrive_relaxed();
    }
    named_barrier_sync(kBarrier, kAdders);
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* x = acc + 8 * slice + 4 * half;
        store_shared_16(of_thread(slice * kSliceBytes + half * kFourBytes), Vec<float, 4>{x[0], x[1], x[2], x[3]});
      }
    }
    fence_shared_for_tma();
    cluster_wait();
    named_barrier_sync(kBarrier, kAdders);
    if (threadIdx.x / 32 == kGroupThreads / 32) copy_slices();
  }

  // Adds up this block's slices as they come, and stores them. The tile starts at (row0, col0) for this warp.
  __device__ __forceinline__ void store(const WgmmaResult& c, int64_t row0, int64_t col0) const {
    const int mine = first_slice(piece), count = slices_of(piece);
    if (stores_directly(c)) {
      LanePlace place = lane_place(c, row0, col0 + 16 * mine + four_neighbours_column(), 16 * count);
#pragma unroll 1
      for (int i = 0; i < count; ++i) {
        float sum[8] = {};
        add_up(sum, i, mine, count);
        store_columns<0, 1>(c, place, sum);
        place.at += 16;
        place.cols[0] -= 16;
        place.cols[1] -= 16;
      }
      return;
    }
    // Behind the pieces: the copy engine may still be sending those that have gone out.
    constexpr int kBehind = R::kRingBytes - R::kConsumers * kStagedBytes;
    const int warp = static_cast<int>(threadIdx.x) / 32 - 4;
    const StagedStore result = {c, ring.base + kBehind + warp * StagedStore::kWarpBytes};
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      float sum[1][8] = {};
      add_up(sum[0], i, mine, count);
      result.store(sum, row0, col0 + 16 * (mine + i));
    }
  }

 private:
  // sum += what the blocks have, in the order of k, of the i-th of this block's `count` slices, the first of which is
  // `mine`. Waits for what comes in.
  __device__ __forceinline__ void add_up(float (&sum)[8], int i, int mine, int count) const {
    ring.slice(i).wait(0);
    for (int from = 0; from < splits; ++from) {
      const uint32_t at = of_thread(((from == piece ? mine : came_in(from, piece, count)) + i) * kSliceBytes);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto x = load_shared_16<Vec<float, 4>>(at + half * kFourBytes);
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[4 * half + e] += x.v[e];
      }
    }
  }

  __device__ __forceinline__ int first_slice(int p) const { return by_splits.quotient(p * kSlices); }
  __device__ __forceinline__ int slices_of(int p) const { return first_slice(p + 1) - first_slice(p); }
  __device__ __forceinline__ uint32_t of_thread(int place) const {
    return ring.base + place + (static_cast<int>(threadIdx.x) - kGroupThreads) * 16;
  }
  // How many slices lie before those that the block of piece `from` sends to that of piece `to`, which adds up `count`.
  __device__ __forceinline__ static int came_in(int from, int to, int count) {
    return kSlices + (from < to ? from : from - 1) * count;
  }

  // By one warp, a lane for each other block: shared out among warps it took longer. Slices have barriers of their own,
  // so that the first ones are added up while the others are on their way.
  __device__ __forceinline__ void copy_slices() const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < slices_of(piece)) ring.slice(lane).arrive_expect_bytes((splits - 1) * kSliceBytes);
    if (lane >= splits - 1) return;
    const int to = piece + 1 + lane < splits ? piece + 1 + lane : piece + 1 + lane - splits;
    const int first = first_slice(to), count = slices_of(to);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      copy_to_block(Schedule<R>::rank() + (to - piece) * R::kSharers,
                    ring.base + (came_in(piece, to, count) + i) * kSliceBytes, ring.base + (first + i) * kSliceBytes,
                    kSliceBytes, ring.slice(i));
    }
  }
};

}  // namespace tcgemm
