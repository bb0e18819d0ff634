// What the wgmma kernel must know of a problem: how its matrices lie in memory, and the same product read the other
// way. Plain C++ and pure functions.
#pragma once
#include <cstdint>

#include "../gemm.h"

namespace tcgemm {

// The same product read the other way: C transposed is B transposed times A transposed.
inline GemmProblem transposed(const GemmProblem& p) {
  const auto across = [](const Operand& x) { return Operand{x.data, x.col_stride, x.row_stride, x.batch_stride}; };
  GemmProblem t = p;
  t.m = p.n;
  t.n = p.m;
  t.a = across(p.b);
  t.b = across(p.a);
  t.c = across(p.c);
  return t;
}

// How C lies in memory: in lines along its rows, or across, along its columns.
struct WgmmaResultLines {
  bool across = false;
  bool by_16_bytes = false;  // all lines start at multiples of 16 bytes and end at one
  bool by_tma = false;       // TMA can address them
};

inline WgmmaResultLines wgmma_result_lines(const GemmProblem& p) {
  WgmmaResultLines lines;
  lines.across = p.m > 1 && p.c.row_stride == 1 && (p.c.col_stride != 1 || p.n == 1);
  const int64_t count = lines.across ? p.n : p.m, length = lines.across ? p.m : p.n;
  const int64_t stride = lines.across ? p.c.col_stride : p.c.row_stride;
  const int64_t step = lines.across ? p.c.row_stride : p.c.col_stride;
  const bool aligned = reinterpret_cast<uintptr_t>(p.c.data) % 16 == 0 && (count == 1 || stride % 4 == 0);
  lines.by_16_bytes = aligned && step == 1 && length % 4 == 0;
  // TMA's strides end at 2^40 bytes.
  lines.by_tma = lines.by_16_bytes && (count == 1 || (stride >= length && stride < int64_t{1} << 38));
  return lines;
}

// How an operand lies in memory.
struct WgmmaLines {
  bool along_k = true;
  int aligned = 128;  // bytes, at most 128, of which every line's start is a multiple

  bool operator==(const WgmmaLines&) const = default;
};

// What the choice depends on.
struct WgmmaTask {
  int64_t m = 0, n = 0, k = 0;
  int sm_count = 0;
  WgmmaLines a, b;
  bool c_across = false, c_by_16_bytes = true;  // WgmmaResultLines
  bool may_defer = true;                        // C is not added to, and TMA can store it

  bool operator==(const WgmmaTask&) const = default;
};

inline WgmmaTask wgmma_task(const GemmProblem& p, int sm_count) {
  const auto lines = [](const Operand& x, int64_t rows, int64_t cols, bool k_is_cols) {
    const bool by_row = x.col_stride == 1 || cols == 1;
    // The stride of a dimension of size 1 is never used, so nothing may depend on it.
    const int64_t stride = (by_row ? rows : cols) > 1 ? (by_row ? x.row_stride : x.col_stride) : 0;
    const uint64_t bits = reinterpret_cast<uintptr_t>(x.data) | static_cast<uint64_t>(stride * 2) | 128;
    return WgmmaLines{by_row == k_is_cols, static_cast<int>(bits & -bits)};
  };
  const WgmmaResultLines c = wgmma_result_lines(p);
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .sm_count = sm_count,
          .a = lines(p.a, p.m, p.k, true),
          .b = lines(p.b, p.k, p.n, false),
          .c_across = c.across,
          .c_by_16_bytes = c.by_16_bytes,
          .may_defer = c.by_tma && !p.accumulate};
}

// The task of the transposed problem.
constexpr WgmmaTask transposed(const WgmmaTask& t) {
  WgmmaTask other = t;
  other.m = t.n;
  other.n = t.m;
  other.a = t.b;
  other.b = t.a;
  other.c_across = !t.c_across;
  return other;
}

}  // namespace tcgemm
