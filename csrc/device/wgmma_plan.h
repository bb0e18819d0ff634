// Which form of the wgmma kernel a problem gets, and how it is laid over the SMs. Plain C++ and pure functions, so that
// tests pin the choices for any number of SMs.
#pragma once
#include <algorithm>
#include <cstdint>

#include "divisor.h"
#include "wgmma_forms.h"
#include "wgmma_task.h"

namespace tcgemm {

// How a problem is laid over the grid.
struct WgmmaPlan {
  int form = 0;
  int splits = 1;           // pieces of k, one in each block of a cluster
  bool transposed = false;  // the rest is about the transposed problem
  int64_t tiles_m = 0, tiles_n = 0;
  int group = 1;       // rows of tiles that are walked together, so that neighbours read the same lines
  int64_t chains = 1;  // pieces of a block's k, one after the other
};

// Tensor cores round towards zero while they add, so sums of one sign drift with the length of a chain. No chain is
// longer than cuBLAS's on an H200, which cuts k where C has few tiles for the SMs (docs/log.md). Where it has more,
// none is longer than 4096 from k = 16384 on; cuBLAS does not see to that. Pieces are added up in FP32, in the order of
// k.
constexpr int64_t wgmma_longest_chain(const WgmmaTask& t) {
  constexpr int64_t kDeepK = 16384;
  const int64_t tiles = ceil_div(t.m, 128) * ceil_div(t.n, 128);
  if (8 * tiles <= t.sm_count) return t.k <= 2048 ? 2048 : 1024;
  if (4 * tiles <= t.sm_count) return 2048;
  if (2 * tiles <= t.sm_count) return 7168;
  return t.k < kDeepK ? kDeepK : 4096;
}

// Deferred stores go out behind the first 20 k-blocks of the next tile.
inline constexpr int64_t kMinDeferredK = 20 * 64;

constexpr bool wgmma_form_can(const WgmmaForm& form, const WgmmaTask& t) {
  if (form.deferred() && (!t.may_defer || t.c_across || t.k < kMinDeferredK)) return false;
  if (form.shares_b() && t.sm_count < 2) return false;
  return form.splits_k() || t.k <= wgmma_longest_chain(t);
}

// Clusters that an H200 has room for at a time, and with its proportions any device: the SMs of a GPC are no multiple
// of 3, 4 or 8.
constexpr int64_t wgmma_clusters(int splits, int sm_count) {
  constexpr int kOf132[] = {0, 132, 66, 36, 30, 0, 0, 0, 15};
  return int64_t{kOf132[splits]} * sm_count / 132;
}

// Whether it can, and should. k is split for a single round of tiles, in pieces of some length.
constexpr bool wgmma_form_suits(const WgmmaForm& form, const WgmmaTask& t, int splits = 1) {
  if (!wgmma_form_can(form, t) || !form.splits_into(splits)) return false;
  const int64_t tiles = ceil_div(t.m, form.bm) * ceil_div(t.n, form.bn);
  return splits == 1 || (tiles <= wgmma_clusters(splits, t.sm_count) && t.k >= splits * int64_t{256});
}

// How many times as much a line of 64 elements costs L2 where it lies across two of its lines of 128 bytes. With starts
// at odd multiples of 16 bytes the halves do not even end with sectors of 32 bytes.
constexpr double wgmma_straddling(const WgmmaLines& lines) {
  return lines.aligned == 16 ? 1.75 : lines.aligned == 32 ? 1.27 : lines.aligned == 64 ? 1.04 : 1;
}

// The model, in clocks. A block, or a pair of them, does ceil(tiles / blocks) tiles. A k-block of one takes the clocks
// of 1700 multiply-adds each (2048 at a clock that the chip's power does not allow), a little more for a narrow tile,
// or those of 54 bytes each that it asks L2 for: more of them where lines straddle or boxes of 64 columns stand out
// over the tile, fewer of such where B is shared; and never less than 377. Storing a tile takes one for 21 bytes,
// longer across the lines of C or by element, of which shows: all, or a tenth where it is deferred, or, where another
// warpgroup multiplies, that of the last tile and what is longer than the other's main loop. The constants are fitted
// to the times of every form at 380 problems on an H200 (docs/log.md).
constexpr double wgmma_cycles(const WgmmaForm& form, const WgmmaTask& t, int splits = 1) {
  constexpr double kMultiplyAdds = 1707, kNarrow = 5.4, kL2Bytes = 53.8, kStandsOut = 2.3, kLeast = 377;
  constexpr double kSharedStraddling = 0.55, kPair = 2550;
  constexpr double kStoreBytes = 20.6, kByElement = 2, kAcross = 1.22, kAcrossPingPong = 1.97, kShownOfDeferred = 0.09;
  constexpr double kSecondSums = 3000, kSplit = 1500, kSplitBytes = 7;
  const int64_t tiles = ceil_div(t.m, form.rows_per_cluster()) * ceil_div(t.n, form.bn);
  const int64_t workers = form.shares_b() ? t.sm_count / 2 : wgmma_clusters(splits, t.sm_count);
  const auto rounds = static_cast<double>(ceil_div(tiles, workers));
  const int stands_out = t.b.along_k ? 0 : form.b_columns() - form.bn;
  const double shared = form.shares_b() && t.b.aligned < 128 ? kSharedStraddling : 1;
  const double lines =
      form.bm * wgmma_straddling(t.a) + (form.bn + stands_out * kStandsOut) * wgmma_straddling(t.b) * shared;
  const double multiplying = form.bm * form.bn * 64 / kMultiplyAdds * (1 + kNarrow / form.bn);
  const double k_block = std::max({multiplying, lines * 128 / kL2Bytes, kLeast});
  const double loop = static_cast<double>(ceil_div(ceil_div(t.k, 64), splits)) * k_block;
  const double tile_bytes = form.bm * form.bn * 4;
  const double storing = tile_bytes / kStoreBytes * (t.c_by_16_bytes ? 1 : kByElement) *
                         (!t.c_across        ? 1
                          : form.ping_pong() ? kAcrossPingPong
                                             : kAcross);
  double all = rounds * loop + (form.shares_b() ? kPair : 0);
  if (form.ping_pong()) {
    all += storing + (rounds > 1 ? rounds * std::max(storing - loop, 0.0) / 2 : 0);
  } else {
    all += storing * (form.deferred() ? 1 + (rounds - 1) * kShownOfDeferred : rounds / splits);
  }
  if (form.splits_k()) all += rounds * kSecondSums + (splits > 1 ? kSplit + tile_bytes / kSplitBytes : 0);
  return all;
}

// The height of a group, a power of two: the fewest lines of A and B that 16 blocks read together, the SMs of a GPC,
// and, where tiles come in several rounds, half as much for what all blocks read.
constexpr int wgmma_group(const WgmmaForm& form, int64_t tiles_m, int64_t tiles_n, int sm_count, int splits) {
  const int blocks = form.shares_b() ? 2 : splits, workers = std::max(sm_count / blocks, 1);
  const auto lines = [&](int group, int together) {
    const int64_t rows = std::min(tiles_m, group + together / tiles_n);
    const int64_t cols = std::min(tiles_n, int64_t{together} / group + 1);
    return rows * form.rows_per_cluster() + cols * form.bn;
  };
  int best = 1;
  int64_t fewest = INT64_MAX;
  for (int group = 1; group <= 16 && group <= tiles_m; group *= 2) {
    const int64_t rounds = tiles_m * tiles_n > workers ? lines(group, workers) : 0;
    const int64_t all = 2 * lines(group, std::max(16 / blocks, 1)) + rounds;
    if (all < fewest) {
      fewest = all;
      best = group;
    }
  }
  return best;
}

constexpr WgmmaPlan wgmma_plan_form(int form, const WgmmaTask& t, int splits = 1) {
  const WgmmaForm& row = kWgmmaForms[form];
  WgmmaPlan plan;
  plan.form = form;
  plan.splits = splits;
  plan.tiles_m = ceil_div(t.m, row.rows_per_cluster());
  plan.tiles_n = ceil_div(t.n, row.bn);
  plan.group = wgmma_group(row, plan.tiles_m, plan.tiles_n, t.sm_count, splits);
  plan.chains = ceil_div(ceil_div(t.k, splits), wgmma_longest_chain(t));
  return plan;
}

struct WgmmaChoice {
  int form = 0, splits = 1;
  bool transposed = false;
  double cycles = 0;
};

// The form, the pieces of k and the way to read the problem with the fewest cycles.
constexpr WgmmaChoice wgmma_choice(const WgmmaTask& task) {
  WgmmaChoice best = {-1};
  for (const bool other_way : {false, true}) {
    const WgmmaTask t = other_way ? transposed(task) : task;
    for (int form = 0; form < kWgmmaFormCount; ++form) {
      for (const int splits : {1, 2, 3, 4, 8}) {
        if (!wgmma_form_suits(kWgmmaForms[form], t, splits)) continue;
        const double cycles = wgmma_cycles(kWgmmaForms[form], t, splits);
        if (best.form < 0 || cycles < best.cycles) best = {form, splits, other_way, cycles};
      }
    }
  }
  return best;
}

// The same. Both `auto` and the launch ask, and mostly for what they asked for lately: 2 us saved.
inline const WgmmaChoice& wgmma_choice_again(const WgmmaTask& t) {
  struct Known {
    WgmmaTask task;
    WgmmaChoice choice;
  };
  thread_local Known known[32] = {};
  Known& slot = known[static_cast<uint64_t>(t.m * 31 + t.n * 7 + t.k) * 0x9e3779b97f4a7c15u >> 59];
  if (!(t == slot.task)) slot = {t, wgmma_choice(t)};
  return slot.choice;
}

inline WgmmaPlan wgmma_plan(const WgmmaTask& t) {
  const WgmmaChoice& best = wgmma_choice_again(t);
  WgmmaPlan plan = wgmma_plan_form(best.form, best.transposed ? transposed(t) : t, best.splits);
  plan.transposed = best.transposed;
  return plan;
}

// Launches the kernel in a given form, for the tests of a form. A cudaError_t: cudaErrorInvalidValue where the form
// cannot take the problem.
int launch_wgmma_form(const GemmProblem& problem, const DeviceInfo& device, int form, int splits = 1);

}  // namespace tcgemm
