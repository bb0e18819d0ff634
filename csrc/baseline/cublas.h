// What the two baselines share: operands as cuBLAS describes them, and handles.
// Everything in this folder, and nothing outside it, includes cuBLAS.
#pragma once
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <mutex>

#include "../torch/tensor.h"

namespace tcgemm {

// The comparison is defined by these; tcgemm_cublas_facts() reports them.
inline constexpr cudaDataType_t kFloat16Type = CUDA_R_16F;
inline constexpr cudaDataType_t kBFloat16Type = CUDA_R_16BF;
inline constexpr cudaDataType_t kResultType = CUDA_R_32F;
inline constexpr cublasComputeType_t kComputeType = CUBLAS_COMPUTE_32F;
inline constexpr cublasMath_t kMathMode = CUBLAS_DEFAULT_MATH;
inline constexpr cublasGemmAlgo_t kAlgo = CUBLAS_GEMM_DEFAULT;
inline constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;  // as torch gives cuBLAS on Hopper
inline constexpr int64_t kLtWorkspaceBytes = int64_t{64} << 20;
inline constexpr int kLtHeuristics = 16;  // asked for; fewer may exist

inline cudaDataType_t cuda_type(DType dtype) { return dtype == DType::kFloat16 ? kFloat16Type : kBFloat16Type; }

// cuBLAS is column-major: it is asked for c^T = b^T a^T, and reads a row-major operand as its transpose for free.
// `transpose` is how it must read the memory to see x^T.
struct CublasOperand {
  const void* data;
  cublasOperation_t transpose;
  int64_t rows, cols;  // as it lies in memory, column-major
  int64_t ld;
};

// Raises where cuBLAS cannot address x: it needs unit stride along one dimension, and lines that do not overlap.
inline CublasOperand cublas_operand(const Call& call, const char* name, const Matrix2d& x) {
  const Operand& o = x.operand;
  const int64_t row_ld = x.rows == 1 ? std::max<int64_t>(x.cols, 1) : o.row_stride;
  if ((o.col_stride == 1 || x.cols == 1) && row_ld >= x.cols) {
    return {o.data, CUBLAS_OP_N, x.cols, x.rows, row_ld};
  }
  const int64_t col_ld = x.cols == 1 ? std::max<int64_t>(x.rows, 1) : o.col_stride;
  if ((o.row_stride == 1 || x.rows == 1) && col_ld >= x.rows) {
    return {o.data, CUBLAS_OP_T, x.rows, x.cols, col_ld};
  }
  fail(std::string(call.op.name) + ": cuBLAS cannot address " + name + " (shape " + std::to_string(x.rows) + "x" +
       std::to_string(x.cols) + ", strides " + std::to_string(o.row_stride) + " and " + std::to_string(o.col_stride) +
       "): it needs unit stride along one dimension and lines that do not overlap; pass " + name +
       ".contiguous(), or use tcgemm::mm");
}

inline void check_cublas(const Call& call, cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(std::string(call.op.name) + ": " + what + " failed: " + cublasGetStatusString(status) +
       "; an earlier error on this GPU can be the cause, CUDA_LAUNCH_BLOCKING=1 finds it");
}

// Creating a handle allocates; in a thread that captures a graph that is forbidden unless the mode is relaxed.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace tcgemm
