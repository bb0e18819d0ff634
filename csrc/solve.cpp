// solve(): from packed pointers to a GemmProblem, and on to the kernel that `choose` picks.
#include "solve.h"

#include <cstdint>
#include <cstdio>
#include <string>

#include "device_info.h"
#include "gemm.h"

namespace {

using namespace tcgemm;

GemmProblem packed_problem(const __half* a, const __half* b, float* c, std::size_t m, std::size_t n, std::size_t k,
                           cudaStream_t stream) {
  GemmProblem problem;
  problem.dtype = DType::kFloat16;
  problem.m = static_cast<int64_t>(m);
  problem.n = static_cast<int64_t>(n);
  problem.k = static_cast<int64_t>(k);
  problem.a = {a, problem.k, 1};
  problem.b = {b, 1, problem.k};
  problem.c = {c, problem.n, 1};
  problem.stream.handle = stream;
  return problem;
}

// There is nobody to give a workspace, so a kernel that wants one gives way: those that keep the order of summation
// over all shapes (batch_invariant) never split k, hence need none.
Choice choose_without_workspace(GemmProblem& problem, const DeviceInfo& device) {
  const Choice choice = choose(problem, device);
  if (choice.kernel == nullptr || workspace_bytes(*choice.kernel, problem, device) == 0) return choice;
  problem.batch_invariant = true;
  return choose(problem, device);
}

std::string enqueue(GemmProblem problem) {
  if (problem.m == 0 || problem.n == 0) return "";
  cudaError_t error = cudaSuccess;
  if (problem.k == 0) {
    const std::size_t bytes = sizeof(float) * problem.m * problem.n;
    error = cudaMemsetAsync(const_cast<void*>(problem.c.data), 0, bytes, problem.stream.handle);
  } else {
    int index = 0;
    DeviceInfo device;
    error = cudaGetDevice(&index);
    if (error == cudaSuccess) error = static_cast<cudaError_t>(device_info(index, &device));
    if (error == cudaSuccess) {
      const Choice choice = choose_without_workspace(problem, device);
      if (choice.kernel == nullptr) return choice.reason;
      error = static_cast<cudaError_t>(choice.kernel->entry->launch(problem, device));
    }
  }
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void solve(const __half* a, const __half* b, float* c, std::size_t m,
                                                             std::size_t n, std::size_t k, cudaStream_t stream) {
  const std::string trouble = enqueue(packed_problem(a, b, c, m, n, k, stream));
  if (!trouble.empty()) std::fprintf(stderr, "solve: m=%zu n=%zu k=%zu: %s\n", m, n, k, trouble.c_str());
}
