// Every op's schema. STABLE_TORCH_LIBRARY may stand once for a namespace; all else uses _IMPL.
//
// For each differentiable op X there are two private ones. `_X` is X below autograd: X's own kernels, and no kernel
// on the Autograd key but a fallthrough. `_X_grad` is X above it: Python puts an autograd function on its Autograd
// key; without Python it computes like X. X's own Autograd kernel (front.cpp) picks one of them.
#include "call.h"

namespace {

// An argument called `kernel` or `cls` would break Inductor, hence `algo`.
constexpr const char* kSchemas[][2] = {
    {"mm", "(Tensor a, Tensor b, *, str? algo=None, bool batch_invariant=False) -> Tensor"},
    {"mm_out", "(Tensor a, Tensor b, *, Tensor(a!) out, str? algo=None) -> ()"},
    {"sgemm", "(Tensor a, Tensor b, *, str? algo=None) -> Tensor"},
    {"sgemm_out", "(Tensor a, Tensor b, *, Tensor(a!) out, str? algo=None) -> ()"},
    {"cublas_mm", "(Tensor a, Tensor b) -> Tensor"},
    {"cublaslt_mm", "(Tensor a, Tensor b, int heuristic) -> Tensor"},
    {"reference_mm", "(Tensor a, Tensor b) -> Tensor"},
};

}  // namespace

STABLE_TORCH_LIBRARY(tcgemm, m) {
  for (const auto& [name, signature] : kSchemas) {
    for (const std::string& full : {std::string(name), "_" + std::string(name), "_" + std::string(name) + "_grad"}) {
      m.def((full + signature).c_str());
    }
  }
  m.def("cublaslt_heuristics(Tensor a, Tensor b) -> int");
}
