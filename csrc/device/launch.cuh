// The one way to start a kernel: <<<>>> is not C++, so it would tie kernel files to nvcc.
#pragma once
#include "../gemm.h"
#include "memory.cuh"

namespace tcgemm {

// The most shared memory that a block may ask for. The gaming and inference parts (8.6, 8.9, 12.x) have 100 KB an SM,
// their siblings (8.0, 9.0, 10.x) 164 KB and more; what is not known here is taken for one of the former.
inline int shared_bytes_a_block(int capability) {
  switch (capability) {
    case 75:
      return 64 * 1024;
    case 80:
    case 87:
      return 163 * 1024;
    case 90:
    case 100:
    case 101:
    case 103:
    case 110:
      return 227 * 1024;
    default:
      return 99 * 1024;
  }
}

}  // namespace tcgemm

#ifndef __CUDACC__
#include "../emulator/launch.h"
#else
#include <cuda_runtime.h>

namespace tcgemm {

constexpr int kDefaultSharedBytes = 48 * 1024;  // dynamic shared memory that needs no permission

struct LaunchShape {
  int64_t blocks = 1;  // one-dimensional: the y and z dimensions of a grid end at 65535
  int threads = 1;
  int shared_bytes = 0;
  int cluster = 1;  // blocks that reach each other's shared memory; `blocks` is a multiple
};

// Enqueues kernel(args...) on `stream`, or fills in stream.footprint. Returns a cudaError_t.
template <class... Params, class... Args>
int launch(void (*kernel)(Params...), const LaunchShape& shape, const Stream& stream, Args&&... args) {
  if (stream.footprint != nullptr || shape.shared_bytes > kDefaultSharedBytes) {
    const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, shape.shared_bytes);
    if (error != cudaSuccess) return error;
  }
  if (stream.footprint != nullptr) {
    *stream.footprint = {reinterpret_cast<const void*>(kernel), shape.threads, shape.shared_bytes};
    return cudaSuccess;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream.handle;
  cudaLaunchAttribute cluster = {};
  if (shape.cluster > 1) {
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
    config.attrs = &cluster;
    config.numAttrs = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, Params(static_cast<Args&&>(args))...);
}

}  // namespace tcgemm
#endif
