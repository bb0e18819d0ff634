// The tile forms of the wgmma kernel, and which one a problem gets. Plain C++ and pure functions, so that tests
// pin the choices for any number of SMs.
#pragma once
#include <algorithm>
#include <cstdint>

#include "../gemm.h"

namespace tcgemm {

// A row of the table of forms. The kernel's template argument is the index of its row.
struct WgmmaForm {
  const char* name;
  int bm, bn;      // the tile of C
  bool ping_pong;  // true: each warpgroup has a tile of its own, one multiplies while the other stores
                   // false (cooperative): each has half the rows of one tile
  int stages;      // k-blocks of 64 in shared memory
  int producer_registers, consumer_registers;  // 128 x (producer + 2 x consumer) <= 65536, multiples of 8
  bool deferred;  // the store of a tile waits in registers for the next tile's main loop (wgmma_store.cuh)

  constexpr int rows_per_group() const { return ping_pong ? bm : bm / 2; }
  constexpr int stage_bytes() const { return (bm + bn) * 64 * 2; }
};

inline constexpr WgmmaForm kWgmmaForms[] = {
    // name         bm   bn  ping-pong stages regs  deferred
    {"coop_128x256", 128, 256, false, 4, 24, 240, false},
    {"defer_128x256", 128, 256, false, 4, 24, 240, true},
    {"ping_128x192", 128, 192, true, 5, 24, 240, false},
    {"ping_128x128", 128, 128, true, 6, 40, 232, false},
    {"coop_256x128", 256, 128, false, 4, 24, 240, false},
    {"coop_128x192", 128, 192, false, 5, 40, 232, false},
    {"coop_128x128", 128, 128, false, 6, 40, 232, false},
    {"coop_128x64", 128, 64, false, 8, 40, 232, false},
};
inline constexpr int kWgmmaFormCount = sizeof(kWgmmaForms) / sizeof(kWgmmaForms[0]);

// Tensor cores round towards zero while they add, so sums of one sign drift with the length of a chain. From
// kDeepK on a chain is cut, and the pieces are added up in C in FP32, in the order of k. Up to there cuBLAS does
// not split either. Depends on k alone, so that a row's bits do not depend on m.
inline constexpr int64_t kDeepK = 16384;
inline constexpr int64_t kMaxChain = 3072;
constexpr int64_t wgmma_chains(int64_t k) { return k < kDeepK ? 1 : (k + kMaxChain - 1) / kMaxChain; }

// How a problem is laid over the grid.
struct WgmmaPlan {
  int form = 0;
  int64_t tiles_m = 0, tiles_n = 0;
  int group = 1;       // rows of tiles that are walked together, so that a wave's operands stay in L2
  int64_t chains = 1;  // pieces of k
};

// Deferred stores go out behind the first 20 k-blocks of the next tile.
inline constexpr int64_t kMinDeferredK = 20 * 64;

// The model: each SM does ceil(tiles / SMs) tiles of k_blocks x bm x bn x 64 multiply-adds at 2048 a clock, and
// stores C at 32 bytes a clock. A store shows behind every tile; an eighth of it where it is deferred; behind the last
// tile only where the other warpgroup multiplies meanwhile.
constexpr double wgmma_cycles(const WgmmaForm& form, int64_t m, int64_t n, int64_t k, int sm_count) {
  const int64_t tiles = (m + form.bm - 1) / form.bm * ((n + form.bn - 1) / form.bn);
  const double rounds = static_cast<double>((tiles + sm_count - 1) / sm_count);
  const double k_blocks = static_cast<double>((k + 63) / 64);
  const double multiply = k_blocks * form.bm * form.bn / 32.0;
  const double store = form.bm * form.bn * 4 / 32.0 * static_cast<double>(wgmma_chains(k));
  const double hidden = form.ping_pong ? rounds - 1 : form.deferred ? (rounds - 1) * 7 / 8 : 0;
  return rounds * multiply + (rounds - hidden) * store;
}

// The height of a group whose wave (`group` rows of tiles, sm_count / group columns) reads the fewest bytes.
constexpr int wgmma_group(const WgmmaForm& form, int64_t tiles_m, int sm_count) {
  int best = 1;
  int64_t fewest = INT64_MAX;
  for (int group = 1; group <= 32 && group <= tiles_m; ++group) {
    const int64_t lines = int64_t{group} * form.bm + int64_t{(sm_count + group - 1) / group} * form.bn;
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
  plan.tiles_m = (m + row.bm - 1) / row.bm;
  plan.tiles_n = (n + row.bn - 1) / row.bn;
  plan.group = wgmma_group(row, plan.tiles_m, sm_count);
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
