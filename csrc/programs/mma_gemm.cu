// The stretch path by itself: mma.sync and ldmatrix, every element checked, then times. No arguments, no torch.
//
//   cmake --build build --target mma_gemm && build/csrc/programs/mma_gemm
//
// A is row-major, B column-major, C row-major.
#include "paths.h"

namespace {

std::vector<paths::Path> mma_paths(const paths::Case& problem) {
  using tcgemm::DType;
  std::vector<paths::Path> all = {paths::rung("matmulMmaStaged (m16n8k8)", "mma_sync_k8", problem, DType::kFloat16),
                                  paths::rung("mma_sync", "mma_sync", problem, DType::kFloat16)};
  tcgemm::DeviceInfo device;
  paths::check(static_cast<cudaError_t>(tcgemm::device_info(0, &device)), "device_info");
  if (device.code_arch < 80) return all;  // the other forms need cp.async and m16n8k16
  all.push_back(paths::rung("mma_sync_64x64", "mma_sync_64x64", problem, DType::kFloat16));
  all.push_back(paths::rung("mma_sync_small", "mma_sync_small", problem, DType::kFloat16));
  return all;
}

}  // namespace

int main() { return paths::run(mma_paths); }
