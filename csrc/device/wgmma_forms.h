// The tile forms of the wgmma kernel, and which one a problem gets. Plain C++ and pure functions, so that tests
// pin the choices for any number of SMs.
#pragma once
#include <algorithm>
#include <cstdint>

#include "../gemm.h"

namespace tcgemm {

// When a tile of C is stored, and what a consuming warpgroup has of it.
enum class Store {
  kAtOnce,    // half its rows; the tensor cores idle meanwhile
  kDeferred,  // half its rows; most of it waits in registers for the next tile's main loop (wgmma_store.cuh)
  kPingPong,  // all of it; the other warpgroup multiplies its own tile meanwhile
};

// A row of the table of forms. The kernel's template argument is the index of its row.
struct WgmmaForm {
  const char* name;
  int bm, bn;  // the tile of C
  Store store;
  int stages;                                  // k-blocks of 64 in shared memory
  int producer_registers, consumer_registers;  // 128 x (producer + 2 x consumer) <= 65536, multiples of 8

  constexpr bool ping_pong() const { return store == Store::kPingPong; }
  constexpr bool deferred() const { return store == Store::kDeferred; }
  constexpr int rows_per_group() const { return ping_pong() ? bm : bm / 2; }
};

inline constexpr WgmmaForm kWgmmaForms[] = {
    // name           bm   bn  store           stages registers  the best at (fp16, H200)
    {"defer_128x256", 128, 256, Store::kDeferred, 4, 24, 240},  // 4096^3
    {"ping_128x192", 128, 192, Store::kPingPong, 5, 24, 240},   // 8192^3
    {"ping_128x128", 128, 128, Store::kPingPong, 6, 40, 232},   // 16384 x 4096 x 4096
    {"coop_128x192", 128, 192, Store::kAtOnce, 5, 40, 232},     // 1536^3, lines of B along n
    {"coop_128x144", 128, 144, Store::kAtOnce, 5, 40, 232},     // 1536^3, lines of B along k
    {"coop_128x128", 128, 128, Store::kAtOnce, 6, 40, 232},     // 512 x 4096 x 4096
    {"coop_128x64", 128, 64, Store::kAtOnce, 8, 40, 232},       // 1024^3
};
inline constexpr int kWgmmaFormCount = sizeof(kWgmmaForms) / sizeof(kWgmmaForms[0]);

// What the choice depends on.
struct WgmmaTask {
  int64_t m, n, k;
  int sm_count;
  bool may_defer;  // C is written by 16 bytes, and not added to
  bool b_along_k;  // the lines of B in memory
};

// How a problem is laid over the grid.
struct WgmmaPlan {
  int form = 0;
  int64_t tiles_m = 0, tiles_n = 0;
  int group = 1;       // rows of tiles that are walked together, so that a wave's operands stay in L2
  int64_t chains = 1;  // pieces of k
};

constexpr int64_t wgmma_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Tensor cores round towards zero while they add, so sums of one sign drift with the length of a chain. Chains are
// cut where cuBLAS cuts them, or before: behind 8192 in two where C is small, and for every C from 16384 on. The
// pieces are added up in FP32, in the order of k.
constexpr int64_t wgmma_chains(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kLongestChain = 8192, kSmallC = int64_t{2048} * 2048, kDeepK = 16384, kDeepChain = 3072;
  if (k >= kDeepK) return wgmma_ceil(k, kDeepChain);
  return k > kLongestChain && m * n <= kSmallC ? 2 : 1;
}

// Deferred stores go out behind the first 20 k-blocks of the next tile.
inline constexpr int64_t kMinDeferredK = 20 * 64;

constexpr bool wgmma_form_can(const WgmmaForm& form, const WgmmaTask& t) {
  return !form.deferred() || (t.may_defer && t.k >= kMinDeferredK && wgmma_chains(t.m, t.n, t.k) == 1);
}

// Whether it can, and should: 144 columns in lines along n come in boxes of 64, the last one mostly for nothing, and
// ran at three quarters of the speed along k.
constexpr bool wgmma_form_suits(const WgmmaForm& form, const WgmmaTask& t) {
  return wgmma_form_can(form, t) && (form.bn % 64 == 0 || t.b_along_k);
}

// The model: a block does ceil(tiles / SMs) tiles. A k-block of one takes the clocks of 2048 multiply-adds each, or of
// the bytes that it asks L2 for; storing it takes one for 32 bytes, of which shows: all, or about half where it is
// deferred, or that of the last tile alone, by one warpgroup, where the other multiplies. The constants are fitted to
// the times of each form on an H200 (docs/log.md).
constexpr double wgmma_cycles(const WgmmaForm& form, const WgmmaTask& t) {
  constexpr double kMultiplyAdds = 2048, kL2Bytes = 62.25, kStoreBytes = 32;  // a clock and SM
  constexpr double kShownOfDeferred = 0.47, kOneWarpgroup = 1.5;
  const int64_t tiles = wgmma_ceil(t.m, form.bm) * wgmma_ceil(t.n, form.bn);
  const double rounds = static_cast<double>(wgmma_ceil(tiles, t.sm_count));
  const double k_block = std::max(form.bm * form.bn * 64 / kMultiplyAdds, (form.bm + form.bn) * 128 / kL2Bytes);
  const double k_blocks = rounds * static_cast<double>(wgmma_ceil(t.k, 64)) + 1;  // the first is waited for
  const double store = form.bm * form.bn * 4 / kStoreBytes;
  const double chains = static_cast<double>(wgmma_chains(t.m, t.n, t.k));
  const double shown = form.ping_pong()  ? kOneWarpgroup
                       : form.deferred() ? 1 + (rounds - 1) * kShownOfDeferred
                                         : rounds * chains;
  return k_blocks * k_block + shown * store;
}

// The height of a group whose wave (`group` rows of tiles, sm_count / group columns) reads the fewest bytes.
constexpr int wgmma_group(const WgmmaForm& form, int64_t tiles_m, int sm_count) {
  int best = 1;
  int64_t fewest = INT64_MAX;
  for (int group = 1; group <= 32 && group <= tiles_m; ++group) {
    const int64_t lines = int64_t{group} * form.bm + wgmma_ceil(sm_count, group) * form.bn;
    if (lines < fewest) {
      fewest = lines;
      best = group;
    }
  }
  return best;
}

constexpr WgmmaPlan wgmma_plan_form(int form, const WgmmaTask& t) {
  const WgmmaForm& row = kWgmmaForms[form];
  const int64_t tiles_m = wgmma_ceil(t.m, row.bm);
  return {form, tiles_m, wgmma_ceil(t.n, row.bn), wgmma_group(row, tiles_m, t.sm_count), wgmma_chains(t.m, t.n, t.k)};
}

// The plan of the form with the fewest cycles.
constexpr WgmmaPlan wgmma_plan(const WgmmaTask& t) {
  int best = -1;
  double fewest = 0;
  for (int form = 0; form < kWgmmaFormCount; ++form) {
    if (!wgmma_form_suits(kWgmmaForms[form], t)) continue;
    const double cycles = wgmma_cycles(kWgmmaForms[form], t);
    if (best < 0 || cycles < fewest) {
      best = form;
      fewest = cycles;
    }
  }
  return wgmma_plan_form(best, t);
}

// Launches the kernel in a given form, for the tests of a form. A cudaError_t: cudaErrorInvalidValue where the form
// cannot take the problem.
int launch_wgmma_form(const GemmProblem& problem, const DeviceInfo& device, int form);

}  // namespace tcgemm
