// The moving parts of the wgmma kernel: the ring of k-blocks in shared memory, the producer that fills it and the
// multiplication that empties it. wgmma.cu has the roles and the barriers.
#pragma once
#include "mbarrier.cuh"
#include "tile_schedule.cuh"
#include "tma.cuh"
#include "wgmma.cuh"
#include "wgmma_forms.h"
#include "wgmma_store.cuh"

namespace tcgemm {

constexpr int BK = 64;  // halves: one swizzled line
constexpr int kGroupThreads = 128, kConsumers = 2, kThreads = (1 + kConsumers) * kGroupThreads;
constexpr int kBlockOf64Bytes = TileWalk<Lines::kAlongK>::kPer64MnBytes;
constexpr int kSharedBytesPerBlock = 232448;

// A form, and what lies where in shared memory: the stages of A, those of B, C on its way out, the full barriers, the
// empty ones.
template <int FORM>
struct Ring {
  static constexpr WgmmaForm kForm = kWgmmaForms[FORM];
  static constexpr int BM = kForm.bm, BN = kForm.bn, kStages = kForm.stages;
  static constexpr bool kPingPong = kForm.ping_pong(), kDeferred = kForm.deferred();
  static constexpr int kRows = kForm.rows_per_group(), kBlocksM = kRows / kWgmmaM;  // of a warpgroup
  static constexpr int kABytes = BM * BK * 2, kBBytes = (BN + 63) / 64 * kBlockOf64Bytes;
  static constexpr int kCBytes = kDeferred ? 4 * kConsumers * DeferredStore::kWarpBytes : 0;
  static constexpr int kSharedBytes = kStages * (kABytes + kBBytes + 2 * 8) + kCBytes;
  static_assert(kRows % kWgmmaM == 0 && BN % 16 == 0, "wgmma is 64 rows, stores are 16 columns");
  static_assert(kSharedBytes <= kSharedBytesPerBlock, "the ring must fit");
  static_assert(kGroupThreads * (kForm.producer_registers + kConsumers * kForm.consumer_registers) <= 65536);
  static_assert(!kDeferred || (!kPingPong && kBlocksM == 1 && BN == 256), "deferred stores know this shape only");

  uint32_t base;
  __device__ __forceinline__ uint32_t a(int stage) const { return base + stage * kABytes; }
  __device__ __forceinline__ uint32_t b(int stage) const { return base + kStages * kABytes + stage * kBBytes; }
  __device__ __forceinline__ uint32_t c(int warp) const {
    return base + kStages * (kABytes + kBBytes) + warp * DeferredStore::kWarpBytes;
  }
  __device__ __forceinline__ Mbarrier full(int stage) const {
    return {base + kStages * (kABytes + kBBytes) + kCBytes + 8 * stage};
  }
  __device__ __forceinline__ Mbarrier empty(int stage) const { return full(kStages + stage); }

  // By all lanes of each consuming warp: this warp has read the stage.
  __device__ __forceinline__ void release(int stage) const {
    if (threadIdx.x % 32 == 0) empty(stage).arrive();
  }
};

template <class R>
using RingSchedule = Schedule<R::BM, R::BN, R::kPingPong ? kConsumers : 1>;

// EXTENT rows of A, or columns of B, x 64 k. Lines along k come in one box, the others in a box for each 64 of the
// extent.
template <Lines LINES, int EXTENT>
struct Loads {
  static constexpr bool kK = LINES == Lines::kAlongK;
  static constexpr int kBoxes = kK ? 1 : (EXTENT + 63) / 64;
  static constexpr int kLinesOfBox = kK ? EXTENT : BK;
  static constexpr int kBytes = kBoxes * kLinesOfBox * kSwizzleBytes;

  __device__ __forceinline__ static void load(uint32_t to, const CUtensorMap& map, int mn0, int k0, Mbarrier full) {
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      tma_load(to + i * kBlockOf64Bytes, map, kK ? k0 : mn0 + 64 * i, kK ? mn0 : k0, full);
    }
  }
};

template <Lines A, Lines B, class R>
__device__ __forceinline__ void produce(const R& ring, const RingSchedule<R>& schedule, const CUtensorMap& map_a,
                                        const CUtensorMap& map_b) {
  using LoadsA = Loads<A, R::BM>;
  using LoadsB = Loads<B, R::BN>;
  RingCursor<R::kStages> at;
  for (int u = 0; schedule.has(u); ++u) {
    const Unit unit = schedule.unit(u);
    for (int kb = 0; kb < unit.k_blocks; ++kb) {
      ring.empty(at.slot).wait(at.parity ^ 1);
      const Mbarrier full = ring.full(at.slot);
      full.arrive_expect_bytes(LoadsA::kBytes + LoadsB::kBytes);
      const int k0 = (unit.k_block0 + kb) * BK;
      LoadsA::load(ring.a(at.slot), map_a, unit.row0, k0, full);
      LoadsB::load(ring.b(at.slot), map_b, unit.col0, k0, full);
      at.advance();
    }
  }
}

// acc = this warpgroup's rows x BN columns over the k-blocks of a unit; the last ones may still be under way. A stage
// is given back when the next one has been issued: one group of wgmma is always pending. behind(kb) runs behind the
// issue of each of the first HEAD k-blocks, which are unrolled; k_blocks >= HEAD.
template <int HEAD, class T, Lines A, Lines B, class R, class Behind>
__device__ __forceinline__ void multiply_unit(float (&acc)[R::kBlocksM][R::BN / 2], const R& ring,
                                              RingCursor<R::kStages>& at, int k_blocks, int row_in_tile,
                                              Behind behind) {
  const uint32_t offset_a = row_in_tile / kWgmmaM * kBlockOf64Bytes;
  int previous = 0;
  const auto issue = [&](int kb) {
    ring.full(at.slot).wait(at.parity);
    wgmma_fence();
    const uint64_t a = wgmma_descriptor(ring.a(at.slot) + offset_a), b = wgmma_descriptor(ring.b(at.slot));
#pragma unroll
    for (int k16 = 0; k16 < BK / kWgmmaK; ++k16) {
#pragma unroll
      for (int i = 0; i < R::kBlocksM; ++i) {
        Wgmma<T, R::BN, A, B>::run(acc[i], a + (i * kBlockOf64Bytes + k16 * TileWalk<A>::kPer16KBytes) / 16,
                                   b + k16 * TileWalk<B>::kPer16KBytes / 16, k16 == 0 ? kb : 1);
      }
    }
    wgmma_commit();
  };
  const auto release_previous = [&](int kb) {
    wgmma_wait<1>();
    if (kb > 0) ring.release(previous);
    previous = at.slot;
    at.advance();
  };
#pragma unroll
  for (int kb = 0; kb < HEAD; ++kb) {
    issue(kb);
    behind(kb);
    release_previous(kb);
  }
  for (int kb = HEAD; kb < k_blocks; ++kb) {
    issue(kb);
    release_previous(kb);
  }
}

// Behind the last wgmma of a unit: the accumulators are complete, and the last stage, if there was one, goes back.
template <class R>
__device__ __forceinline__ void finish_unit(float (&acc)[R::kBlocksM][R::BN / 2], const R& ring,
                                            const RingCursor<R::kStages>& at, int k_blocks) {
  wgmma_wait<0>();
  wgmma_landed(acc);
  if (k_blocks > 0) ring.release(at.slot == 0 ? R::kStages - 1 : at.slot - 1);
}

}  // namespace tcgemm
