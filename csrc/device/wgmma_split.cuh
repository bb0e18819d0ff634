// k in pieces, one in each block of a cluster: what the blocks have of a tile of C is added up through each other's
// shared memory, in the order of k. Every block adds up and stores its own slices of the columns.
#pragma once
#include "tma.cuh"
#include "wgmma_store.cuh"

namespace tcgemm {

// A thread has the same elements of the tile in every block, so they travel by thread: a slice of 16 columns is 8 of
// its registers. They take the place of the ring: first what goes out, slice by slice, then what has come in, block by
// block without this one.
template <class R>
struct SplitSum {
  static constexpr int kSlices = R::BN / 16;  // block `rank` adds up those from rank kSlices / splits on
  static constexpr int kAdders = kConsumers * kGroupThreads;
  static constexpr int kFourBytes = kAdders * 16, kSliceBytes = 2 * kFourBytes;  // four registers, eight
  static constexpr int kBarrier = 1;                                             // of the threads that add

  R ring;
  int rank, splits;

  __device__ __forceinline__ int first_slice(int block) const { return block * kSlices / splits; }
  __device__ __forceinline__ Columns columns() const { return {first_slice(rank), first_slice(rank + 1)}; }

  // acc += what the other blocks have of this block's slices. Before and behind it the cluster meets: first until no
  // ring is read any more, at last until no copy is under way.
  __device__ __forceinline__ void exchange(float (&acc)[R::BN / 2]) const {
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
    add(acc);
  }

 private:
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
    for (int step = 1; step < splits; ++step) {  // each block starts with another one
      const int to = rank + step < splits ? rank + step : rank + step - splits;
      if (slices_of(to) == 0) continue;
      copy_to_block(to, ring.base + place_of(rank, to), ring.base + first_slice(to) * kSliceBytes,
                    slices_of(to) * kSliceBytes, ring.pieces());
    }
  }

  __device__ __forceinline__ void add(float (&acc)[R::BN / 2]) const {
    const Columns mine = columns();
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
      if (slice < mine.from || slice >= mine.to) continue;
      float sum[8] = {};
      for (int from = 0; from < splits; ++from) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float* own = acc + 8 * slice + 4 * half;
          Vec<float, 4> x = {own[0], own[1], own[2], own[3]};
          if (from != rank) {
            x = load_shared_16<Vec<float, 4>>(
                of_thread(place_of(from, rank) + (slice - mine.from) * kSliceBytes + half * kFourBytes));
          }
#pragma unroll
          for (int e = 0; e < 4; ++e) sum[4 * half + e] += x.v[e];
        }
      }
#pragma unroll
      for (int e = 0; e < 8; ++e) acc[8 * slice + e] = sum[e];
    }
  }
};

}  // namespace tcgemm
