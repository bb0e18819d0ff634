// The float64 reference on the host.
#include <vector>

#include "half_bits.h"
#include "kahan.h"

namespace tcgemm {
namespace {

double element(const Operand& x, DType dtype, int64_t row, int64_t col) {
  const int64_t at = row * x.row_stride + col * x.col_stride;
  if (dtype == DType::kFloat32) return static_cast<const float*>(x.data)[at];
  const uint16_t bits = static_cast<const uint16_t*>(x.data)[at];
  return dtype == DType::kFloat16 ? float_of_float16(bits) : float_of_bfloat16(bits);
}

}  // namespace

void reference_rows_on_host(const ReferenceProblem& p, int64_t first, int64_t last) {
  std::vector<double> row(p.k);
  std::vector<KahanSum> sums(p.n);
  for (int64_t i = first; i < last; ++i) {
    sums.assign(p.n, KahanSum{});
    for (int64_t kk = 0; kk < p.k; ++kk) row[kk] = element(p.a, p.dtype, i, kk);
    for (int64_t kk = 0; kk < p.k; ++kk) {
      for (int64_t j = 0; j < p.n; ++j) sums[j].add(row[kk] * element(p.b, p.dtype, kk, j));
    }
    for (int64_t j = 0; j < p.n; ++j) p.c[i * p.n + j] = sums[j].sum;
  }
}

}  // namespace tcgemm
