#pragma once
#include <string>

#include "../gemm.h"

namespace tcgemm::emulator {
// Calls the `solve` that is linked in, with C or C++ linkage, on a row-major A, a column-major B and a row-major C.
// Empty, or why it could not.
std::string call_solve(const GemmProblem& problem);
}  // namespace tcgemm::emulator
