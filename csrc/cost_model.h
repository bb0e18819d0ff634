// What a product costs on each kernel: the model behind `auto`. Plain C++ and pure functions of the problem, so that
// tests pin choices for devices that are not there.
//
// A block covers a tile of C; an SM works on as many blocks as fit. A product takes as long as the busiest SM, which
// gets ceil(tiles / SMs) tiles and multiplies at `rate`; but no less than the busiest block, which needs `step` for
// each 16 of k however idle its SM is; and no less than memory needs for A, B and C. Filling the pipeline (`start`)
// and storing a tile come on top. Figures are in clocks of an SM, fitted to times on an H200 (docs/log.md); elsewhere
// they keep their proportions more or less, and only the order counts.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "device/wgmma_plan.h"
#include "gemm.h"

namespace tcgemm {

// How a kernel gets at its operands, as far as its speed depends on it.
enum class Path {
  kBy16Bytes,  // both operands 16 bytes at a time
  kMixed,      // one of them
  kByElement,  // neither
};

// A kernel in one of its forms and on one of its paths.
struct Candidate {
  const char* algo;
  Path path;
  bool same_bits;  // a form of mma_sync: all of them add up the same products in the same order
  int bm, bn;      // the tile of a block; 0 where it has a model of its own
  int blocks_per_sm;
  double rate;   // multiply-adds a clock of an SM that is full of blocks
  double step;   // clocks for 16 of k of a block that has its SM to itself
  double start;  // clocks until the first product
};

constexpr Candidate kCandidates[] = {
    // algo             path              bits   bm   bn  blocks rate  step start
    {"wgmma", Path::kBy16Bytes, false, 0, 0, 1, 0, 0, 1800},  // device/wgmma_plan.h models the rest
    {"mma_sync_64x64", Path::kBy16Bytes, true, 256, 128, 1, 1080, 485, 3000},
    {"mma_sync", Path::kBy16Bytes, true, 256, 128, 1, 960, 545, 3000},
    {"mma_sync_small", Path::kBy16Bytes, true, 64, 64, 3, 640, 170, 2000},
    {"wmma_pipelined", Path::kBy16Bytes, false, 128, 128, 2, 780, 430, 2500},
    {"mma_sync", Path::kMixed, true, 128, 128, 1, 70, 2300, 2000},
    {"mma_sync", Path::kByElement, true, 128, 128, 1, 148, 2300, 2000},
    {"wmma_pipelined", Path::kMixed, false, 128, 128, 2, 140, 3500, 2500},
    {"wmma_pipelined", Path::kByElement, false, 128, 128, 2, 86, 6000, 2500},
    {"simt_regtile_vec4", Path::kBy16Bytes, false, 128, 128, 1, 61, 4300, 1000},
    {"simt_regtile_vec4", Path::kMixed, false, 128, 128, 1, 61, 4300, 1000},
    {"simt_regtile_vec4", Path::kByElement, false, 128, 128, 1, 61, 4300, 1000},
};

constexpr double kMemoryBytes = 18;  // a clock and SM
constexpr double kStoreBytes = 32;   // of C, a clock and SM
constexpr double kBadStore = 2;      // times as long where two neighbours of C do not share a store

inline Path path_of(const GemmProblem& p) {
  const bool a = reads_by_16_bytes(p.a, p.dtype, p.m, p.k), b = reads_by_16_bytes(p.b, p.dtype, p.k, p.n);
  return a && b ? Path::kBy16Bytes : a || b ? Path::kMixed : Path::kByElement;
}

inline bool stores_in_pairs(const GemmProblem& p) {
  return reinterpret_cast<uintptr_t>(p.c.data) % 8 == 0 && p.c.col_stride == 1 && p.n % 2 == 0 &&
         (p.c.row_stride % 2 == 0 || p.m == 1);
}

// The form of wgmma that a problem would get.
inline const WgmmaChoice& wgmma_choice_for(const GemmProblem& p, int sm_count) {
  return wgmma_choice_again(wgmma_task(p, sm_count));
}

// Clocks of the busiest SM.
inline double busy_clocks(const Candidate& form, const GemmProblem& p, int sm_count) {
  if (form.bm == 0) return wgmma_choice_for(p, sm_count).cycles;
  const int64_t tiles = ceil_div(p.m, form.bm) * ceil_div(p.n, form.bn);
  const auto tiles_of_sm = static_cast<double>(ceil_div(tiles, sm_count));
  const auto turns = static_cast<double>(ceil_div(tiles, int64_t{sm_count} * form.blocks_per_sm));
  const auto steps = static_cast<double>(ceil_div(p.k, 16));
  const double tile = static_cast<double>(form.bm) * form.bn;
  const double multiplying = std::max(tiles_of_sm * steps * tile * 16 / form.rate, turns * steps * form.step);
  return multiplying + tiles_of_sm * tile * 4 / kStoreBytes * (stores_in_pairs(p) ? 1 : kBadStore);
}

// Clocks from the first block's start to the last one's end.
inline double clocks(const Candidate& form, const GemmProblem& p, int sm_count) {
  const double bytes = static_cast<double>(element_size(p.dtype)) * static_cast<double>(p.k) * (p.m + p.n) +
                       4.0 * static_cast<double>(p.m) * static_cast<double>(p.n);
  return form.start + std::max(busy_clocks(form, p, sm_count), bytes / (kMemoryBytes * sm_count));
}

// Where measurements on a device contradict the model by more than 3 %. `python -m bench tune` finds them, and they are
// entered by hand. A range holds both its ends.
struct Exception {
  int capability;
  Path path;
  int64_t m[2], n[2], k[2];
  const char* algo;
  const char* measured;  // the figures
};

constexpr std::array<Exception, 0> kExceptions = {};  // none that was measured is left

inline const Exception* exception_for(const GemmProblem& p, int capability,
                                      std::span<const Exception> table = kExceptions) {
  const auto within = [](int64_t x, const int64_t(&range)[2]) { return range[0] <= x && x <= range[1]; };
  for (const Exception& e : table) {
    if (e.capability == capability && e.path == path_of(p) && within(p.m, e.m) && within(p.n, e.n) && within(p.k, e.k))
      return &e;
  }
  return nullptr;
}

}  // namespace tcgemm
