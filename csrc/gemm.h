// What every layer agrees on: the problem, the device, and what a kernel's file offers.
// Plain C++: no torch, no device code, no CUDA headers, so that tests and the emulator include it too.
#pragma once
#include <cstdint>
#include <string>

struct CUstream_st;  // what cudaStream_t points to

namespace tcgemm {

enum class DType : int { kFloat16 = 0, kBFloat16 = 1, kFloat32 = 2 };
enum class Activation : int { kNone = 0, kRelu = 1, kGelu = 2, kSilu = 3 };
enum class Precision : int {
  kTensorCore = 0,  // FP32 accumulation inside the tensor cores
  kFloat32 = 1,     // short chains added up in FP32 registers; no kernel offers it yet
};

constexpr int64_t element_size(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

// A matrix somewhere in memory. Strides are in elements and may be 0 or overlap.
struct Operand {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
  int64_t batch_stride = 0;
};

// What one launch needs from the hardware, found out without launching.
struct KernelFootprint {
  const void* function = nullptr;
  int threads = 0;
  int shared_bytes = 0;  // dynamic
};

// Where to launch. With `footprint` set, a launcher describes its kernel there and launches nothing.
struct Stream {
  CUstream_st* handle = nullptr;
  KernelFootprint* footprint = nullptr;
};

// c[m,n] = a[m,k] * b[k,n], in FP32. A kernel honours every field or its row in the table says that it
// does not, and then `choose` refuses: no field is ever ignored.
struct GemmProblem {
  DType dtype = DType::kFloat16;  // of a and b; c is FP32
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Operand a, b, c;              // c.data is written
  const float* bias = nullptr;  // n values, added to each row
  Activation activation = Activation::kNone;
  bool accumulate = false;  // c += a b
  Precision precision = Precision::kTensorCore;
  bool batch_invariant = false;  // a row's bits depend neither on m, nor on its place, nor on alignment
  void* workspace = nullptr;     // as many bytes as KernelEntry::workspace_bytes asks
  int64_t workspace_bytes = 0;
  Stream stream;
};

struct DeviceInfo {
  int capability = 0;  // of the device: 90 is 9.0
  int code_arch = 0;   // what the loaded code was compiled for: below capability when PTX was translated
  int sm_count = 0;
};

// True when `operand` can be read 16 bytes at a time along its contiguous dimension.
// `rows` and `cols` matter because the stride of a dimension of size 1 is never used.
bool reads_by_16_bytes(const Operand& operand, DType dtype, int64_t rows, int64_t cols);

// Fields of GemmProblem that not every kernel honours.
enum Feature : unsigned {
  kBatchFeature = 1,
  kBiasFeature = 2,
  kActivationFeature = 4,
  kAccumulateFeature = 8,
  kFloat32PrecisionFeature = 16,
};

// What a kernel's file offers besides its row in kernels.def.
struct KernelEntry {
  unsigned features = 0;  // of Feature; why_not() refuses a problem that asks for another
  // Empty, or why this kernel cannot take the problem, with the numbers and the remedy. nullptr: takes all.
  std::string (*refuses)(const GemmProblem&, const DeviceInfo&) = nullptr;
  int64_t (*workspace_bytes)(const GemmProblem&, const DeviceInfo&) = nullptr;  // nullptr: none
  // Global load instructions that the busiest thread issues (a vector load is one).
  int64_t (*global_reads)(const GemmProblem&) = nullptr;
  // A cudaError_t. Enqueues on problem.stream; neither allocates nor synchronises.
  int (*launch)(const GemmProblem&, const DeviceInfo&) = nullptr;
};

// A row of kernels.def.
struct Kernel {
  const char* name;
  unsigned dtypes;  // bit 1 << DType
  int min_arch;     // code compiled for this architecture or newer
  int min_arch_bf16;
  int max_capability;  // 0: no upper bound
  int tile;            // T of the memory budget 2 k / T + 16
  bool batch_invariant;
  const char* summary;
  const KernelEntry* entry;
};

inline int64_t workspace_bytes(const Kernel& kernel, const GemmProblem& problem, const DeviceInfo& device) {
  return kernel.entry->workspace_bytes == nullptr ? 0 : kernel.entry->workspace_bytes(problem, device);
}

// Every kernel, in the order of the table. `count` is set to their number.
const Kernel* kernels(int* count);
// The row called `name`, or nullptr.
const Kernel* find_kernel(const char* name);
// Empty, or why `kernel` cannot take the problem on this device.
std::string why_not(const Kernel& kernel, const GemmProblem& problem, const DeviceInfo& device);

struct Choice {
  const Kernel* kernel = nullptr;  // nullptr: nothing fits, and `reason` says why
  std::string reason;
};
enum class Reasons { kShort, kInFull };
// The kernel for a problem: a pure function of its arguments. `algo` is a name, or nullptr for auto, which takes the
// cheapest by cost_model.h. `reason` says why, in full with what each candidate would have cost.
Choice choose(const GemmProblem& problem, const DeviceInfo& device, const char* algo = nullptr,
              Reasons reasons = Reasons::kShort);
// The same, for a launch: told on stderr where the environment has TCGEMM_LOG=dispatch.
Choice choose_to_launch(const GemmProblem& problem, const DeviceInfo& device, const char* algo = nullptr);
// Every algo name, separated by ", ".
std::string kernel_names();

}  // namespace tcgemm
