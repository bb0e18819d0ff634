// Which form of the wgmma kernel a problem gets, and how it is laid over the SMs. Plain C++ and pure functions, so that
// tests pin the choices for any number of SMs.
#pragma once
#include <algorithm>
#include <cstdint>

#include "../gemm.h"
#include "divisor.h"
#include "wgmma_forms.h"

namespace tcgemm {

// C transposed is B transposed times A transposed: with C column-major that is the problem whose rows of C are
// contiguous.
inline GemmProblem with_row_major_result(const GemmProblem& p) {
  const auto transposed = [](const Operand& x) { return Operand{x.data, x.col_stride, x.row_stride, x.batch_stride}; };
  if (p.c.col_stride == 1 || p.c.row_stride != 1 || p.n == 1) return p;
  GemmProblem t = p;
  t.m = p.n;
  t.n = p.m;
  t.a = transposed(p.b);
  t.b = transposed(p.a);
  t.c = transposed(p.c);
  return t;
}

// Whether rows of C are contiguous, start at multiples of 16 bytes, and n is a multiple of 4.
inline bool wgmma_stores_by_16_bytes(const GemmProblem& p) {
  const bool aligned = reinterpret_cast<uintptr_t>(p.c.data) % 16 == 0 && (p.m == 1 || p.c.row_stride % 4 == 0);
  return aligned && (p.n == 1 || p.c.col_stride == 1) && p.n % 4 == 0;
}

// What the choice depends on.
struct WgmmaTask {
  int64_t m = 0, n = 0, k = 0;
  int sm_count = 0;
  bool by_16_bytes = true;                        // rows of C are stored so
  bool may_defer = true;                          // and the copy engine can do it: C is not added to
  bool b_along_k = true;                          // the lines of B in memory
  bool a_straddles = false, b_straddles = false;  // 128 bytes of a line lie across two lines of L2

  bool operator==(const WgmmaTask&) const = default;
};

// For a problem whose rows of C are contiguous.
inline WgmmaTask wgmma_task(const GemmProblem& p, int sm_count) {
  const auto along_cols = [](const Operand& x, int64_t cols) { return x.col_stride == 1 || cols == 1; };
  // The stride of a dimension of size 1 is never used, so nothing may depend on it.
  const auto straddles = [&](const Operand& x, int64_t rows, int64_t cols) {
    const bool by_row = along_cols(x, cols);
    const int64_t lines = by_row ? rows : cols, stride = by_row ? x.row_stride : x.col_stride;
    return reinterpret_cast<uintptr_t>(x.data) % 128 != 0 || (lines > 1 && stride % 64 != 0);
  };
  WgmmaTask t = {p.m, p.n, p.k, sm_count};
  t.by_16_bytes = wgmma_stores_by_16_bytes(p);
  t.may_defer = t.by_16_bytes && !p.accumulate && (p.m == 1 || p.c.row_stride >= p.n) &&
                p.c.row_stride < int64_t{1} << 38;  // TMA's strides end at 2^40 bytes
  t.b_along_k = !along_cols(p.b, p.n);
  t.a_straddles = straddles(p.a, p.m, p.k);
  t.b_straddles = straddles(p.b, p.k, p.n);
  return t;
}

// How a problem is laid over the grid.
struct WgmmaPlan {
  int form = 0;
  int splits = 1;  // pieces of k, one in each block of a cluster
  int64_t tiles_m = 0, tiles_n = 0;
  int group = 1;       // rows of tiles that are walked together, so that a wave's operands stay in L2
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
  if (form.deferred() && (!t.may_defer || t.k < kMinDeferredK)) return false;
  if (form.shares_b() && t.sm_count < 2) return false;
  return form.splits_k() || t.k <= wgmma_longest_chain(t);
}

// Clusters that an H200 has room for at a time, and with its proportions any device: the SMs of a GPC are no multiple
// of 3, 4 or 8.
constexpr int64_t wgmma_clusters(int splits, int sm_count) {
  constexpr int kOf132[] = {0, 132, 66, 36, 30, 0, 0, 0, 15};
  return int64_t{kOf132[splits]} * sm_count / 132;
}

// Whether it can, and should. 144 columns in lines along n come in boxes of 64, the last one mostly for nothing, and
// ran at three quarters of the speed along k. k is split for a single round of tiles, in pieces of some length.
constexpr bool wgmma_form_suits(const WgmmaForm& form, const WgmmaTask& t, int splits = 1) {
  if (!wgmma_form_can(form, t) || !(form.bn % 64 == 0 || t.b_along_k) || !form.splits_into(splits)) return false;
  const int64_t tiles = ceil_div(t.m, form.bm) * ceil_div(t.n, form.bn);
  return splits == 1 || (tiles <= wgmma_clusters(splits, t.sm_count) && t.k >= splits * int64_t{256});
}

// The model, in clocks. A block, or a pair of them, does ceil(tiles / blocks) tiles. A k-block of one takes the clocks
// of 2048 multiply-adds each, a little more for a narrow tile (the chip slows down for the power that it takes), or
// those of 64 bytes each that it asks L2 for: more of them where lines straddle, fewer where B is shared. Storing a
// tile takes one for 36 bytes, or twice that by element, of which shows: all, or half where it is deferred, or that of
// the last tile alone, by one warpgroup, where the other multiplies. The constants are fitted to the times of every
// form at 148 problems on an H200 (docs/log.md).
constexpr double wgmma_cycles(const WgmmaForm& form, const WgmmaTask& t, int splits = 1) {
  constexpr double kMultiplyAdds = 2048, kNarrow = 7, kL2Bytes = 64, kStraddle = 1.54, kShared = 0.755;
  constexpr double kStoreBytes = 36, kBadStore = 2, kShownOfDeferred = 0.5, kOneWarpgroup = 2, kFirstKBlocks = 2.8;
  constexpr double kPair = 1900, kSplit = 4700, kSplitBytes = 12.4, kSecondSums = 300, kJoint = 80;
  // Of a k-block of 64 columns: A is read from shared memory as often as B, and that bounds it.
  const double narrow = form.bn > 64 ? 0 : form.bm == 64 ? 300 : 370;
  const int64_t tiles = ceil_div(t.m, form.rows_per_cluster()) * ceil_div(t.n, form.bn);
  const int64_t workers = form.shares_b() ? t.sm_count / 2 : wgmma_clusters(splits, t.sm_count);
  const double rounds = static_cast<double>(ceil_div(tiles, workers));
  const double lines = form.bm * (t.a_straddles ? kStraddle : 1) +
                       form.bn * (t.b_straddles ? kStraddle : 1) * (form.shares_b() ? kShared : 1);
  const double multiplying = form.bm * form.bn * 64 / kMultiplyAdds * (1 + kNarrow / form.bn);
  const double k_block = std::max({multiplying, lines * 128 / kL2Bytes, narrow});
  const auto k_blocks = static_cast<double>(ceil_div(ceil_div(t.k, 64), splits));
  const double tile_bytes = form.bm * form.bn * 4;
  const double storing = tile_bytes / kStoreBytes * (t.by_16_bytes ? 1 : kBadStore);
  const double shown = form.ping_pong()  ? kOneWarpgroup
                       : form.deferred() ? 1 + (rounds - 1) * kShownOfDeferred
                                         : rounds / splits;
  double extra = form.shares_b() ? kPair : 0;
  if (form.splits_k()) {
    const auto joints = static_cast<double>(ceil_div(ceil_div(t.k, splits), wgmma_longest_chain(t)) - 1);
    extra += rounds * (kSecondSums + joints * kJoint) + (splits > 1 ? kSplit + tile_bytes / kSplitBytes : 0);
  }
  return (rounds * k_blocks + kFirstKBlocks) * k_block + shown * storing + extra;
}

// The height of a group whose wave (`group` rows of tiles, workers / group columns) reads the fewest bytes.
constexpr int wgmma_group(const WgmmaForm& form, int64_t tiles_m, int sm_count) {
  const int workers = form.shares_b() ? sm_count / 2 : sm_count;
  int best = 1;
  int64_t fewest = INT64_MAX;
  for (int group = 1; group <= 32 && group <= tiles_m; ++group) {
    const int64_t lines = int64_t{group} * form.rows_per_cluster() + ceil_div(workers, group) * form.bn;
    if (lines < fewest) {
      fewest = lines;
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
  plan.group = wgmma_group(row, plan.tiles_m, t.sm_count);
  plan.chains = ceil_div(ceil_div(t.k, splits), wgmma_longest_chain(t));
  return plan;
}

struct WgmmaChoice {
  int form = 0, splits = 1;
  double cycles = 0;
};

// The form and the pieces of k with the fewest cycles.
constexpr WgmmaChoice wgmma_choice(const WgmmaTask& t) {
  WgmmaChoice best = {-1};
  for (int form = 0; form < kWgmmaFormCount; ++form) {
    for (const int splits : {1, 2, 3, 4, 8}) {
      if (!wgmma_form_suits(kWgmmaForms[form], t, splits)) continue;
      const double cycles = wgmma_cycles(kWgmmaForms[form], t, splits);
      if (best.form < 0 || cycles < best.cycles) best = {form, splits, cycles};
    }
  }
  return best;
}

// The same. Both `auto` and the launch ask, and mostly for what they asked for before: 0.4 us saved.
inline const WgmmaChoice& wgmma_choice_again(const WgmmaTask& t) {
  thread_local WgmmaTask last = {};
  thread_local WgmmaChoice choice = {};
  if (!(t == last)) {
    choice = wgmma_choice(t);
    last = t;
  }
  return choice;
}

inline WgmmaPlan wgmma_plan(const WgmmaTask& t) {
  const WgmmaChoice& best = wgmma_choice_again(t);
  return wgmma_plan_form(best.form, t, best.splits);
}

// Launches the kernel in a given form, for the tests of a form. A cudaError_t: cudaErrorInvalidValue where the form
// cannot take the problem.
int launch_wgmma_form(const GemmProblem& problem, const DeviceInfo& device, int form, int splits = 1);

}  // namespace tcgemm
