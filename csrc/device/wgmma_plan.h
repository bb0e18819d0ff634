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
// longer than cuBLAS's on an H200, which cuts k where C has few tiles for the SMs: measured by the error of its sums at
// 238 problems (docs/log.md). Where it does not cut, none is longer than 4096 behind k = 16384. Chains are added up in
// FP32, in the order of k.
struct WgmmaChainLimit {
  int64_t tiles;    // for C of at most so many tiles of 128x128 where there are 132 SMs
  int64_t whole_k;  // up to which k is one chain
  int64_t longest;  // of the chains behind that
};
inline constexpr WgmmaChainLimit kWgmmaChainLimits[] = {
    {14, 2048, 1344}, {22, 3072, 1984},  {33, 6144, 3264},         {44, 8192, 3712},
    {66, 9216, 3392}, {99, 14336, 4096}, {INT32_MAX, 16384, 4096},
};
constexpr int64_t wgmma_longest_chain(const WgmmaTask& t) {
  const int64_t tiles = ceil_div(t.m, 128) * ceil_div(t.n, 128);
  for (const WgmmaChainLimit& limit : kWgmmaChainLimits) {
    if (132 * tiles <= limit.tiles * t.sm_count) return t.k <= limit.whole_k ? limit.whole_k : limit.longest;
  }
  return kWgmmaChainLimits[0].longest;
}

// Clusters that an H200 has room for at a time, and with its proportions any device: the SMs of a GPC are no multiple
// of 3, 4 or 8.
constexpr int64_t wgmma_clusters(int blocks, int sm_count) {
  constexpr int kOf132[] = {0, 132, 66, 36, 30, 0, 16, 0, 15};
  return int64_t{kOf132[blocks]} * sm_count / 132;
}

// Deferred stores go out behind the first 20 k-blocks of the next tile.
inline constexpr int64_t kMinDeferredK = 20 * 64;

constexpr bool wgmma_form_can(const WgmmaForm& form, const WgmmaTask& t) {
  if (form.deferred() && (!t.may_defer || t.c_across || t.k < kMinDeferredK)) return false;
  if (wgmma_clusters(form.sharers(), t.sm_count) == 0) return false;
  return form.splits_k() || t.k <= wgmma_longest_chain(t);
}

// Whether it can, and should. k is split for a single round of tiles, in pieces of some length; what can split it and
// does not is for chains.
constexpr bool wgmma_form_suits(const WgmmaForm& form, const WgmmaTask& t, int splits = 1) {
  if (!wgmma_form_can(form, t) || !form.splits_into(splits)) return false;
  if (splits == 1) return !form.splits_k() || t.k > wgmma_longest_chain(t);
  const int64_t tiles = ceil_div(t.m, form.rows_per_cluster()) * ceil_div(t.n, form.cols_per_cluster());
  return tiles <= wgmma_clusters(form.blocks_per_cluster(splits), t.sm_count) && t.k >= splits * int64_t{256};
}

// How many times as much a line of 64 elements costs L2 where it lies across two of its lines of 128 bytes. With starts
// at odd multiples of 16 bytes the halves do not even end with sectors of 32 bytes.
constexpr double wgmma_straddling(const WgmmaLines& lines) {
  return lines.aligned == 16 ? 1.85 : lines.aligned == 32 ? 1.47 : lines.aligned == 64 ? 1.12 : 1;
}

// Clocks that a tile's 64 k take while so many blocks are at work: those of the multiply-adds, a little more for a
// narrow tile, or those of the bytes that it asks L2 for, of which there are more where lines straddle or boxes of 64
// columns stand out over the tile, and fewer where blocks share them; and never less than a wgmma's own way. L2 gives
// a block more when fewer are at work, and less where they read different pieces of k. A chip that multiplies for half
// a millisecond is held back by its power, and then the width of a tile matters less.
constexpr double wgmma_k_block_cycles(const WgmmaForm& form, const WgmmaTask& t, int splits, double blocks) {
  constexpr double kMultiplyAdds = 1970, kNarrow = 20, kLeast = 263;
  constexpr double kLong = 2e11, kPowerAllows = 1750, kNarrowLong = 2.2;
  constexpr double kL2Bytes = 53.3, kFewer = 0.4, kSplitL2Bytes = 42.1, kFewerSplit = 1.57;
  constexpr double kStandsOut = 1.56, kAsk = 0.58, kTwoAskSplit = 0.72, kFourAskSplit = 0.5;
  const double products = form.bm * form.bn * 64;
  const bool is_long = static_cast<double>(t.m) * static_cast<double>(t.n) * static_cast<double>(t.k) > kLong;
  const double multiplying = is_long ? products / kPowerAllows * (1 + kNarrowLong / form.bn)
                                     : products / kMultiplyAdds * (1 + kNarrow / form.bn);
  const int stands_out = t.b.along_k ? 0 : form.b_columns() - form.bn;
  const auto asks = [&](const WgmmaLines& lines, int sharers) {
    if (splits > 1) return sharers == 1 ? 1 : sharers == 2 ? kTwoAskSplit : kFourAskSplit;
    return lines.aligned == 128 || sharers == 1 ? 1 : kAsk;
  };
  const double lines = form.bm * wgmma_straddling(t.a) * asks(t.a, form.sharers_a()) +
                       (form.bn + stands_out * kStandsOut) * wgmma_straddling(t.b) * asks(t.b, form.sharers_b());
  const double idle = 1 - blocks / t.sm_count;
  const double l2_bytes = splits > 1 ? kSplitL2Bytes * (1 + kFewerSplit * idle) : kL2Bytes * (1 + kFewer * idle);
  return std::max({multiplying, lines * 128 / l2_bytes, kLeast});
}

// The model, in clocks. A block, or a cluster of them, does ceil(tiles / clusters) tiles, the last ones of them beside
// fewer others. Storing a tile takes one for 17 bytes, longer across the lines of C, through shared memory or by
// element, of which shows: all, or a tenth where it is deferred, or, where another warpgroup multiplies, that of the
// last tile and what is longer than the other's main loop. The constants are fitted to the times of every form at 1030
// problems on an H200, kPowerAllows and kNarrowLong to those at 145 long ones (docs/log.md).
constexpr double wgmma_cycles(const WgmmaForm& form, const WgmmaTask& t, int splits = 1) {
  constexpr double kStoreBytes = 16.9, kByElement = 2, kAcross = 1.51, kAcrossPingPong = 2.27;
  constexpr double kNarrowStore = 1.36, kNarrowStorePingPong = 2.9;
  constexpr double kShownOfDeferred = 0.1, kTurn = 356, kPair = 13500, kFour = 4550;
  constexpr double kSecondSums = 370, kSplit = 300, kSplitBytes = 7.4, kSplitSharers = 2100;
  const int cluster = form.blocks_per_cluster(splits);
  const int64_t tiles = ceil_div(t.m, form.rows_per_cluster()) * ceil_div(t.n, form.cols_per_cluster());
  const int64_t clusters = wgmma_clusters(cluster, t.sm_count), before_last = ceil_div(tiles, clusters) - 1;
  const auto rounds = static_cast<double>(before_last + 1);
  const auto k_blocks = static_cast<double>(ceil_div(ceil_div(t.k, 64), splits));
  const double loop = k_blocks * wgmma_k_block_cycles(form, t, splits, t.sm_count);
  const auto last_blocks = static_cast<double>((tiles - before_last * clusters) * cluster);
  const double loops = (rounds - 1) * loop + k_blocks * wgmma_k_block_cycles(form, t, splits, last_blocks);
  const double tile_bytes = form.bm * form.bn * 4;
  const double storing = tile_bytes / kStoreBytes * (t.c_by_16_bytes ? 1 : kByElement) *
                         (t.c_across             ? (form.ping_pong() ? kAcrossPingPong : kAcross)
                          : form.stores_narrow() ? (form.ping_pong() ? kNarrowStorePingPong : kNarrowStore)
                                                 : 1);
  double rest = form.sharers() == 1 ? 0 : form.splits_k() ? kSplitSharers : form.sharers() == 2 ? kPair : kFour;
  if (form.ping_pong()) {
    rest += storing + rounds * kTurn + (rounds > 1 ? rounds * std::max(storing - loop, 0.0) / 2 : 0);
  } else {
    rest += storing * (form.deferred() ? 1 + (rounds - 1) * kShownOfDeferred : rounds / splits);
  }
  if (form.splits_k()) rest += rounds * kSecondSums + (splits > 1 ? kSplit + tile_bytes / kSplitBytes : 0);
  return loops + rest;
}

// The height of a group, a power of two: the fewest lines of A and B that 16 blocks read together, the SMs of a GPC,
// and, where tiles come in several rounds, half as much for what all blocks read.
constexpr int wgmma_group(const WgmmaForm& form, int64_t tiles_m, int64_t tiles_n, int sm_count, int splits) {
  const int blocks = form.blocks_per_cluster(splits);
  const int64_t workers = std::max<int64_t>(wgmma_clusters(blocks, sm_count), 1);
  const auto lines = [&](int group, int64_t together) {
    const int64_t rows = std::min(tiles_m, group + together / tiles_n);
    const int64_t cols = std::min(tiles_n, together / group + 1);
    return rows * form.rows_per_cluster() + cols * form.cols_per_cluster();
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
  plan.tiles_n = ceil_div(t.n, row.cols_per_cluster());
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

// The same. Both `auto` and the launch ask, and mostly for what they asked for lately: 4 us saved.
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
