#include "device_info.h"

#include <cuda_runtime.h>

#include <map>
#include <mutex>

namespace tcgemm {
namespace {

// Makes a device current for a while.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    error_ = cudaGetDevice(&before_);
    if (error_ == cudaSuccess && before_ != device) error_ = cudaSetDevice(device);
  }
  ~CurrentDevice() {
    if (before_ >= 0) cudaSetDevice(before_);
  }
  cudaError_t error() const { return error_; }

 private:
  int before_ = -1;
  cudaError_t error_;
};

cudaError_t ask(int device, DeviceInfo* info) {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  int major = 0, minor = 0;
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&info->sm_count, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) error = static_cast<cudaError_t>(code_arch_of_current_device(&info->code_arch));
  info->capability = 10 * major + minor;
  return error;
}

}  // namespace

int device_info(int device, DeviceInfo* info) {
  static std::mutex mutex;
  static std::map<int, DeviceInfo> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(device);
  if (found != known.end()) {
    *info = found->second;
    return cudaSuccess;
  }
  const cudaError_t error = ask(device, info);
  if (error == cudaSuccess) {
    known[device] = *info;
  } else {
    cudaGetLastError();  // so that the next check of somebody else's launch does not find it
  }
  return error;
}

}  // namespace tcgemm
