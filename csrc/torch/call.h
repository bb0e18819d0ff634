// What every op's C++ shares: its facts, its arguments as the dispatcher hands them over, and its checks.
//
// The stable ABI passes arguments in 64-bit slots that the callee must free. TORCH_BOX would do that, but reading
// a string through torch 2.11's headers loses its memory, so the slots are read here by hand. Passing a string to
// another op loses it as well, in torch itself: private ops get a kernel's id instead of its name.
#pragma once
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <string>

#define TCGEMM_EXPORT __attribute__((visibility("default")))

namespace tcgemm {

enum class Dtypes { kHalf, kFloat32, kAll };

struct OpFacts {
  const char* name;  // as error texts begin
  Dtypes dtypes;     // what a and b may be
  int out = -1;      // slots of these arguments; a and b are 0 and 1
  int algo = -1;
  int option = -1;          // an int or a bool
  bool algo_by_id = false;  // in the private twins of an op

  constexpr OpFacts twin() const { return {name, dtypes, out, algo, option, true}; }
};

inline constexpr OpFacts kMm{"tcgemm::mm", Dtypes::kHalf, -1, 2, 3}, kMmTwin = kMm.twin();
inline constexpr OpFacts kMmOut{"tcgemm::mm_out", Dtypes::kHalf, 2, 3}, kMmOutTwin = kMmOut.twin();
inline constexpr OpFacts kSgemm{"tcgemm::sgemm", Dtypes::kFloat32, -1, 2}, kSgemmTwin = kSgemm.twin();
inline constexpr OpFacts kSgemmOut{"tcgemm::sgemm_out", Dtypes::kFloat32, 2, 3}, kSgemmOutTwin = kSgemmOut.twin();
inline constexpr OpFacts kReferenceMm{"tcgemm::reference_mm", Dtypes::kAll};
inline constexpr OpFacts kCublasMm{"tcgemm::cublas_mm", Dtypes::kHalf};
inline constexpr OpFacts kCublasltMm{"tcgemm::cublaslt_mm", Dtypes::kHalf, -1, -1, 2};
inline constexpr OpFacts kCublasltHeuristics{"tcgemm::cublaslt_heuristics", Dtypes::kHalf};

// Notes `text` for the front (below) and throws it as std::runtime_error, which Python sees as RuntimeError.
// STD_TORCH_CHECK would add a function, an absolute path and a line.
[[noreturn]] TCGEMM_EXPORT void fail(const std::string& text);

// Throws unless the operands are right for the op. False: not known, for the sizes are symbols.
TCGEMM_EXPORT bool check_call(const OpFacts& op, AtenTensorHandle a, AtenTensorHandle b, AtenTensorHandle out,
                              const char* algo);

// The name behind an id of tcgemm_algo_id, nullptr for 0. Fails for a number that is no id.
TCGEMM_EXPORT const char* algo_of_id(const OpFacts& op, int64_t id);

// The arguments of one call. Frees their slots when it goes.
class Call {
 public:
  Call(const OpFacts& facts, const StableIValue* stack)
      : op(facts), a(tensor(stack, 0)), b(tensor(stack, 1)), out(facts.out < 0 ? nullptr : tensor(stack, facts.out)) {
    if (op.option >= 0) option = static_cast<int64_t>(stack[op.option]);
    if (op.algo < 0) return;
    if (op.algo_by_id) {
      algo_id_ = static_cast<int64_t>(stack[op.algo]);
    } else if (stack[op.algo] != 0) {  // an optional is a pointer to a slot
      optional_ = reinterpret_cast<StableIValue*>(stack[op.algo]);
      torch_string_c_str(reinterpret_cast<StringHandle>(*optional_), &algo);
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  ~Call() {
    if (optional_ != nullptr) {
      torch_delete_string(reinterpret_cast<StringHandle>(*optional_));
      delete optional_;
    }
    if (handed_on_) return;
    for (AtenTensorHandle x : {a, b, out}) {
      if (x != nullptr) aoti_torch_delete_tensor_object(x);
    }
  }

  bool check() {
    if (op.algo_by_id) algo = algo_of_id(op, algo_id_);
    return check_call(op, a, b, out, algo);
  }
  // The tensors' slots now belong to whoever gets the stack.
  void hand_on() { handed_on_ = true; }

  const OpFacts& op;
  const AtenTensorHandle a, b, out;
  const char* algo = nullptr;
  int64_t option = 0;

 private:
  static AtenTensorHandle tensor(const StableIValue* stack, int slot) {
    return reinterpret_cast<AtenTensorHandle>(stack[slot]);
  }

  int64_t algo_id_ = 0;
  StableIValue* optional_ = nullptr;
  bool handed_on_ = false;
};

// Puts `kernel` on op `name`, and `twin` on its two private twins (schema.cpp says what they are for).
using BoxedKernel = void (*)(StableIValue*, uint64_t, uint64_t);
inline void implement(torch::stable::detail::StableLibrary& m, const std::string& name, BoxedKernel kernel,
                      BoxedKernel twin) {
  m.impl(name.c_str(), kernel);
  for (const std::string& private_name : {"_" + name, "_" + name + "_grad"}) m.impl(private_name.c_str(), twin);
}

}  // namespace tcgemm

extern "C" {
// The text of this thread's last failure. An exception that crosses torch's C functions arrives as a mere error
// code; the front asks here what it said.
TCGEMM_EXPORT void tcgemm_note_error(const char* text);
TCGEMM_EXPORT const char* tcgemm_noted_error();
// A number that stands for a kernel's name in private ops and in saved graphs, whatever its place in the table:
// 63 bits of FNV-1a. 0 for null.
TCGEMM_EXPORT int64_t tcgemm_algo_id(const char* algo);
}
