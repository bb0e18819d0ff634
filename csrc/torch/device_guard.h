// The device and stream of a call, from torch.
#pragma once
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/c/shim.h>

namespace tcgemm {

using DeviceGuard = torch::stable::accelerator::DeviceGuard;

// A cudaStream_t. Not torch::stable's getCurrentStream().id(), which is a number of torch's own.
inline void* current_stream(int device) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
  return stream;
}

}  // namespace tcgemm
