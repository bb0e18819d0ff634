// The tile forms of the wgmma kernel, and which one a problem gets. Plain C++ and pure functions, so that tests
// pin the choices for any number of SMs.
#pragma once
#include <algorithm>
#include <cstdint>

#include "../gemm.h"

namespace tcgemm {

// The operand that the two blocks of a cluster share: each asks for half of its tile, and TMA sends it to both. kB: the
// pair lies along m, kA: along n.
enum class Share { kNone, kA, kB };

constexpr int wgmma_blocks_of_64(int extent) { return (extent + 63) / 64; }

// A row of the table of forms. The kernel's template argument is the index of its row.
struct WgmmaForm {
  const char* name;
  int bm, bn;      // the tile of C
  bool ping_pong;  // true: each warpgroup has a tile of its own, one multiplies while the other stores
                   // false (cooperative): each has half the rows of one tile
  int stages;      // k-blocks of 64 in shared memory
  int producer_registers, consumer_registers;  // 128 x (producer + 2 x consumer) <= 65536, multiples of 8
  Share share;
  bool deferred;  // the store of a tile waits in registers for the next tile's main loop (wgmma_store.cuh)

  constexpr int rows_per_group() const { return ping_pong ? bm : bm / 2; }
  constexpr int cluster() const { return share == Share::kNone ? 1 : 2; }
  constexpr int pair_bm() const { return share == Share::kB ? 2 * bm : bm; }
  constexpr int pair_bn() const { return share == Share::kA ? 2 * bn : bn; }
};

inline constexpr WgmmaForm kWgmmaForms[] = {
    // name           bm   bn  ping-pong stages regs  share       deferred
    {"coop_128x256", 128, 256, false, 4, 24, 240, Share::kNone, false},
    {"defer_128x256", 128, 256, false, 4, 24, 240, Share::kNone, true},
    {"ping_128x192", 128, 192, true, 5, 24, 240, Share::kNone, false},
    {"ping_128x128", 128, 128, true, 6, 40, 232, Share::kNone, false},
    {"coop_128x144", 128, 144, false, 5, 40, 232, Share::kNone, false},
    {"coop_128x128", 128, 128, false, 6, 40, 232, Share::kNone, false},
    {"coop_128x64", 128, 64, false, 8, 40, 232, Share::kNone, false},
    {"defer_128x256_b", 128, 256, false, 4, 24, 240, Share::kB, true},
    {"ping_128x192_b", 128, 192, true, 5, 24, 240, Share::kB, false},
    {"ping_128x128_b", 128, 128, true, 6, 40, 232, Share::kB, false},
    {"coop_128x144_b", 128, 144, false, 5, 40, 232, Share::kB, false},
    {"coop_128x128_b", 128, 128, false, 6, 40, 232, Share::kB, false},
    {"coop_128x64_a", 128, 64, false, 8, 40, 232, Share::kA, false},
};
inline constexpr int kWgmmaFormCount = sizeof(kWgmmaForms) / sizeof(kWgmmaForms[0]);

// Tensor cores round towards zero while they add, so sums of one sign drift with the length of a chain. Chains are
// cut where cuBLAS cuts them or before, in two behind 8192, in more from 16384 on, and the pieces are added up in FP32
// in the order of k. Depends on k alone, so that a row's bits do not depend on m.
inline constexpr int64_t kLongestChain = 8192, kDeepK = 16384, kDeepChain = 3072;
constexpr int64_t wgmma_chains(int64_t k) {
  return k < kDeepK ? (k + kLongestChain - 1) / kLongestChain : (k + kDeepChain - 1) / kDeepChain;
}

// How a problem is laid over the grid.
struct WgmmaPlan {
  int form = 0;
  int64_t tiles_m = 0, tiles_n = 0;
  int group = 1;       // rows of tiles that are walked together, so that a wave's operands stay in L2
  int64_t chains = 1;  // pieces of k
  bool promote = true;
  bool early = true;  // the launch overlaps the end of the kernel before
};

// Deferred stores go out behind the first 20 k-blocks of the next tile.
inline constexpr int64_t kMinDeferredK = 20 * 64;

// Clocks for a k-block: 2048 multiply-adds a clock, or the bytes that the block asks L2 for, at the 60 a clock that an
// SM got while all asked.
constexpr double wgmma_block_cycles(const WgmmaForm& form) {
  const int lines = form.bm / (form.share == Share::kA ? 2 : 1) + form.bn / (form.share == Share::kB ? 2 : 1);
  return std::max(form.bm * form.bn / 32.0, lines * 128 / 60.0);
}

// The model: each worker does ceil(tiles / workers) tiles, and stores C at 32 bytes a clock. A store shows behind every
// tile; an eighth of it where it is deferred; behind the last tile only where the other warpgroup multiplies meanwhile.
constexpr double wgmma_cycles(const WgmmaForm& form, int64_t m, int64_t n, int64_t k, int sm_count) {
  const int workers = std::max(sm_count / form.cluster(), 1);
  const int64_t tiles = (m + form.pair_bm() - 1) / form.pair_bm() * ((n + form.pair_bn() - 1) / form.pair_bn());
  const double rounds = static_cast<double>((tiles + workers - 1) / workers);
  const double multiply = static_cast<double>((k + 63) / 64) * wgmma_block_cycles(form);
  const double store = form.bm * form.bn * 4 / 32.0 * static_cast<double>(wgmma_chains(k));
  const double hidden = form.ping_pong ? rounds - 1 : form.deferred ? (rounds - 1) * 7 / 8 : 0;
  return rounds * multiply + (rounds - hidden) * store;
}

// The height of a group whose wave (`group` rows of tiles or pairs, workers / group columns) reads the fewest bytes.
constexpr int wgmma_group(const WgmmaForm& form, int64_t tiles_m, int workers) {
  int best = 1;
  int64_t fewest = INT64_MAX;
  for (int group = 1; group <= 32 && group <= tiles_m; ++group) {
    const int64_t lines = int64_t{group} * form.pair_bm() + int64_t{(workers + group - 1) / group} * form.pair_bn();
    if (lines < fewest) {
      fewest = lines;
      best = group;
    }
  }
  return best;
}

constexpr WgmmaPlan wgmma_plan_form(int form, int64_t m, int64_t n, int64_t k, int sm_count) {
  const WgmmaForm& row = kWgmmaForms[form];
  WgmmaPlan plan;
  plan.form = form;
  plan.tiles_m = (m + row.pair_bm() - 1) / row.pair_bm();
  plan.tiles_n = (n + row.pair_bn() - 1) / row.pair_bn();
  plan.group = wgmma_group(row, plan.tiles_m, sm_count / row.cluster());
  plan.chains = wgmma_chains(k);
  return plan;
}

constexpr bool wgmma_form_fits(const WgmmaForm& form, int64_t k, bool may_defer) {
  return !form.deferred || (may_defer && k >= kMinDeferredK && wgmma_chains(k) == 1);
}

// The plan of the form with the fewest cycles. may_defer: C is written by 16 bytes, and not added to.
constexpr WgmmaPlan wgmma_plan(int64_t m, int64_t n, int64_t k, int sm_count, bool may_defer) {
  int best = 0;
  for (int form = 1; form < kWgmmaFormCount; ++form) {
    if (!wgmma_form_fits(kWgmmaForms[form], k, may_defer)) continue;
    if (wgmma_cycles(kWgmmaForms[form], m, n, k, sm_count) < wgmma_cycles(kWgmmaForms[best], m, n, k, sm_count)) {
      best = form;
    }
  }
  return wgmma_plan_form(best, m, n, k, sm_count);
}

// Launches the kernel in a given form, which must fit: for the tests and timings of a form. A cudaError_t.
int launch_wgmma_plan(const GemmProblem& problem, const DeviceInfo& device, const WgmmaPlan& plan);

}  // namespace tcgemm
