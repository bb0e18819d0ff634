// tcgemm::cublaslt_mm: the same product by one of cublasLt's heuristic proposals, so that a benchmark can look for
// the best of them. tcgemm::cublaslt_heuristics: how many there are for a problem (at most 16).
#include <cublasLt.h>

#include <map>
#include <memory>
#include <vector>

#include "../torch/device_guard.h"
#include "cublas.h"

namespace tcgemm {
namespace {

cublasLtHandle_t handle_of(const Call& call, int device) {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;  // cublasLt handles may be shared by threads
  const std::lock_guard<std::mutex> lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (handle == nullptr) {
    const RelaxedCapture relaxed;
    check_cublas(call, cublasLtCreate(&handle), "cublasLtCreate");
  }
  return handle;
}

template <class T, cublasStatus_t (*DESTROY)(T)>
struct Destroy {
  using pointer = T;
  void operator()(T x) const { DESTROY(x); }
};
using Layout = std::unique_ptr<void, Destroy<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
using Operation = std::unique_ptr<void, Destroy<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
using Preference = std::unique_ptr<void, Destroy<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;

Layout layout_of(const Call& call, cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(call, cublasLtMatrixLayoutCreate(&layout, type, rows, cols, ld), "cublasLtMatrixLayoutCreate");
  return Layout(layout);
}

// Everything that cublasLt knows about a problem.
struct LtProblem {
  CublasOperand left, right;
  void* result;
  Operation operation;
  Layout layout_left, layout_right, layout_result;
};

LtProblem lt_problem(const Call& call, const Matrix2d& a, const Matrix2d& b, void* result) {
  const cudaDataType_t type = cuda_type(dtype_of_operand(call.a));
  LtProblem p{cublas_operand(call, "b", b), cublas_operand(call, "a", a), result, {}, {}, {}, {}};
  cublasLtMatmulDesc_t operation = nullptr;
  check_cublas(call, cublasLtMatmulDescCreate(&operation, kComputeType, kResultType), "cublasLtMatmulDescCreate");
  p.operation = Operation(operation);
  cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &p.left.transpose, sizeof p.left.transpose);
  cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &p.right.transpose, sizeof p.right.transpose);
  p.layout_left = layout_of(call, type, p.left.rows, p.left.cols, p.left.ld);
  p.layout_right = layout_of(call, type, p.right.rows, p.right.cols, p.right.ld);
  p.layout_result = layout_of(call, kResultType, b.cols, a.rows, b.cols);
  return p;
}

uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return address == 0 ? 256u : static_cast<uint32_t>(std::min<uintptr_t>(address & -address, 256));
}

std::vector<cublasLtMatmulHeuristicResult_t> ask_heuristics(const Call& call, cublasLtHandle_t handle,
                                                            const LtProblem& p) {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(call, cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const Preference preference(made);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check_cublas(call, cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kLtWorkspaceBytes));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.left.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.right.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.result));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.result));
  std::vector<cublasLtMatmulHeuristicResult_t> found(kLtHeuristics);
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, p.operation.get(), p.layout_left.get(), p.layout_right.get(), p.layout_result.get(),
      p.layout_result.get(), made, kLtHeuristics, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED)
    count = 0;
  else
    check_cublas(call, status, "cublasLtMatmulAlgoGetHeuristic");
  found.resize(count);
  std::erase_if(found, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

// Asking takes longer than a small product, so answers are kept: by everything the question contains.
const std::vector<cublasLtMatmulHeuristicResult_t>& heuristics(const Call& call, int device, cublasLtHandle_t handle,
                                                               const LtProblem& p, int64_t k) {
  static std::mutex mutex;
  static std::map<std::vector<int64_t>, std::vector<cublasLtMatmulHeuristicResult_t>> known;
  const std::vector<int64_t> question = {device,
                                         static_cast<int64_t>(dtype_of_operand(call.a)),
                                         k,
                                         p.left.transpose,
                                         p.left.rows,
                                         p.left.cols,
                                         p.left.ld,
                                         alignment_of(p.left.data),
                                         p.right.transpose,
                                         p.right.rows,
                                         p.right.cols,
                                         p.right.ld,
                                         alignment_of(p.right.data),
                                         alignment_of(p.result)};
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(question);
  if (found != known.end()) return found->second;
  return known[question] = ask_heuristics(call, handle, p);
}

void cublaslt_mm(StableIValue* stack, uint64_t, uint64_t) {
  Call call(kCublasltMm, stack);
  call.check();
  const int device = device_index_of(call.a);
  const DeviceGuard guard(device);
  const Matrix2d a = matrix_of(call.a), b = matrix_of(call.b);
  torch::stable::Tensor c = new_matrix(call.a, a.rows, b.cols, aoti_torch_dtype_float32());
  if (a.rows == 0 || b.cols == 0 || a.cols == 0) {
    torch::stable::zero_(c);
    return give_back(stack, c);
  }
  const LtProblem p = lt_problem(call, a, b, c.mutable_data_ptr());
  const cublasLtHandle_t handle = handle_of(call, device);
  const auto& found = heuristics(call, device, handle, p, a.cols);
  if (call.option < 0 || call.option >= static_cast<int64_t>(found.size())) {
    fail(std::string(call.op.name) + ": heuristic " + std::to_string(call.option) + " does not exist, cublasLt has " +
         std::to_string(found.size()) + " for this problem; tcgemm::cublaslt_heuristics says how many");
  }
  const auto& chosen = found[call.option];
  const torch::stable::Tensor workspace = new_workspace(call.a, kLtWorkspaceBytes);
  const float alpha = 1, beta = 0;
  check_cublas(call,
               cublasLtMatmul(handle, p.operation.get(), &alpha, p.left.data, p.layout_left.get(), p.right.data,
                              p.layout_right.get(), &beta, p.result, p.layout_result.get(), p.result,
                              p.layout_result.get(), &chosen.algo, workspace.mutable_data_ptr(), kLtWorkspaceBytes,
                              static_cast<cudaStream_t>(current_stream(device))),
               "cublasLtMatmul");
  give_back(stack, c);
}

void cublaslt_heuristics(StableIValue* stack, uint64_t, uint64_t) {
  Call call(kCublasltHeuristics, stack);
  call.check();
  const int device = device_index_of(call.a);
  const DeviceGuard guard(device);
  const Matrix2d a = matrix_of(call.a), b = matrix_of(call.b);
  int64_t count = 0;
  if (a.rows != 0 && b.cols != 0 && a.cols != 0) {
    // A new result is as well aligned as the one that cublaslt_mm makes; its pointer is not used.
    const LtProblem p = lt_problem(call, a, b, nullptr);
    count = static_cast<int64_t>(heuristics(call, device, handle_of(call, device), p, a.cols).size());
  }
  stack[0] = torch::stable::detail::from(count);
}

}  // namespace
}  // namespace tcgemm

STABLE_TORCH_LIBRARY_IMPL(tcgemm, CUDA, m) {
  tcgemm::implement(m, "cublaslt_mm", tcgemm::cublaslt_mm, tcgemm::cublaslt_mm);
  m.impl("cublaslt_heuristics", tcgemm::cublaslt_heuristics);
}
