// A kernel that does nothing, compiled for the same architectures as the SIMT and WMMA families: it shows which of
// them the driver took for a device. On a newer device than any of them the driver translates PTX, and code that
// asks __CUDA_ARCH__ behaves like the older architecture.
#include <cuda_runtime.h>

#include "device_info.h"

namespace tcgemm {
namespace {
__global__ void probe_kernel() {}
}  // namespace

int code_arch_of_current_device(int* code_arch) {
  cudaFuncAttributes attributes = {};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, probe_kernel);
  *code_arch = attributes.ptxVersion;
  return error;
}

}  // namespace tcgemm
