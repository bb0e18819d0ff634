// The float64 reference: one step of Kahan summation, shared by host and device, so that both give the same bits.
//
// The product of two float16, bfloat16 or float32 numbers is exact in float64, so it makes no difference whether
// it is contracted with the subtraction that follows; the files are compiled without contraction all the same.
#pragma once
#include <cmath>
#include <cstdint>

#include "../gemm.h"

#ifdef __CUDACC__
#define TCGEMM_HOST_DEVICE __host__ __device__
#else
#define TCGEMM_HOST_DEVICE
#endif

struct CUstream_st;

namespace tcgemm {

struct KahanSum {
  double sum = 0;
  double lost = 0;  // what the last addition rounded away, with the opposite sign

  TCGEMM_HOST_DEVICE void add(double product) {
    const double corrected = product - lost;
    const double next = sum + corrected;
    // Inf - Inf would turn a sum that is rightly infinite into NaN.
    lost = std::isfinite(next) ? (next - sum) - corrected : 0.0;
    sum = next;
  }
};

struct ReferenceProblem {
  DType dtype;  // of a and b
  int64_t m, n, k;
  Operand a, b;
  double* c;  // row-major, packed
};

// Rows [first, last) of the product.
void reference_rows_on_host(const ReferenceProblem& problem, int64_t first, int64_t last);
// The product, enqueued. A cudaError_t.
int reference_on_device(const ReferenceProblem& problem, CUstream_st* stream);

}  // namespace tcgemm
