// The table of kernels, and which of them takes a problem.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cost_model.h"
#include "gemm.h"

namespace tcgemm {

#define RUNG(name, ...) extern const KernelEntry name##_entry;
#include "kernels.def"
#undef RUNG

#if !TCGEMM_HAS_WGMMA
// Code for 9.0a was not asked for, or this is not a CUDA build: the row stays, and says so.
extern const KernelEntry wgmma_entry = {
    .refuses = [](const GemmProblem&, const DeviceInfo&) -> std::string {
      return "this library was built without code for 9.0a (TORCH_CUDA_ARCH_LIST)";
    },
    .global_reads = [](const GemmProblem&) -> int64_t { return 0; },
    .launch = [](const GemmProblem&, const DeviceInfo&) -> int { return 1; }};  // cudaErrorInvalidValue
#endif

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

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    default:
      return "float32";
  }
}

const char* name_of(Path path) {
  switch (path) {
    case Path::kBy16Bytes:
      return "16 bytes at a time";
    case Path::kMixed:
      return "one operand 16 bytes at a time, one by element";
    default:
      return "by element";
  }
}

std::string version(int arch) { return std::to_string(arch / 10) + "." + std::to_string(arch % 10); }

std::string missing_feature(const Kernel& kernel, const GemmProblem& p) {
  const unsigned has = kernel.entry->features;
  if (p.batch != 1 && !(has & kBatchFeature)) {
    return "it multiplies one pair of matrices, not " + std::to_string(p.batch);
  }
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
  const int min_arch = p.dtype == DType::kBFloat16 ? kernel.min_arch_bf16 : kernel.min_arch;
  if (!(kernel.dtypes & 1u << static_cast<int>(p.dtype))) {
    return std::string("it does not multiply ") + name_of(p.dtype);
  }
  if (device.code_arch < min_arch) {
    return std::string(name_of(p.dtype)) + " needs code for compute capability " + version(min_arch) +
           " or newer, and this is " + version(device.code_arch) + " code on a " + version(device.capability) +
           " device";
  }
  if (kernel.max_capability != 0 && device.capability > kernel.max_capability) {
    return "it is compiled for compute capability " + version(kernel.max_capability) + " alone, and the device has " +
           version(device.capability);
  }
  std::string why = missing_feature(kernel, p);
  return why.empty() && kernel.entry->refuses != nullptr ? kernel.entry->refuses(p, device) : why;
}

namespace {

// Whether auto may consider a row of cost_model.h. With batch_invariant=True only forms that add up alike are left,
// whatever m is: mma_sync's, where the device has them for this dtype, else the FP32 kernel. Which of the two depends
// on nothing else.
bool may_take(const Candidate& form, const GemmProblem& p, const DeviceInfo& device) {
  if (form.path != path_of(p)) return false;
  if (!p.batch_invariant || p.dtype == DType::kFloat32) return true;
  return form.same_bits == (device.code_arch >= (p.dtype == DType::kBFloat16 ? 80 : 75));
}

struct Cheapest {
  const Kernel* kernel = nullptr;
  const Candidate* form = nullptr;
  double clocks = 0;
};

std::string tile_of(const Candidate& form, const GemmProblem& p, const DeviceInfo& device) {
  if (form.bm != 0) return std::to_string(form.bm) + "x" + std::to_string(form.bn);
  const WgmmaChoice& choice = wgmma_choice_for(p, device.sm_count);
  return kWgmmaForms[choice.form].name +
         (choice.splits > 1 ? " in " + std::to_string(choice.splits) + " pieces of k" : std::string()) +
         (choice.transposed ? ", C transposed" : "");
}

// `told`, where it is not null, gets each candidate's clocks, or why it cannot.
Cheapest cheapest(const GemmProblem& p, const DeviceInfo& device, std::string* told) {
  Cheapest best;
  for (const Candidate& form : kCandidates) {
    const Kernel* kernel = find_kernel(form.algo);
    if (kernel == nullptr || !may_take(form, p, device)) continue;
    const std::string why = why_not(*kernel, p, device);
    const double cost = clocks(form, p, device.sm_count);
    if (why.empty() && (best.kernel == nullptr || cost < best.clocks)) best = {kernel, &form, cost};
    if (told == nullptr) continue;
    *told += (told->empty() ? "" : "; ") + std::string(form.algo) + " " + tile_of(form, p, device) + ": " +
             (why.empty() ? std::to_string(std::llround(cost)) : why);
  }
  return best;
}

Choice choose_by_cost(const GemmProblem& p, const DeviceInfo& device, bool in_full) {
  if (device.sm_count < 1) return {nullptr, "a device of " + std::to_string(device.sm_count) + " SMs runs nothing"};
  if (const Exception* measured = exception_for(p, device.capability); measured != nullptr && !p.batch_invariant) {
    const Kernel* kernel = find_kernel(measured->algo);
    if (kernel != nullptr && why_not(*kernel, p, device).empty()) return {kernel, measured->measured};
  }
  std::string told;
  const Cheapest best = cheapest(p, device, in_full ? &told : nullptr);
  if (best.kernel == nullptr) {
    if (!in_full) cheapest(p, device, &told);
    return {nullptr, "no kernel takes this problem: " + told};
  }
  if (!in_full) return {best.kernel, "fewest clocks"};  // short enough to cost no allocation
  return {best.kernel,
          "fewest clocks of " + std::to_string(device.sm_count) + " SMs, reading " + name_of(path_of(p)) + ": " + told};
}

// TCGEMM_LOG=dispatch: a line on stderr for each choice.
bool logs_dispatch() {
  static const bool asked = [] {
    const char* wanted = std::getenv("TCGEMM_LOG");
    return wanted != nullptr && std::strstr(wanted, "dispatch") != nullptr;
  }();
  return asked;
}

void log_choice(const Choice& choice, const GemmProblem& p, const DeviceInfo& device) {
  const auto strides = [](const Operand& x) {
    return std::to_string(x.row_stride) + "," + std::to_string(x.col_stride);
  };
  std::fprintf(stderr, "tcgemm dispatch: %s %lldx%lldx%lld, strides %s and %s%s, on %s: %s (%s)\n", name_of(p.dtype),
               static_cast<long long>(p.m), static_cast<long long>(p.n), static_cast<long long>(p.k),
               strides(p.a).c_str(), strides(p.b).c_str(), p.batch_invariant ? ", batch-invariant" : "",
               version(device.capability).c_str(), choice.kernel == nullptr ? "none" : choice.kernel->name,
               choice.reason.c_str());
}

}  // namespace

Choice choose(const GemmProblem& p, const DeviceInfo& device, const char* algo, Reasons reasons) {
  if (algo == nullptr) return choose_by_cost(p, device, reasons == Reasons::kInFull);
  const Kernel* kernel = find_kernel(algo);
  if (kernel == nullptr) {
    return {nullptr, "algo=\"" + std::string(algo) + "\" is no kernel; there are " + kernel_names()};
  }
  const std::string why = why_not(*kernel, p, device);
  if (!why.empty()) return {nullptr, why + "; use algo=None, which takes a kernel that can"};
  return {kernel, "asked for by name"};
}

Choice choose_to_launch(const GemmProblem& p, const DeviceInfo& device, const char* algo) {
  if (!logs_dispatch()) return choose(p, device, algo);
  const Choice choice = choose(p, device, algo, Reasons::kInFull);
  log_choice(choice, p, device);
  return choice;
}

}  // namespace tcgemm
