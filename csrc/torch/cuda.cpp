// The CUDA kernels of the ops: tensors become a GemmProblem, `choose` picks the kernel, torch's allocator gives what
// it needs, and it is launched on the current stream of the tensors' device.
#include <cuda_runtime.h>

#include "../device_info.h"
#include "../reference/kahan.h"
#include "device_guard.h"
#include "tensor.h"

namespace tcgemm {
namespace {

std::string name_of_call(const Call& call) {
  return std::string(call.op.name) + (call.algo == nullptr ? "" : "[" + std::string(call.algo) + "]") + ": ";
}

void check_cuda(int code, const Call& call, const char* what) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // reported here, so nobody should find it again
  const std::string remedy = code == cudaErrorNoKernelImageForDevice
                                 ? "build with this GPU's architecture in TORCH_CUDA_ARCH_LIST"
                                 : "an earlier error on this GPU can be the cause, CUDA_LAUNCH_BLOCKING=1 finds it";
  fail(name_of_call(call) + what + " failed: " + cudaGetErrorString(static_cast<cudaError_t>(code)) + "; " + remedy);
}

GemmProblem problem_of(const Call& call, AtenTensorHandle out) {
  const Matrix2d a = matrix_of(call.a), b = matrix_of(call.b), c = matrix_of(out, true);
  GemmProblem p;
  p.dtype = dtype_of_operand(call.a);
  p.m = a.rows;
  p.n = b.cols;
  p.k = a.cols;
  p.a = a.operand;
  p.b = b.operand;
  p.c = c.operand;
  return p;
}

// Writes a b to `out`, an FP32 matrix of the right shape and any strides that shares no memory with a and b.
void multiply(const Call& call, const torch::stable::Tensor& out, bool batch_invariant) {
  GemmProblem p = problem_of(call, out.get());
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    torch::stable::Tensor zeros = out;
    torch::stable::zero_(zeros);
    return;
  }
  const int device = device_index_of(call.a);
  DeviceInfo info;
  check_cuda(device_info(device, &info), call, "asking the GPU for its properties");
  p.batch_invariant = batch_invariant;
  const Choice choice = choose_to_launch(p, info, call.algo);
  if (choice.kernel == nullptr) fail(name_of_call(call) + choice.reason);

  std::optional<torch::stable::Tensor> workspace;
  p.workspace_bytes = workspace_bytes(*choice.kernel, p, info);
  if (p.workspace_bytes > 0) {
    workspace = new_workspace(call.a, p.workspace_bytes);
    p.workspace = workspace->mutable_data_ptr();
  }
  p.stream.handle = static_cast<cudaStream_t>(current_stream(device));
  check_cuda(choice.kernel->entry->launch(p, info), call, "the launch");
}

// Whether two matrices may share an address.
bool may_overlap(const Matrix2d& x, int64_t size_x, const Matrix2d& y, int64_t size_y) {
  const auto end = [](const Matrix2d& m, int64_t size) {
    const int64_t last = (m.rows - 1) * m.operand.row_stride + (m.cols - 1) * m.operand.col_stride;
    return static_cast<const char*>(m.operand.data) + (last + 1) * size;
  };
  if (x.rows == 0 || x.cols == 0 || y.rows == 0 || y.cols == 0) return false;
  return x.operand.data < end(y, size_y) && y.operand.data < end(x, size_x);
}

template <const OpFacts& FACTS>
void product(StableIValue* stack, uint64_t, uint64_t) {
  Call call(FACTS, stack);
  call.check();
  const DeviceGuard guard(device_index_of(call.a));
  const int64_t m = matrix_of(call.a).rows, n = matrix_of(call.b).cols;
  const torch::stable::Tensor c = new_matrix(call.a, m, n, aoti_torch_dtype_float32());
  multiply(call, c, call.option != 0);
  give_back(stack, c);
}

template <const OpFacts& FACTS>
void product_out(StableIValue* stack, uint64_t, uint64_t) {
  Call call(FACTS, stack);
  call.check();
  const DeviceGuard guard(device_index_of(call.a));
  const Matrix2d a = matrix_of(call.a), b = matrix_of(call.b), c = matrix_of(call.out, true);
  const int64_t size = element_size(dtype_of_operand(call.a));
  torch::stable::Tensor out = share(call.out);
  if (may_overlap(c, 4, a, size) || may_overlap(c, 4, b, size)) {
    // A kernel would overwrite what other blocks still read.
    const torch::stable::Tensor apart = new_matrix(call.a, c.rows, c.cols, aoti_torch_dtype_float32());
    multiply(call, apart, false);
    torch::stable::copy_(out, apart);
    return;  // copy_ told autograd
  }
  multiply(call, out, false);
  bump_version(call.out);
}

void reference_mm(StableIValue* stack, uint64_t, uint64_t) {
  Call call(kReferenceMm, stack);
  call.check();
  const int device = device_index_of(call.a);
  const DeviceGuard guard(device);
  const Matrix2d a = matrix_of(call.a), b = matrix_of(call.b);
  const torch::stable::Tensor c = new_matrix(call.a, a.rows, b.cols, aoti_torch_dtype_float64());
  const ReferenceProblem problem{dtype_of_operand(call.a),
                                 a.rows,
                                 b.cols,
                                 a.cols,
                                 a.operand,
                                 b.operand,
                                 static_cast<double*>(c.mutable_data_ptr())};
  check_cuda(reference_on_device(problem, static_cast<CUstream_st*>(current_stream(device))), call, "the launch");
  give_back(stack, c);
}

}  // namespace
}  // namespace tcgemm

STABLE_TORCH_LIBRARY_IMPL(tcgemm, CUDA, m) {
  using namespace tcgemm;
  implement(m, "mm", product<kMm>, product<kMmTwin>);
  implement(m, "mm_out", product_out<kMmOut>, product_out<kMmOutTwin>);
  implement(m, "sgemm", product<kSgemm>, product<kSgemmTwin>);
  implement(m, "sgemm_out", product_out<kSgemmOut>, product_out<kSgemmOutTwin>);
  implement(m, "reference_mm", reference_mm, reference_mm);
}
