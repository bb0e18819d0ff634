// Tensors for kernels: what a checked matrix looks like in memory, and new ones. Included by kernels of ops only:
// a fake tensor has no data.
#pragma once
#include <torch/csrc/stable/ops.h>

#include "../gemm.h"
#include "call.h"

namespace tcgemm {

struct Matrix2d {
  int64_t rows = 0, cols = 0;
  Operand operand;
};

inline Matrix2d matrix_of(AtenTensorHandle x, bool written = false) {
  Matrix2d matrix;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_size(x, 0, &matrix.rows));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_size(x, 1, &matrix.cols));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_stride(x, 0, &matrix.operand.row_stride));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_stride(x, 1, &matrix.operand.col_stride));
  if (written) {  // a tensor that was made lazily by copying gets its own memory now
    void* data = nullptr;
    TORCH_ERROR_CODE_CHECK(torch_get_mutable_data_ptr(x, &data));
    matrix.operand.data = data;
  } else {
    TORCH_ERROR_CODE_CHECK(torch_get_const_data_ptr(x, &matrix.operand.data));
  }
  return matrix;
}

inline DType dtype_of_operand(AtenTensorHandle x) {
  int32_t code = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(x, &code));
  if (code == aoti_torch_dtype_float16()) return DType::kFloat16;
  return code == aoti_torch_dtype_bfloat16() ? DType::kBFloat16 : DType::kFloat32;
}

inline int device_index_of(AtenTensorHandle x) {
  int32_t index = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(x, &index));
  return index;
}

// A new row-major matrix on the device of `like`, from torch's allocator and not initialised.
inline torch::stable::Tensor new_matrix(AtenTensorHandle like, int64_t rows, int64_t cols, int32_t dtype) {
  int32_t type = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like, &type));
  const int64_t sizes[] = {rows, cols};
  const int64_t strides[] = {cols > 1 ? cols : 1, 1};
  AtenTensorHandle made = nullptr;
  if (aoti_torch_empty_strided(2, sizes, strides, dtype, type, device_index_of(like), &made) != AOTI_TORCH_SUCCESS) {
    fail("tcgemm: torch's allocator has no memory for " + std::to_string(rows) + "x" + std::to_string(cols) +
         " elements; free some, or multiply in parts");
  }
  return torch::stable::Tensor(made);
}

// `bytes` of scratch memory on the device of `like`, from torch's allocator: it may be used until the tensor goes,
// by work on the current stream.
inline torch::stable::Tensor new_workspace(AtenTensorHandle like, int64_t bytes) {
  return new_matrix(like, 1, bytes, aoti_torch_dtype_uint8());
}

// A second owner of a borrowed tensor.
inline torch::stable::Tensor share(AtenTensorHandle x) {
  AtenTensorHandle again = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(x, &again));
  return torch::stable::Tensor(again);
}

// Tells autograd that `x` changed: writing through its pointer does not, an in-place op on an empty view does.
inline void bump_version(AtenTensorHandle x) {
  torch::stable::Tensor whole = share(x);
  torch::stable::Tensor nothing = torch::stable::narrow(whole, 0, 0, 0);
  torch::stable::zero_(nothing);
}

inline void give_back(StableIValue* stack, const torch::stable::Tensor& result) {
  stack[0] = torch::stable::detail::from(result);
}

}  // namespace tcgemm
