// The moving parts of the wgmma kernel: the ring of k-blocks in shared memory, the producer that fills it and the
// multiplication that empties it. wgmma.cu has the roles and the barriers.
#pragma once
#include "mbarrier.cuh"
#include "tile_schedule.cuh"
#include "tma.cuh"
#include "wgmma.cuh"
#include "wgmma_forms.h"
#include "wgmma_staged_store.cuh"
#include "wgmma_store.cuh"

namespace tcgemm {

constexpr int BK = 64;  // halves: one swizzled line
constexpr int kGroupThreads = 128;
constexpr int kBlockOf64Bytes = TileWalk<Lines::kAlongK>::kPer64MnBytes;
constexpr int kSharedBytesPerBlock = 232448;

// A form, and what lies where in shared memory: the stages of A, those of B, C on its way out, the full barriers, the
// empty ones, those of slices where k is split.
template <int FORM>
struct Ring {
  static constexpr WgmmaForm kForm = kWgmmaForms[FORM];
  static constexpr int BM = kForm.bm, BN = kForm.bn, kStages = kForm.stages;
  static constexpr bool kPingPong = kForm.ping_pong(), kDeferred = kForm.deferred();
  static constexpr bool kSplitK = kForm.splits_k(), kStoresNarrow = kForm.stores_narrow();
  static constexpr int kSharersA = kForm.sharers_a(), kSharersB = kForm.sharers_b(), kSharers = kForm.sharers();
  static constexpr int kFillers = kSharersA + kSharersB - 1;  // blocks that load into this one's stages
  static constexpr int kConsumers = kForm.consumers, kThreads = (1 + kConsumers) * kGroupThreads;
  static constexpr int kTurns = kPingPong ? kConsumers : 1;
  static constexpr int kRows = kForm.rows_per_group(), kBlocksM = kRows / kWgmmaM;  // of a warpgroup
  static constexpr int kABytes = kForm.a_bytes(), kBBytes = kForm.b_bytes();
  static constexpr int kRingBytes = kForm.ring_bytes();
  // Of a warp, for C on its way out. Other forms take a stage: ping-pong has a use for all of them meanwhile.
  static constexpr int kWarpCBytes = kDeferred ? DeferredStore::kWarpBytes : kPingPong ? StagedStore::kWarpBytes : 0;
  static constexpr int kCBytes = 4 * kConsumers * kWarpCBytes;
  static constexpr int kSliceBarriers = kSplitK ? (BN / 16 + 1) / 2 : 0;  // slices of a block, if there are two
  static constexpr int kSharedBytes = kRingBytes + (2 * kStages + kSliceBarriers) * 8 + kCBytes;
  static_assert(kRows % kWgmmaM == 0 && BN % 16 == 0, "wgmma is 64 rows, stores are 16 columns");
  static_assert(kSharedBytes <= kSharedBytesPerBlock, "the ring must fit");
  static_assert(kGroupThreads * (kForm.producer_registers + kConsumers * kForm.consumer_registers) <= 65536);
  static_assert(!kDeferred || (!kPingPong && kBlocksM == 1 && BN == 256), "deferred stores know this shape only");

  uint32_t base;
  __device__ __forceinline__ uint32_t a(int stage) const { return base + stage * kABytes; }
  __device__ __forceinline__ uint32_t b(int stage) const { return base + kStages * kABytes + stage * kBBytes; }
  __device__ __forceinline__ uint32_t c(int warp) const { return base + kRingBytes + warp * kWarpCBytes; }
  __device__ __forceinline__ Mbarrier full(int stage) const { return {base + kRingBytes + kCBytes + 8 * stage}; }
  __device__ __forceinline__ Mbarrier empty(int stage) const { return full(kStages + stage); }
  __device__ __forceinline__ Mbarrier slice(int i) const { return full(2 * kStages + i); }  // SplitSum

  // A part of a stage that only this warp reads, once its warpgroup has: the first lines of its rows of A.
  __device__ __forceinline__ uint32_t of_warp(int stage, int row_in_tile) const {
    return a(stage) + row_in_tile / kWgmmaM * kBlockOf64Bytes +
           static_cast<int>(threadIdx.x) % kGroupThreads / 32 * StagedStore::kWarpBytes;
  }

  // The rank of the i-th of them: this block's column, whose ranks are consecutive, then the other one of its row.
  __device__ __forceinline__ static uint32_t filler(int i) {
    const int first = Schedule<Ring>::first_sharer();
    if (kSharersA == 1) return first + i;
    const int place = Schedule<Ring>::place();
    return first + (i < kSharersB ? place / kSharersB * kSharersB + i : (place + kSharersB) % kSharers);
  }

  // By all lanes of each consuming warp: this warp has read the stage, and who fills it may do so again.
  __device__ __forceinline__ void release(int stage) const {
    const int lane = threadIdx.x % 32;
    if constexpr (kSharers > 1) {
      if (lane < kFillers) empty(stage).arrive_at(filler(lane));
    } else {
      if (lane == 0) empty(stage).arrive();
    }
  }

  // The same where the warp has stored from its part of the stage: no lane still reads there when TMA fills it.
  __device__ __forceinline__ void release_used(int stage) const {
    fence_shared_for_tma();
    __syncwarp();
    release(stage);
  }
};

// EXTENT rows of A, or columns of B, x 64 k, and how they come: whole, or a part by each of the SHARERS to all of them.
// Lines along k come in one box, the others in a box for each 64 of the extent.
template <Lines LINES, int EXTENT, int SHARERS>
struct Loads {
  static constexpr bool kK = LINES == Lines::kAlongK;
  static constexpr int kBoxes = kK ? 1 : (EXTENT + 63) / 64;
  static constexpr int kLines = kK ? EXTENT : BK, kLinesOfBox = kLines / SHARERS;
  static constexpr int kBytes = kBoxes * kLines * kSwizzleBytes;  // that arrive, the other blocks' parts too
  static_assert(kLines % (8 * SHARERS) == 0, "a box is a whole number of swizzle atoms");

  // This block's part, to `blocks`.
  __device__ __forceinline__ static void load(uint32_t to, const CUtensorMap& map, int mn0, int k0, Mbarrier full,
                                              int part, uint16_t blocks) {
    const int line0 = part * kLinesOfBox;
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      const uint32_t box = to + i * kBlockOf64Bytes + line0 * kSwizzleBytes;
      const int inner = kK ? k0 : mn0 + 64 * i, outer = (kK ? mn0 : k0) + line0;
      if constexpr (SHARERS > 1) {
        tma_load_to(blocks, box, map, inner, outer, full);
      } else {
        tma_load(box, map, inner, outer, full);
      }
    }
  }
};

// What a block asks for, into an empty stage, for k-block kb of a unit.
template <Lines A, Lines B, class R>
struct Asking {
  using LoadsA = Loads<A, R::BM, R::kSharersA>;
  using LoadsB = Loads<B, R::BN, R::kSharersB>;

  R ring;
  const CUtensorMap &map_a, &map_b;

  // All its bytes. A shared part may land before it is announced: the phase cannot end before this arrival.
  __device__ __forceinline__ void announce(int stage) const {
    ring.full(stage).arrive_expect_bytes(LoadsA::kBytes + LoadsB::kBytes);
  }
  __device__ __forceinline__ void load_a(const Unit& unit, int kb, int stage) const {
    constexpr int kFirstRow = R::kSharersA > 1 ? 1 + (1 << R::kSharersB) : 1;  // of two columns: the blocks of a row
    LoadsA::load(ring.a(stage), map_a, unit.row0, (unit.k_block0 + kb) * BK, ring.full(stage), Schedule<R>::rank_n(),
                 kFirstRow << (Schedule<R>::first_sharer() + Schedule<R>::rank_m()));
  }
  __device__ __forceinline__ void load_b(const Unit& unit, int kb, int stage) const {
    constexpr int kFirstColumn = (1 << R::kSharersB) - 1;
    LoadsB::load(ring.b(stage), map_b, unit.col0, (unit.k_block0 + kb) * BK, ring.full(stage), Schedule<R>::rank_m(),
                 kFirstColumn << (Schedule<R>::first_sharer() + R::kSharersB * Schedule<R>::rank_n()));
  }
};

// The first k-blocks of the first unit, as many as there are stages, and how many those are. Nothing yet of what is
// shared, since another block may not be there: ask_first_for_shared does that.
template <Lines A, Lines B, class R>
__device__ __forceinline__ int ask_first(const Asking<A, B, R>& asking, const Schedule<R>& schedule) {
  const Unit unit = schedule.unit(0);
  const int count = min(unit.k_blocks, R::kStages);
#pragma unroll 1
  for (int kb = 0; kb < count; ++kb) {
    asking.announce(kb);
    if (R::kSharersA == 1) asking.load_a(unit, kb, kb);
    if (R::kSharersB == 1) asking.load_b(unit, kb, kb);
  }
  return count;
}
template <Lines A, Lines B, class R>
__device__ __forceinline__ void ask_first_for_shared(const Asking<A, B, R>& asking, const Schedule<R>& schedule,
                                                     int asked) {
  const Unit unit = schedule.unit(0);
#pragma unroll 1
  for (int kb = 0; kb < asked; ++kb) {
    if (R::kSharersA > 1) asking.load_a(unit, kb, kb);
    if (R::kSharersB > 1) asking.load_b(unit, kb, kb);
  }
}

// All the others. `asked`: what ask_first returned.
template <Lines A, Lines B, class R>
__device__ __forceinline__ void produce(const Asking<A, B, R>& asking, const Schedule<R>& schedule, int asked) {
  RingCursor<R::kStages> at;
  at.advance(asked);
  for (int u = 0; schedule.has(u); ++u) {
    const Unit unit = schedule.unit(u);
    for (int kb = u == 0 ? asked : 0; kb < unit.k_blocks; ++kb) {
      asking.ring.empty(at.slot).wait(at.parity ^ 1);
      asking.announce(at.slot);
      asking.load_a(unit, kb, at.slot);
      asking.load_b(unit, kb, at.slot);
      at.advance();
    }
  }
}

// acc = this warpgroup's rows x BN columns over k-blocks of a unit; the last ones may still be under way. A stage
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

// Behind the last wgmma of a unit: the accumulators are complete. The last stage is still this warp's.
template <class R>
__device__ __forceinline__ void finish_unit(float (&acc)[R::kBlocksM][R::BN / 2]) {
  wgmma_wait<0>();
  wgmma_landed(acc);
}

// acc = the product over all k-blocks of a unit, in chains of at most k_blocks_per_chain on the tensor cores that are
// added up in FP32, in the order of k. The last stage is still this warp's.
template <class T, Lines A, Lines B, class R>
__device__ __forceinline__ void multiply_in_chains(float (&acc)[R::kBlocksM][R::BN / 2], const R& ring,
                                                   RingCursor<R::kStages>& at, int k_blocks, int k_blocks_per_chain,
                                                   int row_in_tile) {
  for (int done = 0; done == 0 || done < k_blocks; done += k_blocks_per_chain) {
    float chain[R::kBlocksM][R::BN / 2] = {};
    const int length = min(k_blocks - done, k_blocks_per_chain);
    multiply_unit<0, T, A, B>(chain, ring, at, length, row_in_tile, [](int) {});
    finish_unit<R>(chain);
    if (done + length < k_blocks) ring.release(at.before());
#pragma unroll
    for (int i = 0; i < R::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < R::BN / 2; ++j) acc[i][j] = done == 0 ? chain[i][j] : acc[i][j] + chain[i][j];
    }
    wgmma_landed(acc);  // the sums are done before the next chain starts
  }
}

}  // namespace tcgemm
