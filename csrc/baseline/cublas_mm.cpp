// tcgemm::cublas_mm, the yardstick: cublasGemmEx with half-precision operands, FP32 result and FP32 arithmetic.
//
// One handle a device for the life of the process, used under a lock, on the caller's stream. The workspace comes
// from torch's allocator for each call, which costs no CUDA call once it is cached: so streams never share one, and
// a captured graph keeps its own.
#include <map>
#include <memory>

#include "../torch/device_guard.h"
#include "cublas.h"

namespace tcgemm {
namespace {

struct Handle {
  std::mutex mutex;
  cublasHandle_t cublas = nullptr;
};

// With the device current.
Handle& handle_of(const Call& call, int device) {
  static std::mutex mutex;
  static std::map<int, Handle> handles;  // never destroyed before the process: CUDA may be gone by then
  const std::lock_guard<std::mutex> lock(mutex);
  Handle& handle = handles[device];
  if (handle.cublas == nullptr) {
    const RelaxedCapture relaxed;
    check_cublas(call, cublasCreate(&handle.cublas), "cublasCreate");
    check_cublas(call, cublasSetMathMode(handle.cublas, kMathMode), "cublasSetMathMode");
  }
  return handle;
}

void multiply(const Call& call, const Matrix2d& a, const Matrix2d& b, const torch::stable::Tensor& c) {
  const CublasOperand left = cublas_operand(call, "b", b), right = cublas_operand(call, "a", a);
  if (a.rows == 0 || b.cols == 0) return;
  if (a.cols == 0) {
    torch::stable::Tensor zeros = c;
    torch::stable::zero_(zeros);
    return;
  }
  const int device = device_index_of(call.a);
  const cudaDataType_t type = cuda_type(dtype_of_operand(call.a));
  const torch::stable::Tensor workspace = new_workspace(call.a, kWorkspaceBytes);
  const float alpha = 1, beta = 0;
  Handle& handle = handle_of(call, device);
  const std::lock_guard<std::mutex> lock(handle.mutex);
  const auto stream = static_cast<cudaStream_t>(current_stream(device));
  check_cublas(call, cublasSetStream(handle.cublas, stream), "cublasSetStream");  // forgets the workspace
  check_cublas(call, cublasSetWorkspace(handle.cublas, workspace.mutable_data_ptr(), kWorkspaceBytes),
               "cublasSetWorkspace");
  check_cublas(call,
               cublasGemmEx_64(handle.cublas, left.transpose, right.transpose, b.cols, a.rows, a.cols, &alpha,
                               left.data, type, left.ld, right.data, type, right.ld, &beta, c.mutable_data_ptr(),
                               kResultType, b.cols, kComputeType, kAlgo),
               "cublasGemmEx");
}

void cublas_mm(StableIValue* stack, uint64_t, uint64_t) {
  Call call(kCublasMm, stack);
  call.check();
  const DeviceGuard guard(device_index_of(call.a));
  const Matrix2d a = matrix_of(call.a), b = matrix_of(call.b);
  const torch::stable::Tensor c = new_matrix(call.a, a.rows, b.cols, aoti_torch_dtype_float32());
  multiply(call, a, b, c);
  give_back(stack, c);
}

}  // namespace
}  // namespace tcgemm

STABLE_TORCH_LIBRARY_IMPL(tcgemm, CUDA, m) { tcgemm::implement(m, "cublas_mm", tcgemm::cublas_mm, tcgemm::cublas_mm); }

// JSON with the values of the enumerators used and cublasGetVersion; cut at `size`, returns the full length.
// Needs no GPU.
extern "C" TCGEMM_EXPORT int tcgemm_cublas_facts(char* out, int size) {
  using namespace tcgemm;
  int version = 0;
  // Without a handle it reports the loaded library's version.
  if (cublasGetVersion(nullptr, &version) != CUBLAS_STATUS_SUCCESS) version = 0;
  return std::snprintf(out, static_cast<std::size_t>(size),
                       "{\"version\": %d, \"float16\": %d, \"bfloat16\": %d, \"result\": %d, \"compute\": %d, "
                       "\"math_mode\": %d, \"algo\": %d, \"workspace_bytes\": %lld, \"lt_workspace_bytes\": %lld, "
                       "\"lt_heuristics_asked\": %d}",
                       version, kFloat16Type, kBFloat16Type, kResultType, kComputeType, kMathMode, kAlgo,
                       static_cast<long long>(kWorkspaceBytes), static_cast<long long>(kLtWorkspaceBytes),
                       kLtHeuristics);
}
