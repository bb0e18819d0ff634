// The table of kernels, and which of them takes a problem.
#include <cstring>
#include <sstream>

#include "gemm.h"

namespace tcgemm {

#define RUNG(name, ...) extern const KernelEntry name##_entry;
#include "kernels.def"
#undef RUNG

namespace {

constexpr unsigned F16 = 1u << static_cast<int>(DType::kFloat16);
constexpr unsigned BF16 = 1u << static_cast<int>(DType::kBFloat16);
constexpr unsigned F32 = 1u << static_cast<int>(DType::kFloat32);

const Kernel kKernels[] = {
#define RUNG(name, source, family, dtypes, arch, bf16, max, tile, inv, summary) \
  {#name, dtypes, arch, bf16, max, tile, inv, summary, &name##_entry},
#include "kernels.def"
#undef RUNG
};

// auto tries these in order and takes the first that can: fastest first.
constexpr const char* kAutoOrder[] = {"wmma_pipelined", "simt_regtile_vec4"};

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
    default: return "float32";
  }
}

std::string version(int arch) { return std::to_string(arch / 10) + "." + std::to_string(arch % 10); }

std::string missing_feature(const Kernel& kernel, const GemmProblem& p) {
  const unsigned has = kernel.entry->features;
  if (p.batch != 1 && !(has & kBatchFeature)) return "it multiplies one pair of matrices, not " + std::to_string(p.batch);
  if (p.bias != nullptr && !(has & kBiasFeature)) return "it adds no bias";
  if (p.activation != Activation::kNone && !(has & kActivationFeature)) return "it applies no activation";
  if (p.accumulate && !(has & kAccumulateFeature)) return "it overwrites C and does not add to it";
  if (p.precision == Precision::kFloat32 && !(has & kFloat32PrecisionFeature)) {
    return "it adds up inside the tensor cores, not in FP32 registers";
  }
  if (p.batch_invariant && !kernel.batch_invariant) return "its sums depend on the shape (batch_invariant=True)";
  return "";
}

}  // namespace

bool reads_by_16_bytes(const Operand& x, DType dtype, int64_t rows, int64_t cols) {
  const int64_t size = element_size(dtype), per_load = 16 / size;
  if (reinterpret_cast<uintptr_t>(x.data) % 16 != 0) return false;
  const bool by_row = (x.col_stride == 1 || cols == 1) && (x.row_stride % per_load == 0 || rows == 1);
  const bool by_col = (x.row_stride == 1 || rows == 1) && (x.col_stride % per_load == 0 || cols == 1);
  // The layout that kernels take for the operand (major_of): columns only where rows are not contiguous.
  return x.col_stride == 1 || cols == 1 ? by_row : by_col;
}

const Kernel* kernels(int* count) {
  *count = sizeof(kKernels) / sizeof(kKernels[0]);
  return kKernels;
}

const Kernel* find_kernel(const char* name) {
  for (const Kernel& kernel : kKernels) {
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  }
  return nullptr;
}

std::string kernel_names() {
  std::string names;
  for (const Kernel& kernel : kKernels) names += (names.empty() ? "" : ", ") + std::string(kernel.name);
  return names;
}

std::string why_not(const Kernel& kernel, const GemmProblem& p, const DeviceInfo& device) {
  std::ostringstream why;
  const int min_arch = p.dtype == DType::kBFloat16 ? kernel.min_arch_bf16 : kernel.min_arch;
  if (!(kernel.dtypes & 1u << static_cast<int>(p.dtype))) {
    why << "it does not multiply " << name_of(p.dtype);
  } else if (device.code_arch < min_arch) {
    why << name_of(p.dtype) << " needs code for compute capability " << version(min_arch) << " or newer, and this is "
        << version(device.code_arch) << " code on a " << version(device.capability) << " device";
  } else if (kernel.max_capability != 0 && device.capability > kernel.max_capability) {
    why << "it is compiled for compute capability " << version(kernel.max_capability) << " alone, and the device has "
        << version(device.capability);
  } else {
    why << missing_feature(kernel, p);
    if (why.str().empty() && kernel.entry->refuses != nullptr) why << kernel.entry->refuses(p, device);
  }
  return why.str();
}

Choice choose(const GemmProblem& p, const DeviceInfo& device, const char* algo) {
  if (algo != nullptr) {
    const Kernel* kernel = find_kernel(algo);
    if (kernel == nullptr) {
      return {nullptr, "algo=\"" + std::string(algo) + "\" is no kernel; there are " + kernel_names()};
    }
    const std::string why = why_not(*kernel, p, device);
    if (!why.empty()) return {nullptr, why + "; use algo=None, which takes a kernel that can"};
    return {kernel, "asked for by name"};
  }
  std::string reasons;
  for (const char* name : kAutoOrder) {
    const Kernel* kernel = find_kernel(name);
    const std::string why = why_not(*kernel, p, device);
    if (why.empty()) return {kernel, reasons.empty() ? "the fastest rung" : "the fastest that can: " + reasons};
    reasons += (reasons.empty() ? "" : "; ") + std::string(name) + ": " + why;
  }
  return {nullptr, "no kernel takes this problem: " + reasons};
}

}  // namespace tcgemm
