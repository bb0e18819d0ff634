// Where the result of the wgmma kernel goes.
#pragma once
#include "memory.cuh"
#include "wgmma_task.h"

namespace tcgemm {

struct WgmmaResult {
  Global<float> data;
  int64_t rows, cols, row_stride, col_stride;
  bool across;       // a line of C in memory runs along the rows' index, wgmma_result_lines
  bool by_16_bytes;  // lines are stored so
  bool accumulate;   // c += instead of c =
};

inline WgmmaResult wgmma_result(const GemmProblem& p) {
  const WgmmaResultLines lines = wgmma_result_lines(p);
  return {.data = global_operand<float>(p.c, p.m, p.n),
          .rows = p.m,
          .cols = p.n,
          .row_stride = p.c.row_stride,
          .col_stride = p.c.col_stride,
          .across = lines.across,
          .by_16_bytes = lines.by_16_bytes,
          .accumulate = p.accumulate};
}

}  // namespace tcgemm
