// The capstone's reference runner: four paths, every element checked, then their times. No arguments, no torch.
//
//   cmake --build build --target tensor_core_gemm && build/csrc/programs/tensor_core_gemm
//
// A is row-major, B column-major, C row-major.
#include "paths.h"

namespace {

std::vector<paths::Path> four_paths(const paths::Case& problem) {  // the fourth, cublasGemmEx, is in every program
  using tcgemm::DType;
  return {paths::rung("matmulRegTile2dVec4 (FP32)", "simt_regtile_vec4", problem, DType::kFloat32),
          paths::rung("matmulWmmaGlobal", "wmma_global", problem, DType::kFloat16),
          paths::rung("matmulWmmaStaged", "wmma_staged", problem, DType::kFloat16)};
}

}  // namespace

int main() { return paths::run(four_paths); }
