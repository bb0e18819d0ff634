// The kernels on the Autograd key. Under no_grad a call goes on to the private op below autograd, one dispatch more;
// with grad mode on it goes to the one whose Autograd kernel is Python, because nothing in the stable ABI tells whether
// a tensor requires a gradient.
#include <stdexcept>

#include "call.h"

namespace tcgemm {
namespace {

void pass_on(const OpFacts& op, const char* quiet, const char* with_gradient, StableIValue* stack) {
  Call call(op, stack);
  // Here, so that the text reaches the caller: what is thrown behind torch_call_dispatcher only leaves an error
  // code, a note, and a line on stderr.
  call.check();
  tcgemm_note_error("");
  if (op.algo >= 0) stack[op.algo] = static_cast<StableIValue>(tcgemm_algo_id(call.algo));
  call.hand_on();
  const char* name = aoti_torch_grad_mode_is_enabled() ? with_gradient : quiet;
  if (torch_call_dispatcher(name, "", stack, TORCH_ABI_VERSION) == AOTI_TORCH_SUCCESS) return;
  const std::string text = tcgemm_noted_error();
  throw std::runtime_error(text.empty() ? std::string(op.name) + ": the call failed; stderr has the reason" : text);
}

#define TCGEMM_FRONT(function, facts, name)                            \
  void function(StableIValue* stack, uint64_t, uint64_t) {             \
    pass_on(facts, "tcgemm::_" name, "tcgemm::_" name "_grad", stack); \
  }
TCGEMM_FRONT(mm, kMm, "mm")
TCGEMM_FRONT(mm_out, kMmOut, "mm_out")
TCGEMM_FRONT(sgemm, kSgemm, "sgemm")
TCGEMM_FRONT(sgemm_out, kSgemmOut, "sgemm_out")
TCGEMM_FRONT(cublas_mm, kCublasMm, "cublas_mm")
TCGEMM_FRONT(cublaslt_mm, kCublasltMm, "cublaslt_mm")
TCGEMM_FRONT(reference_mm, kReferenceMm, "reference_mm")
#undef TCGEMM_FRONT

}  // namespace
}  // namespace tcgemm

STABLE_TORCH_LIBRARY_IMPL(tcgemm, Autograd, m) {
  m.impl("mm", tcgemm::mm);
  m.impl("mm_out", tcgemm::mm_out);
  m.impl("sgemm", tcgemm::sgemm);
  m.impl("sgemm_out", tcgemm::sgemm_out);
  m.impl("cublas_mm", tcgemm::cublas_mm);
  m.impl("cublaslt_mm", tcgemm::cublaslt_mm);
  m.impl("reference_mm", tcgemm::reference_mm);
}
