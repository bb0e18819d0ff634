#include "introspect.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "device_info.h"
#include "gemm.h"

namespace {

using namespace tcgemm;

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c == '\n' ? ' ' : c;
  }
  return json + "\"";
}

int put(const std::string& text, char* out, int size) {
  if (size > 0) {
    const std::size_t count = std::min(text.size(), static_cast<std::size_t>(size) - 1);
    std::memcpy(out, text.data(), count);
    out[count] = '\0';
  }
  return static_cast<int>(text.size());
}

// Pointers that say nothing but how they are aligned.
GemmProblem described(int dtype, const int64_t mnk[3], const int64_t strides[4], const int64_t offsets[2]) {
  constexpr uintptr_t kBase = 256;
  GemmProblem p;
  p.dtype = static_cast<DType>(dtype);
  p.m = mnk[0];
  p.n = mnk[1];
  p.k = mnk[2];
  const auto at = [&](int64_t offset) { return reinterpret_cast<void*>(kBase + offset * element_size(p.dtype)); };
  p.a = {at(offsets[0]), strides[0], strides[1]};
  p.b = {at(offsets[1]), strides[2], strides[3]};
  p.c = {at(0), p.n, 1};
  return p;
}

std::string choice_json(const Choice& choice, const GemmProblem& p, const DeviceInfo& device) {
  if (choice.kernel == nullptr) {
    return "{\"chosen\": null, \"reason\": " + quoted(choice.reason) +
           ", \"global_reads\": null, \"tile\": null, \"workspace_bytes\": null}";
  }
  const KernelEntry& entry = *choice.kernel->entry;
  return "{\"chosen\": " + quoted(choice.kernel->name) + ", \"reason\": " + quoted(choice.reason) +
         ", \"global_reads\": " + std::to_string(entry.global_reads(p)) +
         ", \"tile\": " + std::to_string(choice.kernel->tile) +
         ", \"workspace_bytes\": " + std::to_string(workspace_bytes(*choice.kernel, p, device)) + "}";
}

// With the kernel's device current. A cudaError_t.
cudaError_t footprint_json(const KernelFootprint& footprint, int device, std::string* json) {
  cudaFuncAttributes f = {};
  int blocks = 0, threads_per_sm = 0;
  cudaError_t error = cudaFuncGetAttributes(&f, footprint.function);
  if (error == cudaSuccess) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, footprint.function, footprint.threads,
                                                          footprint.shared_bytes);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&threads_per_sm, cudaDevAttrMaxThreadsPerMultiProcessor, device);
  }
  if (error != cudaSuccess) return error;
  const auto field = [](const char* name, int64_t value) {
    return "\"" + std::string(name) + "\": " + std::to_string(value) + ", ";
  };
  *json = "{" + field("registers", f.numRegs) + field("local_bytes", static_cast<int64_t>(f.localSizeBytes)) +
          field("static_shared_bytes", static_cast<int64_t>(f.sharedSizeBytes)) +
          field("dynamic_shared_bytes", footprint.shared_bytes) + field("threads", footprint.threads) +
          field("blocks_per_sm", blocks) + field("binary_arch", f.binaryVersion) + field("ptx_arch", f.ptxVersion) +
          "\"occupancy\": " + std::to_string(static_cast<double>(blocks) * footprint.threads / threads_per_sm) + "}";
  return cudaSuccess;
}

}  // namespace

int tcgemm_explain(const char* algo, int dtype, const int64_t mnk[3], const int64_t strides[4],
                   const int64_t offsets[2], int capability, int code_arch, int sm_count, char* out, int size) {
  const GemmProblem p = described(dtype, mnk, strides, offsets);
  const DeviceInfo device{capability, code_arch, sm_count};
  return put(choice_json(choose(p, device, algo), p, device), out, size);
}

int tcgemm_footprint(const char* algo, int dtype, const int64_t mnk[3], const int64_t strides[4],
                     const int64_t offsets[2], int device, char* out, int size) {
  GemmProblem p = described(dtype, mnk, strides, offsets);
  DeviceInfo info;
  cudaError_t error = static_cast<cudaError_t>(device_info(device, &info));
  if (error != cudaSuccess) return -error;
  const Choice choice = choose(p, info, algo);
  if (choice.kernel == nullptr) return put("{\"reason\": " + quoted(choice.reason) + "}", out, size);
  int before = 0;
  std::string json;
  KernelFootprint footprint;
  p.stream.footprint = &footprint;
  p.workspace_bytes = workspace_bytes(*choice.kernel, p, info);
  error = cudaGetDevice(&before);
  if (error == cudaSuccess) error = cudaSetDevice(device);
  if (error == cudaSuccess) error = static_cast<cudaError_t>(choice.kernel->entry->launch(p, info));
  if (error == cudaSuccess) error = footprint_json(footprint, device, &json);
  cudaSetDevice(before);
  return error == cudaSuccess ? put(json, out, size) : -error;
}

int tcgemm_device_info(int device, int out[3]) {
  DeviceInfo info;
  const int error = device_info(device, &info);
  out[0] = info.capability;
  out[1] = info.code_arch;
  out[2] = info.sm_count;
  return error;
}
