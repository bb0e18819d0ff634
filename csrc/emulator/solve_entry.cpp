#include "solve_entry.h"

#include <cuda_fp16.h>

#include <cstddef>

// Someone's own function may have either linkage. Weak: an executable without it links as well.
__attribute__((weak)) void solve(const __half* a, const __half* b, float* c, std::size_t m, std::size_t n,
                                 std::size_t k, CUstream_st* stream);
namespace with_c_linkage {
extern "C" __attribute__((weak)) void solve(const __half* a, const __half* b, float* c, std::size_t m, std::size_t n,
                                            std::size_t k, CUstream_st* stream);
}

namespace tcgemm::emulator {

std::string call_solve(const GemmProblem& p) {
  if (p.dtype != DType::kFloat16 || p.a.row_stride != p.k || p.b.col_stride != p.k || p.c.row_stride != p.n) {
    return "solve() takes float16, a row-major A, a column-major B and a row-major C without padding";
  }
  using Solve = void(const __half*, const __half*, float*, std::size_t, std::size_t, std::size_t, CUstream_st*);
  Solve* const function = &::solve != nullptr ? &::solve : &with_c_linkage::solve;
  if (function == nullptr) return "this program was built without a solve()";
  function(static_cast<const __half*>(p.a.data), static_cast<const __half*>(p.b.data),
           static_cast<float*>(const_cast<void*>(p.c.data)), static_cast<size_t>(p.m), static_cast<size_t>(p.n),
           static_cast<size_t>(p.k), nullptr);
  return "";
}

}  // namespace tcgemm::emulator
